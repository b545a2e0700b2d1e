"""Twice a minute: what each engine in service counted since the last time, how each slot stands in
the pool, and how the API answers. One look at the pool, one GET /metrics for each engine and one
call with an unknown key, nothing more.

What nobody saw is nobody's downtime: after a break, such as a stop of everything, the first look
only notes where the counters stand. A slot whose engines all just begin is not down either; it has
no sample until one serves, or fails. Of a slot that admins have taken out it is noted that they
have.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.utils import timezone

from inference.edge import look
from inference.engine import EngineUnavailable
from inference.engine_metrics import EngineMetrics, Histogram
from inference.fleet.sight import engine, pool
from inference.heartbeats import UNBROKEN
from inference.models import (
    ApiSample,
    ApiState,
    Goal,
    Heartbeat,
    LastCount,
    Replica,
    ReplicaSample,
    ReplicaState,
    Slot,
    SlotSample,
)
from inference.pool import PoolUnavailable
from inference.pool_answers import Snapshot
from inference.status import incidents
from inference.status.standing import begins, is_out

log = structlog.get_logger(__name__)

SECONDS = 30
LEAST_APART = timedelta(seconds=20)
"""A message delivered twice, or two beats, take one sample."""
LONGEST = 90.0
"""A sample stands for so many seconds at most: of a longer time before it nothing is known."""
ENGINES_AT_ONCE = 8
MEASURED = (ReplicaState.SERVING, ReplicaState.DRAINING)
RUNS = "fleet"


def take(now: datetime | None = None) -> bool:
    """False: another one was taken just now."""
    now = now or timezone.now()
    before = Heartbeat.objects.filter(name=RUNS).values_list("at", flat=True).first()
    if not _claim(now):
        return False
    slots = list(Slot.objects.all())
    replicas = list(Replica.objects.whole())
    measured = _measure([one for one in replicas if one.state in MEASURED])
    last = {row.subject: row for row in LastCount.objects.all()}
    counts: list[LastCount] = []
    samples = [row for row in _of_replicas(measured, last, counts, now) if row]
    ReplicaSample.objects.bulk_create(samples, ignore_conflicts=True)
    standing = list(_of_slots(slots, replicas, _pool(), last, counts, now))
    if not _broken(before):
        SlotSample.objects.bulk_create(standing, ignore_conflicts=True)
        ApiSample.objects.bulk_create([_of_api(before, now)], ignore_conflicts=True)
    LastCount.objects.bulk_create(
        counts,
        update_conflicts=True,
        unique_fields=["subject"],
        update_fields=["source", "at", "counts"],
    )
    incidents.judge(now)
    return True


def _claim(now: datetime) -> bool:
    _, new = Heartbeat.objects.get_or_create(name=RUNS, defaults={"at": now})
    free = Heartbeat.objects.filter(name=RUNS, at__lte=now - LEAST_APART)
    return bool(new or free.update(at=now))


def _broken(before: datetime | None) -> bool:
    """Whether nobody looked for a while since then."""
    since = Heartbeat.objects.filter(name=UNBROKEN).values_list("at", flat=True).first()
    return bool(before and since and before < since)


def _of_api(before: datetime | None, now: datetime) -> ApiSample:
    state, seconds = ApiState(look(settings.API_URL)), _seconds(before, now)
    down = 0 if state == ApiState.UP else seconds
    return ApiSample(at=now, seconds=seconds, state=state, down_seconds=down)


def _seconds(before: datetime | None, now: datetime) -> float:
    """For which a sample stands: after a pause only for itself."""
    passed = (now - before).total_seconds() if before else SECONDS
    return passed if passed <= LONGEST else SECONDS


def _pool() -> Snapshot | None:
    try:
        return pool().look()
    except PoolUnavailable as error:
        log.warning("pool_not_sampled", error=error.code)
        return None


def _measure(replicas: Sequence[Replica]) -> list[tuple[Replica, EngineMetrics]]:
    """Network only, no rows, in the threads."""
    with ThreadPoolExecutor(ENGINES_AT_ONCE) as threads:
        found = list(threads.map(_metrics, replicas))
    return [(one, seen) for one, seen in zip(replicas, found, strict=True) if seen]


def _metrics(replica: Replica) -> EngineMetrics | None:
    try:
        with engine(replica) as client:
            return client.metrics()
    except EngineUnavailable as error:
        log.info("engine_not_sampled", replica=replica.pk, error=error.code)
        return None


# -- Engines ----------------------------------------------------------------------------------
def _of_replicas(
    measured: Sequence[tuple[Replica, EngineMetrics]],
    last: Mapping[str, LastCount],
    counts: list[LastCount],
    now: datetime,
) -> Iterator[ReplicaSample | None]:
    for replica, seen in measured:
        subject = f"r{replica.pk}"
        new = LastCount(subject=subject, source=replica.instance, at=now, counts=_counts(seen))
        counts.append(new)
        yield _since(replica, seen, last.get(subject), new)


def _counts(seen: EngineMetrics) -> dict[str, Any]:
    return {
        "generated": seen.generated_tokens,
        "first_tokens": seen.ttft.count,
        "first_token_seconds": seen.ttft.sum,
        "buckets": {str(bound): count for bound, count in seen.ttft.buckets.items()},
        "drafted": seen.drafted,
        "accepted": seen.accepted,
    }


def _since(
    replica: Replica, seen: EngineMetrics, before: LastCount | None, new: LastCount
) -> ReplicaSample | None:
    """None for the first look at an engine, and after a pause: what it counted meanwhile belongs
    to no half minute."""
    if before is None or before.source != new.source:
        return None
    seconds = (new.at - before.at).total_seconds()
    grown = {name: _growth(before.counts[name], new.counts[name]) for name in COUNTED}
    if seconds > LONGEST or None in (grown["generated"], grown["first_tokens"]):
        return None
    ttft = seen.ttft.since(histogram(before.counts))
    return ReplicaSample(
        slot_id=replica.slot_id,
        replica=replica,
        model_id=replica.model_id,
        at=new.at,
        seconds=seconds,
        running=seen.running,
        waiting=seen.waiting,
        kv_usage=seen.kv_usage,
        generated=grown["generated"] or 0,
        first_tokens=int(ttft.count),
        first_token_seconds=ttft.sum,
        first_token_buckets=alone(ttft),
        drafted=grown["drafted"],
        accepted=grown["accepted"],
    )


COUNTED = ("generated", "first_tokens", "drafted", "accepted")


def _growth(before: float | None, after: float | None) -> float | None:
    """None where it is not counted, or where the counter has begun anew."""
    if before is None or after is None or after < before:
        return None
    return after - before


def histogram(counts: Mapping[str, Any]) -> Histogram:
    return Histogram(
        sum=counts["first_token_seconds"],
        count=counts["first_tokens"],
        buckets={float(bound): count for bound, count in counts["buckets"].items()},
    )


def alone(found: Histogram) -> dict[str, int]:
    """Each bucket without those below it, and only those that have something: a short row."""
    single, below = {}, 0.0
    for bound in sorted(found.buckets):
        if found.buckets[bound] > below:
            single[str(bound)] = int(found.buckets[bound] - below)
        below = max(below, found.buckets[bound])
    return single


# -- Slots ------------------------------------------------------------------------------------
def _of_slots(
    slots: Sequence[Slot],
    replicas: Sequence[Replica],
    seen: Snapshot | None,
    last: Mapping[str, LastCount],
    counts: list[LastCount],
    now: datetime,
) -> Iterator[SlotSample]:
    """Of slots that have a model. A pool that can't be asked serves nobody: it is the one way to
    the engines."""
    for slot in slots:
        ours = [one for one in replicas if one.slot_id == slot.pk]
        wanted = sum(one.goal == Goal.SERVE for one in ours)
        out = is_out(slot, ours)
        if not wanted and not out:
            continue
        before = last.get(slot.backend)
        seconds = _seconds(before.at if before else None, now)
        up, errors = _up(slot, seen), _errors(slot, seen, before, counts, now)
        if out:
            yield SlotSample(
                slot=slot, at=now, seconds=seconds, up=up, wanted=0, out_seconds=seconds
            )
            continue
        if not up and begins(ours, now):
            continue
        yield SlotSample(
            slot=slot,
            at=now,
            seconds=seconds,
            up=up,
            wanted=wanted,
            queued=seen.queued[slot.backend] if seen else 0,
            errors=errors,
            down_seconds=0 if up else seconds,
            rotation_seconds=seconds if not up and slot.rotating_since else 0,
        )


def _up(slot: Slot, seen: Snapshot | None) -> int:
    if seen is None:
        return 0
    return sum(place.up for (backend, _), place in seen.servers.items() if backend == slot.backend)


def _errors(
    slot: Slot,
    seen: Snapshot | None,
    before: LastCount | None,
    counts: list[LastCount],
    now: datetime,
) -> float:
    """HAProxy counts from zero in each of its processes."""
    if seen is None:
        kept = before or LastCount(subject=slot.backend, source="", counts={"errors": 0})
        kept.at = now
        counts.append(kept)
        return 0
    source, total = f"{seen.worker.pid}:{seen.worker.started}", seen.errors[slot.backend]
    counts.append(LastCount(subject=slot.backend, source=source, at=now, counts={"errors": total}))
    if before is None or not before.source:
        return 0
    if before.source != source:
        return total
    return float(max(0, total - before.counts["errors"]))
