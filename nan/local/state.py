"""What the stack wrote down about itself: who runs, who holds the lock, who was left behind.

A process belongs to the stack of a state folder when its environment says so (`NAN_STACK`), or
when it is recorded in stack.json with the same pid *and* creation time, or when it works inside
the stack's Postgres data (Postgres overwrites its environment with its process title), or when it
descends from such a process. Nothing else is ever signalled.
"""

import fcntl
import json
import os
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import psutil

MARKER = "NAN_STACK"
PART_MARKER = "NAN_PART"
# Longest of the parts' own time-outs: the gateway finishes the calls in flight.
STRAY_SECONDS = 25


class AlreadyRunningError(Exception):
    """Another supervisor holds this state folder."""


def write_atomically(file: Path, text: str, *, mode: int = 0o644) -> None:
    """Readers see the old text or the new one, never a part; `mode` holds from the first byte."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        os.fchmod(handle, mode)
        with os.fdopen(handle, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def hold_lock(state_dir: Path) -> IO[str]:
    """The supervisor's lock; it ends with the process, however that dies. Keep the handle."""
    state_dir.mkdir(parents=True, exist_ok=True)
    lock = open(state_dir / "stack.lock", "a+")  # noqa: SIM115  # held for the process's life
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise AlreadyRunningError(
            f"The stack in {state_dir} is already running (pid {holder}). See it with "
            "`python -m nan.local status`, end it with `python -m nan.local stop`, "
            "or start a second one with `--state-dir OTHER --free-ports`."
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


@dataclass(kw_only=True)
class PartRecord:
    """One row of stack.json. `state`: waiting, starting, ready, done, restarting, held, stopped."""

    name: str
    state: str = "waiting"
    pid: int | None = None
    create_time: float | None = None
    port: int | None = None
    url: str | None = None
    log: str | None = None
    restarts: int = 0


@dataclass(kw_only=True)
class StackRecord:
    """stack.json: rewritten whole at every change."""

    file: Path
    pid: int
    create_time: float
    site: str
    api: str
    mails: str
    ready: bool = False
    parts: dict[str, PartRecord] = field(default_factory=dict)

    def save(self) -> None:
        content = asdict(self)
        content.pop("file")
        write_atomically(self.file, json.dumps(content, indent=2) + "\n")


def read(state_dir: Path) -> StackRecord | None:
    file = state_dir / "stack.json"
    try:
        content = json.loads(file.read_text())
        parts = {name: PartRecord(**row) for name, row in content.pop("parts").items()}
        return StackRecord(file=file, parts=parts, **content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def mark_as_starting(state_dir: Path) -> None:
    """So that nobody takes the *ready* of a run that was killed for that of the next one."""
    if record := read(state_dir):
        record.ready = False
        record.save()


def is_alive(pid: int | None, create_time: float | None) -> bool:
    """The same process, not another one that was given its number."""
    if pid is None or create_time is None:
        return False
    try:
        return _is_same(psutil.Process(pid), create_time)
    except psutil.Error:
        return False


def _is_same(process: psutil.Process, create_time: float) -> bool:
    return (
        abs(process.create_time() - create_time) < 0.05 and process.status() != psutil.STATUS_ZOMBIE
    )


def strays(state_dir: Path) -> list[psutil.Process]:
    """Living processes of this state folder's stack, never ourselves or our ancestors."""
    found = {p.pid: p for p in _owned(state_dir)}
    for process in list(found.values()):
        try:
            found.update({child.pid: child for child in process.children(recursive=True)})
        except psutil.Error:
            continue
    for own in (os.getpid(), *(parent.pid for parent in psutil.Process().parents())):
        found.pop(own, None)
    return list(found.values())


def _owned(state_dir: Path) -> Iterator[psutil.Process]:
    record = read(state_dir)
    recorded = {(p.pid, p.create_time) for p in record.parts.values()} if record else set()
    cluster = (state_dir / "postgres").resolve()
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if (
                process.environ().get(MARKER) == str(state_dir)
                or any(process.pid == pid and t and _is_same(process, t) for pid, t in recorded)
                or (process.name() == "postgres" and Path(process.cwd()).is_relative_to(cluster))
            ):
                yield process
        except (psutil.Error, OSError):
            continue


def kill_session(leader: int, *, state_dir: Path) -> None:
    """SIGKILL to what is left of the session that a part of ours led.

    The leader has ended, so its number may be another's by now: the marker decides.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader and process.environ().get(MARKER) == str(state_dir):
                process.kill()


def end_strays(state_dir: Path, *, seconds: float = STRAY_SECONDS) -> list[str]:
    """Ask what is left of an earlier run to end, then make it; returns the parts' names."""
    left = strays(state_dir)
    names = [_name(process) for process in left]
    for process in left:
        # Postgres: fast shutdown. Its backends understand SIGINT only as "cancel the query" and
        # follow their postmaster.
        _signal(process, signal.SIGINT if _name(process) == "postgres" else signal.SIGTERM)
    _, alive = psutil.wait_procs(left, timeout=seconds)
    for process in _unique(alive, strays(state_dir)):
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=5)
    return names


def _unique(*groups: Iterable[psutil.Process]) -> Iterator[psutil.Process]:
    yield from {process.pid: process for group in groups for process in group}.values()


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error, KeyError):
        return process.environ()[PART_MARKER]
    with suppress(psutil.Error):
        return process.name()
    return "process"


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.Error:
        return
