"""The real supervisor, in a process of its own, with small children."""

import os
import pty
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil

from nan.local import state

from .conftest import SmallStack, alive, wait_until


def restarted(small: SmallStack, name: str, times: int) -> bool:
    part = small.part(name)
    return (part["state"], part["restarts"]) == ("ready", times)


def test_starts_in_order_and_stops_in_reverse(small: SmallStack) -> None:
    small.start("chain")
    assert small.stop() == 0
    started = ["start first", "start second", "start third"]
    assert small.events == [*started, "stop third", "stop second", "stop first"]
    assert state.strays(small.folder) == []


def test_a_closed_terminal_stops_everything(small: SmallStack) -> None:
    """SIGHUP comes when nobody can read any more: what is printed then fails."""
    terminal, inside = pty.openpty()
    small.output = inside
    small.start("chain")
    os.close(inside)
    os.close(terminal)
    assert small.stop(signal.SIGHUP) == 0
    assert state.strays(small.folder) == []


def test_what_is_needed_by_way_of_a_job_stops_last(small: SmallStack) -> None:
    small.start("through_a_job")
    assert small.stop() == 0
    started = ["start database", "start migrate", "start web"]
    assert small.events == [*started, "stop web", "stop database"]


def test_ctrl_c_stops_everything(small: SmallStack) -> None:
    small.start("chain")
    assert small.stop(signal.SIGINT) == 0
    assert state.strays(small.folder) == []


def test_a_part_that_dies_is_started_again_with_growing_pauses(small: SmallStack) -> None:
    small.start("chain")
    for number in (1, 2):
        before = small.part("second")["pid"]
        os.kill(before, signal.SIGKILL)
        wait_until(partial(restarted, small, "second", number))
        assert small.part("second")["pid"] != before
    assert "second * ended (by SIGKILL); starts again in 0.5 s" in small.printed
    assert "second * ended (by SIGKILL); starts again in 1 s" in small.printed
    assert [small.part(name)["restarts"] for name in ("first", "third")] == [0, 0]


def test_children_of_a_dead_part_do_not_outlive_it(small: SmallStack) -> None:
    small.start("chain")
    grandchild = int((small.folder / "children" / "second.grandchild").read_text())
    assert alive(grandchild)
    os.kill(small.part("second")["pid"], signal.SIGKILL)
    wait_until(lambda: not alive(grandchild))


def test_after_kill_9_the_next_run_ends_what_it_owns_and_nothing_else(small: SmallStack) -> None:
    pause = [sys.executable, "-c", "import time; time.sleep(600)"]
    other_stack = {**os.environ, state.MARKER: f"{small.folder}-other"}
    strangers = [subprocess.Popen(pause), subprocess.Popen(pause, env=other_stack)]
    try:
        small.start("chain")
        old = [small.part(name)["pid"] for name in ("first", "second", "third")]
        old.append(int((small.folder / "children" / "second.grandchild").read_text()))
        small.stop(signal.SIGKILL)
        assert [alive(pid) for pid in old] == [True] * 4
        small.start("chain")
        assert [alive(pid) for pid in old] == [False] * 4
        ended = "Ended what an earlier run left behind: "
        names = small.printed.split(ended)[1].splitlines()[0].split(", ")
        assert sorted(names) == ["first", "second (2)", "third"]
        assert [process.poll() for process in strangers] == [None, None]
    finally:
        for process in strangers:
            process.kill()
            process.wait()


def test_a_second_run_says_that_the_first_is_alive(small: SmallStack) -> None:
    small.start("chain")
    second = small.call("chain", "run")
    assert second.returncode == 2
    assert f"already running (pid {small.process.pid})" in second.stderr
    assert small.record["ready"] is True


