"""The whole product, started once per test run: own ports, own data, real parts.

Tests that use it are in tests/journeys, tests/browser and tests/bench. They know it from outside
only: pages, the API, mails, management commands, and stopping parts of it.
"""

import email
import email.policy
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
LOCAL = [sys.executable, "-m", "nan.local"]
# What a test run sets for itself must not leak into the stack's own settings.
INHERITED = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


WITHOUT_PROBES = {"PROBES": "0"}
"""Calls that nobody in the test made would be among those that it counts."""


def bare_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


@dataclass
class Stack:
    state_dir: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    extra: Mapping[str, str] = field(default_factory=dict)
    only: str = ""
    """Names of parts, to start these and what they need instead of everything."""
    patience: float = 180
    """Seconds until it is ready."""

    # -- Life ----------------------------------------------------------------------------------

    def start(self) -> "Stack":
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [*LOCAL, "run", "--free-ports", "--state-dir", str(self.state_dir), *self._chosen],
            stdout=(self.state_dir / "run.log").open("wb"),
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**bare_environment(), **WITHOUT_PROBES, **self.extra},
        )
        try:
            wait_until(self._is_up, seconds=self.patience, what="the stack to be ready")
            if not self.only:
                wait_until(self.api_answers, seconds=20, what="the edge to see the gateway")
        except AssertionError:
            self.stop()
            raise SystemExit(f"The stack did not start:\n{self.tail(60)}") from None
        return self

    def api_answers(self) -> bool:
        """The edge looks at the gateway now and then, and says 503 until it has seen it."""
        return httpx.get(f"{self.api}/v1/models", timeout=10).status_code == 401

    @property
    def _chosen(self) -> list[str]:
        return ["--only", self.only] if self.only else []

    def _is_up(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise SystemExit(f"The stack ended by itself:\n{self.tail(60)}")
        file = self.state_dir / "stack.json"
        return file.exists() and json.loads(file.read_text())["ready"]

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(120)
            self.process = None

    @contextmanager
    def for_once(self) -> Iterator[None]:
        """Started afresh, and forgotten at the end."""
        self.local("clean-data", "--yes")
        try:
            self.start()
            yield
        finally:
            self.stop()
            self.local("clean-data", "--yes")

    def tail(self, lines: int) -> str:
        log = self.state_dir / "run.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])

    # -- What it is ----------------------------------------------------------------------------

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.state_dir / "stack.json").read_text())

    @cached_property
    def site(self) -> str:
        return str(self.record["site"])

    @cached_property
    def api(self) -> str:
        return str(self.record["api"])

    @cached_property
    def secrets(self) -> dict[str, str]:
        return json.loads((self.state_dir / "secrets.json").read_text())

    @cached_property
    def env(self) -> dict[str, str]:
        """The app's settings; the gateway's key is not among them."""
        run = subprocess.run(
            [*LOCAL, "env", "--json", "--state-dir", str(self.state_dir)],
            capture_output=True,
            check=True,
            text=True,
            cwd=ROOT,
            env={**bare_environment(), **self.extra},
        )
        return json.loads(run.stdout)

    def url(self, part: str) -> str:
        return str(self.record["parts"][part]["url"])

    @cached_property
    def databases(self) -> list[str]:
        """Postgres addresses of the app and of the gateway."""
        environ = psutil.Process(self.record["parts"]["gateway"]["pid"]).environ()
        return [self.env["DATABASE_URL"], environ["DATABASE_URL"]]

    @cached_property
    def gateway_settings(self) -> dict[str, str]:
        """For tests that ask the gateway's admin API what it really has."""
        environ = psutil.Process(self.record["parts"]["worker-gateway"]["pid"]).environ()
        return {name: environ[name] for name in ("GATEWAY_URL", "LITELLM_MASTER_KEY")}

    # -- What people do with it ------------------------------------------------------------------

    def manage(self, *arguments: str, gateway: bool = False) -> str:
        extra = self.gateway_settings if gateway else {}
        run = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**bare_environment(), **self.env, **extra},
        )
        assert run.returncode == 0, f"manage.py {arguments}: {run.stdout}{run.stderr}"
        return run.stdout

    def python(self, code: str, *arguments: str) -> str:
        """Runs `code` with Django set up, for what only rows can tell."""
        run = subprocess.run(
            [sys.executable, "-c", f"import django; django.setup()\n{code}", *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**bare_environment(), **self.env},
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def mails(self, to: str) -> list[EmailMessage]:
        """Newest last."""
        folder = self.state_dir / "mail"
        found = []
        for file in sorted(folder.glob("*.eml")):
            message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
            if to in str(message["To"]):
                found.append(message)
        return found

    def mail(self, to: str, *, about: str, seconds: float = 30) -> str:
        """The text of the newest mail to `to` whose text matches `about`."""

        def look() -> str | None:
            texts = [body(message) for message in self.mails(to)]
            return next((text for text in reversed(texts) if re.search(about, text)), None)

        return str(wait_until(look, seconds=seconds, what=f"a mail to {to} about {about!r}"))

    # -- Faults ----------------------------------------------------------------------------------

    def pid(self, part: str) -> int:
        return int(self.record["parts"][part]["pid"])

    def is_ready(self, part: str) -> bool:
        return bool(self.record["parts"][part]["state"] == "ready")

    def wait_ready(self, part: str, *, seconds: float = 90) -> None:
        wait_until(lambda: self.is_ready(part), seconds=seconds, what=f"{part} to be ready")

    def crash(self, part: str) -> None:
        """SIGKILL, and back to the moment when the supervisor has noticed."""
        before = self.pid(part)
        self.kill(part)
        wait_until(
            lambda: self.pid(part) != before or not self.is_ready(part),
            seconds=20,
            what=f"{part}'s end to be noticed",
        )

    def kill(self, part: str, number: signal.Signals = signal.SIGKILL) -> list[psutil.Process]:
        """To the part and its children, as a crash of the host's process would."""
        process = psutil.Process(self.pid(part))
        hit = [process, *process.children(recursive=True)]
        for member in hit:
            member.send_signal(number)
        return hit

    @contextmanager
    def down(self, part: str) -> Iterator[None]:
        self.local("hold", part)
        try:
            yield
        finally:
            self.local("release", part)

    @contextmanager
    def frozen(self, part: str) -> Iterator[None]:
        """Accepts connections and answers nothing."""
        stopped = self.kill(part, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)

    def local(self, *arguments: str) -> str:
        run = subprocess.run(
            [*LOCAL, *arguments, "--state-dir", str(self.state_dir)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=180,
            env=bare_environment(),
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


def body(message: EmailMessage) -> str:
    part = message.get_body(preferencelist=("plain",))
    assert part is not None
    return str(part.get_content())
