"""Opening and closing alerts: one row for a trouble, however often it is noticed."""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from inference.models import Alert, FleetEvent, Replica, Server, Slot, Swap


def open_alert(
    code: str,
    *,
    server: Server | None = None,
    replica: Replica | None = None,
    swap: Swap | None = None,
    slot: Slot | None = None,
    detail: str = "",
) -> None:
    """Does nothing if it is open already."""
    about: dict[str, Any] = {
        "code": code,
        "server": server,
        "replica": replica,
        "swap": swap,
        "slot": slot,
    }
    if Alert.objects.filter(**_exactly(about), closed_at=None).exists():
        return
    try:
        with transaction.atomic():
            Alert.objects.create(**about, detail=detail[:400])
    except IntegrityError:
        return


def close_alert(
    code: str,
    *,
    server: Server | None = None,
    replica: Replica | None = None,
    swap: Swap | None = None,
    slot: Slot | None = None,
) -> None:
    about = _about(code, server=server, replica=replica, swap=swap, slot=slot)
    Alert.objects.filter(**_exactly(about), closed_at=None).update(closed_at=timezone.now())


def dismiss(alert: Alert, *, actor: Any) -> None:
    """Somebody has seen it and wants it off the page; it opens again if it is noticed again."""
    if Alert.objects.filter(pk=alert.pk, closed_at=None).update(closed_at=timezone.now()):
        FleetEvent.objects.create(
            server_id=alert.server_id,
            replica_id=alert.replica_id,
            swap_id=alert.swap_id,
            what="alert_dismissed",
            detail=alert.code,
            actor=actor,
        )


def close_of_slot(code: str, slot: Slot) -> None:
    """What was open about earlier swaps of a slot is over when the next one is planned."""
    Alert.objects.filter(code=code, swap__slot=slot, closed_at=None).update(
        closed_at=timezone.now()
    )


def close_all(replica: Replica) -> None:
    """It serves again: whatever was open about it is over."""
    Alert.objects.filter(replica=replica, closed_at=None).update(closed_at=timezone.now())


def _about(code: str, **things: Any) -> dict[str, Any]:
    return {"code": code, **things}


def _exactly(about: dict[str, Any]) -> dict[str, Any]:
    return {
        name if value is not None else f"{name}__isnull": value if value is not None else True
        for name, value in about.items()
    }
