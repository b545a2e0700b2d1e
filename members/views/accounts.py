"""The one page of allauth's that behaves differently here."""

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.forms import SetPasswordForm
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.account.views import ConfirmEmailView
from django.contrib import messages
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from members import addresses, letters
from members.models import User


@never_cache
@sensitive_post_parameters()
def confirm_address(request: HttpRequest, key: str) -> HttpResponse:
    """Opening the link changes nothing, so a mail scanner can't use it up; the button confirms.

    Who opens it again, or presses twice, reads that it is done instead of "invalid link".
    """
    if is_confirmed(key):
        return render(request, "members/already_confirmed.html")
    confirmation = EmailConfirmationHMAC.from_key(key)
    if confirmation is None:
        return render(request, "members/confirm_dead.html")
    address = confirmation.email_address
    if addresses.is_change(address):
        if request.user != address.user:
            return _not_her_account(request, address)
    elif not addresses.knows(request, address.user):
        return _confirm_elsewhere(request, address)
    response: HttpResponse = ConfirmEmailView.as_view()(request, key=key)
    return response


def is_confirmed(key: str) -> bool:
    max_age = 24 * 3600 * app_settings.EMAIL_CONFIRMATION_EXPIRE_DAYS
    try:
        pk = signing.loads(key, max_age=max_age, salt=app_settings.SALT)
    except signing.BadSignature:
        return False
    return bool(EmailAddress.objects.filter(pk=pk, verified=True).exists())


def _not_her_account(request: HttpRequest, address: EmailAddress) -> HttpResponse:
    """Nobody gives her address to another account by a click in a mail."""
    context = {
        "email": address.email,
        "account": letters.masked(address.user.email),
        "login": f"{reverse('account_login')}?next={request.path}",
    }
    return render(request, "members/confirm_change.html", context)


def _confirm_elsewhere(request: HttpRequest, address: EmailAddress) -> HttpResponse:
    """This browser did not sign up, so the password of the sign-up may be anybody's: it goes."""
    form = SetPasswordForm(address.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        if _take(request, address, form.cleaned_data["password1"]):
            messages.success(request, _("Your password is set."))
            return addresses.sign_in(request, User.objects.get(pk=address.user_id))
        return render(request, "members/confirm_dead.html")
    context = {"form": form, "email": address.email}
    return render(request, "members/confirm_elsewhere.html", context)


@transaction.atomic
def _take(request: HttpRequest, address: EmailAddress, password: str) -> bool:
    """Confirms, and replaces every credential of the account: both or neither."""
    if not get_adapter(request).confirm_email(request, address):
        return False
    addresses.begin_anew(address.user, password=password)
    return True
