"""python -m tests.bench: prints a table; ends with 1 if something is over its bound."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench import (
    affinity,
    affinity_vllm,
    approval,
    chat,
    pages,
    pool,
    probes,
    size,
    status,
    storm,
    swaps,
    tally,
    usage,
)
from tests.bench.report import Line, Report, machine
from tests.bench.setting import Setting, own_stack
from tests.stack import ROOT, Stack

# An engine that answers at once: what is left of a chat call is edge and gateway.
ENGINE = {"SIM_TTFT_MS": "0", "SIM_TOKENS_PER_SECOND": "1e6"}
PARTS = (
    "approval",
    "storm",
    "chat",
    "probes",
    "size",
    "pages",
    "pool",
    "affinity",
    "swaps",
    "tally",
    "usage",
    "status",
)
EXTRA = ("affinity-vllm",)  # only when it is asked for
Measured = tuple[list[Line], dict[str, Any]]


def main() -> int:
    options = _arguments()
    report = Report()
    print(f"Measuring on {machine()}.", flush=True)
    if set(options.only) - set(_alone(options)):
        with _stack(options) as stack:
            _measure_stack(report, stack, options)
    for name, (title, measure) in _alone(options).items():
        if name in options.only:
            _step(report, title, measure)
    print(f"\n{report.table()}\n")
    if options.json:
        report.save(options.json)
    return _verdict(report)


def _alone(options: argparse.Namespace) -> dict[str, tuple[str, Callable[[], Measured]]]:
    """What needs no whole stack of this module's."""
    folder, rounds = options.state_dir, options.rounds
    return {
        "pages": (
            "pages with a growing community",
            lambda: pages.measure(folder / "pages", sizes=options.sizes, rounds=rounds),
        ),
        "usage": ("usage", lambda: usage.measure(folder / "usage", rounds=rounds)),
        "status": ("status page", lambda: status.measure(folder / "status")),
        "pool": ("places of the pool", pool.measure),
        "affinity": ("leastconn and affinity", affinity.measure),
        "affinity-vllm": ("leastconn and affinity on real engines", affinity_vllm.measure),
        "swaps": ("swaps", lambda: swaps.measure(folder / "swaps")),
        "tally": ("votes", lambda: tally.measure(folder)),
    }


def _measure_stack(report: Report, stack: Stack, options: argparse.Namespace) -> None:
    setting = Setting(stack)
    steps: dict[str, tuple[str, Callable[[], Measured]]] = {
        "approval": ("one by one", lambda: approval.measure(setting, people=options.people)),
        "storm": ("all at once", lambda: storm.measure(setting, people=options.crowd)),
        "chat": ("chat calls", lambda: chat.measure(setting, pairs=options.pairs)),
        "probes": ("probes", lambda: probes.measure(setting)),
        "size": ("memory", lambda: size.memory_of(stack)),
    }
    try:
        for name, (title, measure) in steps.items():
            if name in options.only:
                _step(report, title, measure)
    finally:
        if options.stack:
            setting.clean_up()
    if not options.stack and "size" in options.only:
        _step(report, "second start", lambda: size.second_start(stack))


def _step(report: Report, title: str, measure: Callable[[], Measured]) -> None:
    began = time.monotonic()
    print(f"  {title} …", end="", flush=True)
    lines, details = measure()
    report.add(lines, **details)
    print(f" {time.monotonic() - began:.0f} s", flush=True)


@contextmanager
def _stack(options: argparse.Namespace) -> Iterator[Stack]:
    """A running one, which is left as it was; or one of our own, which is forgotten."""
    if options.stack:
        yield Stack(options.stack.resolve())
        return
    print("  starting the stack …", flush=True)
    with own_stack(options.state_dir / "stack", **ENGINE) as stack:
        yield stack


def _verdict(report: Report) -> int:
    if not report.over:
        print("All within their bounds.")
        return 0
    print("Over: " + "; ".join(line.what for line in report.over))
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    number = {"type": int, "metavar": "N"}
    parser.add_argument("--stack", type=Path, metavar="DIR", help="measure this running stack")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write it all as JSON")
    parser.add_argument(
        "--only", type=_names, default=PARTS, metavar="LIST", help=f"of {','.join(PARTS + EXTRA)}"
    )
    parser.add_argument("--people", default=40, help="let in one by one", **number)
    parser.add_argument("--crowd", default=200, help="let in at once", **number)
    parser.add_argument("--pairs", default=200, help="pairs of chat calls", **number)
    parser.add_argument("--rounds", default=100, help="requests to each page and size", **number)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[100, 10_000, 100_000], help="people in all"
    )
    parser.add_argument(
        "--state-dir", type=Path, default=ROOT / ".nan" / "bench", help="for stacks of its own"
    )
    return parser.parse_args()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - {*PARTS, *EXTRA}:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    sys.exit(main())
