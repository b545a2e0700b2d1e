"""Parts killed and restarted at every step of a swap: it goes on, and nobody's request is cut that
was not on the part itself."""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import httpx
import psutil
import pytest

from inference.pool import Pool
from tests.fleet import Fleet
from tests.load import Load, Outage
from tests.pool_log import asked, unproven
from tests.stack import Stack
from tests.waiting import at_once, wait_until

STEPS = ("draining", "stopping", "starting", "checking", "joining")
SAID_AGAIN = """
from inference.tasks import *
[task.apply_async() for task in [fleet_pass, fleet_ask_servers] * 3]"""
SECOND = """
from inference.swaps import plan
try:
    slot = Slot.objects.get(name="nan")
    other = CatalogModel.objects.filter(kind=slot.kind).exclude(pk=slot.model_id).last()
    result = plan.plan(slot=slot, model=other, actor=None).pk
except plan.SwapRefused as refused:
    result = refused.code"""
pytestmark = pytest.mark.timeout(600)  # each with a swap or two, and parts that take long to start
BACK = 90  # seconds after a worker is back: the swap moves again


@pytest.fixture
def fleet(_fleet: Fleet) -> Fleet:
    """Any model is good to begin with."""
    _fleet.clear()
    return _fleet


def at_every_step(fleet: Fleet, act: Callable[[], object]) -> None:
    """`act` once at each step of a swap, of whichever replica, and all that were needed for it to
    their end: one that is over before every step was met is followed by another."""
    swaps = list[int]()
    for step in STEPS:
        wait_until(partial(reached, fleet, swaps, step), seconds=BACK, what=step, every=0.05)
        act()
    found = [fleet.until(swap, "done", seconds=len(STEPS) * BACK) for swap in swaps]
    numbers = {r["id"]: r["number"] for r in fleet.replicas()}
    for swap in found:
        assert sum(what == "starting" for what, *_ in swap["events"]) == len(numbers)
        assert unproven(fleet.stack, swap, numbers) == []


def reached(fleet: Fleet, swaps: list[int], step: str) -> bool:
    """A replica is at this step; there is always a swap."""
    if not swaps or fleet.swap(swaps[-1])["state"] == "done":
        swaps.append(fleet.plan(fleet.other_model()))
    return step in {replica["state"] for replica in fleet.replicas()}


def restarted(stack: Stack, part: str) -> None:
    """Killed, and back."""
    stack.crash(part)
    stack.wait_ready(part, seconds=180)


def slow_enough(seconds: float = 3) -> dict[str, object]:
    """Of whichever model."""
    return {"*": {"load_seconds": seconds}}


@pytest.mark.parametrize("part", ["worker-fleet", "worker-gpu"])
def test_a_worker_killed_at_every_step(fleet: Fleet, load_key: str, part: str) -> None:
    """And everything it had started goes on without it: the next step is met within 90 s of its
    being back, and each engine is started once, however often it was told."""
    with fleet.faults(slow_enough()), Load(fleet.stack.api, load_key) as load:
        at_every_step(fleet, lambda: restarted(fleet.stack, part))
    assert load.bad == []


@pytest.mark.parametrize("part", ["worker-fleet", "worker-gpu", "valkey"])
def test_a_part_killed_before_and_after_the_change_and_on_the_way_back(
    fleet: Fleet, load_key: str, part: str
) -> None:
    """During the checks before, twice on the way back to the old model, and on watch."""
    old, new = fleet.model(), fleet.other_model(has=["tools", "reasoning"])
    with Load(fleet.stack.api, load_key) as load:
        with fleet.faults({new: ["empty-content"], old: slow_enough()["*"]}):
            bad = fleet.plan(new)
            killed_when(fleet, bad, part, swap="running", replica="serving")
            for step in ("starting", "checking"):
                killed_when(fleet, bad, part, swap="returning", replica=step)
            swap = fleet.until(bad, "failed", seconds=2 * BACK)
            fleet.settle()
        assert (swap["step"], swap["error"], fleet.model()) == ("smoke", "smoke_empty", old)
        assert [what for what, *_ in swap["events"]].count("starting") == 2
        good = fleet.plan(new, watch_seconds=5)
        killed_when(fleet, good, part, swap="running", replica="serving", watched=True)
        fleet.until(good, "done", seconds=3 * BACK)
    assert (load.bad, {r["model"] for r in fleet.replicas()}) == ([], {new})


