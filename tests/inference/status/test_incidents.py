"""Incidents begin and end by themselves, with a delay, and one that flaps is one."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from inference.models import Alert, Incident, Replica, Slot, SlotSample
from inference.status import incidents
from tests.inference.staff import rows
from tests.inference.status.conftest import api_stood, stood

pytestmark = pytest.mark.django_db


def live(slot: Slot, states: str) -> datetime:
    """Sample by sample, judged after each, as it happens."""
    start = timezone.now() - timedelta(hours=1)
    at = start
    for number, state in enumerate(states):
        at = start + timedelta(seconds=30 * number)
        stood(slot, state, until=at)
        incidents.judge(at)
    return start


def after(start: datetime, samples: int) -> datetime:
    return start + timedelta(seconds=30 * samples)


@pytest.mark.parametrize(
    ("states", "count"),
    [
        ("uuuuuuuu", 0),
        ("uuuuduuuuu", 0),
        ("uuuudduuuuu", 0),  # seen down for 30 s
        ("uuuuddduuu", 1),  # for 60 s
        ("ddd", 1),
        ("ududududuu", 1),  # flapping
        ("uuuuddduududduuuuuuuudd", 1),
        ("uuuudddduuuuuuudddd", 2),
        ("uuuurrrrrrrruuuu", 0),  # a rotation of the only engine
        ("uuurrrrddd", 1),  # which goes wrong
        ("dd-------ddd", 1),
    ],
)
def test_how_many(slot: Slot, states: str, count: int) -> None:
    live(slot, states)
    assert Incident.objects.count() == count


def test_it_lasts_as_long_as_the_slot_was_down(slot: Slot) -> None:
    start = live(slot, "uuuudddduuuuu")
    found = Incident.objects.get()
    assert (found.began_at, found.ended_at) == (after(start, 4), after(start, 8))


def test_the_alert_has_the_times_of_the_incident(slot: Slot) -> None:
    """Whenever samples are judged: it is known a minute later that a slot was down."""
    start = live(slot, "uuuudddduuuuu")
    alert = Alert.objects.get()
    assert (alert.opened_at, alert.closed_at) == (after(start, 4), after(start, 8))


@pytest.mark.parametrize(
    ("states", "end"),
    [
        ("dddduu--------uuuuu", 4),  # it was up already when nobody could look any more
        ("dddd----------uuuuu", 3),  # nobody knows since when: it was last seen down then
        ("dddd--uuuuu", 6),
    ],
)
def test_what_nobody_saw_is_no_downtime(slot: Slot, states: str, end: int) -> None:
    """Such as while the database was away."""
    start = live(slot, states)
    found = Incident.objects.get()
    assert (found.began_at, found.ended_at) == (start, after(start, end))


# -- The API ------------------------------------------------------------------------------------
def live_api(states: str) -> datetime:
    start = timezone.now() - timedelta(hours=1)
    for number, state in enumerate(states):
        at = start + timedelta(seconds=30 * number)
        api_stood(state, until=at)
        incidents.judge(at)
    return start


@pytest.mark.parametrize(
    ("states", "count"),
    [("uuuu", 0), ("uuggu", 0), ("uuggg", 1), ("ugekug", 1), ("ugugugug", 1), ("ggguuuuuuggg", 2)],
)
def test_incidents_of_the_api(slot: Slot, states: str, count: int) -> None:
    live_api(states)
    assert Incident.objects.filter(slot=None).count() == Incident.objects.count() == count


def test_an_incident_of_the_api_alerts_and_ends(slot: Slot) -> None:
    start = live_api("uugggguuuuu")
    found = Incident.objects.get()
    assert (found.began_at, found.ended_at) == (after(start, 2), after(start, 6))
    alert = Alert.objects.get()
    assert (alert.code, alert.detail, alert.slot) == ("api_down", "api_gateway", None)
    assert (alert.opened_at, alert.closed_at) == (after(start, 2), after(start, 6))


def test_the_api_and_a_slot_have_one_each(slot: Slot) -> None:
    live(slot, "dddd")
    live_api("eeee")
    assert {incident.slot for incident in Incident.objects.open()} == {slot, None}


def test_it_goes_on_while_the_slot_is_up_for_moments_only(slot: Slot) -> None:
    live(slot, "ddd" + "uuud" * 10 + "uuuu")
    assert Incident.objects.get().ended_at is None


def test_admins_are_alerted_while_it_lasts(slot: Slot) -> None:
    start = live(slot, "dddd")
    assert Alert.objects.get(closed_at=None).code == "slot_down"
    assert Alert.objects.get().slot == slot
    at = after(start, 9)
    stood(slot, "uuuuu", until=at)
    incidents.judge(at)
    assert not Alert.objects.filter(closed_at=None).exists()


def test_samples_that_stop_neither_begin_nor_end_it(slot: Slot) -> None:
    start = live(slot, "ddddu-----u")
    assert Incident.objects.get().ended_at is None
    incidents.judge(after(start, 12))
    assert Incident.objects.get().ended_at is None


def test_a_slot_that_is_switched_off_has_none(slot: Slot) -> None:
    start = live(slot, "dddd")
    Replica.objects.update(goal="off")
    incidents.judge(after(start, 5))
    assert Incident.objects.get().ended_at == after(start, 5)


def test_what_was_taken_out_was_not_up(slot: Slot) -> None:
    live(slot, "ddddoooooo")
    assert Incident.objects.get().ended_at is None


def test_slots_are_judged_apart(slot: Slot) -> None:
    other = rows.slot("embed", slot.model)
    rows.replica(other, Replica.objects.get().server)
    start = live(slot, "dddd")
    stood(other, "uuuu", until=after(start, 3))
    incidents.judge(after(start, 3))
    assert [incident.slot for incident in Incident.objects.all()] == [slot]


def test_two_judges_make_one(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    at = stood(slot, "dddd")
    incidents.judge(at)
    first = SlotSample.objects.order_by("at")[0].at
    incidents._begin(slot.pk, first)
    assert Incident.objects.count() == 1
