"""Opening and closing alerts: one row for a trouble, however often it is noticed."""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from inference.models import Alert, Replica, Server, Swap


def open_alert(
    code: str,
    *,
    server: Server | None = None,
    replica: Replica | None = None,
    swap: Swap | None = None,
    detail: str = "",
) -> None:
    """Does nothing if it is open already."""
    about: dict[str, Any] = {"code": code, "server": server, "replica": replica, "swap": swap}
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
) -> None:
    about = {"code": code, "server": server, "replica": replica, "swap": swap}
    Alert.objects.filter(**_exactly(about), closed_at=None).update(closed_at=timezone.now())


def close_all(replica: Replica) -> None:
    """It serves again: whatever was open about it is over."""
    Alert.objects.filter(replica=replica, closed_at=None).update(closed_at=timezone.now())


def _exactly(about: dict[str, Any]) -> dict[str, Any]:
    return {
        name if value is not None else f"{name}__isnull": value if value is not None else True
        for name, value in about.items()
    }