def test_a_part_that_can_not_start_ends_the_run_with_the_reason(small: SmallStack) -> None:
    small.start("broken", wait=False)
    assert small.process.wait(timeout=30) == 1
    assert small.events.count("start broken") == 3
    assert small.printed.endswith(
        "\nbroken ended (exit code 3).\nIts last lines:\n"
        + "    hello from broken\n    my disk is full\n" * 3
        + f"Whole log: {small.folder}/logs/broken.log\nWhat to do: buy a disk\n\n"
        "Everything that was started has been stopped.\n"
    )
    assert state.strays(small.folder) == []


def test_a_part_that_does_not_end_is_killed(small: SmallStack) -> None:
    small.start("deaf")
    began = time.monotonic()
    assert small.stop() == 0
    assert 1 <= time.monotonic() - began < 5
    assert "deaf * does not end; killing it" in small.printed
    assert state.strays(small.folder) == []


def test_a_second_ctrl_c_kills_at_once(small: SmallStack, monkeypatch: object) -> None:
    os.environ["DEAF_SECONDS"] = "60"
    try:
        small.start("deaf")
    finally:
        del os.environ["DEAF_SECONDS"]
    small.process.send_signal(signal.SIGINT)
    wait_until(lambda: "stop deaf" in small.events)
    began = time.monotonic()
    assert small.stop(signal.SIGINT) == 0
    assert time.monotonic() - began < 5


def test_private_output_is_shown_once_and_written_nowhere(small: SmallStack) -> None:
    small.start("private")
    wait_until(lambda: "Ctrl-C stops everything" in small.printed)
    assert small.printed.count("correct-horse") == 1
    small.stop()
    files = [path for path in small.folder.rglob("*") if path.is_file() and path.name != "output"]
    assert [path for path in files if b"correct-horse" in path.read_bytes()] == []


def test_logs_are_kept_for_three_earlier_runs(small: SmallStack) -> None:
    for _ in range(5):
        small.start("private")
        small.stop()
    logs = sorted(path.name for path in (small.folder / "logs").iterdir())
    assert logs == [f"first-admin.log{end}" for end in ("", ".1", ".2", ".3")]


def test_a_held_part_stays_down_until_it_is_released(small: SmallStack) -> None:
    small.start("chain")
    before = small.part("second")["pid"]
    held = small.call("chain", "hold", "second")
    assert (held.returncode, alive(before)) == (0, False)
    time.sleep(1)
    assert small.part("second")["state"] == "held"
    assert small.call("chain", "release", "second").returncode == 0
    after = small.part("second")
    assert (after["state"], after["restarts"], alive(after["pid"])) == ("ready", 1, True)


def test_stopping_while_a_part_is_held(small: SmallStack) -> None:
    small.start("chain")
    small.call("chain", "hold", "second")
    assert small.stop() == 0
    assert state.strays(small.folder) == []
    small.start("chain")
    assert small.part("second")["state"] == "ready"


def test_holding_what_is_not_there(small: SmallStack) -> None:
    small.start("chain")
    answer = small.call("chain", "hold", "fourth")
    expected = "No part is called fourth; there are: first, second, third\n"
    assert (answer.returncode, answer.stderr) == (2, expected)


def test_status_and_stop(small: SmallStack) -> None:
    small.start("chain")
    status = small.call("chain", "status")
    assert status.returncode == 0
    rows = [line.split()[:2] for line in status.stdout.splitlines()[3:]]
    assert rows == [["first", "ready"], ["second", "ready"], ["third", "ready"]]
    stopped = small.call("chain", "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "Stopped.\n")
    assert small.process.wait(timeout=5) == 0
    assert small.call("chain", "status").stdout == f"No stack runs in {small.folder}.\n"


def test_stop_also_ends_what_a_killed_supervisor_left(small: SmallStack) -> None:
    small.start("chain")
    pid = small.part("first")["pid"]
    small.stop(signal.SIGKILL)
    assert "also ended: " in small.call("chain", "stop").stdout
    assert not alive(pid)


def test_a_reused_pid_is_not_ours(small: SmallStack, folder: Path) -> None:
    mine = psutil.Process()
    assert state.is_alive(mine.pid, mine.create_time())
    assert not state.is_alive(mine.pid, mine.create_time() - 60)
