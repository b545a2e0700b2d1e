"""Driver `process`, through the same calls as the tasks make."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inference.gpu import processes
from inference.gpu.state import Record
from tests.inference.gpu.rig import KEY, Rig, spec
from tests.waiting import wait_until

SAY = (
    "import os, sys, time, signal, subprocess\nprint('Application startup complete', flush=True)\n"
)
SLEEP = "time.sleep(600)\n"
IGNORE = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
CHILD = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
# As setproctitle does: the marker is no longer to be read from outside.
BARE_CHILD = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], env={})\n"


def is_gone(pid: int) -> bool:
    return processes.look(pid) is None


def test_started_twice_runs_once(rig: Rig) -> None:
    rig.script(SAY + SLEEP)
    rig.start(spec())
    first = rig.pid("r1-g1")
    rig.start(spec(port=9999))
    assert rig.pid("r1-g1") == first
    assert len(rig.family("r1-g1")) == 2  # the keeper and the engine
    assert rig.engine("r1-g1")["state"] == "running"


def test_stopped_before_the_start_never_starts(rig: Rig) -> None:
    rig.script(SAY + SLEEP)
    assert rig.stop("r1-g1")["state"] == "exited"
    assert rig.start(spec())["state"] == "exited"
    assert not (rig.state.engine("r1-g1") / "engine.json").exists()


def test_stopped_twice_is_asked_once(rig: Rig) -> None:
    rig.script(SAY + SLEEP)
    rig.start(spec())
    rig.until_serving("r1-g1")
    rig.stop("r1-g1")
    rig.stop("r1-g1")
    found = rig.until_exited("r1-g1")
    assert (found["signals"], found["exit_code"], found["cause"]) == (["TERM"], -15, None)


def test_an_engine_that_ended_is_not_started_again(rig: Rig) -> None:
    rig.script("import sys\nprint('ValueError: no', file=sys.stderr)\nsys.exit(1)\n")
    rig.start(spec())
    found = rig.until_exited("r1-g1")
    rig.start(spec())
    time.sleep(0.3)
    again = rig.engine("r1-g1")
    assert again == found
    assert (again["exit_code"], again["cause"]) == (1, {"code": "died", "text": "ValueError: no"})
    assert again["log"] == ["ValueError: no"]


def test_an_engine_that_ended_with_the_stack_says_so(rig: Rig) -> None:
    """Stopping everything ends engines too; the next run must not take that for their failure."""
    rig.environ["NAN_GPU_RUN"] = "monday"
    rig.script(SAY + SLEEP)
    rig.start(spec())
    pid = rig.pid("r1-g1")
    rig.environ["NAN_GPU_RUN"] = "tuesday"
    assert rig.engine("r1-g1")["state"] == "running"
    os.kill(pid, signal.SIGTERM)
    assert rig.until_exited("r1-g1")["cause"]["code"] == "run_ended"


def test_an_engine_that_died_in_this_run_died(rig: Rig) -> None:
    rig.environ["NAN_GPU_RUN"] = "monday"
    rig.script(SAY + SLEEP)
    rig.start(spec())
    os.kill(rig.pid("r1-g1"), signal.SIGKILL)
    assert rig.until_exited("r1-g1")["cause"]["code"] != "run_ended"


def test_a_forgotten_engine_does_not_come_back(rig: Rig) -> None:
    rig.script(SAY + SLEEP)
    rig.start(spec())
    rig.stop("r1-g1", 0)
    rig.until_exited("r1-g1")
    rig.engines.forget("r1-g1")
    assert not rig.state.engine("r1-g1").exists()
    rig.engines.start(spec().to_json())
    rig.engines.stop("r1-g1", 0)
    assert rig.report()["engines"] == {}


def test_a_running_engine_is_not_forgotten(rig: Rig) -> None:
    rig.script(SAY + SLEEP)
    rig.start(spec())
    rig.engines.forget("r1-g1")
    assert rig.engine("r1-g1")["state"] == "running"


def test_who_ignores_sigterm_is_asked_again_and_then_killed_and_nobody_else(rig: Rig) -> None:
    """The second SIGTERM comes after the streams' time (1 s) and 5 s more, SIGKILL after 8 s."""
    rig.script(SAY + IGNORE + CHILD + SLEEP)
    rig.start(spec(shutdown_timeout=1))
    rig.start(spec(instance="r2-g1"))
    rig.until_serving("r1-g1")
    rig.until("r1-g1", lambda found: found["left"] == 2)
    began = time.monotonic()
    rig.stop("r1-g1", 8)
    found = rig.until_exited("r1-g1")
    assert 8 <= time.monotonic() - began < 11
    assert (found["signals"], found["exit_code"]) == (["TERM", "TERM", "KILL"], -9)
    assert rig.family("r1-g1") == set()
    assert rig.engine("r2-g1")["state"] == "running"


