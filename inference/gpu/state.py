"""What a host remembers, in files: the worker may be killed at any time, the engines go on.

NAN_GPU_STATE/
  lock                     held during every task
  serial                   of the last report
  engines/INSTANCE/        record.json and the keeper's files and logs
  forgotten/INSTANCE       so that a late start of it still does nothing
  preflights/REQUEST/  fetches/KEY/
"""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from inference.gpu.processes import Identity
from inference.gpu.spec import INSTANCE

FORGOTTEN_DAYS = 60
State = Literal["running", "stopping", "exited"]


@dataclass(kw_only=True)
class Record:
    """One engine: running → stopping → exited, and never back.

    `asked_at`, `since`, `started_at`, `stop_at` are seconds since the epoch.
    """

    instance: str
    state: State = "running"
    asked_at: float = 0.0
    since: float = 0.0
    started_at: float | None = None
    boot: str = ""
    run: str = ""
    spec: dict[str, Any] | None = None
    serving: bool = False
    """Was once ready: from then on its log lines may quote a request."""
    stop_at: float | None = None
    stop_seconds: int = 0
    signals: list[tuple[str, float]] = field(default_factory=list)
    exit_code: int | None = None
    cause: dict[str, str] | None = None
    left: int = 0
    seen: list[Identity] = field(default_factory=list)
    progress: int | None = None
    phase: str = ""
    log: list[str] = field(default_factory=list)
    kv_tokens: int | None = None

    @property
    def port(self) -> int | None:
        return self.spec["port"] if self.spec else None

    @property
    def gpus(self) -> list[int]:
        return self.spec["gpus"] if self.spec else []

    @property
    def over(self) -> bool:
        """Nothing about it will change any more."""
        return self.state == "exited" and self.left == 0

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        known = {item.name for item in fields(cls)}
        record = cls(**{name: value for name, value in found.items() if name in known})
        record.seen = [(pid, started) for pid, started in record.seen]
        record.signals = [(name, at) for name, at in record.signals]
        return record


class HostState:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One task at a time. The lock ends with the process, however that dies."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self.folder / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def next_serial(self) -> int:
        """Nanoseconds, and always greater than the last one, also when the clock goes back."""
        file = self.folder / "serial"
        last = int(file.read_text() or 0) if file.exists() else 0
        serial = max(time.time_ns(), last + 1)
        write_atomically(file, str(serial))
        return serial

    # -- Engines -----------------------------------------------------------------------------

    def engine(self, instance: str) -> Path:
        if not INSTANCE.fullmatch(instance):
            raise ValueError("not the name of an instance")
        return self.folder / "engines" / instance

    def marker(self, instance: str) -> str:
        """The value of NAN_ENGINE in the environment of this instance's processes."""
        return str(self.engine(instance))

    def knows(self, instance: str) -> bool:
        forgotten = self.folder / "forgotten" / instance
        return (self.engine(instance) / "record.json").exists() or forgotten.exists()

    def load(self, instance: str) -> Record | None:
        found = read_json(self.engine(instance) / "record.json")
        return None if found is None else Record.from_json(found)

    def save(self, record: Record) -> None:
        write_atomically(self.engine(record.instance) / "record.json", json.dumps(asdict(record)))

    def records(self) -> Iterator[Record]:
        for folder in _sorted(self.folder / "engines"):
            if INSTANCE.fullmatch(folder.name) and (record := self.load(folder.name)):
                yield record

    def forget(self, instance: str) -> None:
        """The name stays taken for weeks: longer than any message can be on its way."""
        tombs = self.folder / "forgotten"
        tombs.mkdir(exist_ok=True)
        (tombs / instance).touch()
        remove_folder(self.engine(instance))
        for tomb in _sorted(tombs):
            if tomb.stat().st_mtime < time.time() - FORGOTTEN_DAYS * 86_400:
                tomb.unlink()


def remove_folder(folder: Path) -> None:
    """The record goes first: what is left after a kill in between is not read any more."""
    (folder / "record.json").unlink(missing_ok=True)
    for file in _sorted(folder):
        if file.is_dir() and not file.is_symlink():
            remove_folder(file)
        else:
            file.unlink(missing_ok=True)
    if folder.is_dir():
        folder.rmdir()


def read_json(file: Path) -> Any:
    """None when it is absent or was cut by a power failure."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def read_identity(file: Path) -> Identity | None:
    found = read_json(file)
    return (found["pid"], found["started"]) if found and found.get("pid") else None


def take_claim(folder: Path) -> None:
    """Makes the claim of a keeper that never came, so that it can't come late.

    A worker killed between its note and the keeper's start looks the same as a keeper that is
    slow; whoever links the file first has decided it.
    """
    draft = folder / f".claim.{os.getpid()}"
    draft.write_text('{"pid": null}')
    with suppress(FileExistsError):
        os.link(draft, folder / "keeper.json")
    draft.unlink()


def write_atomically(file: Path, text: str) -> None:
    """Readers see the old text or the new one; readable by the owner only."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
