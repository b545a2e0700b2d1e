"""A replica that is healthy and does not answer is found, and leaves if another one serves."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from inference.fleet import watching
from inference.fleet.machine import Sight, advance
from inference.models import Alert, CatalogModel, Replica, Server, Slot, Swap
from inference.watch import first_tokens, probing, verdicts
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told
from tests.inference.simulator.engines import RunningEngine, running
from tests.ports import free_port

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
    assert [(a.code, a.replica, a.detail) for a in Alert.objects.all()] == [
        ("replica_bad", first, "watch_hang")
    ]


def test_the_last_one_stays_and_people_are_told(
    first: Replica, second: Replica, hanging: RunningEngine, told: Told
) -> None:
    Replica.objects.filter(pk=second.pk).update(state="failed")
    for _ in range(3):
        watched(first, hanging)
        assert rooms.look(first).state == "serving"
    assert [(a.code, a.replica, a.detail) for a in Alert.objects.all()] == [
        ("last_replica_bad", first, "watch_hang")
    ]
    with running() as well:
        assert "bad" not in watched(first, well)
    assert opened() == []


def found_bad(*replicas: Replica, code: str = "watch_hang") -> None:
    bad = {"verdict": {"state": "bad", "code": code}, "bad": code}
    Replica.objects.filter(pk__in=[replica.pk for replica in replicas]).update(watch=bad)


def test_of_two_that_hang_at_once_one_stays_until_the_other_is_back(
    first: Replica, second: Replica, hanging: RunningEngine, told: Told
) -> None:
    """Both are found bad between two rounds; each while the other one still reads *serving*."""
    Replica.objects.filter(pk=second.pk).update(port=free_port())
    for _ in range(2):
        watched(first, hanging)
        watching.run(second.pk, second.instance)
    found = [Replica.objects.get(pk=replica.pk).watch["bad"] for replica in (first, second)]
    assert found == ["watch_hang", "watch_unreachable"]
    assert [rooms.look(first).state, rooms.look(second).state] == ["stopping", "serving"]
    assert opened() == [("last_replica_bad", second), ("replica_bad", first)]
    Replica.objects.filter(pk=first.pk).update(state="serving", watch={})
    assert rooms.look(second).state == "stopping"
    assert opened() == [("replica_bad", first), ("replica_bad", second)]


def opened() -> list[tuple[str, Replica | None]]:
    found = Alert.objects.filter(closed_at=None).order_by("code", "replica")
    return [(alert.code, alert.replica) for alert in found]


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that follow each other at once count as minutes, and tenths of a second as seconds."""
    monkeypatch.setattr(first_tokens, "PART", 0.0)
    monkeypatch.setattr(first_tokens, "SECONDS", 0.1)


def looks(*replicas: tuple[Replica, RunningEngine]) -> list[dict[str, Any]]:
    """Four looks at each, with a dozen members' requests before each look."""
    for _ in range(4):
        for _, engine in replicas:
            for number in range(12):
                engine.chat(f"Hello {number}", max_tokens=1)
        found = [watched(replica, engine) for replica, engine in replicas]
    return found


@pytest.mark.usefixtures("quickly", "told")
def test_one_whose_first_tokens_come_far_later_than_the_others_leaves(
    first: Replica, second: Replica
) -> None:
    with running(SIM_TTFT_MS="150") as slow, running() as quick:
        found = looks((first, slow), (second, quick))
    bad = {"state": "bad", "code": "watch_behind"}
    assert [kept["verdict"] for kept in found] == [bad, {"state": "ok", "code": ""}]
    assert [rooms.look(first).state, rooms.look(second).state] == ["stopping", "serving"]
    assert opened() == [("replica_bad", first)]


@pytest.mark.usefixtures("quickly", "told")
def test_a_new_model_is_compared_with_the_old_one_only_while_its_swap_watches_it(
    first: Replica, second: Replica, chat: Slot, old: CatalogModel, new: CatalogModel
) -> None:
    swap = Swap.objects.create(slot=chat, from_model=old, to_model=new, state="running")
    Replica.objects.filter(pk=first.pk).update(model=new, goal_model=new)
    with running(SIM_TTFT_MS="150") as slow, running() as quick:
        assert looks((first, slow), (second, quick))[0]["verdict"]["state"] == "ok"
        Replica.objects.filter(pk=first.pk).update(swap=swap)
        assert looks((first, slow), (second, quick))[0]["bad"] == "watch_behind"


@pytest.fixture
def four(first: Replica, second: Replica, chat: Slot, machine_room: Server) -> list[Replica]:
    return [first, second, *(rooms.serving(chat, machine_room, number) for number in (3, 4))]


def test_bad_ones_leave_while_a_well_one_stays(four: list[Replica], told: Told) -> None:
    found_bad(*four[:3])
    assert [rooms.look(replica).state for replica in four] == ["stopping"] * 3 + ["serving"]


def test_where_all_are_bad_one_leaves_at_a_time(four: list[Replica], told: Told) -> None:
    found_bad(*four)
    states = ["stopping", "serving", "serving", "serving"]
    assert [rooms.look(replica).state for replica in four] == states


def test_one_that_a_swap_or_an_admin_is_about_to_drain_is_none_that_stays(
    first: Replica, second: Replica, new: CatalogModel, told: Told
) -> None:
    found_bad(first)
    for goal in ({"goal_model": new}, {"goal": "off"}):
        Replica.objects.filter(pk=second.pk).update(**goal)
        assert rooms.look(first).state == "serving"


@pytest.mark.django_db(transaction=True)
def test_two_passes_at_once_leave_one_serving(four: list[Replica], told: Told) -> None:
    """One pass at a time has the lease; one that was asleep for longer than it may still act."""
    found_bad(*four)
    together = Barrier(len(four))

    def act(replica: Replica) -> str:
        found = Replica.objects.whole().get(pk=replica.pk)
        together.wait(timeout=10)
        try:
            advance(found, Sight(now=timezone.now()))
        finally:
            connection.close()
        return found.state

    with ThreadPoolExecutor(len(four)) as threads:
        states = sorted(threads.map(act, four))
    assert states == ["serving"] * 3 + ["stopping"]


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
