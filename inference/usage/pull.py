"""Takes usage over from the gateway into rows, however often and by however many it runs.

What is read is a key's or everybody's whole day, and it replaces what was read before, so nothing
counts twice and a pass that was lost is made good by the next. Counters only grow: a reading with
less comes from a gateway that has lost something, and the rows keep the greater figure.

To read a whole day takes the gateway more than a millisecond for each key, and it has better to do.
So every pass reads the keys that its marks say were used lately (callbacks/nan_counts.py), and only
every ten minutes everything, in case a mark was lost. A day is read until a day after its end, ever
less often: a call counts on the day on which it began, once it has ended. Days missed in an outage
are still open, and so are read by the next pass.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import structlog
from django.core.cache import cache
from django.db.models import Max, Min
from django.utils import timezone

from inference.alone import alone
from inference.gateway import Gateway, GatewayRefused, GatewayUnavailable
from inference.models import Key, Usage, UsageDay
from inference.probes.own_key import OWNER as PROBES
from inference.provisioning import gateway
from inference.usage.counters import CountersUnavailable, GatewayCounters, Refused, counters
from inference.usage.reading import Counted, read_day, read_keys

log = structlog.get_logger(__name__)

LOCK = 0x7573616765
RESTS = "usage:rests"
DAYS_A_PASS = 14  # today and yesterday first; a long backlog takes several passes
WHOLE_EVERY = timedelta(minutes=10)
OPEN_FOR = timedelta(days=1)
# The gateway writes a call's figures up to half a minute after its end; clocks differ a little.
LATELY = 120
FEW = 5  # keys that are never worth a whole day
ROWS_A_KEY = 40  # so many rows of a whole day take as long as asking for one key
REST = 10  # after reading a whole day out of turn, times as long without doing so again
JUST_BEGUN = timedelta(hours=2)  # calls of yesterday still end
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
        worker = _Pass(client or gateway(), counts or counters())
        due = list(UsageDay.objects.due(now)[:DAYS_A_PASS])
        worker.run([*due, *_running(now, but=due)], whole=due)
        return worker.pulled


def pull_again(days: Sequence[date], *, client: Gateway | None = None) -> Pulled | None:
    """These days too if they are closed: for an operator who has brought back lost figures."""
    with alone(LOCK) as free:
        if not free:
            return None
        UsageDay.objects.bulk_create([UsageDay(day=day) for day in days], ignore_conflicts=True)
        rows = list(UsageDay.objects.filter(day__in=days))
        worker = _Pass(client or gateway(), counters())
        worker.run(rows, whole=rows)
        return worker.pulled


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


def _running(now: datetime, *, but: Sequence[UsageDay]) -> list[UsageDay]:
    """The days on which calls end now, without those."""
    days = {moment.astimezone(UTC).date() for moment in (now, now - JUST_BEGUN)}
    return list(UsageDay.objects.filter(day__in=days - {row.day for row in but}))


class _Pass:
    """Reads days one after the other, until the gateway can't be read."""

    def __init__(self, client: Gateway, counts: GatewayCounters) -> None:
        self.client = client
        self.counts = counts
        self.pulled = Pulled()

    def run(self, days: Sequence[UsageDay], *, whole: Sequence[UsageDay]) -> None:
        for day in days:
            at = timezone.now()
            try:
                self._whole(day, at) if day in whole else self._lately(day, at)
            except (GatewayUnavailable, GatewayRefused) as error:
                log.warning("usage_postponed", day=day.day.isoformat(), code=error.code)
                self.pulled.code = error.code
                break
            self.pulled.days += 1
        if self.pulled.changed:
            log.info("usage_pulled", days=self.pulled.days, changed=self.pulled.changed)

    def _whole(self, day: UsageDay, at: datetime) -> None:
        self.pulled.changed += _take(day, ACTIVITY, read_day(self.client, day.day))
        self._refusals(day)
        end = datetime.combine(day.day + timedelta(days=1), datetime.min.time(), UTC)
        _note(
            day,
            read_at=at,
            due_at=at + max(WHOLE_EVERY, (at - end) / 6),
            closed=at - end >= OPEN_FOR,
        )

    def _lately(self, day: UsageDay, at: datetime) -> None:
        """The keys used lately, or everything where that is less work."""
        try:
            tokens = self.counts.used_since(LATELY)
        except CountersUnavailable:
            self.pulled.code = "no_counters"
            return
        rows = Usage.objects.filter(day=day.day).count()
        if len(tokens) * ROWS_A_KEY <= max(rows, ROWS_A_KEY * FEW):
            found = read_keys(self.client, day.day, tokens)
            self.pulled.changed += _write(day.day, ACTIVITY, found)
        elif not cache.get(RESTS):
            self._out_of_turn(day)
        else:
            return
        self._refusals(day)
        _note(day, read_at=at)

    def _out_of_turn(self, day: UsageDay) -> None:
        began = time.monotonic()
        self.pulled.changed += _take(day, ACTIVITY, read_day(self.client, day.day))
        cache.set(RESTS, True, max(1, round((time.monotonic() - began) * REST)))

    def _refusals(self, day: UsageDay) -> None:
        try:
            self.pulled.changed += _take(day, REFUSALS, self.counts.refused(day.day))
        except CountersUnavailable:
            self.pulled.code = "no_counters"


def _note(day: UsageDay, **values: Any) -> None:
    UsageDay.objects.filter(pk=day.pk).update(digests=day.digests, **values)


def _take(day: UsageDay, source: Source, found: Mapping[Place, tuple[int, ...]]) -> int:
    """How many rows changed. Parts that say what they said the last time cost nothing more."""
    name, _fields = source
    digests = _digests(found)
    known = day.digests.get(name, {})
    moved = {place: f for place, f in found.items() if _differs(place, digests, known)}
    changed = _write(day.day, source, moved)
    day.digests = {**day.digests, name: digests}
    return changed


def _write(day: date, source: Source, found: Mapping[Place, tuple[int, ...]]) -> int:
    """How many rows changed; only those are written."""
    _name, fields = source
    rows = _rows(day, fields, found) if found else []
    Usage.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["day", "key", "model"],
        update_fields=list(fields),
    )
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
