"""What GPU servers say about themselves, into their rows."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog
from django.utils import timezone

from inference import wake
from inference.fleet import alerts, tell
from inference.fleet.change import note_server
from inference.heartbeats import looking
from inference.models import Replica, Server
from inference.models.fleet import SILENT

log = structlog.get_logger(__name__)

MOST = 1000
"""GPUs, engines, weights … of one server."""
LARGEST = 512 * 1024
"""Bytes of a report; one with ten engines' log lines has 30,000."""
FORGOTTEN_AT_ONCE = 10


def take(name: str, report: dict[str, Any]) -> bool:
    """Stores it unless a later one is there already. False: unknown server, or old, or unreadable.

    Time is ours: a server's clock may be wrong, its serial numbers only have to grow.
    """
    server = Server.objects.filter(name=name).first()
    if server is None or not _is_safe(report):
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


def _is_safe(report: Any) -> bool:
    """The queue is not trusted: shapes and sizes of all that a page or a step relies on."""
    return (
        isinstance(report, dict)
        and len(str(report)) <= LARGEST
        and "\\u0000" not in json.dumps(report)
        and _whole(report.get("serial"), 2**62)
        and _texts(report, "address", "driver")
        and _texts(report.get("engine"), "kind", "version")
        and _rows(report.get("gpus"), _gpu)
        and _table(report.get("engines"), _engine)
        and _table(report.get("preflights", {}), _preflight)
        and _table(report.get("fetches", {}), _fetch)
        and _rows(report.get("weights", []), _text)
    )


def _whole(found: Any, most: int = 2**40) -> bool:
    return type(found) is int and 0 <= found < most


def _text(found: Any) -> bool:
    return isinstance(found, str)


def _texts(found: Any, *names: str) -> bool:
    return isinstance(found, dict) and all(_text(found.get(name)) for name in names)


def _rows(found: Any, good: Callable[[Any], bool]) -> bool:
    return isinstance(found, list) and len(found) <= MOST and all(map(good, found))


def _table(found: Any, good: Callable[[Any], bool]) -> bool:
    return isinstance(found, dict) and len(found) <= MOST and all(map(good, found.values()))


def _gpu(found: Any) -> bool:
    names = ("index", "total_mib", "used_mib")
    return isinstance(found, dict) and all(_whole(found.get(name)) for name in names)


def _engine(found: Any) -> bool:
    """`cause` is either nothing or a code with a text, `progress` nothing or a percentage."""
    if not _texts(found, "state"):
        return False
    cause, progress = found.get("cause"), found.get("progress")
    return (
        _rows(found.get("log", []), _text)
        and (cause is None or _texts(cause, "code", "text"))
        and (progress is None or isinstance(progress, int | float))
        and _whole(found.get("left", 0))
    )


def _preflight(found: Any) -> bool:
    return _texts(found, "state") and _rows(found.get("checks", []), _check)


def _fetch(found: Any) -> bool:
    return _texts(found, "state") and isinstance(found.get("at", 0), int | float)


def _check(found: Any) -> bool:
    return _texts(found, "name", "code", "detail") and isinstance(found.get("ok"), bool)


def ask_all() -> None:
    """On the beat: every server that should be there is asked, and missed when it is silent, but
    only if it was asked all the while."""
    now = datetime.now(UTC)
    asked = now - looking(now) > SILENT
    servers = list(Server.objects.exclude(joined_at=None, join_until=None))
    # Read after the reports: whatever engine one of them names was in a row before it was started.
    held = set(Replica.objects.exclude(instance="").values_list("instance", flat=True))
    for server in servers:
        for instance in _over(server.report, held):
            tell.forget(server, instance)
        tell.report(server)
        if server.joined_at and server.active and server.silent(now):
            if asked:
                alerts.open_alert("server_silent", server=server)
        else:
            alerts.close_alert("server_silent", server=server)


def _over(report: dict[str, Any], held: set[str]) -> list[str]:
    """Engines that have ended and that no replica asks about any more: unless the server forgets
    them, its reports grow with each that it ever ran."""
    found = report.get("engines", {}).items()
    ended = (name for name, row in found if row["state"] == "exited" and not row.get("left"))
    return sorted(set(ended) - held)[:FORGOTTEN_AT_ONCE]
