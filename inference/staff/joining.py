"""Where a new GPU host calls: its one-time token against the settings of its worker.

For a program (`inference.gpu.join` says what is sent and answered), so it has neither session nor
form token; the token is the only proof, and `inference.fleet.servers.join` spends it.
"""

import ipaddress
import time

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest, JsonResponse
from django.utils import translation
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from inference.fleet import servers
from inference.fleet.errors import FleetRefused
from inference.fleet.words import words
from nan.unreadable import read_json

PER_MINUTE = 10
"""Attempts from one address."""
BIGGEST = 64 * 1024


@csrf_exempt
@require_POST
@never_cache
def join(request: HttpRequest) -> JsonResponse:
    if _too_many(request):
        return _refused("too_many", status=429)
    try:
        token, address = _read(request)
        return JsonResponse({"settings": servers.join(token=token, address=address)})
    except FleetRefused as refusal:
        return _refused(refusal.code)


def _refused(code: str, status: int = 403) -> JsonResponse:
    """In English, as everything that programs print."""
    with translation.override("en"):
        return JsonResponse({"error": code, "text": str(words(code))}, status=status)


def _read(request: HttpRequest) -> tuple[str, str]:
    """Token and address. What else is sent, the worker reports again by itself."""
    try:
        said = read_json(request.body if len(request.body) <= BIGGEST else b"")
        token, address = said["token"], ipaddress.ip_address(str(said["address"]))
    except (ValueError, KeyError, TypeError):
        raise FleetRefused("unreadable") from None
    if not isinstance(token, str) or "%" in str(address):  # a link's own scope means nothing here
        raise FleetRefused("unreadable")
    if not (address.is_private or address.is_loopback) or address.is_unspecified:
        raise FleetRefused("address_refused")
    return token, str(address)


def _too_many(request: HttpRequest) -> bool:
    """Without Redis nothing is counted: tokens are far too long to be guessed."""
    key = f"joins:{get_adapter().get_client_ip(request)}:{int(time.time()) // 60}"
    cache.add(key, 0, 120)
    try:
        return cache.incr(key) > PER_MINUTE
    except ValueError:
        return False
