"""A replica that is healthy and does not answer is found, and leaves if another one serves."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inference.fleet import watching
from inference.models import Alert, Replica
from inference.watch import probing, verdicts
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told
from tests.inference.simulator.engines import RunningEngine, running

pytestmark = pytest.mark.django_db


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningEngine]:
    monkeypatch.setattr(probing, "DEADLINE", 0.5)
    with running(SIM_FAULTS="hang") as engine:
        yield engine


def watched(replica: Replica, engine: RunningEngine) -> dict[str, Any]:
    Replica.objects.filter(pk=replica.pk).update(port=engine.port)
    watching.run(replica.pk, replica.instance)
    found: dict[str, Any] = Replica.objects.get(pk=replica.pk).watch
    return found


def test_a_hang_is_bad_after_two_looks_and_the_replica_leaves(
    first: Replica, second: Replica, hanging: RunningEngine, told: Told
) -> None:
    assert watched(first, hanging)["verdict"] == {"state": "suspect", "code": "watch_hang"}
    assert rooms.look(first).state == "serving"
    assert watched(first, hanging)["bad"] == "watch_hang"
    replica = rooms.look(first)
    assert (replica.state, replica.error_code) == ("stopping", "watch_hang")


def test_the_last_one_stays_and_people_are_told(
    first: Replica, second: Replica, hanging: RunningEngine, told: Told
) -> None:
    Replica.objects.filter(pk=second.pk).update(state="failed")
    for _ in range(3):
        kept = watched(first, hanging)
    assert kept["bad"] == ""
    assert rooms.look(first).state == "serving"
    assert [(a.code, a.replica, a.detail) for a in Alert.objects.all()] == [
        ("last_replica_bad", first, "watch_hang")
    ]


def test_a_look_that_comes_late_says_nothing(first: Replica, hanging: RunningEngine) -> None:
    Replica.objects.filter(pk=first.pk).update(port=hanging.port)
    watching.run(first.pk, "another-engine")
    assert Replica.objects.get(pk=first.pk).watch == {}


def test_it_is_asked_once_a_minute_and_sooner_after_trouble(first: Replica) -> None:
    now = timezone.now()
    assert watching.due(first, now)
    watching.mark_asked(first, now)
    first.refresh_from_db()
    assert not watching.due(first, now + timedelta(seconds=59))
    assert watching.due(first, now + timedelta(seconds=verdicts.PAUSE))
    first.watch["verdict"] = {"state": "suspect", "code": "watch_hang"}
    assert watching.due(first, now + timedelta(seconds=verdicts.HURRY))
