"""How a GPU server comes in: an invitation with a one-time token, and the answer to it."""

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from inference.fleet import alerts, tell
from inference.fleet.change import note_server
from inference.fleet.errors import FleetRefused
from inference.models import FleetEvent, Server

TOKEN_LIFE = timedelta(hours=24)


def invite(*, name: str, seats: int, actor: Any) -> tuple[Server, str]:
    """The row and the token, which is nowhere else: only its digest is kept.

    Whoever invited it last may do so again, as with a button pressed twice: a new token replaces
    the old one. Another admin is told that it is there: her token would end the other one's unseen.
    """
    token = secrets.token_urlsafe(32)
    values = {
        "seats": seats,
        "join_digest": _digest(token),
        "join_until": timezone.now() + TOKEN_LIFE,
    }
    with transaction.atomic():
        server, created = Server.objects.get_or_create(name=name, defaults=values)
        if not created:
            locked = Server.objects.select_for_update().filter(pk=server.pk).first()
            if locked is None:
                raise FleetRefused("server_gone")
            if _invited_by(locked) != (actor and actor.pk):
                raise FleetRefused("name_taken")
            Server.objects.filter(pk=locked.pk).update(**values)
            server.refresh_from_db()
        note_server(server, "invited", actor=actor)
    return server, token


def _invited_by(server: Server) -> int | None:
    invitations = FleetEvent.objects.filter(server=server, what="invited").order_by("-at", "-pk")
    return invitations.values_list("actor", flat=True).first()


def renew_token(*, server: Server, actor: Any) -> str:
    """Another token for one that has never reported; the old one ends. Its seats stay."""
    token = secrets.token_urlsafe(32)
    waiting = Server.objects.filter(pk=server.pk, reported_at=None)
    if not waiting.update(join_digest=_digest(token), join_until=timezone.now() + TOKEN_LIFE):
        there = Server.objects.filter(pk=server.pk).exists()
        raise FleetRefused("server_reports" if there else "server_gone")
    note_server(server, "invited", actor=actor)
    return token


def delete(*, server: Server, actor: Any) -> None:
    """The row, its token, its alerts and what waits on its queue; its worker is asked and believed
    no more. What happened to it stays, by its name. Refused while a replica stands on it."""
    with transaction.atomic():
        locked = Server.objects.select_for_update().filter(pk=server.pk).first()
        if locked is None:
            raise FleetRefused("server_gone")
        if locked.replicas.exists():
            raise FleetRefused("server_has_replicas")
        alerts.part_with(server=locked)
        FleetEvent.objects.filter(server=locked, detail="").update(detail=locked.name)
        FleetEvent.objects.create(what="server_deleted", detail=locked.name, actor=actor)
        locked.delete()
    tell.drop_queue(server)


def join(*, token: str, address: str) -> dict[str, str]:
    """What the new host's worker needs, against the token, once.

    Two hosts with one token: the conditional UPDATE lets one through.
    """
    waiting = Server.objects.filter(join_digest=_digest(token), join_until__gt=timezone.now())
    server = waiting.first()
    if not (settings.GPU_REDIS_URL and settings.ENGINE_API_KEY):
        raise FleetRefused("no_redis_for_servers")
    if server is None or not waiting.filter(pk=server.pk).update(join_digest=""):
        raise FleetRefused("token_unknown")
    note_server(server, "token_used", detail=address)
    return {
        "NAN_GPU_NAME": server.name,
        "NAN_GPU_ADDRESS": address,
        "REDIS_URL": settings.GPU_REDIS_URL,
        "ENGINE_API_KEY": settings.ENGINE_API_KEY,
        "SITE_URL": settings.SITE_URL,
    }


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
