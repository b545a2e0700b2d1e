"""How allauth's accounts behave here: one person per address, no hints about who has an account.

Every mail goes through the outbox; links are made there from SITE_URL, so that the Host header of
whoever caused the mail has no say in them.
"""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.ratelimit import respond_429
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import gettext as _

from members import addresses, mails, membership
from members.models import User

SECURITY_NOTICES = {
    "account/email/password_changed": "password_changed",
    "account/email/password_reset": "password_changed",
    "account/email/password_set": "password_changed",
    "account/email/email_changed": "email_changed",
    "account/email/email_deleted": "email_changed",
    "socialaccount/email/account_connected": "github_connected",
    "socialaccount/email/account_disconnected": "github_disconnected",
    "mfa/email/totp_activated": "totp_on",
    "mfa/email/totp_deactivated": "totp_off",
    "mfa/email/webauthn_added": "passkey_added",
    "mfa/email/webauthn_removed": "passkey_removed",
    "mfa/email/recovery_codes_generated": "recovery_codes",
}
"""allauth's notices that we send; each has a sentence in emails/security."""


ADDRESS_LENGTH = 254
"""As much as the columns hold, and as RFC 5321 allows."""


class AccountAdapter(DefaultAccountAdapter):
    def save_user(
        self, request: HttpRequest, user: User, form: BaseForm, commit: bool = True
    ) -> User:
        user.language = translation.get_language() or ""
        try:
            with transaction.atomic():
                saved: User = super().save_user(request, user, form, commit)
        except IntegrityError:  # the same address a moment ago: answer as for any known address
            raise ImmediateHttpResponse(
                self.respond_email_verification_sent(request, None)
            ) from None
        return saved

    def clean_email(self, email: str) -> str:
        """Every form that takes an address: none that the database has no room for."""
        if len(email) > ADDRESS_LENGTH:
            raise ValidationError(_("This address is too long."))
        return email

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        addresses.remember(request, user)
        response: HttpResponse | None = super().pre_login(request, user, **kwargs)
        return response

    def set_password(self, user: User, password: str) -> None:
        """Set before the address was ever confirmed: nothing older may stay a way in."""
        if not EmailAddress.objects.filter(user=user, verified=True).exists():
            addresses.forget_credentials(user)
            user.refresh_from_db()
        super().set_password(user, password)

    def login(self, request: HttpRequest, user: User) -> None:
        """What is said from here on is in her language, as on every page after this one."""
        super().login(request, user)
        if user.language and settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
            translation.activate(user.language)

    # -- mails: the row only; what is said, and every link, is made by the worker ----------------
    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Every mail of allauth's that has no function of its own below is a security notice.

        Who has no account is not written to.
        """
        if template_prefix == "account/email/unknown_account":
            mails.to_nobody(email)
            return
        what, user = SECURITY_NOTICES.get(template_prefix), context.get("user")
        if what and user:
            mails.security(user, what=what, to=email)

    def send_notification_mail(
        self,
        template_prefix: str,
        user: User,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        """allauth adds the reader's address and browser here; we neither send nor store them."""
        self.send_mail(template_prefix, email or user.email, {"user": user})

    def send_confirmation_mail(
        self, request: HttpRequest, emailconfirmation: EmailConfirmationHMAC, signup: bool
    ) -> None:
        mails.confirm(emailconfirmation.email_address)

    def send_account_already_exists_mail(self, email: str) -> None:
        """An account that nobody has confirmed yet is not told of: it gets its link once more."""
        make_password("as long as a new account's")  # the same work, so the same time
        user = User.objects.filter(email=email.lower()).first()
        if user is None:
            return
        address = EmailAddress.objects.filter(user=user).order_by("-verified").first()
        if address and not address.verified:
            mails.confirm(address)
        else:
            mails.account_exists(user)

    def send_password_reset_mail(self, user: User, email: str, context: dict[str, Any]) -> None:
        """Only to the account's own address: never to one she typed but has not confirmed."""
        if user.email == email.lower():
            mails.reset_password(user)

    # -- rate limits -----------------------------------------------------------------------------
    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Failed sign-ins are counted for an account *and* where they come from.

        So nobody can lock an owner out from somewhere else (docs/decisions.md).
        """
        account = str(credentials.get("email", "")).lower()
        return f"{account}:{self.get_client_ip(request)}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        try:
            super().pre_authenticate(request, **credentials)
        except Exception as refusal:
            if getattr(refusal, "code", "") == "too_many_login_attempts":
                raise ImmediateHttpResponse(respond_429(request)) from None
            raise

    # -- confirmation ----------------------------------------------------------------------------
    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        """The address becomes hers, and she a member if she is approved: both or neither."""
        with transaction.atomic():
            addresses.lock(email_address.email)
            if not EmailAddress.objects.filter(pk=email_address.pk, verified=False).exists():
                return False  # a newer sign-up replaced this one a moment ago
            addresses.drop_claims(email_address.email, keep=email_address.user)
            confirmed: bool = super().confirm_email(request, email_address)
            if confirmed:
                membership.activate(users=[email_address.user_id])
        return confirmed


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def get_app(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        """Without GitHub in the settings its pages are not there."""
        try:
            return super().get_app(request, provider, client_id)
        except SocialApp.DoesNotExist:
            raise Http404 from None

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """The owner of an address arrives with proof: whoever took it without proof has to go.

        An account whose owner *has* proved the address is never merged: GitHub sign-in is added
        to it from her account page, while signed in.
        """
        _keep_little(sociallogin)
        if sociallogin.is_existing:
            return
        for address in sociallogin.email_addresses:
            if address.verified:
                with transaction.atomic():
                    addresses.lock(address.email)
                    addresses.drop_claims(address.email)

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: Any) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        user.name = str(data.get("name") or "")[: User._meta.get_field("name").max_length]
        user.language = translation.get_language() or ""
        return user


def _keep_little(sociallogin: SocialLogin) -> None:
    """Of GitHub's profile we keep the name of the account; its id is a column of its own."""
    account = sociallogin.account
    account.extra_data = {"login": account.extra_data.get("login", "")}
    if account.pk:
        account.save(update_fields=["extra_data"])
