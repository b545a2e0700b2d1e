"""Swaps: what they cost beyond the engines' own time, and what members notice of them.

Alone: python -m tests.bench --only swaps
"""

import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.api import GatewayAdmin
from tests.bench.report import Line, ms
from tests.bench.setting import own_stack
from tests.fleet import Fleet
from tests.load import Load
from tests.stack import Stack
from tests.waiting import wait_until

ROLLING = {2: 1, 4: 4, 8: 1}
"""Swaps by number of replicas; first tokens are compared with four, there and back twice."""
GPUS = {"NAN_GPU_DEVICES": "simulated:8x98304"}
OVERHEAD = 5.0  # seconds a replica
SWAPS = 3
SLOWER = 1.5
TICK = 0.050  # seconds of CPU
BEFORE = 40.0  # seconds of traffic before each swap
ROUNDS = 40


def measure(folder: Path) -> tuple[list[Line], dict[str, Any]]:
    with own_stack(folder, **GPUS) as stack:
        fleet = Fleet(stack)
        try:
            key = str(GatewayAdmin(stack).make(key_alias="bench")["key"])
            overhead = _overhead(fleet)
            rolling = {count: _rolling(fleet, key, count) for count in ROLLING}
            tick = _tick(fleet)
        finally:
            fleet.close()
    what = f"a swap beyond stop, load and smoke, each replica, worst of {SWAPS}"
    lines = [Line(what, ms(overhead["worst"]), overhead["worst"], OVERHEAD, unit="s")]
    for count, found in rolling.items():
        what = f"rolling swap of {count} replicas: requests that failed"
        lines.append(Line(what, f"{found['bad']} of {found['calls']}", found["bad"], 0))
        if count == 4:
            what = "time to first token during it against before (p95)"
            lines.append(Line(what, f"{found['slower']:.2f} ×", found["slower"], SLOWER))
    lines.append(Line("a round of the fleet, CPU", ms(tick), tick, TICK, unit="s"))
    return lines, {"swaps": {"overhead": overhead, "rolling": rolling, "tick": tick}}


def _overhead(fleet: Fleet) -> dict[str, Any]:
    """All of a swap from its approval to its end, but for the engines' stop and load and the smoke
    tests: preflight, the second for which each replica is watched, and what lies between replicas
    count. Without traffic, so that a drain has nothing to wait for. The engine's own time is that
    of one engine started and ended alone, in the same run; smoke says its own."""
    own = statistics.median(_alone() for _ in range(3))
    found = []
    for _ in range(SWAPS):
        swap = fleet.until(fleet.plan(fleet.other_model()), "done", seconds=200)
        replicas = fleet.replicas()
        smoke = sum(check["seconds"] for r in replicas for check in r["checks"])
        took = _whole(swap["events"])
        found.append((took - smoke) / len(replicas) - own)
    return {"worst": max(found), "all": found, "engine": own}


def _whole(events: Sequence[Sequence[Any]]) -> float:
    at = {what: when for what, _, _, when in events}
    return float(at["done"] - at["approved"])


def _alone() -> float:
    """Seconds from the start to a healthy answer, and from SIGTERM to the end."""
    with _free_port() as port:
        command = [sys.executable, "-m", "inference.simulator", "x", "--port", str(port)]
        began = time.monotonic()
        engine = subprocess.Popen([*command, "--shutdown-timeout", "5"], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _healthy(port), seconds=30, what="an engine", every=0.02)
        engine.send_signal(signal.SIGTERM)
        engine.wait(20)
    finally:
        engine.kill()
    return time.monotonic() - began


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    yield port


def _rolling(fleet: Fleet, key: str, count: int) -> Mapping[str, Any]:
    """Swaps after another go there and back: the two models are not equally quick, and so both are
    in both figures."""
    _grow(fleet, count)
    with Load(fleet.stack.api, key, tokens=100) as load:
        swaps = [_swap_after_a_while(fleet, count) for _ in range(ROLLING[count])]
    during, before = [], []
    for call in load.calls:
        if call.stream:
            swapping = any(began <= call.sent < ended for began, ended in swaps)
            (during if swapping else before).append(call.first)
    return {
        "bad": len(load.bad),
        "calls": len(load.calls),
        "slower": _p95(during) / _p95(before),
        "before": _p95(before),
        "during": _p95(during),
        "ends": load.summary(),
    }


def _swap_after_a_while(fleet: Fleet, count: int) -> tuple[float, float]:
    """When it began and ended, by `time.monotonic()`."""
    time.sleep(BEFORE)
    began = time.monotonic()
    fleet.until(fleet.plan(fleet.other_model()), "done", seconds=120 * count)
    return began, time.monotonic()


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _grow(fleet: Fleet, count: int) -> None:
    """One replica for each of the first `count` GPUs."""
    for gpu in range(len(fleet.replicas()), count):
        with _free_port() as port:
            fleet.do(f"""
from inference.fleet import replicas
slot, server = Slot.objects.get(name="nan"), Server.objects.get(name="local")
made = replicas.add(slot=slot, server=server, gpus=[{gpu}], port={port}, actor=None)
replicas.put_in_service(replica=made, actor=None)
result = None""")
    fleet.settle(seconds=60 * count)


def _tick(fleet: Fleet) -> float:
    """Processor time of one round with eight replicas, as the fleet worker spends it."""
    environ = _fleet_worker(fleet.stack)
    return float(
        fleet.do(f"""
import time
from django.conf import settings
from django.utils import timezone
from inference.fleet.passes import one_round
settings.ENGINE_API_KEY = {environ["ENGINE_API_KEY"]!r}
one_round(timezone.now())
began = time.process_time()
for _ in range({ROUNDS}):
    one_round(timezone.now())
result = (time.process_time() - began) / {ROUNDS}""")
    )


def _fleet_worker(stack: Stack) -> Mapping[str, str]:
    return psutil.Process(stack.pid("worker-fleet")).environ()
