"""Parts killed and restarted at every step of a swap: it goes on, and nobody's request is cut that
was not on the part itself."""

import signal
import time
from contextlib import suppress

import psutil
import pytest

from inference.pool import Pool
from tests.fleet import Fleet
from tests.load import Load
from tests.stack import Stack
from tests.waiting import at_once, wait_until

STEPS = ("draining", "stopping", "starting", "checking", "joining")
SAID_AGAIN = """
from inference.tasks import *
[task.apply_async() for task in [fleet_pass, fleet_ask_servers] * 3]"""
BACK = 90  # seconds after a worker is back: the swap moves again


@pytest.fixture
def fleet(_fleet: Fleet) -> Fleet:
    """Any model is good to begin with."""
    _fleet.clear()
    return _fleet


def killed(stack: Stack, part: str) -> None:
    """As soon as it has come back from the last time."""
    stack.wait_ready(part)
    stack.crash(part)


def slow_enough(new: str) -> dict[str, object]:
    return {new: {"load_seconds": 3}}


@pytest.mark.parametrize("part", ["worker-fleet", "worker-gpu"])
def test_a_worker_killed_at_every_step(fleet: Fleet, load_key: str, part: str) -> None:
    """And everything it had started goes on without it."""
    new = fleet.other_model()
    with fleet.faults(slow_enough(new)), Load(fleet.stack.api, load_key) as load:
        swap = fleet.plan(new)
        met = fleet.at_each_step(1, lambda state: killed(fleet.stack, part))
        fleet.until(swap, "done", seconds=len(STEPS) * BACK)
    assert len(met) >= 3  # the shortest ones may be over before they are seen
    assert load.bad == []
    assert fleet.starts(new) == 2  # one for each replica, however often it was told
    fleet.stack.wait_ready(part)


def test_haproxy_reloaded_at_every_step_cuts_nothing(fleet: Fleet, load_key: str) -> None:
    new = fleet.other_model()

    def reload(_state: str) -> None:
        psutil.Process(fleet.stack.pid("edge")).send_signal(signal.SIGUSR2)
        time.sleep(0.5)

    with fleet.faults(slow_enough(new)), Load(fleet.stack.api, load_key) as load:
        swap = fleet.plan(new)
        fleet.at_each_step(1, reload)
        fleet.until(swap, "done", seconds=150)
    assert load.bad == []


@pytest.mark.parametrize("part", ["valkey", "web"])
def test_parts_that_carry_no_requests_restarted_at_every_step(
    fleet: Fleet, load_key: str, part: str
) -> None:
    """Redis takes limits and blocked keys with it for a moment, but no request."""
    new = fleet.other_model()
    with fleet.faults(slow_enough(new)), Load(fleet.stack.api, load_key) as load:
        swap = fleet.plan(new)
        fleet.at_each_step(1, lambda state: killed(fleet.stack, part))
        fleet.until(swap, "done", seconds=240)
    assert load.bad == []
    fleet.stack.wait_ready(part)


@pytest.mark.parametrize("part", ["edge", "gateway"])
def test_parts_on_the_way_restarted_in_the_middle(fleet: Fleet, load_key: str, part: str) -> None:
    """What was on them is lost; the swap goes on, and no engine is asked before it is ready."""
    new = fleet.other_model()
    with fleet.faults({new: {"load_seconds": 15}}):  # the gateway takes that long to come back
        swap = fleet.plan(new)
        for step in ("draining", "starting"):
            fleet.until_step(swap, step)
            fleet.stack.crash(part)
            fleet.stack.wait_ready(part)
        fleet.until(swap, "done", seconds=240)
        with Load(fleet.stack.api, load_key) as load:
            wait_until(lambda: len(load.calls) > 10, seconds=60, what="traffic")
    assert load.bad == []


def test_ten_clicks_two_beats_and_every_message_twice(fleet: Fleet, load_key: str) -> None:
    """S7: one sequence of drain, stop and start; the second swap is refused."""
    new = fleet.other_model()
    swap = fleet.plan(new, start=False)
    approve = f"""
from inference.swaps import plan
from members.models import User
try:
    plan.approve(swap=Swap.objects.get(pk={swap}), actor=User.objects.filter(is_staff=True).first())
    result = "approved"
except plan.SwapRefused as refused:
    result = refused.code"""
    clicks = [Fleet(fleet.stack) for _ in range(4)]
    said = at_once([lambda c=click: c.do(approve) for click in clicks])
    assert sorted(said) == ["approved", "not_now", "not_now", "not_now"]
    with Load(fleet.stack.api, load_key) as load:
        fleet.until(swap, "done", "failed", seconds=150, look=lambda _: fleet.do(SAID_AGAIN))
    found = fleet.swap(swap)
    happened = [(what, replica) for what, replica, _, _ in found["events"] if replica]
    assert found["state"] == "done"
    assert happened == list(dict.fromkeys(happened))
    assert (load.bad, fleet.starts(new)) == ([], 2)
    for click in clicks:
        click.close()


def test_a_cancelled_swap_never_runs(fleet: Fleet) -> None:
    """S12: cancelled while queued, workers restarted."""
    new = fleet.other_model()
    swap = fleet.plan(new, in_seconds=6)
    fleet.act("cancel", swap)
    for part in ("worker-fleet", "worker-gpu"):
        fleet.stack.crash(part)
        fleet.stack.wait_ready(part)
    time.sleep(8)
    assert fleet.swap(swap)["state"] == "cancelled"
    assert [what for what, _, _, _ in fleet.swap(swap)["events"]] == [
        "planned",
        "approved",
        "cancelled",
    ]
    assert {r["state"] for r in fleet.replicas()} == {"serving"}


def test_a_server_that_cant_be_reached_is_waited_for(fleet: Fleet, load_key: str) -> None:
    """The page says since when; members notice nothing; it goes on when the server is back."""
    new = fleet.other_model()
    with fleet.faults(slow_enough(new)), Load(fleet.stack.api, load_key) as load:
        swap = fleet.plan(new)
        fleet.until_step(swap, "draining")
        with fleet.stack.down("worker-gpu"):
            wait_until(
                lambda: "server_silent" in fleet.alerts(), seconds=60, what="the silence noticed"
            )
            assert fleet.swap(swap)["state"] == "running"
        fleet.until(swap, "done", seconds=120)
    assert load.bad == []
    wait_until(lambda: "server_silent" not in fleet.alerts(), seconds=30, what="the alert's end")


def test_state_of_a_haproxy_that_was_killed(stack: Stack, fleet: Fleet) -> None:
    """Back with the same places in service, before the fleet worker has looked once."""
    pool = Pool(fleet.pool_dir)
    with stack.down("worker-fleet"):
        stack.crash("edge")
        stack.wait_ready("edge")

        def up() -> bool:
            with suppress(Exception):
                servers = pool.look().servers
                return all(servers["slot01", n].status == "UP" for n in (1, 2))
            return False

        wait_until(up, seconds=20, what="both replicas in service again")
