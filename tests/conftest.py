"""Fixtures for every test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.fleet import FAULTS
from tests.services import own
from tests.stack import ROOT, Stack

# Seconds that are minutes on a real server.
HURRIED = {"ENGINE_KILL_SECONDS": "12", "MEMORY_SECONDS": "8"}
STACKS = Path(os.environ.get("NAN_TEST_STACK", ROOT / ".nan" / "test-stack"))
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
    folder = own(STACKS)
    running = Stack(folder, extra={"SIM_FAULTS_FILE": str(folder / FAULTS), **HURRIED})
    running.local("clean-data", "--yes")
    try:
        yield running.start()
    finally:
        running.stop()


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several processes: all tests of the whole stack go to one of them, since it is started
    once, and the tests of a file stay together."""
    for item in items:
        uses_stack = "stack" in getattr(item, "fixturenames", ())
        group = "stack" if uses_stack else str(item.path.relative_to(ROOT))
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the stack said, when something failed; the whole logs stay under .nan/."""
    if not terminalreporter.stats.get("failed"):
        return
    for folder in sorted(STACKS.parent.glob(f"{STACKS.name}*")):
        if (folder / "run.log").exists():
            terminalreporter.section(f"last lines of the stack, from {folder}")
            terminalreporter.write_line(Stack(folder).tail(40))
