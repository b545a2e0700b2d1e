"""Which processes are an engine's own, read from /proc; and signals that hit nobody else.

Ours are: the keeper and what descends from it in its session; what was seen there before (same pid
and start); what is in that session and carries our marker. A number alone is never enough.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARKER = "NAN_ENGINE"
Identity = tuple[int, int]
"""Process number, and its start in clock ticks since boot."""


@dataclass(frozen=True)
class Process:
    pid: int
    state: str
    parent: int
    session: int
    started: int

    @property
    def identity(self) -> Identity:
        return self.pid, self.started


def boot() -> str:
    """Identities hold for one boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def look(pid: int) -> Process | None:
    """None when it is gone; a zombie is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    found = text.rpartition(")")[2].split()
    state = found[0]
    if state in "ZXx":
        return None
    return Process(pid, state, int(found[1]), int(found[3]), int(found[19]))


def everything() -> dict[int, Process]:
    numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid: found for pid in numbers if (found := look(pid))}


def is_alive(identity: Identity | None) -> bool:
    if identity is None:
        return False
    found = look(identity[0])
    return found is not None and found.identity == identity


def family(keeper: Identity | None, *, marker: str, seen: Iterable[Identity] = ()) -> set[Identity]:
    """The living processes of one engine, its keeper among them.

    A descendant that has left the session counts only with the marker: who took both off wanted
    to be its own.
    """
    if keeper is None:
        return set()
    all_now = everything()
    known = {*seen, keeper}
    related = {pid for pid, found in all_now.items() if found.identity in known}
    while more := {p for p, found in all_now.items() if found.parent in related} - related:
        related |= more
    own = {pid for pid in related if all_now[pid].session == keeper[0] or _carries(pid, marker)}
    own |= {
        pid
        for pid, found in all_now.items()
        if found.session == keeper[0] and _carries(pid, marker)
    }
    return {all_now[pid].identity for pid in own}


def _carries(pid: int, marker: str) -> bool:
    wanted = f"{MARKER}={marker}".encode()
    try:
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def send(identity: Identity, number: signal.Signals) -> bool:
    """Through a handle on the process, so that a number given to another one meanwhile is safe."""
    try:
        handle = os.pidfd_open(identity[0])
    except OSError:
        return False
    try:
        if not is_alive(identity):
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
            return True
        return False
    finally:
        os.close(handle)
