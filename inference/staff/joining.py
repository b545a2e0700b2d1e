"""Where a new GPU host calls: its one-time token against the settings of its worker.

For a program, so it has neither session nor form token; the token is the only proof, and
`inference.fleet.servers.join` spends it.
"""

import json
import time
from typing import Any

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from inference.fleet import servers
from inference.fleet.errors import FleetRefused

PER_MINUTE = 10
"""Attempts from one address."""
BIGGEST = 64 * 1024


@csrf_exempt
@require_POST
@never_cache
def join(request: HttpRequest) -> JsonResponse:
    if _too_many(request):
        return JsonResponse({"error": "too_many"}, status=429, headers={"Retry-After": "60"})
    said = _read(request)
    if said is None:
        return JsonResponse({"error": "unreadable"}, status=400)
    try:
        return JsonResponse(servers.join(**said))
    except FleetRefused as refusal:
        return JsonResponse({"error": refusal.code}, status=403)


def _read(request: HttpRequest) -> dict[str, Any] | None:
    if len(request.body) > BIGGEST:
        return None
    try:
        said = json.loads(request.body)
    except ValueError:
        return None
    token = said.get("token") if isinstance(said, dict) else None
    facts = said.get("facts", {}) if isinstance(said, dict) else None
    if not (isinstance(token, str) and isinstance(facts, dict) and "\0" not in token):
        return None
    return {"token": token, "facts": facts}


def _too_many(request: HttpRequest) -> bool:
    """Without Redis nothing is counted: tokens are far too long to be guessed."""
    key = f"joins:{get_adapter().get_client_ip(request)}:{int(time.time()) // 60}"
    cache.add(key, 0, 120)
    try:
        return cache.incr(key) > PER_MINUTE
    except ValueError:
        return False
