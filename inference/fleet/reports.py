"""What GPU servers say about themselves, into their rows."""

from datetime import UTC, datetime
from typing import Any

import structlog
from django.utils import timezone

from inference import wake
from inference.fleet import alerts, tell
from inference.fleet.change import note_server
from inference.models import Server

log = structlog.get_logger(__name__)

LARGEST = 512 * 1024
"""Bytes of a report; one with ten engines' log lines has 30,000."""


def take(name: str, report: dict[str, Any]) -> bool:
    """Stores it unless a later one is there already. False: unknown server, or old, or unreadable.

    Time is ours: a server's clock may be wrong, its serial numbers only have to grow.
    """
    server = Server.objects.filter(name=name).first()
    if server is None or len(str(report)) > LARGEST or not _readable(report):
        log.warning("report_refused", server=name[:40])
        return False
    newer = Server.objects.filter(pk=server.pk, report_serial__lt=report["serial"])
    engine = report["engine"]
    stored = newer.update(
        report=report,
        report_serial=report["serial"],
        reported_at=timezone.now(),
        address=report["address"],
        driver=report["driver"],
        engine=f"{engine['kind']} {engine['version']}"[:60],
        gpus=report["gpus"],
        joined_at=server.joined_at or timezone.now(),
    )
    if stored and server.joined_at is None:
        note_server(server, "joined")
    if stored and _states(report) != _states(server.report):
        wake.fleet()
    return bool(stored)


def _states(report: dict[str, Any]) -> dict[str, str]:
    """Of the engines: when one has come or gone, nobody should wait for the beat."""
    return {name: found.get("state", "") for name, found in report.get("engines", {}).items()}


def _readable(report: dict[str, Any]) -> bool:
    """As much as is relied on further on; the rest is looked up with defaults."""
    return (
        isinstance(report.get("serial"), int)
        and isinstance(report.get("address"), str)
        and isinstance(report.get("driver"), str)
        and isinstance(report.get("gpus"), list)
        and isinstance(report.get("engines"), dict)
        and {"kind", "version"} <= set(report.get("engine") or ())
        and all({"index", "total_mib", "used_mib"} <= set(gpu) for gpu in report["gpus"])
    )


def ask_all() -> None:
    """On the beat: every server that should be there is asked, and missed when it is silent."""
    now = datetime.now(UTC)
    for server in Server.objects.exclude(joined_at=None, join_until=None):
        tell.report(server)
        if server.joined_at and server.active and server.silent(now):
            alerts.open_alert("server_silent", server=server)
        else:
            alerts.close_alert("server_silent", server=server)
