"""Looking after engines that serve; `inference.watch` says what a sample is and what is bad."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from inference import watch
from inference.fleet import alerts, measuring
from inference.fleet.sight import engine
from inference.models import Kind, Replica, ReplicaState
from inference.watch import Sample, Verdict

KEPT_FIRST, KEPT_LAST = 6, 20
"""The beginning is the measure for slowness, the end is judged; between them nothing is needed."""


def due(replica: Replica, now: datetime) -> bool:
    last = replica.watch.get("asked_at")
    verdict = Verdict(**replica.watch.get("verdict", {"state": "ok"}))
    pause = timedelta(seconds=watch.pause_before_next(verdict))
    return last is None or now - datetime.fromisoformat(last) >= pause


def in_doubt(replica: Replica) -> bool:
    """Something was odd, and it is not known yet whether it is bad. Load is nothing odd."""
    verdict = Verdict(**replica.watch.get("verdict", {"state": "ok"}))
    return verdict.state == "suspect" and verdict.code != "watch_busy"


def mark_asked(replica: Replica, now: datetime) -> None:
    """So that the next round does not ask again."""
    replica.watch = {**replica.watch, "asked_at": now.isoformat()}
    Replica.objects.filter(pk=replica.pk, version=replica.version).update(watch=replica.watch)


def run(replica_id: int, instance: str) -> None:
    """One sample, then the verdict. The fleet pass acts on it: `machine` takes a bad replica out of
    the pool if others stay."""
    replica = Replica.objects.whole().get(pk=replica_id)
    if replica.instance != instance or replica.state != ReplicaState.SERVING:
        return
    embedding = replica.slot.kind == Kind.EMBEDDING
    with engine(replica) as client:
        sample = watch.probe(client, replica.slot.name, embedding=embedding)
        measured = replica.watch.get("measured") or measuring.note(client, replica)
    samples = [*replica.watch.get("samples", []), sample.to_json()]
    verdict = watch.judge(_read(samples), _others(replica))
    kept: dict[str, Any] = {
        **replica.watch,
        "samples": [*samples[:KEPT_FIRST], *samples[KEPT_FIRST:][-KEPT_LAST:]],
        "verdict": {"state": verdict.state, "code": verdict.code},
        "measured": measured,
    }
    kept.pop("bad", None)
    if verdict.state == "bad":
        kept["bad"] = verdict.code
    else:
        alerts.close_alert("last_replica_bad", replica=replica)
    ours = Replica.objects.filter(pk=replica_id, instance=instance, state=ReplicaState.SERVING)
    ours.update(watch=kept, version=F("version") + 1)


def _others(replica: Replica) -> list[list[Sample]] | None:
    """Of its model; while a swap watches it, of the old one too: that is what members had. None
    where it serves alone."""
    serving = Replica.objects.serving().filter(slot=replica.slot).exclude(pk=replica.pk)
    if not serving:
        return None
    swap = replica.swap
    watched = swap is not None and swap.to_model_id == replica.model_id
    fair = [one for one in serving if watched or one.model_id == replica.model_id]
    return [_read(one.watch.get("samples", [])) for one in fair]


def _read(samples: list[dict[str, Any]]) -> list[Sample]:
    return [Sample.from_json(row) for row in samples]
