"""Opening and closing alerts: one row for a trouble, however often it is noticed."""

from datetime import datetime
from typing import Any, TypedDict, Unpack

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from inference.models import Alert, FleetEvent, Replica, Server, Slot, Swap


class About(TypedDict, total=False):
    """What an alert is about; nothing of it: the fleet as a whole."""

    server: Server
    replica: Replica
    swap: Swap
    slot: Slot


def open_alert(
    code: str, *, detail: str = "", at: datetime | None = None, **about: Unpack[About]
) -> None:
    """One that is open already says from now on what is true now, and is not told of again. `at`:
    when it began, if that was found out later."""
    found, detail = _open(code, about), detail[:400]
    told = found.values_list("detail", flat=True).first()
    if told is not None:
        if detail and detail != told:
            found.update(detail=detail)
        return
    try:
        with transaction.atomic():
            Alert.objects.create(code=code, detail=detail, opened_at=at or timezone.now(), **about)
    except IntegrityError:
        return


def close_alert(code: str, *, at: datetime | None = None, **about: Unpack[About]) -> None:
    _open(code, about).update(closed_at=at or timezone.now())


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
    """It serves again, or is to be off and is: whatever was open about it is over."""
    Alert.objects.filter(replica=replica, closed_at=None).update(closed_at=timezone.now())


def part_with(**about: Unpack[About]) -> None:
    """What it is about is about to be deleted: closed, and kept so that the webhook, told of its
    beginning, hears of its end."""
    found = Alert.objects.filter(**about)
    found.filter(closed_at=None).update(closed_at=timezone.now())
    found.update(**dict.fromkeys(about))


def _open(code: str, about: About) -> QuerySet[Alert]:
    """About exactly this: what is not named has to be empty."""
    exactly = {name: about.get(name) for name in About.__annotations__}
    return Alert.objects.filter(code=code, closed_at=None, **exactly)
