"""Work that takes longer than a task may: a process of its own (`inference.gpu.work`) for each
folder.

It runs exactly as long as it holds FOLDER/lock, so a killed one needs no clean-up and two never
run at once. FOLDER/request.json says what to do, result.json what came of it.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

from inference.gpu import PROJECT, programs
from inference.gpu.state import read_json, remove_folder, write_atomically

Work = Literal["preflight", "fetch"]
State = Literal["running", "done", "broken_off"]
# From the note until the process has its lock.
START_SECONDS = 20
KEPT_SECONDS = 2 * 86_400


def begin(work: Work, folder: Path, request: Mapping[str, Any]) -> None:
    """Also again, after it was broken off. Does nothing while it runs."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "result.json").unlink(missing_ok=True)
    write_atomically(folder / "request.json", json.dumps(request))
    with (folder / "output.log").open("wb") as output:
        programs.leave_running(
            [sys.executable, "-m", "inference.gpu.work", work, str(folder)],
            environment=os.environ,
            folder=PROJECT,
            output=output,
        )


def state(folder: Path) -> State:
    if (folder / "result.json").exists():
        return "done"
    lock = take_lock(folder)
    if lock is None:
        return "running"
    lock.close()
    with suppress(OSError):
        if time.time() - (folder / "request.json").stat().st_mtime < START_SECONDS:
            return "running"
    return "broken_off"


def take_lock(folder: Path) -> IO[str] | None:
    lock = (folder / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def finish(folder: Path, result: Mapping[str, Any]) -> None:
    write_atomically(folder / "result.json", json.dumps(result))


def requests(parent: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Folder and request of all, without those that were over days ago."""
    found = []
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        request = read_json(folder / "request.json")
        if not isinstance(request, dict):
            continue
        old = time.time() - (folder / "request.json").stat().st_mtime > KEPT_SECONDS
        if old and state(folder) != "running":
            remove_folder(folder)
        else:
            found.append((folder, request))
    return found
