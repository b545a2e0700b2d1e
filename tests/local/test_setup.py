"""Set-up steps: done once, done again when their inputs change, and honest when they fail."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nan.local.config import ROOT


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup", ROOT / "deploy" / "local" / "setup.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "setup", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "NAN", tmp_path / ".nan")
    return module


def a_step(setup: ModuleType, folder: Path, runs: list[int], **more: Any) -> Any:
    (folder / "lock").touch()

    def action() -> None:
        runs.append(1)
        (folder / "result").touch()

    given = {"action": action, "results": [folder / "result"], **more}
    return setup.Step(name="step", title="Making it", inputs=[folder / "lock"], **given)


def test_a_step_runs_once_for_the_same_inputs(setup: ModuleType, tmp_path: Path) -> None:
    runs: list[int] = []
    step = a_step(setup, tmp_path, runs)
    for _ in range(3):
        setup.ensure(step)
    assert len(runs) == 1
    (tmp_path / "lock").write_text("changed")
    setup.ensure(step)
    assert len(runs) == 2
    (tmp_path / "result").unlink()
    setup.ensure(step)
    assert len(runs) == 3


def test_a_step_that_fails_names_the_remedy_and_runs_again(
    setup: ModuleType, tmp_path: Path
) -> None:
    def fail() -> None:
        raise subprocess.CalledProcessError(1, ["uv"])

    step = a_step(setup, tmp_path, [], action=fail, remedy="look at the cable")
    with pytest.raises(
        setup.SetupError, match=r"Making it failed.*\nWhat to do: look at the cable"
    ):
        setup.ensure(step)
    runs: list[int] = []
    setup.ensure(a_step(setup, tmp_path, runs))
    assert len(runs) == 1


def test_what_an_ordinary_user_has_to_install_is_said(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/usr/bin/apt-get")
    with pytest.raises(setup.SetupError, match=r"as root: apt-get install .* chromium"):
        setup.apt_install(["chromium"], why="the tests")


def test_every_lock_pins_hashes() -> None:
    """P9: what installs is what was reviewed."""
    for lock in (ROOT / "deploy/local/bootstrap.txt", *ROOT.glob("requirements*.txt")):
        pinned = [line for line in lock.read_text().splitlines() if "==" in line[:80]]
        pinned = [line for line in pinned if not line.startswith((" ", "#"))]
        assert pinned
        assert [line for line in pinned if not line.endswith("\\")] == []
        assert [line for line in pinned if line.startswith(("litellm", "vllm"))] == []
