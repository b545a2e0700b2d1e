"""The status page under two hundred requests a second, on the one web worker.

Asked directly, at fixed times and not when the last answer is there, over kept-alive connections:
a request that has to wait for its turn counts with its waiting. Half want the page in Spanish or
English, half the JSON. Then the same with the database held down.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import inside
from tests.bench.report import Line, ms, p50, p95
from tests.bench.setting import own_stack
from tests.bench.wire import Wire

RATE, SECONDS, CONNECTIONS = 200, 20, 16
BOUND = 0.050
PATHS = ("/status/?language=es", "/status/?language=en", "/status.json", "/status.json")
HEADERS = {"X-Forwarded-For": "127.0.0.1"}


def measure(state_dir: Path) -> tuple[list[Line], dict[str, Any]]:
    with own_stack(state_dir, only="web") as stack:
        inside.ask(stack, "status_rows", "fill")
        url = stack.url("web")
        _asked(url, seconds=3)
        known = _asked(url, seconds=SECONDS)
        with stack.down("postgres"):
            _asked(url, seconds=8)  # until it has found out
            without = _asked(url, seconds=SECONDS)
    lines = [_line("Status page", known), _line("Status page, the database being away", without)]
    return lines, {"status": {"known": known, "without_database": without}}


def _asked(url: str, *, seconds: int) -> list[float]:
    """How long each took, from the moment at which it was to be sent."""
    taken: list[float] = []
    began = time.perf_counter() + 0.2
    threads = [
        threading.Thread(target=_ask, args=(Wire(url), began, first, seconds, taken.append))
        for first in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(taken) != RATE * seconds:
        raise SystemExit(f"Only {len(taken)} of {RATE * seconds} requests were answered.")
    return taken


def _ask(wire: Wire, began: float, first: int, seconds: int, note: Callable[[float], None]) -> None:
    """Every `CONNECTIONS`-th request of the whole."""
    for number in range(first, RATE * seconds, CONNECTIONS):
        due = began + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        wire.request("GET", PATHS[number % len(PATHS)], headers=HEADERS).ok()
        note(time.perf_counter() - due)


def _line(what: str, taken: list[float]) -> Line:
    return Line(
        f"{what}, {RATE} requests a second on one web worker, p95",
        f"{ms(p95(taken))} (p50 {ms(p50(taken))}, worst {ms(max(taken))})",
        value=p95(taken) * 1000,
        bound=BOUND * 1000,
        unit="ms",
    )
