"""The one page of allauth's that behaves differently here."""

from allauth.account import app_settings
from allauth.account.models import EmailAddress
from allauth.account.views import ConfirmEmailView
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def confirm_address(request: HttpRequest, key: str) -> HttpResponse:
    """Opening the link changes nothing, so a mail scanner can't use it up; the button confirms.

    Who opens it again, or presses twice, reads that it is done instead of "invalid link".
    """
    if is_confirmed(key):
        return render(request, "members/already_confirmed.html")
    response: HttpResponse = ConfirmEmailView.as_view()(request, key=key)
    return response


def is_confirmed(key: str) -> bool:
    max_age = 24 * 3600 * app_settings.EMAIL_CONFIRMATION_EXPIRE_DAYS
    try:
        pk = signing.loads(key, max_age=max_age, salt=app_settings.SALT)
    except signing.BadSignature:
        return False
    return bool(EmailAddress.objects.filter(pk=pk, verified=True).exists())
