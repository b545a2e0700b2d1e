"""What everybody may see of the service, from rows, in a number of queries that does not grow.

No address, no name of a server or of a person: who reads it has not signed in. Times end in `_at`,
so that they can be read back from JSON.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Q, QuerySet

from inference.heartbeats import UNBROKEN
from inference.models import (
    ApiSample,
    CatalogModel,
    FleetEvent,
    Goal,
    Heartbeat,
    Incident,
    Replica,
    ReplicaSample,
    ReplicaState,
    Slot,
    SlotSample,
    Span,
    Swap,
    SwapState,
)
from inference.models.swaps import OPEN
from inference.status.days import DAYS, Days, days_of_api, days_of_slots
from inference.status.figures import figures
from inference.status.outs import ended
from inference.status.standing import is_out, state_of

NOW = timedelta(minutes=5)
FRESH = timedelta(seconds=120)
"""Beyond this a sample says nothing about now: four were missed."""
ANSWERING = (ReplicaState.SERVING, ReplicaState.DRAINING)
SHOWN_FLAGS = (
    "max-model-len",
    "max-num-seqs",
    "max-num-batched-tokens",
    "dtype",
    "quantization",
    "kv-cache-dtype",
    "enable-prefix-caching",
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "data-parallel-size",
    "enable-expert-parallel",
    "enable-auto-tool-choice",
    "tool-call-parser",
    "reasoning-parser",
    "speculative-config",
    "limit-mm-per-prompt",
)
"""What changes how a model answers and how fast; the rest concerns the machine."""

Facts = dict[str, Any]


def gather(now: datetime) -> Facts:
    slots = list(Slot.objects.select_related("model"))
    replicas = list(Replica.objects.select_related("server", "model", "goal_model"))
    incidents = list(_incidents(now))
    started = _started(replicas)
    now_rows, day_rows = _engine_samples(now)
    since = _fresh_since(now)
    standing = _standing(since, now)
    days = days_of_slots(now)
    ours = {slot.pk: [one for one in replicas if one.slot_id == slot.pk] for slot in slots}
    changed = _changed()
    out = _taken_out([slot for slot in slots if is_out(slot, ours[slot.pk])])
    found = [
        {
            **_slot(slot, ours[slot.pk], standing.get(slot.pk), changed.get(slot.pk), now),
            "serving": list(_serving(slot, ours[slot.pk], started)),
            "out": out.get(slot.pk),
            "now": figures(now_rows[slot.pk]),
            "day": figures(day_rows[slot.pk]),
            **_uptime(days[slot.pk]),
            "incident": _told(next((i for i in incidents if _is_open(i, slot)), None)),
        }
        for slot in slots
    ]
    return {
        "made_at": now,
        "unmeasured_since_at": _measured() if any(map(_unknown, found)) else None,
        "api": {
            **_api(since, now),
            **_uptime(days_of_api(now)),
            "incident": _told(next((i for i in incidents if _is_open(i, None)), None)),
        },
        "slots": found,
        "incidents": [_told(incident) for incident in incidents],
        "rotations": [_rotation(swap) for swap in _rotations(now)],
        "taken_out": list(_were_out(slots, out, now)),
    }


# -- The way to all models ---------------------------------------------------------------------
def _api(since: datetime, now: datetime) -> Facts:
    """As a caller meets it; `unknown` without a fresh sample."""
    fresh = ApiSample.objects.filter(span=Span.RAW, at__gt=since, at__lte=now)
    last = fresh.order_by("at").last()
    return {
        "state": last.state if last else "unknown",
        "sampled_at": last.at if last else None,
    }


# -- What runs ---------------------------------------------------------------------------------
def _changed() -> dict[int, datetime]:
    """By slot: when its last swap was over."""
    over = Swap.objects.exclude(started_at=None).exclude(finished_at=None).order_by()
    return dict(over.values_list("slot").annotate(Max("finished_at")))


def _slot(
    slot: Slot,
    replicas: Sequence[Replica],
    seen: SlotSample | None,
    changed: datetime | None,
    now: datetime,
) -> Facts:
    wanted = sum(one.goal == Goal.SERVE for one in replicas)
    up = round(seen.up) if seen else None
    before = bool(seen and changed and seen.at < changed)
    rotating = bool(slot.rotating_since) or before
    return {
        "name": slot.name,
        "title": slot.title,
        "kind": slot.kind,
        "state": state_of(slot, replicas, up, now, rotating=rotating),
        "replicas_up": up if wanted else None,
        "replicas_wanted": wanted,
        "queued": round(seen.queued) if seen else None,
        "sampled_at": seen.at if seen else None,
        "rotating_since_at": slot.rotating_since,
    }


def _taken_out(slots: Sequence[Slot]) -> dict[int, Facts]:
    """By slot: which model would run there, and since when admins have had it out."""
    if not slots:
        return {}
    events = FleetEvent.objects.filter(what="taken_out", replica__slot__in=slots).order_by()
    since = dict(events.values_list("replica__slot").annotate(Max("at")))
    return {
        slot.pk: {
            "model": slot.model.name,
            "title": slot.model.title,
            "since_at": since.get(slot.pk) or slot.model_since,
        }
        for slot in slots
        if slot.model
    }


def _started(replicas: Sequence[Replica]) -> dict[int, datetime]:
    """By replica: when the engine that answers was last told to start."""
    answering = [one for one in replicas if one.state in ANSWERING]
    events = FleetEvent.objects.filter(what=ReplicaState.STARTING, replica__in=answering)
    return dict(events.order_by().values_list("replica").annotate(Max("at")))


def _were_out(slots: Sequence[Slot], out: Mapping[int, Facts], now: datetime) -> Iterator[Facts]:
    """What is over, newest first; what goes on is its slot's `out`."""
    periods = ended(now, out=out)
    found = [(*period, slot.name) for slot in slots for period in periods.get(slot.pk, ())]
    for began, over, name in sorted(found, reverse=True):
        yield {"slot": name, "began_at": began, "ended_at": over}


