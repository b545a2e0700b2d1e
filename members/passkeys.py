"""Passkey forms that answer anything a browser sends with a form error."""

from typing import Any

import structlog
from allauth.account.adapter import get_adapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.webauthn import forms
from django.core.exceptions import ValidationError
from django.db import OperationalError

log = structlog.get_logger(__name__)


class _Guarded:
    """fido2 reads what it is given without looking: it may fail in any way."""

    def _clean_form(self) -> None:
        try:
            super()._clean_form()  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  (whatever it was)
            self._refuse(None, error)

    def _clean_fields(self) -> None:
        try:
            super()._clean_fields()  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  (whatever it was)
            self._refuse("credential", error)

    def _refuse(self, field: str | None, error: Exception) -> None:
        if isinstance(error, ValidationError | ImmediateHttpResponse | OperationalError):
            raise error
        log.warning("passkey_unreadable", error=type(error).__name__)
        form: Any = self
        form.add_error(field, get_adapter().validation_error("incorrect_code"))


class LoginForm(_Guarded, forms.LoginWebAuthnForm):  # type: ignore[misc]
    pass


class AddForm(_Guarded, forms.AddWebAuthnForm):  # type: ignore[misc]
    pass


class AuthenticateForm(_Guarded, forms.AuthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class ReauthenticateForm(_Guarded, forms.ReauthenticateWebAuthnForm):  # type: ignore[misc]
    pass
