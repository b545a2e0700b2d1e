"""What HAProxy is told of slots to which no engine is coming."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inference.fleet import signs
from inference.fleet.goals import set_goal
from inference.models import Replica, Slot
from members.models import User
from tests.inference.staff import rows

pytestmark = pytest.mark.django_db


def idle() -> dict[str, str]:
    return {**signs.idle(list(Slot.objects.all()), list(Replica.objects.whole()))}


def set_all(**values: Any) -> None:
    Replica.objects.update(**values)


@pytest.fixture
def both() -> list[Replica]:
    return rows.small_fleet(2)[1]


def test_where_one_of_two_serves_somebody_may_wait(both: list[Replica]) -> None:
    set_goal(both[0], None)
    assert idle() == {}


def test_a_slot_whose_replicas_are_all_taken_out(both: list[Replica]) -> None:
    """Those that still drain answer what they have, and nothing new."""
    for one in both:
        set_goal(one, None)
    set_all(state="draining")
    assert idle() == {"slot01": "out"}
    set_goal(both[1], both[1].slot.model)
    assert idle() == {}


@pytest.mark.parametrize("state", ["starting", "checking", "joining", "stopping"])
def test_an_engine_on_its_way_is_waited_for(both: list[Replica], state: str) -> None:
    set_all(state=state)
    assert idle() == {}


def test_a_failed_one_is_waited_for_while_it_is_tried_again(both: list[Replica]) -> None:
    set_all(state="failed", retry_at=timezone.now() + timedelta(minutes=2))
    assert idle() == {}
    set_all(retry_at=None)
    assert idle() == {"slot01": "failed"}


def test_a_slot_in_a_rotation_is_left_to_it(both: list[Replica], admin: User) -> None:
    set_all(state="failed", retry_at=None)
    swap = rows.swap(both[0].slot, rows.catalogue_model("oak"), admin, state="running")
    set_all(swap=swap)
    assert idle() == {}
    set_all(swap=None)
    Slot.objects.update(rotating_since=timezone.now())
    assert idle() == {}


def test_a_slot_without_any_replica() -> None:
    rows.slot("speech")
    assert idle() == {"slot01": "out"}
