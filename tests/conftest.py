"""Fixtures for every test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings
from xdist.remote import Producer

from tests import sharing
from tests.fleet import FAULTS
from tests.services import own
from tests.stack import ROOT, Stack

# Seconds that are minutes on a real server.
HURRIED = {"ENGINE_KILL_SECONDS": "12", "MEMORY_SECONDS": "8", "POOL_QUEUE_SECONDS": "20"}
# As on a real one; a stack of one's own machine does without.
TWO_ADMINS = {"SWAP_SECOND_ADMIN": "1"}
STACKS = Path(os.environ.get("NAN_TEST_STACK", ROOT / ".nan" / "test-stack"))
STACK = "stack"
STARTED: list[Stack] = []
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
    extra = {"SIM_FAULTS_FILE": str(folder / FAULTS), **HURRIED, **TWO_ADMINS}
    running = Stack(folder, extra=extra)
    running.local("clean-data", "--yes")
    STARTED.append(running)
    try:
        yield running.start()
    finally:
        running.stop()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if STACK in getattr(item, "fixturenames", ()) and not sharing.on_stack(item.nodeid):
            raise pytest.UsageError(
                f"{item.path} uses the whole stack: name it in tests/sharing.py"
            )
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not sharing.on_stack(item.nodeid))  # the longest first


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> sharing.Shares:
    return sharing.Shares(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A process that is done with the whole stack does not keep it beside its other tests."""
    if hasattr(item.config, "workerinput") and not sharing.on_stack(item.nodeid):
        while STARTED:
            STARTED.pop().stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the stack said, when something failed; the whole logs stay under .nan/."""
    if not terminalreporter.stats.get("failed"):
        return
    for folder in sorted(STACKS.parent.glob(f"{STACKS.name}*")):
        if (folder / "run.log").exists():
            terminalreporter.section(f"last lines of the stack, from {folder}")
            terminalreporter.write_line(Stack(folder).tail(40))