def test_a_second_sigterm_comes_soon_while_it_loads(rig: Rig) -> None:
    """vLLM loses the first one then."""
    rig.script(
        "import signal, sys, time\ncount = []\n"
        "def term(*_):\n    count.append(1)\n    len(count) > 1 and sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, term)\nprint('Starting to load model', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    rig.start(spec(shutdown_timeout=300))
    rig.until("r1-g1", lambda found: found["phase"] == "loading weights")
    rig.stop("r1-g1", 600)
    found = rig.until_exited("r1-g1")
    assert (found["signals"], found["exit_code"]) == (["TERM", "TERM"], 143)


@pytest.mark.parametrize("child", [CHILD, BARE_CHILD], ids=["marked", "without marker"])
def test_what_a_killed_engine_leaves_is_found_and_ended(rig: Rig, child: str) -> None:
    """SIGKILL of the first process leaves the core alive, holding the GPU."""
    rig.script(SAY + child + SLEEP)
    rig.start(spec())
    rig.until("r1-g1", lambda found: found["left"] == 2)
    (core,) = {pid for pid, _ in rig.state.load("r1-g1").seen} - {
        rig.pid("r1-g1"),
        processes.look(rig.pid("r1-g1")).parent,
    }
    os.kill(rig.pid("r1-g1"), signal.SIGKILL)
    found = rig.until("r1-g1", lambda found: found["state"] == "exited")
    assert (found["left"], found["exit_code"], found["cause"]["code"]) == (1, -9, "killed")
    assert not is_gone(core)
    found = rig.until_exited("r1-g1")
    assert found["signals"] == ["KILL"]
    assert is_gone(core)


def test_a_core_that_nobody_has_seen_yet_is_found_after_the_end(rig: Rig) -> None:
    """Without marker, without parent, never looked at: it belongs to the keeper now."""
    rig.script(SAY + BARE_CHILD + "sys.exit(1)\n")
    rig.engines.start(spec().to_json())
    exit_file = rig.state.engine("r1-g1") / "exit.json"
    wait_until(exit_file.exists, seconds=10, every=0.02)
    found = rig.engine("r1-g1")
    assert (found["state"], found["left"]) == ("exited", 1)
    assert rig.until_exited("r1-g1")["signals"] == ["KILL"]


def test_engine_and_core_are_found_when_the_keeper_is_killed_too(rig: Rig) -> None:
    rig.script(SAY + BARE_CHILD + SLEEP)
    rig.start(spec())
    rig.until("r1-g1", lambda found: found["left"] == 2)
    keeper = processes.look(rig.pid("r1-g1")).parent
    os.kill(keeper, signal.SIGKILL)
    assert rig.engine("r1-g1")["state"] == "running"
    seen = {pid for pid, _ in rig.state.load("r1-g1").seen}
    rig.stop("r1-g1", 1)
    rig.until_exited("r1-g1")
    assert [pid for pid in seen if not is_gone(pid)] == []


def test_a_process_with_the_recorded_number_but_another_start_is_left_alone(rig: Rig) -> None:
    """A number is used again after its process has ended."""
    rig.script(SAY + SLEEP)
    rig.start(spec())
    rig.until_serving("r1-g1")
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    foreign = subprocess.Popen(sleep, start_new_session=True)
    try:
        folder = rig.state.engine("r1-g1")
        real = {name: (folder / name).read_text() for name in ("engine.json", "keeper.json")}
        for name in real:
            (folder / name).write_text(f'{{"pid": {foreign.pid}, "started": 12345}}')
        record = rig.state.load("r1-g1")
        assert isinstance(record, Record)
        record.seen = [(foreign.pid, 12345)]
        rig.state.save(record)
        rig.stop("r1-g1", 0)
        rig.driver.terminate(record)
        rig.driver.kill(record)
        assert foreign.poll() is None
        for name, text in real.items():
            (folder / name).write_text(text)
        rig.driver.kill(record)
    finally:
        foreign.kill()
        foreign.wait()


def test_a_worker_killed_before_the_start_is_not_waited_for_and_can_not_come_late(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.gpu.drivers.process.CLAIM_SECONDS", 0.5)
    monkeypatch.setattr("inference.gpu.programs.carry_out", _dies)
    rig.script(SAY + SLEEP)
    with pytest.raises(KeyboardInterrupt):
        rig.start(spec())
    monkeypatch.undo()
    monkeypatch.setattr("inference.gpu.drivers.process.CLAIM_SECONDS", 0.5)
    assert rig.engine("r1-g1")["state"] == "running"
    found = rig.until_exited("r1-g1")
    assert found["cause"]["code"] == "worker_killed"
    late = rig.engines._launch(spec())
    record = rig.state.load("r1-g1")
    assert record
    rig.driver.start(record, late)
    time.sleep(0.5)
    assert rig.family("r1-g1") == set()


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_after_a_restart_of_the_host_nothing_runs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.script(SAY + SLEEP)
    rig.start(spec())
    rig.until_serving("r1-g1")
    monkeypatch.setattr(processes, "boot", lambda: "another boot")
    found = rig.engine("r1-g1")
    assert (found["state"], found["cause"]["code"]) == ("exited", "host_restarted")
    monkeypatch.undo()
    record = rig.state.load("r1-g1")
    assert record
    rig.driver.kill(record)


def test_a_stop_may_be_shortened_but_not_lengthened(rig: Rig) -> None:
    rig.script(SAY + IGNORE + SLEEP)
    rig.start(spec())
    rig.until_serving("r1-g1")
    rig.stop("r1-g1", 100)
    rig.stop("r1-g1", 1)
    rig.stop("r1-g1", 1000)
    assert rig.until_exited("r1-g1", 5)["signals"] == ["TERM", "KILL"]


def test_the_key_is_in_the_engines_environment_and_nowhere_else(rig: Rig) -> None:
    rig.script(SAY + "print('I was told', os.environ['VLLM_API_KEY'], flush=True)\n" + SLEEP)
    rig.environ["REDIS_URL"] = "redis://:the-password-of-the-broker@127.0.0.1/0"
    rig.start(spec())
    found = rig.until("r1-g1", lambda found: found["phase"] == "serving")
    pid = rig.pid("r1-g1")
    environment = Path(f"/proc/{pid}/environ").read_text()
    assert f"VLLM_API_KEY={KEY}" in environment
    assert "the-password-of-the-broker" not in environment
    for process in rig.family("r1-g1"):
        assert KEY not in Path(f"/proc/{process}/cmdline").read_text()
    assert KEY not in str(rig.report())
    assert found["log"] == []  # it serves: only lines of known form leave the host
    texts = {file: file.read_text() for file in rig.folder.rglob("*") if file.is_file()}
    assert [file.name for file, text in texts.items() if KEY in text] == ["stdout.log"]
    modes = {file.stat().st_mode & 0o077 for file in rig.state.engine("r1-g1").iterdir()}
    assert modes == {0}


def test_a_refused_specification_is_told_with_its_reason(rig: Rig) -> None:
    broken = {**spec().to_json(), "flags": {"enable-log-requests": True}}
    rig.engines.start(broken)
    found = rig.engine("r1-g1")
    assert (found["state"], found["cause"]["code"]) == ("exited", "flag_refused")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"environment": {"SIM_FAULTS": "hang"}}, "environment_refused"),
        ({"host": "10.1.2.3"}, "host_refused"),
        ({"revision": "f" * 40}, "weights_missing"),
    ],
)
def test_what_only_this_host_can_refuse(rig: Rig, changes: dict[str, object], code: str) -> None:
    rig.script(SAY + SLEEP)
    found = rig.start(spec(**changes))
    assert (found["state"], found["cause"]["code"]) == ("exited", code)
    assert rig.family("r1-g1") == set()


@pytest.mark.parametrize("found", [None, "x", {}, {"instance": "../../x"}, {"instance": 7}])
def test_a_message_without_a_usable_name_does_nothing(rig: Rig, found: object) -> None:
    rig.engines.start(found)
    assert rig.report()["engines"] == {}


def test_serials_grow_also_when_the_clock_goes_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rig.report()["serial"]
    monkeypatch.setattr(time, "time_ns", lambda: 5)
    assert rig.report()["serial"] == first + 1
