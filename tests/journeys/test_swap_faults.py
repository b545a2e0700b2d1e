"""Every way in which a new engine can fail: the old model serves again, the page says why, and no
member has noticed."""

import shutil
import socket
import time
from typing import Any

import pytest

from inference.pool import Pool
from tests.api import ApiClient
from tests.fleet import Fleet
from tests.load import Load
from tests.pool_log import asked
from tests.waiting import wait_until

FAILURES = {
    "refuse-flag": ("preflight", "flag_refused"),
    "refuse-start": ("preflight", "parser_unknown"),
    "bad-template": ("preflight", "template_bad"),
    "die-after-loading": ("start", "kv_cache_too_small"),
    "hang": ("smoke", "smoke_hang"),
    "think-in-content": ("smoke", "smoke_think_in_content"),
    "lose-tool-calls": ("smoke", "smoke_tool_call_lost"),
    "empty-content": ("smoke", "smoke_empty"),
    "stream-only-hang": ("smoke", "smoke_stream_hang"),
}
ITS_OWN_WORDS = {
    "refuse-flag": "unrecognized arguments: --",
    "refuse-start": "invalid tool call parser: simulated",
    "bad-template": "TemplateSyntaxError: Encountered unknown tag",
    "die-after-loading": "max seq len",
}
TOUCHED = ("draining", "stopping", "starting")


@pytest.mark.parametrize("fault", FAILURES)
def test_a_bad_engine_never_meets_a_member(fleet: Fleet, load_key: str, fault: str) -> None:
    """S10, S14: and it is started once, not again and again."""
    old, new = fleet.model(), fleet.other_model(has=["tools", "reasoning"])
    with fleet.faults({new: [fault]}), Load(fleet.stack.api, load_key) as load:
        swap = fleet.until(fleet.plan(new), "failed", seconds=120)
        fleet.settle()
    assert (swap["step"], swap["error"]) == FAILURES[fault]
    assert ITS_OWN_WORDS.get(fault, "") in swap["detail"]
    assert load.bad == []
    happened = [what for what, _, _, _ in swap["events"]]
    if swap["step"] == "preflight":
        assert not set(happened) & set(TOUCHED)
    else:
        assert happened.count("starting") == 2  # the new one, and the old one again
        assert swap["parts"][1][1] == "waiting"
    assert {r["model"] for r in fleet.replicas()} == {old}
    assert fleet.model() == old
    assert "swap_failed" in fleet.alerts()


def test_weights_that_are_not_there_are_found_before_anything_is_touched(
    fleet: Fleet, load_key: str
) -> None:
    """S14. Nor is there room for them."""
    new = fleet.other_model()
    folder = fleet.weights_of(new)
    away = folder.with_name("away")
    shutil.move(folder, away)
    try:
        with fleet.sized(new, mib=90_000_000), Load(fleet.stack.api, load_key) as load:
            swap = fleet.until(fleet.plan(new), "failed")
    finally:
        shutil.move(away, folder)
    assert (swap["step"], swap["error"], load.bad) == ("preflight", "weights_missing", [])
    assert {"weights_missing", "disk_short"} <= set(fleet.refusals(swap["id"]))
    assert not {what for what, _, _, _ in swap["events"]} & set(TOUCHED)


def test_a_port_that_somebody_else_has_is_found_before_anything_is_touched(
    fleet: Fleet, load_key: str
) -> None:
    """S14: it was taken while the replica's own engine was away."""
    new = fleet.other_model()
    fleet.act_on_replica("take_out", 2)
    port = fleet.until_replica(2, "off")["port"]
    with socket.create_server(("127.0.0.1", port)), Load(fleet.stack.api, load_key) as load:
        fleet.act_on_replica("put_in_service", 2)
        assert fleet.until_replica(2, "failed")["error"] == "port_taken"
        swap = fleet.until(fleet.plan(new), "failed")
    assert (swap["step"], swap["error"], load.bad) == ("preflight", "port_taken", [])
    assert str(port) in swap["detail"]
    assert not {what for what, of, _, _ in swap["events"] if of} & set(TOUCHED)
    fleet.restart_replica(2)  # whether or not it is tried again by itself at this moment


