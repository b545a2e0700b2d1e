"""Waiting for what happens by itself, and doing several things at the same moment."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connections

Result = TypeVar("Result")


def wait_until(
    condition: Callable[[], Any],
    *,
    seconds: float,
    what: str = "what was waited for",
    every: float = 0.1,
) -> Any:
    """The first truthy answer; fails with `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(every)


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Each in a thread of its own, all let go together; their results in the order given.

    What a call raises is raised here, after all have ended. Connections to the database are each
    thread's own, and end with it.
    """
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        try:
            gate.wait(30)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
