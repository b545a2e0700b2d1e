"""Incidents, as the slots' samples tell them.

One begins when a slot was seen down for a minute, outside of rotations, since it was last up for
two minutes without a break; so one that comes and goes begins too, and is one. It ends when the
slot has been up for two minutes without a break, or is no longer wanted.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from inference.fleet import alerts
from inference.models import Goal, Incident, Replica, Slot, SlotSample, Span

DOWN = timedelta(seconds=60)
UP = timedelta(seconds=120)
GAP = timedelta(seconds=90)
"""Without a sample for longer nothing is known, and nothing is without a break."""
LOOK_BACK = timedelta(minutes=15)


@dataclass
class Course:
    """What the samples of a slot come to, oldest first."""

    first_down: datetime | None = None
    down: timedelta = timedelta()
    up_since: datetime | None = None
    last: datetime | None = None

    def add(self, sample: SlotSample) -> None:
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

    def _add_down(self, sample: SlotSample) -> None:
        """The time before the first sight of it does not count."""
        if self.first_down is None:
            self.first_down = sample.at
        else:
            self.down += timedelta(seconds=sample.seconds)


def judge(now: datetime) -> None:
    """After each sample. Three queries while nothing changes, however many slots there are."""
    recent = SlotSample.objects.filter(span=Span.RAW, at__gt=now - LOOK_BACK, at__lte=now)
    courses: dict[int, Course] = defaultdict(Course)
    for sample in recent.order_by("at"):
        courses[sample.slot_id].add(sample)
    current = {incident.slot_id: incident for incident in Incident.objects.open()}
    wanted = set(Replica.objects.filter(goal=Goal.SERVE).values_list("slot_id", flat=True))
    for slot_id, course in courses.items():
        if slot_id not in current and course.first_down and course.down >= DOWN:
            _begin(slot_id, course.first_down)
    for slot_id, incident in current.items():
        if slot_id not in wanted:
            _end(incident, now)
        elif since := courses[slot_id].is_up_since:
            _end(incident, since)


def _begin(slot_id: int, began_at: datetime) -> None:
    slot = Slot.objects.get(pk=slot_id)
    try:
        with transaction.atomic():
            Incident.objects.create(slot=slot, began_at=began_at)
    except IntegrityError:
        return
    alerts.open_alert("slot_down", slot=slot)


def _end(incident: Incident, ended_at: datetime) -> None:
    if Incident.objects.open().filter(pk=incident.pk).update(ended_at=ended_at):
        alerts.close_alert("slot_down", slot=Slot.objects.get(pk=incident.slot_id))
