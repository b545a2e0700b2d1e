"""One pass at a time, whoever calls it and whoever was killed."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inference.fleet import alerts, lease, passes, sight
from inference.fleet.goals import set_goal
from inference.models import Alert, CatalogModel, FleetLease, Replica, Server, Slot, Swap
from inference.places import PoolView
from inference.pool import Pool
from inference.swaps import plan
from tests.inference.fleet import rooms
from tests.inference.fleet.conftest import Told
from tests.waiting import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HAProxy is not running: nothing may be concluded, everything else goes on."""
    monkeypatch.setattr(sight, "pool", lambda: Pool(tmp_path))


def test_a_lease_is_one_holders_until_it_ends(db: None) -> None:
    mark = lease.take()
    assert mark is not None
    assert lease.take() is None
    assert lease.renew(mark)
    FleetLease.objects.update(until=timezone.now() - timedelta(seconds=1))
    other = lease.take()
    assert other not in (None, mark)
    assert not lease.renew(mark)
    lease.give_back(mark)
    assert lease.take() is None
    if other is not None:
        lease.give_back(other)
    assert lease.take() is not None


@pytest.mark.django_db(transaction=True)
def test_of_ten_passes_at_once_one_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    both = threading.Event()

    def one_round(_now: Any, *, ask: bool) -> None:
        rounds.append(1)
        both.wait(1)

    monkeypatch.setattr(passes, "one_round", one_round)

    at_once([passes.run_pass] * 10)
    assert len(rounds) == 1


def test_without_a_pool_an_alert_is_open_and_no_drain_is_concluded(
    first: Replica, second: Replica, new: CatalogModel, told: Told
) -> None:
    set_goal(first, new, drain_seconds=0)
    began = timezone.now()
    pauses = [passes.one_round(began + timedelta(seconds=n)) for n in (0, 1, 2, 14)]
    assert pauses == [passes.NEXT_STEP_SECONDS, *[passes.ROUND_SECONDS] * 3]
    assert not Alert.objects.exists()  # a look that took too long is no outage
    assert passes.one_round(began + timedelta(seconds=16))
    assert list(Replica.objects.values_list("state", flat=True)) == ["draining", "serving"]
    alert = Alert.objects.get()
    assert (alert.code, alert.opened_at) == ("pool_unreachable", began)


def test_a_fault_of_ours_ends_the_swap_that_met_it_and_no_other(
    first: Replica, second: Replica, chat: Slot, new: CatalogModel, told: Told, monkeypatch: Any
) -> None:
    swap = plan.plan(slot=chat, model=new, actor=None)
    Swap.objects.update(state="running")

    def fail(*_: Any) -> None:
        raise OverflowError

    with monkeypatch.context() as patched:
        patched.setattr(passes.swaps, "advance", fail)
        passes.one_round(timezone.now())
    swap.refresh_from_db()
    assert (swap.state, swap.error_code) == ("returning", "internal")
    assert Alert.objects.get(code="internal").swap == swap
    passes.one_round(timezone.now())
    swap.refresh_from_db()
    assert swap.state == "failed"


def test_where_nothing_moves_a_round_asks_as_often_for_eight_as_for_one(
    chat: Slot, machine_room: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = PoolView(places={}, queued={}, restarted=False, saved=True)
    monkeypatch.setattr(sight, "reconcile", lambda *_: view)
    monkeypatch.setattr(sight, "pool", lambda: mock.Mock(spec=Pool))
    asked_now = {"asked_at": timezone.now().isoformat()}
    asked = []
    servers = (machine_room, rooms.server("two"))
    for number in range(1, 9):
        rooms.serving(chat, servers[number % 2], number, watch=asked_now)
        if number in (1, 8):
            with CaptureQueriesContext(connection) as seen:
                assert passes.one_round(timezone.now()) is None
            asked.append([query["sql"].split()[0] for query in seen])
    # Swaps that are due and run; replicas, slots, retired names; that the pool was seen, its alert.
    assert asked == [["SELECT"] * 5 + ["UPDATE"] * 2] * 2


def test_a_replica_begins_in_the_round_in_which_its_swap_gives_it_a_goal(
    first: Replica, second: Replica, chat: Slot, new: CatalogModel, told: Told
) -> None:
    """Or pages would have the swap under way and its replica serve, as if nothing were due."""
    swap = plan.plan(slot=chat, model=new, actor=None)
    Swap.objects.update(state="running")
    swap.parts.update(preflight=[{"name": "port", "ok": True, "code": "", "detail": ""}])
    passes.one_round(timezone.now())
    assert [part.state for part in swap.parts.all()] == ["changing", "waiting"]
    assert list(Replica.objects.values_list("state", flat=True)) == ["draining", "serving"]


def test_one_replicas_trouble_does_not_stop_the_others(
    first: Replica, second: Replica, new: CatalogModel, told: Told
) -> None:
    Replica.objects.filter(pk=first.pk).update(state="odd")
    set_goal(second, new)
    passes.one_round(timezone.now())
    second.refresh_from_db()
    assert second.state == "draining"
    internal = Alert.objects.get(code="internal")
    assert internal.replica == first


@pytest.mark.parametrize(("code", "alert"), [("watch_hang", None), ("killed", "replica_down")])
def test_what_the_watcher_took_out_is_not_told_twice(
    code: str, alert: str | None, first: Replica, machine_room: Server, told: Told
) -> None:
    """`replica_bad` was opened when it left the pool."""
    rooms.say(machine_room, engines={first.instance: rooms.exited()})
    Replica.objects.filter(pk=first.pk).update(state="stopping", error_code=code)
    passes.one_round(timezone.now())
    first.refresh_from_db()
    assert first.state == "failed"
    assert list(Alert.objects.values_list("code", flat=True)) == ([alert] if alert else [])


def test_one_that_is_taken_out_for_good_has_no_alert_left(first: Replica, told: Told) -> None:
    alerts.open_alert("replica_bad", replica=first, detail="watch_slow")
    Replica.objects.filter(pk=first.pk).update(state="failed", instance="", goal="off")
    passes.one_round(timezone.now())
    first.refresh_from_db()
    assert (first.state, Alert.objects.filter(closed_at=None).count()) == ("off", 0)


def test_an_alert_that_is_open_says_what_is_true_now(first: Replica) -> None:
    """And stays the one that admins were told of."""
    alerts.open_alert("replica_down", replica=first, detail="gpu_memory")
    alert = Alert.objects.get()
    for detail in ("tool_parser", ""):
        alerts.open_alert("replica_down", replica=first, detail=detail)
        assert list(Alert.objects.values_list("pk", "detail")) == [(alert.pk, "tool_parser")]
