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
    running = Stack(folder, extra={"SIM_FAULTS_FILE": str(folder / FAULTS), **HURRIED})
    running.local("clean-data", "--yes")
    STARTED.append(running)
    try:
        yield running.start()
    finally:
        running.stop()


@pytest.hookimpl(wrapper=True)  # around those that read the groups and those that sort
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """With several processes: the tests of a file stay together, and those of the whole stack go to
    two processes, which each start one: what swaps models, and the rest. They take longest and
    come first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    yield
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not _on_stack(item))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A process that is done with the whole stack does not keep it beside its other tests."""
    if hasattr(item.config, "workerinput") and not _on_stack(item):
        while STARTED:
            STARTED.pop().stop()


def _on_stack(item: pytest.Item) -> bool:
    return STACK in getattr(item, "fixturenames", ()) or "journeys" in item.path.parts


def _group(item: pytest.Item) -> str:
    if not _on_stack(item):
        return str(item.path.relative_to(ROOT))
    return "swaps" if item.path.name.startswith("test_swap") else STACK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the stack said, when something failed; the whole logs stay under .nan/."""
    if not terminalreporter.stats.get("failed"):
        return
    for folder in sorted(STACKS.parent.glob(f"{STACKS.name}*")):
        if (folder / "run.log").exists():
            terminalreporter.section(f"last lines of the stack, from {folder}")
            terminalreporter.write_line(Stack(folder).tail(40))
