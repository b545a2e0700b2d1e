"""Fixtures for every test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.fleet import FAULTS
from tests.stack import ROOT, Stack

# Seconds that are minutes on a real server.
HURRIED = {"ENGINE_KILL_SECONDS": "12", "MEMORY_SECONDS": "8"}
pytest_plugins = ["tests.people"]


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Settings) -> None:
    """Tests run without `collectstatic`: names are not hashed."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The whole product on real parts; see tests/stack.py."""
    folder = Path(os.environ.get("NAN_TEST_STACK", ROOT / ".nan" / "test-stack"))
    running = Stack(folder, extra={"SIM_FAULTS_FILE": str(folder / FAULTS), **HURRIED})
    running.local("clean-data", "--yes")
    try:
        yield running.start()
    finally:
        running.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the stack said, when something failed; the whole logs stay under .nan/."""
    folder = Path(os.environ.get("NAN_TEST_STACK", ROOT / ".nan" / "test-stack"))
    log = folder / "run.log"
    if terminalreporter.stats.get("failed") and log.exists():
        terminalreporter.section(f"last lines of the stack, from {folder}")
        terminalreporter.write_line(Stack(folder).tail(40))
