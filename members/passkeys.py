"""Passkey forms that answer anything a browser sends with a form error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from allauth.account.adapter import get_adapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.webauthn import forms
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.forms import Form, HiddenInput

from nan.unreadable import PastedJSON

log = structlog.get_logger(__name__)


@contextmanager
def _reading() -> Iterator[None]:
    """fido2 reads what it is given without looking."""
    try:
        yield
    except (ValidationError, ImmediateHttpResponse, OperationalError):
        raise
    # fido2 documents no errors of its parsers: what a browser sends has been seen to end in
    # KeyError, TypeError, ValueError, struct.error, and those of cbor and cryptography.
    except Exception as error:  # noqa: BLE001
        log.warning("passkey_unreadable", error=type(error).__name__)
        raise get_adapter().validation_error("incorrect_code") from None


class _Sent(Form):
    credential = PastedJSON(required=True, widget=HiddenInput)


class _Using(_Sent, forms.AuthenticateWebAuthnForm):
    def clean_credential(self) -> Any:
        with _reading():
            return super().clean_credential()


class AddForm(_Sent, forms.AddWebAuthnForm):
    def clean(self) -> Any:
        with _reading():
            return super().clean()


class LoginForm(_Using, forms.LoginWebAuthnForm):
    pass


class AuthenticateForm(_Using):
    pass


class ReauthenticateForm(_Using, forms.ReauthenticateWebAuthnForm):
    pass
