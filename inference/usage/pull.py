"""Takes usage over from the gateway into rows, however often and by however many it runs.

What is read is the whole of a day, and replaces what was read before, so nothing counts twice and
a pass that was lost is made good by the next. Counters only grow: a reading with less comes from a
gateway that has lost something, and the rows keep the greater figure.

A day is read until a day after its end, ever less often: a call counts on the day on which it
began, once it has ended. Days missed in an outage are still open and so are read by the next pass.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from inference.alone import alone
from inference.gateway import Gateway, GatewayRefused, GatewayUnavailable
from inference.models import Key, Usage, UsageDay
from inference.probes.own_key import OWNER as PROBES
from inference.provisioning import gateway
from inference.usage.counters import CountersUnavailable, GatewayCounters, Refused, counters
from inference.usage.reading import Counted, read_day

log = structlog.get_logger(__name__)

LOCK = 0x7573616765
DAYS_A_PASS = 14  # today and yesterday first; a long backlog takes several passes
EVERY = timedelta(seconds=15)
OPEN_FOR = timedelta(days=1)
BATCH = 1000

Place = tuple[str, str]
Source = tuple[str, tuple[str, ...]]
ACTIVITY: Source = ("activity", Counted._fields)
REFUSALS: Source = ("refusals", Refused._fields)


@dataclass
class Pulled:
    """What a pass did. `changed`: rows written; `code`: why it stopped early, if it did."""

    days: int = 0
    changed: int = 0
    code: str = ""


def pull(*, client: Gateway | None = None, counts: GatewayCounters | None = None) -> Pulled | None:
    """Every day that is due; None if another pass is under way."""
    with alone(LOCK) as free:
        if not free:
            return None
        now = timezone.now()
        _open_days(now)
        due = UsageDay.objects.due(now)[:DAYS_A_PASS]
        return _pull(due, client or gateway(), counts or counters())


def pull_again(days: Sequence[date], *, client: Gateway | None = None) -> Pulled | None:
    """These days too if they are closed: for an operator who has brought back lost figures."""
    with alone(LOCK) as free:
        if not free:
            return None
        UsageDay.objects.bulk_create([UsageDay(day=day) for day in days], ignore_conflicts=True)
        rows = UsageDay.objects.filter(day__in=days)
        return _pull(rows, client or gateway(), counters())


def _open_days(now: datetime) -> None:
    """A row for each day since the last one; at the very first time, since the oldest key."""
    today = now.astimezone(UTC).date()
    last = UsageDay.objects.aggregate(last=Max("day"))["last"]
    if last is None:
        first = Key.objects.aggregate(first=Min("requested_at"))["first"]
        last = (first.astimezone(UTC).date() if first else today) - timedelta(days=1)
    missing = range(1, (today - last).days + 1)
    UsageDay.objects.bulk_create(
        [UsageDay(day=last + timedelta(days=number), due_at=now) for number in missing],
        ignore_conflicts=True,
    )


def _pull(days: Sequence[UsageDay], client: Gateway, counts: GatewayCounters) -> Pulled:
    pulled = Pulled()
    for day in days:
        at = timezone.now()
        try:
            activity = read_day(client, day.day)
        except (GatewayUnavailable, GatewayRefused) as error:
            log.warning("usage_postponed", day=day.day.isoformat(), code=error.code)
            pulled.code = error.code
            break
        pulled.changed += _take(day, ACTIVITY, activity)
        try:
            pulled.changed += _take(day, REFUSALS, counts.refused(day.day))
        except CountersUnavailable:
            pulled.code = "no_counters"
        _note(day, at)
        pulled.days += 1
    if pulled.changed:
        log.info("usage_pulled", days=pulled.days, changed=pulled.changed)
    return pulled


def _note(day: UsageDay, at: datetime) -> None:
    """After its end, a sixth of the time since then passes between two looks."""
    end = datetime.combine(day.day + timedelta(days=1), datetime.min.time(), UTC)
    UsageDay.objects.filter(pk=day.pk).update(
        digests=day.digests,
        read_at=at,
        due_at=at + max(EVERY, (at - end) / 6),
        closed=at - end >= OPEN_FOR,
    )


@transaction.atomic
def _take(day: UsageDay, source: Source, found: Mapping[Place, tuple[int, ...]]) -> int:
    """How many rows changed. Parts that say what they said the last time cost nothing more."""
    name, fields = source
    digests = _digests(found)
    known = day.digests.get(name, {})
    moved = {place: f for place, f in found.items() if _differs(place, digests, known)}
    rows = _rows(day.day, fields, moved) if moved else []
    Usage.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["day", "key", "model"],
        update_fields=list(fields),
    )
    day.digests = {**day.digests, name: digests}
    return len(rows)


def _differs(place: Place, digests: Mapping[str, str], known: Mapping[str, str]) -> bool:
    part = _part(place)
    return digests[part] != known.get(part)


def _part(place: Place) -> str:
    """One of 256: among ten thousand keys, a call concerns forty."""
    return place[0][:2]


def _digests(found: Mapping[Place, tuple[int, ...]]) -> dict[str, str]:
    parts: dict[str, list[tuple[Place, tuple[int, ...]]]] = defaultdict(list)
    for place, figures in found.items():
        parts[_part(place)].append((place, tuple(figures)))
    return {
        part: hashlib.sha256(repr(sorted(entries)).encode()).hexdigest()[:16]
        for part, entries in parts.items()
    }


def _rows(
    day: date, fields: tuple[str, ...], found: Mapping[Place, tuple[int, ...]]
) -> list[Usage]:
    """Only those that gained something. Keys that are not ours (another installation's) are
    left out, and the probes' own."""
    tokens = {token for token, _model in found}
    known = Key.objects.filter(token__in=tokens).exclude(holder=PROBES)
    keys = known.values_list("token", "pk", "holder_id")
    ours = {token: (key, holder) for token, key, holder in keys}
    kept = {
        (key, model): figures
        for key, model, *figures in Usage.objects.filter(
            day=day, key__in=[key for key, _holder in ours.values()]
        ).values_list("key_id", "model", *fields)
    }
    rows = []
    for (token, model), figures in found.items():
        if token not in ours:
            continue
        key, holder = ours[token]
        before = kept.get((key, model), [0] * len(fields))
        after = [max(pair) for pair in zip(before, figures, strict=True)]
        if after != before:
            values = dict(zip(fields, after, strict=True))
            rows.append(Usage(day=day, key_id=key, holder_id=holder, model=model, **values))
    return rows