def test_a_model_that_loads_longer_than_it_may_goes_back(fleet: Fleet, load_key: str) -> None:
    """S15."""
    old, new = fleet.model(), fleet.other_model()
    with (
        fleet.allowed_to_load(new, seconds=10),
        fleet.faults({new: {"load_seconds": 60}}),
        Load(fleet.stack.api, load_key) as load,
    ):
        swap = fleet.until(fleet.plan(new), "failed", seconds=120)
        fleet.settle()
    assert (swap["step"], swap["error"]) == ("start", "load_too_long")
    assert (load.bad, fleet.model()) == ([], old)


@pytest.mark.timeout(600)  # a verdict takes three parts of 50 seconds each
def test_a_new_model_whose_first_tokens_are_late_goes_back(fleet: Fleet, load_key: str) -> None:
    """Healthy, and its smoke tests pass; only how long members wait tells it from its neighbour."""
    old, new = fleet.model(), fleet.other_model()
    with fleet.slow_to_answer(new, ms=3000), Load(fleet.stack.api, load_key) as load:
        swap = fleet.until(fleet.plan(new, watch_seconds=300), "failed", seconds=480)
        fleet.settle()
    assert (swap["step"], swap["error"]) == ("watch", "watch_behind")
    assert load.bad == []
    assert {replica["model"] for replica in fleet.replicas()} == {old}
    assert fleet.model() == old


def test_memory_that_is_not_given_back_stops_the_swap(fleet: Fleet, load_key: str) -> None:
    """S8: it waits for the memory and not for the port, and says so. The old model, which is
    smaller, still has room and serves again."""
    old, new = fleet.model(), fleet.other_model(biggest=True)
    with fleet.faults({old: ["keep-memory"]}):
        fleet.restart_replica(1)
    with Load(fleet.stack.api, load_key) as load:
        swap = fleet.until(fleet.plan(new), "failed", seconds=120)
        fleet.settle()
    assert (swap["error"], [state for _, state in swap["parts"]]) == (
        "memory_held",
        ["restored", "waiting"],
    )
    assert (load.bad, {r["model"] for r in fleet.replicas()}) == ([], {old})
    fleet.free_memory()


def test_memory_that_others_hold_leaves_one_replica_down(fleet: Fleet, load_key: str) -> None:
    """Neither model has room. Nothing of others' is killed; when they are gone, one click."""
    old, new = fleet.model(), fleet.other_model(biggest=True)
    with Load(fleet.stack.api, load_key) as load:
        pk = fleet.plan(new)
        fleet.until_step(pk, "draining")
        with fleet.foreign_memory(gpu=0, mib=80_000) as holder:
            swap = fleet.until(pk, "failed", seconds=120)
            assert holder.poll() is None
    assert (swap["error"], [state for _, state in swap["parts"]]) == (
        "memory_held",
        ["down", "waiting"],
    )
    states = {r["number"]: r["state"] for r in fleet.replicas()}
    assert (states, load.bad) == ({1: "failed", 2: "serving"}, [])
    assert "replica_down" in fleet.alerts()
    fleet.act_on_replica("retry", 1)
    fleet.settle()
    assert {r["model"] for r in fleet.replicas()} == {old}
    assert "replica_down" not in fleet.alerts()


