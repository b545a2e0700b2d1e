"""A small fleet in rows, whose servers say what a test makes them say."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from inference.fleet.machine import Sight, advance
from inference.models import (
    CatalogModel,
    Goal,
    Kind,
    Replica,
    ReplicaState,
    Server,
    Slot,
)
from inference.places import Seen


def catalog_model(name: str, **fields: Any) -> CatalogModel:
    values: dict[str, Any] = {
        "title": name.title(),
        "repo": f"tests/{name}",
        "revision": "0" * 39 + str(len(name) % 10),
        "licence": "MIT",
        "weights_mib": 1000,
        "memory_mib": 2000,
        "context_length": 8192,
        "capabilities": ["tools"],
        "load_seconds": 60,
    }
    return CatalogModel.objects.create(name=name, **{**values, **fields})


def server(name: str = "one", *, gpus: int = 2) -> Server:
    made = Server.objects.create(name=name, seats=10, joined_at=timezone.now())
    say(made, gpus=[gpu(n) for n in range(gpus)])
    return made


def gpu(index: int, *, used: int = 100) -> dict[str, Any]:
    return {"index": index, "name": "Card", "total_mib": 24_576, "used_mib": used, "foreign_mib": 0}


def say(
    of: Server,
    *,
    at: datetime | None = None,
    gpus: list[dict[str, Any]] | None = None,
    **engines: Any,
) -> None:
    """The server's next report: engines by their instance; those it does not name are gone."""
    report = {
        "serial": of.report_serial + 1,
        "engine": {"kind": "simulator", "version": "1"},
        "driver": "process",
        "address": "127.0.0.1",
        "gpus": gpus if gpus is not None else of.gpus,
        "engines": engines.pop("engines", {}),
        **engines,
    }
    Server.objects.filter(pk=of.pk).update(
        report=report,
        report_serial=report["serial"],
        reported_at=at or timezone.now(),
        address="127.0.0.1",
        gpus=report["gpus"],
    )
    of.refresh_from_db()


def slot(name: str = "nan", *, model: CatalogModel | None = None, number: int = 1) -> Slot:
    return Slot.objects.create(
        name=name, title=name, number=number, model=model, kind=model.kind if model else Kind.CHAT
    )


def replica(of: Slot, on: Server, number: int = 1, **fields: Any) -> Replica:
    values: dict[str, Any] = {"gpus": [number - 1], "port": 8100 + number, "number": number}
    return Replica.objects.create(slot=of, server=on, **{**values, **fields})


def serving(of: Slot, on: Server, number: int = 1, **fields: Any) -> Replica:
    model = of.model
    made = replica(
        of,
        on,
        number,
        goal=Goal.SERVE,
        goal_number=1,
        goal_model=model,
        model=model,
        state=ReplicaState.SERVING,
        instance=f"r{number}-g1-v0",
        names=[model.name, of.name] if model else [],
        **fields,
    )
    say(on, engines={**on.report.get("engines", {}), made.instance: running()})
    return made


def running(**more: Any) -> dict[str, Any]:
    return {"state": "running", "left": 1, "cause": None, "log": [], "progress": None, **more}


def exited(code: str = "", text: str = "", *, left: int = 0) -> dict[str, Any]:
    cause = {"code": code, "text": text} if code else None
    return {"state": "exited", "left": left, "cause": cause, "log": [], "progress": None}


def seen(*, in_service: bool = False, sessions: int = 0, status: str = "DRAIN") -> Seen:
    return Seen(in_service=in_service, proven=True, status=status, sessions=sessions, changed=())


def look(of: Replica, *, later: float = 0, **sight: Any) -> Replica:
    """One step of the machine, `later` seconds from now; the replica as it is afterwards."""
    found = Replica.objects.whole().get(pk=of.pk)
    advance(found, Sight(now=timezone.now() + timedelta(seconds=later), **sight))
    return Replica.objects.whole().get(pk=of.pk)
