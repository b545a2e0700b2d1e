import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from nan.local import state
from nan.local.config import ROOT
from tests import waiting

wait_until = partial(waiting.wait_until, seconds=20, every=0.03)
# Set for the tests of the site; a stack that inherited them would start no Postgres of its own.
OUTSIDE = ("DATABASE_URL", "REDIS_URL", "SITE_URL", "API_URL", "NAN_STATE_DIR", "MAIL_DIR")


def own_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OUTSIDE}


class SmallStack:
    """A supervisor in a process of its own, and what it left in its state folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None
        self.output: int | None = None

    def start(self, scenario: str, *, wait: bool = True) -> "SmallStack":
        out = self.output if self.output is not None else (self.folder / "output").open("w")
        self.process = subprocess.Popen(
            self.command(scenario, "run"),
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=own_environ(),
        )
        if wait:
            wait_until(lambda: self.record.get("pid") == self.process.pid and self.record["ready"])
        return self

    def command(self, scenario: str, verb: str) -> list[str]:
        module = [sys.executable, "-m", "tests.local.small_stack", scenario, verb]
        return [*module, "--state-dir", str(self.folder), "--free-ports"]

    def call(
        self, scenario: str, verb: str, *more: str, answer: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command(scenario, verb), *more],
            input=answer,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
            env=own_environ(),
        )

    @property
    def record(self) -> dict[str, Any]:
        file = self.folder / "stack.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def part(self, name: str) -> dict[str, Any]:
        return self.record["parts"][name]

    @property
    def events(self) -> list[str]:
        return (self.folder / "children" / "events").read_text().splitlines()

    @property
    def printed(self) -> str:
        return (self.folder / "output").read_text()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short and reachable for everyone, unlike tmp_path."""
    with tempfile.TemporaryDirectory(prefix="nan-local-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.fixture
def small(folder: Path) -> Iterator[SmallStack]:
    stack = SmallStack(folder)
    yield stack
    if stack.process is not None and stack.process.poll() is None:
        stack.process.kill()
        stack.process.wait()
    state.end_strays(folder, seconds=1)


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