def _serving(
    slot: Slot, replicas: Sequence[Replica], started: Mapping[int, datetime]
) -> Iterable[Facts]:
    """During a rotation two models may answer. A model serves since it came; its engines may have
    been started anew meanwhile."""
    by_kind: dict[tuple[CatalogModel, str], list[Replica]] = defaultdict(list)
    for one in replicas:
        if one.state in ANSWERING and one.model:
            by_kind[one.model, one.server.engine].append(one)
    for model, engine in sorted(by_kind, key=lambda kind: (kind[0].pk, kind[1])):
        ours = by_kind[model, engine]
        same = slot.model_id == model.pk and slot.model_since
        name, _, version = engine.partition(" ")
        yield {
            **_model(model),
            "engine": name,
            "engine_version": version,
            "since_at": slot.model_since if same else min(one.state_since for one in ours),
            "replicas": len(ours),
            "engines": [
                {"started_at": at}
                for at in sorted(started.get(one.pk, one.state_since) for one in ours)
            ],
        }


def _model(model: CatalogModel) -> Facts:
    flags = {**model.flags, "max-model-len": model.context_length}  # as `fleet.specs` tells engines
    return {
        "model": model.name,
        "title": model.title,
        "repo": model.repo,
        "revision": model.revision,
        "context_length": model.context_length,
        "max_output": model.max_output,
        "flags": {name: flags[name] for name in SHOWN_FLAGS if name in flags},
    }


# -- How fast, and how full --------------------------------------------------------------------
Rows = dict[int, list[ReplicaSample]]
FIELDS = (
    "slot_id", "replica_id", "span", "at", "seconds", "running", "waiting", "kv_usage", "generated",
    "first_tokens", "first_token_seconds", "first_token_buckets", "drafted", "accepted",
)  # fmt: skip