def killed_when(
    fleet: Fleet, pk: int, part: str, *, swap: str, replica: str, watched: bool = False
) -> None:
    """When the swap and its first replica are at this."""

    def reached() -> bool:
        found = fleet.swap(pk)
        first, state = found["parts"][0]
        at = next(r["state"] for r in fleet.replicas() if r["id"] == first)
        return (found["state"], at, state == "watched") == (swap, replica, watched)

    fleet.wait(reached, seconds=BACK, what=f"{swap} and {replica}", swap=pk, every=0.05)
    restarted(fleet.stack, part)


def test_haproxy_reloaded_at_every_step_cuts_nothing(fleet: Fleet, load_key: str) -> None:
    def reload() -> None:
        psutil.Process(fleet.stack.pid("edge")).send_signal(signal.SIGUSR2)
        time.sleep(0.5)

    with fleet.faults(slow_enough()), Load(fleet.stack.api, load_key) as load:
        at_every_step(fleet, reload)
    assert load.bad == []


@pytest.mark.parametrize("part", ["valkey", "web"])
def test_parts_that_carry_no_requests_restarted_at_every_step(
    fleet: Fleet, load_key: str, part: str
) -> None:
    """Redis takes limits and blocked keys with it for a moment, but no request."""
    with fleet.faults(slow_enough()), Load(fleet.stack.api, load_key) as load:
        at_every_step(fleet, lambda: restarted(fleet.stack, part))
    assert load.bad == []


@pytest.mark.timeout(900)  # the gateway takes 15 s to come back; five times that on a busy machine
@pytest.mark.parametrize(("part", "loading"), [("edge", 3), ("gateway", 20)])
def test_parts_on_the_way_restarted_at_every_step(
    fleet: Fleet, load_key: str, part: str, loading: float
) -> None:
    """What was on them is lost, and nothing else; nothing is asked twice."""
    began, outages = time.time(), list[Outage]()
    with fleet.faults(slow_enough(loading)), Load(fleet.stack.api, load_key) as load:
        at_every_step(fleet, lambda: outages.append(outage(fleet.stack, part, load)))
    assert load.bad_outside(outages) == []
    assert len(load.calls) >= len(asked(fleet.stack, since=began)) > 0


def outage(stack: Stack, part: str, load: Load) -> Outage:
    """Restarted, and so far back that requests go through it; some have, before anything else."""
    began = time.monotonic()
    restarted(stack, part)
    wait_until(partial(answers, stack), seconds=10, what=f"the API with {part} back")
    found = Outage(began=began, ended=time.monotonic())
    wait_until(lambda: load.well_after(found) > 2, seconds=30, what="traffic")
    return found


def answers(stack: Stack) -> bool:
    with suppress(httpx.HTTPError):
        return stack.api_answers()
    return False


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
    engines = fleet.engines_started()
    with Load(fleet.stack.api, load_key) as load:
        wait_until(lambda: fleet.swap(swap)["state"] == "running", seconds=30, what="its begin")
        assert fleet.do(SECOND) == "slot_busy"
        fleet.until(swap, "done", "failed", seconds=150, look=lambda _: fleet.do(SAID_AGAIN))
    found = fleet.swap(swap)
    logs = [(e / "stdout.log").read_text() for e in fleet.engines_started() - engines]
    assert [log.count("Starting to load model") for log in logs] == [1, 1]
    happened = [(what, replica) for what, replica, _, _ in found["events"] if replica]
    assert found["state"] == "done"
    assert happened == list(dict.fromkeys(happened))
    assert (load.bad, fleet.starts(new)) == ([], 2)
    for click in clicks:
        click.close()


def test_a_cancelled_swap_never_runs(fleet: Fleet, load_key: str) -> None:
    """S12: cancelled while queued, workers restarted."""
    with Load(fleet.stack.api, load_key) as load:
        swap = fleet.plan(fleet.other_model(), in_seconds=6)
        fleet.act("cancel", swap)
        for part in ("worker-fleet", "worker-gpu"):
            restarted(fleet.stack, part)
        time.sleep(8)
    assert load.bad == []
    assert fleet.swap(swap)["state"] == "cancelled"
    assert [what for what, _, _, _ in fleet.swap(swap)["events"]] == [
        "planned",
        "approved",
        "cancelled",
    ]
    assert {r["state"] for r in fleet.replicas()} == {"serving"}


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
