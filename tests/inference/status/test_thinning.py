"""Half minutes become hours without losing or doubling anything, and rows go in time."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Sum

from inference.models import ApiSample, Replica, ReplicaSample, Slot, SlotSample
from inference.status.thinning import thin
from tests.inference.status.conftest import api_stood, stood

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def sampled(replica: Replica, at: datetime, **fields: object) -> ReplicaSample:
    return ReplicaSample.objects.create(
        slot=replica.slot, replica=replica, model=replica.model, at=at, seconds=30, **fields
    )


def hours() -> list[int]:
    found = SlotSample.objects.filter(span="hour").order_by("at")
    return [row.at.hour for row in found]


def test_an_hour_adds_up(replica: Replica) -> None:
    for minute in range(60):
        sampled(
            replica, NOON + timedelta(minutes=minute), running=minute % 2, generated=10,
            first_tokens=2, first_token_seconds=1.0, drafted=4, accepted=3,
            first_token_buckets={"0.5": 1, "inf": 1} if minute else {"1.0": 2},
        )  # fmt: skip
    assert thin(NOON + timedelta(hours=1, minutes=3)) == 1
    row = ReplicaSample.objects.get(span="hour")
    assert (row.at, row.seconds, row.running, row.generated) == (NOON, 1800, 0.5, 600)
    assert (row.first_tokens, row.first_token_seconds) == (120, 60)
    assert row.first_token_buckets == {"0.5": 59, "inf": 59, "1.0": 2}
    assert (row.drafted, row.accepted, row.model) == (240, 180, replica.model)


def test_repeating_it_changes_nothing(slot: Slot) -> None:
    stood(slot, "u" * 240, until=NOON + timedelta(hours=2, seconds=-30))
    late = NOON + timedelta(hours=2, minutes=5)
    assert [thin(late), thin(late)] == [2, 0]
    whole = SlotSample.objects.filter(span="hour").aggregate(Sum("seconds"))
    assert whole == {"seconds__sum": 7200}


def test_an_hour_keeps_for_how_long_it_was_taken_out(slot: Slot) -> None:
    stood(slot, "u" * 80 + "o" * 40, until=NOON + timedelta(hours=1, seconds=-30))
    thin(NOON + timedelta(hours=1, minutes=5))
    row = SlotSample.objects.get(span="hour")
    assert (row.seconds, row.down_seconds, row.out_seconds) == (3600, 0, 1200)


def test_an_hour_that_runs_waits(slot: Slot) -> None:
    stood(slot, "u" * 10, until=NOON + timedelta(minutes=30))
    assert thin(NOON + timedelta(minutes=59)) == 0
    assert thin(NOON + timedelta(hours=1, minutes=1)) == 0  # a sample may still be on its way
    assert thin(NOON + timedelta(hours=1, minutes=2)) == 1


def test_after_an_outage_of_the_janitor_it_catches_up(slot: Slot) -> None:
    for hour in (0, 3, 4):
        stood(slot, "ud", until=NOON + timedelta(hours=hour, minutes=10))
    thin(NOON + timedelta(hours=5, minutes=10))
    assert hours() == [12, 15, 16]


def test_rows_go_in_time(slot: Slot, replica: Replica) -> None:
    stood(slot, "u", until=NOON)
    sampled(replica, NOON)
    thin(NOON + timedelta(hours=3))
    thin(NOON + timedelta(hours=49))
    assert set(SlotSample.objects.values_list("span", flat=True)) == {"hour"}
    assert set(ReplicaSample.objects.values_list("span", flat=True)) == {"hour"}
    thin(NOON + timedelta(days=91))
    assert (SlotSample.objects.count(), ReplicaSample.objects.count()) == (0, 0)


def test_hours_of_the_api(db: None) -> None:
    api_stood("u" * 100 + "g" * 20, until=NOON + timedelta(hours=1, seconds=-30))
    assert thin(NOON + timedelta(hours=1, minutes=3)) == 1
    row = ApiSample.objects.get(span="hour")
    assert (row.at, row.seconds, row.down_seconds) == (NOON, 3600, 600)
    thin(NOON + timedelta(days=91))
    assert ApiSample.objects.count() == 0
