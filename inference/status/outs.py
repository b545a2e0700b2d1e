"""When admins had a slot out of service: that it was so, from samples; from when to when, by what
they did."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, Q

from inference.models import FleetEvent, SlotSample, Span
from inference.status.days import DAYS

HOUR = timedelta(hours=1)
NEAR = timedelta(minutes=3)
"""Samples are half a minute apart, one may be lost, and an engine that was taken out drains."""
Period = tuple[datetime, datetime]
Event = tuple[str, datetime]


@dataclass
class Stretch:
    """Rows next to each other; in hours it may have been out for a part."""

    first: datetime
    last: datetime
    out: timedelta

    def periods(self, events: Iterable[Event]) -> list[Period]:
        """What admins did, if it comes to as much as was seen; else as much from the beginning."""
        near = [e for e in events if self.first - NEAR <= e[1] <= self.last + NEAR]
        found = list(_pairs(near))
        told = sum((over - began for began, over in found), timedelta())
        if abs(told - self.out) <= NEAR * max(1, len(found)):
            return found
        return [(self.first, min(self.last, self.first + self.out))]


def _pairs(events: Iterable[Event]) -> Iterator[Period]:
    began = None
    for what, at in sorted(events, key=lambda event: event[1]):
        if what == "taken_out":
            began = at
        elif began:
            yield began, at
            began = None


def ended(now: datetime, *, out: Container[int]) -> dict[int, list[Period]]:
    """By slot, oldest first, those of the last days that are over. `out`: slots of which the last
    one goes on."""
    found = _seen(now)
    events = _events(list(found), now)
    return {
        slot: [
            period
            for stretch in _joined(ours, events[slot])[: -1 if slot in out else None]
            for period in stretch.periods(events[slot])
        ]
        for slot, ours in found.items()
    }


def _joined(stretches: list[Stretch], events: Iterable[Event]) -> list[Stretch]:
    """Between two of them nobody looked, if nothing was put in service."""
    puts = [at for what, at in events if what == "put_in"]
    joined: list[Stretch] = []
    for one in stretches:
        before = joined[-1] if joined else None
        if before and not any(before.last - HOUR <= at <= one.first + HOUR for at in puts):
            before.out += one.first - before.last + one.out
            before.last = one.last
        else:
            joined.append(one)
    return joined


def _seen(now: datetime) -> dict[int, list[Stretch]]:
    """Of hours, and after the last of them of half minutes."""
    since = now - timedelta(days=DAYS)
    last = SlotSample.objects.filter(span=Span.HOUR).aggregate(at=Max("at"))["at"]
    wanted = Q(span=Span.HOUR, at__gte=since)
    wanted |= Q(span=Span.RAW, at__gte=last + HOUR if last else since)
    rows = SlotSample.objects.filter(wanted, out_seconds__gt=0, at__lte=now).order_by("at")
    found: dict[int, list[Stretch]] = defaultdict(list)
    for row in rows.only("slot_id", "span", "at", "seconds", "out_seconds"):
        out = timedelta(seconds=row.out_seconds)
        hour = row.span == Span.HOUR
        first, over = (row.at, min(row.at + HOUR, now)) if hour else (row.at - out, row.at)
        ours = found[row.slot_id]
        if ours and first - ours[-1].last <= NEAR:
            ours[-1].last, ours[-1].out = over, ours[-1].out + out
        else:
            ours.append(Stretch(first, over, out))
    return found


def _events(slots: list[int], now: datetime) -> dict[int, list[Event]]:
    events: dict[int, list[Event]] = defaultdict(list)
    if slots:
        ours = FleetEvent.objects.filter(what__in=("taken_out", "put_in"), at__lte=now)
        rows = ours.filter(replica__slot__in=slots).order_by()
        for slot, what, at in rows.values_list("replica__slot", "what", "at"):
            events[slot].append((what, at))
    return events
