"""One pass of the reconciler over 100 places of a real HAProxy, with real engines' health checks.

Alone: python -m tests.bench --only pool
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inference.places import Place, PoolView, reconcile
from tests.bench.report import Line, ms, p50
from tests.inference.pool.proxy import Engine, Proxy, running, wait_for

PLACES = 100
BOUND = 1.0
QUIET_PASSES = 20


def measure() -> tuple[list[Line], dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="nan-bench-") as folder,
        Engine() as engine,
        running(Path(folder)) as proxy,
    ):
        wanted = _places(engine, "ready")
        taken = {"first": _timed(proxy, wanted)}
        wait_for(lambda: _proven(reconcile(proxy.pool, _places(engine, "drain"))), every=0.5)
        taken["into service"] = _timed(proxy, wanted)
        taken["nothing to do"] = p50([_timed(proxy, wanted) for _ in range(QUIET_PASSES)])
        taken["all out"] = _timed(proxy, [])
    lines = [
        Line(f"{PLACES} places, one pass: {what}", ms(seconds), seconds, BOUND, unit="s")
        for what, seconds in taken.items()
    ]
    return lines, {"pool": taken}


def _timed(proxy: Proxy, wanted: Sequence[Place]) -> float:
    begun = time.perf_counter()
    reconcile(proxy.pool, wanted)
    return time.perf_counter() - begun


def _proven(view: PoolView) -> bool:
    return all(seen.proven for seen in view.places.values())


def _places(engine: Engine, want: Any) -> list[Place]:
    return [
        Place(
            backend=f"slot{1 + number // 25:02}",
            number=1 + number % 25,
            address="127.0.0.1",
            port=engine.server.port,
            want=want,
        )
        for number in range(PLACES)
    ]
