"""The janitor of samples: half minutes become hours, and both go in time.

Raw samples are kept for two days, hours for ninety. A replica has at most 5,760 + 2,160 rows, a
slot as many.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from inference.models import ApiSample, LastCount, ReplicaSample, SlotSample, Span

KEEP_RAW = timedelta(hours=48)
KEEP_HOURS = timedelta(days=90)
HOUR = timedelta(hours=1)
Sample = ReplicaSample | SlotSample | ApiSample
GRACE = timedelta(minutes=2)
"""After the end of an hour, for a sample that is still being written."""


def thin(now: datetime | None = None) -> int:
    """How many hours were made. Repeating it changes nothing."""
    now = now or timezone.now()
    folds: dict[Any, Any] = {
        ReplicaSample: _replica_hour,
        SlotSample: _slot_hour,
        ApiSample: _api_hour,
    }
    made = sum(_fold_all(table, fold, now) for table, fold in folds.items())
    for table in folds:
        old = {Span.RAW: now - KEEP_RAW, Span.HOUR: now - KEEP_HOURS}
        for span, before in old.items():
            table.objects.filter(span=span, at__lt=before).delete()
    LastCount.objects.filter(at__lt=now - KEEP_RAW).delete()
    return made


def _fold_all(table: Any, fold: Any, now: datetime) -> int:
    """Hours that are over and have none yet, the oldest first."""
    end = _hour(now - GRACE)
    last = table.objects.filter(span=Span.HOUR).aggregate(at=Max("at"))["at"]
    raw = table.objects.filter(span=Span.RAW, at__gte=now - KEEP_RAW, at__lt=end)
    if last:
        raw = raw.filter(at__gte=last + HOUR)
    start = raw.aggregate(at=Min("at"))["at"]
    made = 0
    while start and (hour := _hour(start)) < end:
        made += _fold(table, fold, hour)
        start = hour + HOUR
    return made


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _fold(table: Any, fold: Any, hour: datetime) -> int:
    found = table.objects.filter(span=Span.RAW, at__gte=hour, at__lt=hour + HOUR).order_by("at")
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in found:
        groups[getattr(row, "slot_id", 0), getattr(row, "replica_id", 0)].append(row)
    with transaction.atomic():
        rows = [fold(group, hour) for group in groups.values()]
        table.objects.bulk_create(rows, ignore_conflicts=True)
    return bool(rows)


def _replica_hour(rows: Sequence[ReplicaSample], at: datetime) -> ReplicaSample:
    """`model` is the last one's: a swap within the hour gives the whole hour to the new model."""
    last = rows[-1]
    return ReplicaSample(
        slot_id=last.slot_id,
        replica_id=last.replica_id,
        model_id=last.model_id,
        span=Span.HOUR,
        at=at,
        first_token_buckets=merged(row.first_token_buckets for row in rows),
        **_means(rows, "running", "waiting", "kv_usage"),
        **_sums(rows, "seconds", "generated", "first_tokens", "first_token_seconds"),
        **_sums(rows, "drafted", "accepted"),
    )


def _slot_hour(rows: Sequence[SlotSample], at: datetime) -> SlotSample:
    return SlotSample(
        slot_id=rows[-1].slot_id,
        span=Span.HOUR,
        at=at,
        **_means(rows, "up", "wanted", "queued"),
        **_sums(rows, "seconds", "errors", "down_seconds", "rotation_seconds", "out_seconds"),
    )


def _api_hour(rows: Sequence[ApiSample], at: datetime) -> ApiSample:
    return ApiSample(
        span=Span.HOUR, at=at, state=rows[-1].state, **_sums(rows, "seconds", "down_seconds")
    )


def _means(rows: Sequence[Sample], *names: str) -> dict[str, float]:
    """Over time, not over samples."""
    whole = sum(row.seconds for row in rows) or 1
    return {name: sum(getattr(row, name) * row.seconds for row in rows) / whole for name in names}


def _sums(rows: Sequence[Sample], *names: str) -> dict[str, Any]:
    """None where nothing was counted."""
    found: dict[str, Any] = {}
    for name in names:
        counted = [value for row in rows if (value := getattr(row, name)) is not None]
        found[name] = sum(counted) if counted else None
    return found


def merged(buckets: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for one in buckets:
        for bound, count in one.items():
            total[bound] += count
    return dict(total)