@pytest.mark.parametrize("fault", ["ignore-sigterm", "half-dead-on-sigterm"])
def test_an_engine_that_does_not_end_is_ended(fleet: Fleet, load_key: str, fault: str) -> None:
    """SIGTERM, SIGTERM again, SIGKILL to its own group; nothing of it is left, nor of its core."""
    old, new = fleet.model(), fleet.other_model()
    with fleet.faults({old: [fault]}), fleet.in_two_processes(old):
        fleet.restart_replica(1)
    before = fleet.engine_processes(1)
    assert "VLLM::EngineCor" in {process.name() for process in before}
    with Load(fleet.stack.api, load_key) as load:
        swap = fleet.until(fleet.plan(new, drain_seconds=30), "done", seconds=150)
    assert (load.bad, [state for _, state in swap["parts"]]) == ([], ["done", "done"])
    assert [process.pid for process in before if process.is_running()] == []
    fleet.until(fleet.plan(old), "done", seconds=120)


@pytest.mark.parametrize("at_deadline", ["abort", "cut"])
def test_a_stream_longer_than_the_drain(fleet: Fleet, load_key: str, at_deadline: str) -> None:
    """Per plan: the swap ends and the stream goes on, or the stream is cut, and told. Nobody
    else's, which are shorter than the drain."""
    old, new = fleet.model(), fleet.other_model()
    with (
        fleet.long_stream(1, load_key, seconds=40) as stream,
        Load(fleet.stack.api, load_key, tokens=100) as load,
    ):
        pk = fleet.plan(new, drain_seconds=6, at_deadline=at_deadline)
        swap = fleet.until(pk, "done", "failed", seconds=120)
        ended = stream.ended()
    assert load.bad == []
    if at_deadline == "abort":
        assert (swap["error"], swap["step"]) == ("drain_deadline", "drain")
        assert ({r["model"] for r in fleet.replicas()}, ended) == ({old}, "whole")
        return
    assert swap["state"] == "done"
    assert [detail for what, _, detail, _ in swap["events"] if what == "cut"] == ["1"]
    assert ended in ("error event", "cut", "RemoteProtocolError")
    fleet.until(fleet.plan(old), "done", seconds=120)


def test_an_engine_that_dies_in_service(fleet: Fleet, load_key: str) -> None:
    """S13: a begun stream ends with an error, never silently; what had not begun goes elsewhere,
    and nothing is asked twice. Then it comes back by itself."""
    victim = next(r for r in fleet.replicas() if r["number"] == 1)
    pool, began = Pool(fleet.pool_dir), time.time()
    with Load(fleet.stack.api, load_key) as load:
        wait_until(lambda: len(load.calls) > 10, seconds=30, what="traffic")
        for process in fleet.engine_processes(1):
            process.kill()
        killed = time.monotonic()
        wait_until(
            lambda: pool.look().servers["slot01", 1].status != "UP",
            seconds=6,
            what="the dead engine's place to be out",
            every=0.02,
        )
        out = time.monotonic()
        wait_until(
            lambda: fleet.replicas()[0]["instance"] not in ("", victim["instance"]),
            seconds=60,
            what="a new engine",
        )
        fleet.settle()
    assert {call.status for call in load.bad} <= {200, 500, 502, 503}
    assert {call.end for call in load.bad if call.status == 200} <= {"error event"}
    assert len(load.bad) <= load.streams + 1  # those that ran there at that moment
    assert [call for call in load.bad if call.sent > out or call.ended < killed] == []
    assert len(asked(fleet.stack, since=began)) <= len(load.calls)


def test_with_no_engine_left_it_is_the_model_that_is_down_and_not_a_limit(
    fleet: Fleet, load_key: str
) -> None:
    """S16."""
    with fleet.faults({"*": {"load_seconds": 8}}):
        for number in (1, 2):
            for process in fleet.engine_processes(number):
                process.kill()
        client = ApiClient(fleet.stack.api, load_key)

        def refused() -> Any:
            answer = client.call()
            return answer if answer.status_code == 503 else None

        answer = wait_until(refused, seconds=60, what="a 503")
    assert int(answer.headers["retry-after"]) > 0
    assert "limit" not in answer.json()["error"]["message"] or "not your limit" in answer.text
    fleet.settle()
    assert client.call().status_code == 200
