"""Incidents, as the samples of slots and of the API tell them.

One begins when a slot, or the API, was seen down for a minute, outside of rotations, since it was
last up for two minutes without a break; so one that comes and goes begins too, and is one. It ends
when it has been up for two minutes without a break, or when the slot is no longer wanted. Incident
and alert have the times of the samples, however late those are judged.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from inference.fleet import alerts
from inference.models import ApiSample, Goal, Incident, Replica, Slot, SlotSample, Span

DOWN = timedelta(seconds=60)
UP = timedelta(seconds=120)
GAP = timedelta(seconds=90)
"""Without a sample for longer nothing is known, and nothing is without a break."""
LOOK_BACK = timedelta(minutes=15)
Sample = SlotSample | ApiSample
API: Final = None
"""In place of a slot's id."""


@dataclass
class Course:
    """What the samples of a slot, or of the API, come to, oldest first."""

    first_down: datetime | None = None
    down: timedelta = timedelta()
    up_since: datetime | None = None
    last: datetime | None = None

    def add(self, sample: Sample) -> None:
        if self.last and sample.at - self.last > GAP:
            self.up_since = None
        if not sample.down_seconds:
            self.up_since = self.up_since or sample.at
        else:
            self.up_since = None
            if not sample.rotation_seconds:
                self._add_down(sample)
        self.last = sample.at
        if self.is_up_since:
            self.first_down, self.down = None, timedelta()

    @property
    def is_up_since(self) -> datetime | None:
        """By what was seen: silence proves nothing."""
        if self.up_since and self.last and self.last - self.up_since >= UP:
            return self.up_since
        return None

    def _add_down(self, sample: Sample) -> None:
        """The time before the first sight of it does not count."""
        if self.first_down is None:
            self.first_down = sample.at
        else:
            self.down += timedelta(seconds=sample.seconds)


def judge(now: datetime) -> None:
    """After each sample. Four queries while nothing changes, however many slots there are."""
    courses: dict[int | None, Course] = defaultdict(Course)
    for slot_id, sample in _recent(now):
        courses[slot_id].add(sample)
    current = {incident.slot_id: incident for incident in Incident.objects.open()}
    slots = Replica.objects.filter(goal=Goal.SERVE).values_list("slot_id", flat=True)
    wanted: set[int | None] = {API, *slots}
    for slot_id, course in courses.items():
        if slot_id not in current and course.first_down and course.down >= DOWN:
            _begin(slot_id, course.first_down)
    for slot_id, incident in current.items():
        if slot_id not in wanted:
            _end(incident, now)
        elif since := courses[slot_id].is_up_since:
            _end(incident, _over(_samples(slot_id), since))


def _recent(now: datetime) -> Iterator[tuple[int | None, Sample]]:
    span = {"span": Span.RAW, "at__gt": now - LOOK_BACK, "at__lte": now}
    for of_slot in SlotSample.objects.filter(**span, out_seconds=0).order_by("at"):
        yield of_slot.slot_id, of_slot
    for of_api in ApiSample.objects.filter(**span).order_by("at"):
        yield API, of_api


def _samples(slot_id: int | None) -> "QuerySet[Any]":
    if slot_id is API:
        return ApiSample.objects.filter(span=Span.RAW)
    return SlotSample.objects.filter(span=Span.RAW, slot_id=slot_id, out_seconds=0)


def _over(rows: "QuerySet[Any]", since: datetime) -> datetime:
    """When it was first seen up after it was last seen down. If nothing was seen for long in
    between, such as while the database was away, the last sight of it down: what was not seen is
    no downtime."""
    times = rows.filter(at__lte=since).order_by("at").values_list("at", flat=True)
    down: datetime | None = times.filter(down_seconds__gt=0).last()
    up: datetime | None = times.filter(at__gt=down).first() if down else None
    if down is None or up is None:
        return since
    return up if up - down <= GAP else down


def _begin(slot_id: int | None, began_at: datetime) -> None:
    slot = Slot.objects.get(pk=slot_id) if slot_id else None
    try:
        with transaction.atomic():
            Incident.objects.create(slot=slot, began_at=began_at)
    except IntegrityError:
        return
    if slot:
        alerts.open_alert("slot_down", slot=slot, at=began_at)
    else:
        states = _samples(API).filter(down_seconds__gt=0).order_by("at")
        last = states.values_list("state", flat=True).last()
        alerts.open_alert("api_down", detail=f"api_{last}", at=began_at)


def _end(incident: Incident, ended_at: datetime) -> None:
    if not Incident.objects.open().filter(pk=incident.pk).update(ended_at=ended_at):
        return
    if incident.slot:
        alerts.close_alert("slot_down", slot=incident.slot, at=ended_at)
    else:
        alerts.close_alert("api_down", at=ended_at)
