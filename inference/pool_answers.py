"""HAProxy's answers on the runtime API, read. Raises ValueError, KeyError or IndexError on others.

https://docs.haproxy.org/2.8/management.html#9.1 (statistics) and #9.3 (show servers state)
"""

import csv
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

Key = tuple[str, int]
"""A slot's backend and the number of a place in it."""

Admin = Literal["ready", "drain", "maint"]
# Bits of srv_admin_state that mean out of service, and draining, whoever said so. The bit 4 only
# says that the file disables the server, which all of ours are.
MAINT_BITS, DRAIN_BITS = 0x01 | 0x02 | 0x20 | 0x40, 0x08 | 0x10
STATISTICS = ("status", "scur", "slim", "qcur", "hrsp_5xx")


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A HAProxy process that serves; `started` in seconds since 1970."""

    pid: int
    started: int


@dataclass(frozen=True, kw_only=True)
class Server:
    """One place as HAProxy sees it. `status` is the statistics' own word ("UP", "DRAIN 1/3")."""

    address: str
    port: int
    admin: Admin
    status: str
    sessions: int
    maxconn: int
    row: tuple[str, ...]

    @property
    def target(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    @property
    def proven(self) -> bool:
        """This HAProxy process has checked it, and its last check passed. "DRAIN 1/3" is a place
        that was not checked yet, also after a restart whose state file says otherwise."""
        return self.status in ("DRAIN", "UP")

    @property
    def up(self) -> bool:
        return self.admin == "ready" and self.status.startswith("UP")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """`head`: the first lines of the state. `queued`: requests waiting for a place, by slot.
    `errors`: answers with 5xx since the worker started, by slot, HAProxy's own among them."""

    worker: Worker
    head: tuple[str, ...]
    servers: Mapping[Key, Server]
    queued: Mapping[str, int]
    errors: Mapping[str, int]


def read_snapshot(answer: str, slots: Collection[str]) -> Snapshot:
    """Of all that HAProxy tells only what is needed is taken apart: this runs in every round."""
    lines = answer.splitlines()
    states = _part(lines, "# be_id ")
    columns = states[0].removeprefix("# ").split()
    statistics = _statistics(lines, slots)
    servers = {}
    for row in (line.split() for line in states[1:]):
        state = dict(zip(columns, row, strict=True))
        backend, name = state["be_name"], state["srv_name"]
        if backend in slots and name[0] == "r" and name[1:].isdecimal():
            servers[backend, int(name[1:])] = _server(state, statistics[backend, name], row)
    if not servers:
        raise ValueError("no places of ours")
    return Snapshot(
        worker=_worker(lines),
        head=("1", states[0]),
        servers=servers,
        queued=_queued(lines, statistics, slots),
        errors={slot: int(statistics[slot, "BACKEND"]["hrsp_5xx"] or 0) for slot in slots},
    )


def _worker(lines: list[str]) -> Worker:
    info = dict(line.partition(": ")[::2] for line in _part(lines, "Name: "))
    return Worker(pid=int(info["Pid"]), started=int(info["Start_time_sec"]))


def _part(lines: list[str], start: str) -> list[str]:
    """From the line that begins so to the next empty one."""
    found = next((at for at, line in enumerate(lines) if line.startswith(start)), None)
    if found is None:
        raise ValueError(f"no line begins with {start!r}")
    return list(takewhile(bool, lines[found:]))


def _statistics(lines: list[str], slots: Collection[str]) -> dict[tuple[str, str], dict[str, str]]:
    names, *rows = csv.reader(_part(lines, "# pxname,"))
    needed = {name: names.index(name) for name in STATISTICS}
    return {
        (row[0], row[1]): {name: row[at] for name, at in needed.items()}
        for row in rows
        if row[0] in slots
    }


def _server(state: Mapping[str, str], found: Mapping[str, str], row: list[str]) -> Server:
    bits = int(state["srv_admin_state"])
    return Server(
        address=state["srv_addr"],
        port=int(state["srv_port"]),
        admin="maint" if bits & MAINT_BITS else "drain" if bits & DRAIN_BITS else "ready",
        status=found["status"],
        sessions=int(found["scur"]),
        maxconn=int(found["slim"] or 0),
        row=tuple(row),
    )


def _queued(
    lines: list[str],
    statistics: Mapping[tuple[str, str], Mapping[str, str]],
    slots: Collection[str],
) -> dict[str, int]:
    """HAProxy's own queues, and those that wait for any place at all (deploy/haproxy/pool.lua)."""
    queued = dict.fromkeys(slots, 0)
    for (backend, _), row in statistics.items():
        if backend in queued:
            queued[backend] += int(row["qcur"] or 0)
    for line in lines:
        if (found := re.fullmatch(r"waiting (\S+) (\d+)", line)) and found[1] in queued:
            queued[found[1]] += int(found[2])
    return queued


def read_workers(answer: str) -> list[int]:
    """Process ids of the workers from before a reload, from the master's `show proc`."""
    _, _, old = answer.partition("# old workers")
    return [int(pid) for pid in re.findall(r"^(\d+)\s+worker\s", old, re.MULTILINE)]


def read_map(answer: str) -> dict[str, str]:
    """From lines of `0x7f… KEY VALUE`."""
    rows = re.findall(r"^0x[0-9a-f]+ (\S+) (.*)$", answer, re.MULTILINE)
    return {key: value.rstrip() for key, value in rows}
