"""Smoke tests of an engine that no member reaches yet; the checks are `inference.smoke`."""

import time
from typing import Any

from inference import smoke
from inference.excerpt import excerpt
from inference.fleet.sight import engine
from inference.models import CatalogModel, Replica, ReplicaState

TASK_SECONDS = 8
"""No new check is begun after this; one takes up to twenty more."""


def target(replica: Replica) -> smoke.Target:
    model = replica.model
    if model is None:
        raise ValueError("Nothing runs here.")
    return smoke.Target(
        name=replica.names[0],
        names=tuple(replica.names),
        capabilities=frozenset({model.kind, *model.capabilities, *_configured(model)}),
        context=model.context_length,
    )


def _configured(model: CatalogModel) -> set[str]:
    """What the engine is told to do and so has to be seen doing, whatever the model is good at."""
    return {"speculative"} if model.flags.get("speculative-config") else set()


def run(replica_id: int, instance: str) -> None:
    """Goes on with the checks that have no outcome yet, and stores each as soon as it is known.

    A row that has moved on meanwhile (aborted, another engine) takes no more outcomes.
    """
    replica = Replica.objects.whole().get(pk=replica_id)
    ours = Replica.objects.filter(pk=replica_id, instance=instance, state=ReplicaState.CHECKING)
    about, began = target(replica), time.monotonic()
    checks = replica.checks or [_pending(name) for name in smoke.checks_for(about)]
    for position, check in enumerate(checks):
        if check["ok"] is None and time.monotonic() - began < TASK_SECONDS:
            checks[position] = _outcome(check["name"], replica, about)
            if not ours.update(checks=checks) or not checks[position]["ok"]:
                break
    ours.update(check_until=None)


def _pending(name: str) -> dict[str, Any]:
    return {"name": name, "ok": None, "code": "", "detail": "", "seconds": 0.0}


def _outcome(name: str, replica: Replica, about: smoke.Target) -> dict[str, Any]:
    with engine(replica) as client:
        outcome = smoke.run(name, client, about)
    return {
        "name": name,
        "ok": outcome.ok,
        "code": outcome.code,
        "detail": excerpt(outcome.detail, 300),
        "seconds": round(outcome.seconds, 2),
    }
