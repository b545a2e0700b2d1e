"""How long the second start takes, and what all parts together hold in memory."""

import subprocess
import time
from typing import Any

from nan.local.banner import memory
from tests.bench.report import Line
from tests.stack import ROOT, Stack

START_SECONDS = 45
MEMORY_MB = 1536


def memory_of(stack: Stack) -> tuple[list[Line], dict[str, Any]]:
    """The supervisor and all under it, as PSS: pages that processes share count once."""
    record = stack.record
    total = memory(record["pid"]) / 2**20
    parts = {
        name: round(memory(part["pid"]) / 2**20)
        for name, part in record["parts"].items()
        if part["pid"] and part["state"] == "ready"
    }
    largest = sorted(parts, key=lambda name: -parts[name])[:4]
    lines = [
        Line(
            "Memory of all parts together, after the work above",
            f"{total:.0f} MB",
            value=round(total),
            bound=MEMORY_MB,
            unit="MB",
        ),
        Line("largest", ", ".join(f"{name} {parts[name]}" for name in largest)),
    ]
    return lines, {"memory": {"total": round(total), **parts}}


def second_start(stack: Stack) -> tuple[list[Line], dict[str, Any]]:
    """What `make run` does: look whether all is installed, then start, with the data there is."""
    stack.stop()
    began = time.perf_counter()
    subprocess.run(["make", "--silent", "setup"], cwd=ROOT, check=True, capture_output=True)
    installed = time.perf_counter() - began
    stack.start()
    seconds = time.perf_counter() - began
    line = Line(
        "The second `make run` to ready",
        f"{seconds:.1f} s",
        value=round(seconds, 1),
        bound=START_SECONDS,
        unit="s",
    )
    return [line], {"second_start": {"setup": installed, "total": seconds}}
