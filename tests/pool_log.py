"""What HAProxy wrote down about the requests that it passed on to engines."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.stack import Stack

NOBODY = "<NOSRV>"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request at one engine. `began`: seconds since the epoch."""

    number: int
    """Of the replica."""
    began: float
    status: int


def asked(stack: Stack, *, since: float = 0.0, backend: str = "slot01") -> list[Asked]:
    """Those that have ended; of what was running when HAProxy was killed nothing is known."""
    return [found for found in _read(stack, backend) if found.began >= since]


def _read(stack: Stack, backend: str) -> Iterator[Asked]:
    for line in (stack.state_dir / "logs" / "edge.log").open(errors="replace"):
        try:
            row = json.loads(line)
        except ValueError:
            continue  # HAProxy's own words
        if row.get("be") == backend and row["srv"] != NOBODY:
            began = (int(row["ts"]) - int(row["t"][-1])) / 1000
            yield Asked(number=int(row["srv"][1:]), began=began, status=int(row["st"]))


def unproven(stack: Stack, swap: dict[str, Any], numbers: dict[int, int]) -> list[Asked]:
    """Requests that an engine got between the old one's stop and the new one's last check.

    `numbers`: of the replicas, by their ids.
    """
    closed = {number: list(_closed(swap["events"], pk)) for pk, number in numbers.items()}
    return [
        found
        for found in asked(stack)
        if any(began < found.began < ended for began, ended in closed.get(found.number, ()))
    ]


def _closed(events: Sequence[Any], replica: int) -> Iterator[tuple[float, float]]:
    """From each *stopping* to the next *joining*."""
    began = None
    for what, of, _, at in sorted(events, key=lambda event: event[3]):
        if of == replica and what == "stopping":
            began = began or at
        elif of == replica and what == "joining" and began:
            yield began, at
            began = None
    if began:
        yield began, float("inf")