def _engine_samples(now: datetime) -> tuple[Rows, Rows]:
    """By slot: those of the last minutes, and those of a day, in which hours stand for the half
    minutes that they were made of."""
    last = ReplicaSample.objects.filter(span=Span.HOUR).aggregate(at=Max("at"))["at"]
    day_ago = now - timedelta(days=1)
    folded_at = max(last + timedelta(hours=1), day_ago) if last else day_ago
    wanted = Q(span=Span.HOUR, at__gte=day_ago) | Q(
        span=Span.RAW, at__gte=min(folded_at, now - NOW)
    )
    recent, day = defaultdict(list), defaultdict(list)
    found: Any = ReplicaSample.objects.filter(wanted, at__lte=now).values_list(*FIELDS, named=True)
    for row in found:
        if row.span == Span.RAW and row.at > now - NOW:
            recent[row.slot_id].append(row)
        if row.span == Span.HOUR or row.at >= folded_at:
            day[row.slot_id].append(row)
    return recent, day


def _fresh_since(now: datetime) -> datetime:
    """A sample from before a stop of everything says nothing about now either."""
    unbroken = Heartbeat.objects.filter(name=UNBROKEN).values_list("at", flat=True).first()
    return max(now - FRESH, unbroken) if unbroken else now - FRESH


def _standing(since: datetime, now: datetime) -> dict[int, SlotSample]:
    """The last sample of each slot in which something was wanted of it, if it is fresh."""
    recent = SlotSample.objects.filter(span=Span.RAW, at__gt=since, at__lte=now, out_seconds=0)
    return {row.slot_id: row for row in recent.order_by("at")}


def _unknown(slot: Facts) -> bool:
    return bool(slot["state"] == "unknown")


def _measured() -> datetime | None:
    """When models were last looked at, however long ago."""
    last: datetime | None = SlotSample.objects.filter(span=Span.RAW).aggregate(at=Max("at"))["at"]
    return last


# -- Thirty days -------------------------------------------------------------------------------
def _uptime(days: Days) -> Facts:
    seen = sum(day["seen_seconds"] for day in days)
    down = sum(day["down_seconds"] for day in days)
    return {"days": days, "uptime": round(1 - down / seen, 6) if seen else None}


# -- What happened, and what will --------------------------------------------------------------
def _incidents(now: datetime) -> "QuerySet[Incident]":
    recent = Q(ended_at=None) | Q(ended_at__gte=now - timedelta(days=DAYS))
    return Incident.objects.filter(recent).select_related("slot").prefetch_related("updates")


def _is_open(incident: Incident, slot: Slot | None) -> bool:
    return incident.slot_id == (slot and slot.pk) and incident.ended_at is None


def _told(incident: Incident | None) -> Facts | None:
    if incident is None:
        return None
    return {
        "id": incident.pk,
        "what": "model" if incident.slot else "api",
        "slot": incident.slot.name if incident.slot else None,
        "began_at": incident.began_at,
        "ended_at": incident.ended_at,
        "updates": [
            {"written_at": update.at, "es": update.text_es, "en": update.text_en}
            for update in incident.updates.all()
        ],
    }


def _rotations(now: datetime) -> "QuerySet[Swap]":
    """Planned, also those that wait for their second admin, as members read on their own pages; or
    under way. Those of the last days are history. Without a time: as soon as it is approved."""
    done = Q(state=SwapState.DONE, finished_at__gte=now - timedelta(days=DAYS))
    swaps = Swap.objects.filter(Q(state__in=OPEN) | done)
    return swaps.select_related("slot", "from_model", "to_model").order_by("start_at", "pk")


def _rotation(swap: Swap) -> Facts:
    return {
        "id": swap.pk,
        "slot": swap.slot.name,
        "from": swap.from_model.title,
        "to": swap.to_model.title,
        "state": swap.state,
        "start_at": swap.started_at or swap.start_at,
        "finished_at": swap.finished_at,
        "known_at": swap.approved_at or swap.proposed_at,
    }
