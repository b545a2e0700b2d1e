"""Installs a client in a folder of its own, sets it up from the rendered page, asks it once."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import psutil

from tests.clients.catalogue import PROMPT, SYSTEM, Client

BIN = Path(sys.executable).parent
INSTALL_SECONDS, RUN_SECONDS = 600, 150
EXPORT = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)


class Failed(Exception):
    """What it said at the end, without the key."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one client lives, and the key that its reader has."""

    folder: Path
    key: str

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def filled(self, text: str) -> str:
        return str(self.home) + text[1:] if text.startswith("~/") else text


class _Code(HTMLParser):
    """The text of each labelled <pre>, as a reader would copy it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._label = dict(attrs).get("aria-label") or ""
            self.found.setdefault(self._label, "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._label = ""

    def handle_data(self, data: str) -> None:
        if self._label:
            self.found[self._label] += data


def code_of(html: str) -> dict[str, str]:
    parser = _Code()
    parser.feed(html)
    return parser.found


def install(client: Client, folder: Path) -> None:
    """Nothing to do where the same versions are there from an earlier run, or the system has it."""
    if client.registry == SYSTEM:
        return
    done = folder / "installed"
    if done.exists() and done.read_text() == repr(client.packages):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if client.registry == "pypi":
        uv = str(BIN / "uv")
        _call([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")])
        python = str(folder / "venv/bin/python")
        _call([uv, "pip", "install", "--quiet", "--python", python, *client.packages])
    else:
        (folder / "package.json").write_text("{}")
        npm = [str(BIN / "npm"), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        _call([*npm, *client.packages], cwd=folder)
    done.write_text(repr(client.packages))


def _call(argv: Sequence[str], cwd: Path | None = None) -> None:
    path = f"{BIN}:{os.environ['PATH']}"
    run = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    if run.returncode:
        raise Failed(_tail(run.stdout + run.stderr))


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the page has a reader do besides keeping its files."""

    commands: Sequence[str]
    environment: Mapping[str, str]


def set_up(client: Client, place: Place, html: str) -> Shown:
    """Writes what the page shows, with the key in its place, as the reader's browser would."""
    shown = {label: text.replace("YOUR_KEY", place.key) for label, text in code_of(html).items()}
    shutil.rmtree(place.home, ignore_errors=True)
    place.home.mkdir(parents=True)
    for label, path in client.files.items():
        if label not in shown:
            raise Failed(f"The page shows no {label}.")
        target = place.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(shown[label])
    if any(
        path.endswith(".mjs") for path in client.files.values()
    ):  # modules are looked up from the program's folder
        (place.home / "node_modules").symlink_to(place.folder / "node_modules")
    return Shown(
        commands=[_command(shown, beginning) for beginning in client.before],
        environment=dict(EXPORT.findall("\n".join(shown.values()))),
    )


def _command(shown: Mapping[str, str], beginning: str) -> str:
    lines = [line for text in shown.values() for line in text.splitlines()]
    found = [line for line in lines if line.startswith(beginning)]
    if len(found) != 1:
        raise Failed(f"The page shows {len(found)} commands that begin with {beginning}.")
    return found[0]


def ask(client: Client, place: Place, shown: Shown) -> None:
    for command in shown.commands:
        _run(client, place, ("sh", "-c", command), shown.environment)
    check(client, _run(client, place, client.argv, shown.environment))


def check(client: Client, said: str) -> None:
    """Some repeat the question, which has the answer in it."""
    answers = said.replace(PROMPT, "").lower().count(client.expects.lower())
    if answers < client.times:
        raise Failed(f"It did not say {client.expects!r}: {_tail(said)}")


def _run(client: Client, place: Place, argv: Sequence[str], exported: Mapping[str, str]) -> str:
    programs = place.folder / ("venv/bin" if client.registry == "pypi" else "node_modules/.bin")
    environment = {
        "PATH": f"{programs}:{BIN}:/usr/bin:/bin",
        "HOME": str(place.home),
        "LANG": "C.UTF-8",
        **exported,
        **client.environment,
    }
    process = subprocess.Popen(
        [place.filled(word) for word in argv],
        cwd=place.home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _nothing = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"No end within {RUN_SECONDS} s.") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _end_those_left(place)
    if process.returncode:
        raise Failed(f"exit {process.returncode}: {_tail(out)}")
    return out


def _end_those_left(place: Place) -> None:
    """Some leave a daemon behind, in a session of its own; it is known by its home."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == str(place.home):
                process.kill()


def _tail(text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return re.sub(r"sk-[\w-]+", "sk-…", " ".join(plain.split()))[-400:]
