import json
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from nan.local import state


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "file"
    state.write_atomically(file, "one", mode=0o600)
    with pytest.raises(UnicodeEncodeError):
        state.write_atomically(file, "two\ud800")
    assert file.read_text() == "one"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_the_record_survives_a_round_trip(tmp_path: Path) -> None:
    record = state.StackRecord(
        file=tmp_path / "stack.json", pid=1, create_time=2.0, site="s", api="a", mails="m"
    )
    record.parts["web"] = state.PartRecord(name="web", pid=3, create_time=4.0, port=5, url="u")
    record.save()
    assert state.read(tmp_path) == record
    web = json.loads(record.file.read_text())["parts"]["web"]
    assert {key: web[key] for key in ("pid", "port", "url")} == {"pid": 3, "port": 5, "url": "u"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"parts": {"web": {"colour": 1}}}'])
def test_an_unreadable_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert state.read(tmp_path) is None
    assert state.strays(tmp_path) == []


def test_a_recorded_pid_of_another_age_is_not_touched(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        born = psutil.Process(stranger.pid).create_time()
        record = state.StackRecord(
            file=tmp_path / "stack.json", pid=1, create_time=2.0, site="s", api="a", mails="m"
        )
        record.parts["web"] = state.PartRecord(name="web", pid=stranger.pid, create_time=born - 100)
        record.save()
        assert state.end_strays(tmp_path) == []
        assert stranger.poll() is None
        record.parts["web"].create_time = born
        record.save()
        assert len(state.end_strays(tmp_path)) == 1
        assert not psutil.pid_exists(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_neither_we_nor_our_parents_are_strays(tmp_path: Path) -> None:
    """A shell may have the marker, when it was started from a part."""
    script = (
        "import pathlib, subprocess, sys; "
        "code = 'import sys, pathlib; from nan.local import state; '"
        "'print(state.strays(pathlib.Path(sys.argv[1])))'; "
        "sys.exit(subprocess.run([sys.executable, '-c', code, sys.argv[1]]).returncode)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={"NAN_STACK": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (answer.returncode, answer.stdout) == (0, "[]\n")


def test_one_lock_for_one_folder(tmp_path: Path) -> None:
    with (
        state.hold_lock(tmp_path),
        pytest.raises(state.AlreadyRunningError, match="already running"),
    ):
        state.hold_lock(tmp_path)
    state.hold_lock(tmp_path).close()
