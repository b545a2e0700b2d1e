"""Passkey forms that answer anything a browser sends with a form error."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from allauth.account.adapter import get_adapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.webauthn import forms
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.forms import Form

log = structlog.get_logger(__name__)


class _Guarded(Form):
    """fido2 reads what it is given without looking."""

    # The two steps of Django's `full_clean` at which it reads: only here is known whether the field
    # or the whole form is at fault. Django's class has them, its stubs leave them out.

    def _clean_form(self) -> None:
        with self._read(None):
            super()._clean_form()  # type: ignore[misc]

    def _clean_fields(self) -> None:
        with self._read("credential"):
            super()._clean_fields()  # type: ignore[misc]

    @contextmanager
    def _read(self, field: str | None) -> Iterator[None]:
        try:
            yield
        except (ValidationError, ImmediateHttpResponse, OperationalError):
            raise
        # fido2 documents no errors of its parsers: what a browser sends has been seen to end in
        # KeyError, TypeError, ValueError, struct.error, and those of cbor and cryptography.
        except Exception as error:  # noqa: BLE001
            log.warning("passkey_unreadable", error=type(error).__name__)
            self.add_error(field, get_adapter().validation_error("incorrect_code"))


class LoginForm(_Guarded, forms.LoginWebAuthnForm):
    pass


class AddForm(_Guarded, forms.AddWebAuthnForm):
    pass


class AuthenticateForm(_Guarded, forms.AuthenticateWebAuthnForm):
    pass


class ReauthenticateForm(_Guarded, forms.ReauthenticateWebAuthnForm):
    pass
