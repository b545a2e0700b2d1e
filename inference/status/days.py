"""Thirty days, in UTC, oldest first, one for each day; what was not seen is in no figure, and what
was taken out of service in no share of the time in which it was up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import F, FloatField, Max, Q, QuerySet, Sum, Value
from django.db.models.functions import TruncDay

from inference.models import ApiSample, SlotSample, Span

DAYS = 30
Days = list[dict[str, Any]]
Found = dict[tuple[Any, date], Mapping[str, Any]]


def days_of_slots(now: datetime) -> dict[int, Days]:
    """By slot."""
    rows = _whole(SlotSample.objects.all(), now)
    found = _by_day(
        rows.annotate(subject=F("slot_id"), rotating=F("rotation_seconds"), away=F("out_seconds"))
    )
    none = _days(now, {}, None)
    by_slot: dict[int, Days] = defaultdict(lambda: none)
    by_slot.update({slot: _days(now, found, slot) for slot in {subject for subject, _ in found}})
    return by_slot


def days_of_api(now: datetime) -> Days:
    """Without rotations, and nobody takes it out: those concern a model, not the way to all."""
    rows = _whole(ApiSample.objects.all(), now)
    zero = Value(0.0, FloatField())
    found = _by_day(rows.annotate(subject=Value("api"), rotating=zero, away=zero))
    return _days(now, found, "api")


def _whole(rows: "QuerySet[Any]", now: datetime) -> "QuerySet[Any]":
    """Hours, and after the last of them the half minutes."""
    last = rows.filter(span=Span.HOUR).aggregate(at=Max("at"))["at"]
    start = _start(now)
    hours = Q(span=Span.HOUR, at__gte=start)
    raw = Q(span=Span.RAW, at__gte=last + timedelta(hours=1) if last else start)
    return rows.filter(hours | raw, at__lte=now)


def _start(now: datetime) -> datetime:
    first = (now - timedelta(days=DAYS - 1)).astimezone(UTC)
    return first.replace(hour=0, minute=0, second=0, microsecond=0)


def _by_day(rows: "QuerySet[Any]") -> Found:
    sums = (
        rows.annotate(date=TruncDay("at", tzinfo=UTC))
        .order_by()
        .values("subject", "date")
        .annotate(
            seen=Sum("seconds"), down=Sum("down_seconds"), turned=Sum("rotating"), out=Sum("away")
        )
    )
    return {(row["subject"], row["date"].date()): row for row in sums}


def _days(now: datetime, found: Found, subject: Any) -> Days:
    dates: Iterable[date] = (_start(now).date() + timedelta(days=n) for n in range(DAYS))
    return [_day(day, found.get((subject, day))) for day in dates]


def _day(day: date, row: Mapping[str, Any] | None) -> dict[str, Any]:
    """`seen` is without the time out of service, `down` without rotations: both are announced."""
    names = ("seen", "down", "turned", "out")
    seen, down, rotation, out = (row[name] for name in names) if row else (0, 0, 0, 0)
    return {
        "day": day,
        "seen_seconds": round(seen - out),
        "down_seconds": round(down - rotation),
        "rotation_seconds": round(rotation),
        "out_seconds": round(out),
    }
