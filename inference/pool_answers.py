"""HAProxy's answers on the runtime API, read. Raises ValueError, KeyError or IndexError on others.

https://docs.haproxy.org/2.8/management.html#9.1 (statistics) and #9.3 (show servers state)
"""

import csv
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Key = tuple[str, int]
"""A slot's backend and the number of a place in it."""

Admin = Literal["ready", "drain", "maint"]
# Bits of srv_admin_state that mean out of service, and draining, whoever said so. The bit 4 only
# says that the file disables the server, which all of ours are.
MAINT_BITS, DRAIN_BITS = 0x01 | 0x02 | 0x20 | 0x40, 0x08 | 0x10


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
    lines = answer.splitlines()
    info = dict(line.split(": ", 1) for line in lines if re.match(r"[A-Z]\w+: ", line))
    names = lines[_position(lines, "# be_id ")]
    columns = names.removeprefix("# ").split()
    states = [line.split() for line in lines if re.match(r"\d+ \S+ \d+ \S+ ", line)]
    statistics = _statistics(lines)
    servers = {}
    for row in states:
        state = dict(zip(columns, row, strict=True))
        backend, place = state["be_name"], re.fullmatch(r"r(\d+)", state["srv_name"])
        if backend in slots and place:
            found = statistics[backend, state["srv_name"]]
            servers[backend, int(place[1])] = _server(state, found, row)
    if not servers:
        raise ValueError("no places of ours")
    return Snapshot(
        worker=Worker(pid=int(info["Pid"]), started=int(info["Start_time_sec"])),
        head=("1", names),
        servers=servers,
        queued=_queued(lines, statistics, slots),
        errors={slot: int(statistics[slot, "BACKEND"]["hrsp_5xx"] or 0) for slot in slots},
    )


def _position(lines: list[str], start: str) -> int:
    found = [at for at, line in enumerate(lines) if line.startswith(start)]
    return found[0]


def _statistics(lines: list[str]) -> dict[tuple[str, str], dict[str, str]]:
    start = _position(lines, "# pxname,")
    table = [lines[start].removeprefix("# ")]
    for line in lines[start + 1 :]:
        if not line:
            break
        table.append(line)
    return {(row["pxname"], row["svname"]): row for row in csv.DictReader(table)}


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
