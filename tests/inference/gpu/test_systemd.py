"""Driver `systemd`: the units, and the calls, on a stand-in for systemctl that runs the unit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference.gpu import keeper, processes
from inference.gpu.drivers import systemd
from inference.gpu.drivers.systemd import units
from tests.inference.gpu.rig import KEY, Rig, spec

PROJECT = Path(__file__).resolve().parents[3]
VALUES = {
    "USER": "daemon",
    "NAME": "gpu7",
    "PROJECT": str(PROJECT),
    "PYTHON": sys.executable,
    "STATE": "/var/lib/nan-gpu",
    "HF_HOME": "/srv/hf",
    "ENV_FILE": "/etc/nan/gpu.env",
}
# Runs what the unit says, as systemd would: ExecStart with the host's environment file, the main
# process in a cgroup (a folder with cgroup.procs), ExecStopPost with EXIT_STATUS after it.
SYSTEMCTL = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
home = Path(os.environ["HOME"]); units = home / "units"; units.mkdir(exist_ok=True)
words = [w for w in sys.argv[1:] if w not in ("--no-ask-password", "--no-pager")]
with (home / "systemctl-calls").open("a") as calls:
    calls.write(json.dumps(words) + "\\n")
if (home / "broken").exists():
    sys.exit("Failed to connect to bus: No such file or directory")
unit = next(w for w in words if w.startswith("nan-engine@"))
instance = unit.removeprefix("nan-engine@").removesuffix(".service")
folder = home / "state" / "engines" / instance
group = home / "cgroup" / unit; group.mkdir(parents=True, exist_ok=True)
procs = group / "cgroup.procs"
def alive():
    pids = [int(p) for p in procs.read_text().split()] if procs.exists() else []
    return [p for p in pids if os.path.exists(f"/proc/{p}") and
            open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] != "Z"]
if words[0] == "start":
    if os.fork():
        while not procs.exists(): time.sleep(0.01)
        sys.exit()
    os.setsid()
    os.close(1); os.close(2)
    with open(folder / "stdout.log", "a") as out, open(folder / "stderr.log", "a") as err:
        main = subprocess.Popen([sys.executable, "-I", KEEPER, "exec", str(folder)], stdout=out,
            stderr=err, stdin=subprocess.DEVNULL, cwd=folder, env={"ENGINE_API_KEY": KEY})
    procs.write_text(f"{main.pid}\\n")
    code = main.wait()
    status = signal.Signals(-code).name[3:] if code < 0 else str(code)
    subprocess.run([sys.executable, "-I", KEEPER, "ended", str(folder)],
        env={"EXIT_STATUS": status})
    (group / "over").touch()
elif words[0] == "show":
    pids = alive()
    ending = procs.exists() and not (group / "over").exists()
    print("ActiveState=" + ("active" if pids else "deactivating" if ending else "inactive"))
    print(f"MainPID={pids[0] if pids else 0}")
    print("ControlGroup=/" + unit)
elif words[0] == "kill":
    for pid in alive():
        os.kill(pid, signal.SIGKILL if "--signal=SIGKILL" in words else signal.SIGTERM)
"""


@pytest.fixture
def host(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    program = rig.folder / "bin" / "systemctl"
    program.parent.mkdir()
    names = f"KEEPER, KEY = {keeper.__file__!r}, {KEY!r}\n"
    program.write_text(f"#!{sys.executable} -I\n{names}{SYSTEMCTL}")
    program.chmod(0o755)
    rig.environ |= {
        "NAN_GPU_DRIVER": "systemd",
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    monkeypatch.setenv("PATH", rig.environ["PATH"])
    monkeypatch.setenv("HOME", str(rig.folder))
    monkeypatch.setattr(systemd, "CGROUPS", rig.folder / "cgroup")
    return rig


def called(rig: Rig, verb: str) -> list[list[str]]:
    lines = (rig.folder / "systemctl-calls").read_text().splitlines()
    return [words for line in lines if (words := json.loads(line))[0] == verb]


def verify(folder: Path, name: str) -> str:
    """systemd's own judgement, where the program exists; elsewhere what it would look at first."""
    program = shutil.which("systemd-analyze")
    if program is None:
        text = (folder / name).read_text()
        assert all(line[:1] in "#[" or "=" in line for line in text.splitlines() if line)
        return ""
    found = subprocess.run(
        [program, "verify", "--man=no", str(folder / name)], capture_output=True, text=True
    )
    return f"{found.returncode} {found.stderr}".replace("0 ", "", 1)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    folder = tmp_path / "units"
    folder.mkdir()
    for name, text in units(VALUES).items():
        (folder / name).write_text(text)
    return folder


def test_the_units_are_what_systemd_accepts(written: Path) -> None:
    assert sorted(file.name for file in written.iterdir()) == [
        "50-nan-engine.rules", "nan-engine@.service", "nan-gpu-worker.service",
    ]  # fmt: skip
    for name in ("nan-engine@.service", "nan-gpu-worker.service"):
        assert "@@" not in (written / name).read_text().replace("gpu7@%%h", "")
    instance = written / "nan-engine@r1-g1.service"
    instance.write_text((written / "nan-engine@.service").read_text())
    assert verify(written, instance.name) == ""
    assert verify(written, "nan-gpu-worker.service") == ""


def test_systemd_would_say_if_they_were_wrong(written: Path) -> None:
    file = written / "wrong.service"
    file.write_text((written / "nan-gpu-worker.service").read_text().replace("User=", "Usr="))
    if shutil.which("systemd-analyze"):
        assert "'Usr'" in verify(written, file.name)


def test_an_engine_goes_with_its_cgroup_and_is_never_restarted(written: Path) -> None:
    lines = (written / "nan-engine@.service").read_text().splitlines()
    for line in ("KillMode=control-group", "Restart=no", "NoNewPrivileges=yes", "UMask=0077"):
        assert line in lines


@pytest.mark.parametrize("value", ["a b", "a\nb", "%h", 'a"', "a\\b"])
def test_a_value_that_would_change_the_unit_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="STATE can't stand in a unit"):
        units({**VALUES, "STATE": value})


def test_an_engine_lives_and_ends_once(host: Rig) -> None:
    wanted = spec()
    host.start(wanted)
    host.start(wanted)
    found = host.until_serving("r1-g1")
    assert (found["state"], found["left"]) == ("running", 1)
    host.stop("r1-g1")
    found = host.until_exited("r1-g1")
    assert (found["exit_code"], found["signals"], found["cause"]) == (0, ["TERM"], None)
    host.start(wanted)
    assert called(host, "start") == [["start", "nan-engine@r1-g1.service"]]
    assert called(host, "kill") == [
        ["kill", "--kill-whom=main", "--signal=SIGTERM", "nan-engine@r1-g1.service"]
    ]


def test_why_it_did_not_start(host: Rig) -> None:
    host.start(spec(flags={"max-model-len": 1_000_000}))
    found = host.until_exited("r1-g1")
    assert (found["exit_code"], found["cause"]["code"]) == (1, "context_too_long")


def test_who_ignores_sigterm_is_killed_with_all(host: Rig) -> None:
    host.start(spec(environment={"SIM_FAULTS": "ignore-sigterm"}))
    host.until_serving("r1-g1")
    host.stop("r1-g1", 1)
    found = host.until_exited("r1-g1")
    assert (found["exit_code"], found["signals"]) == (-9, ["TERM", "KILL"])
    assert {words[1] for words in called(host, "kill")} == {"--kill-whom=main", "--kill-whom=all"}


def test_the_key_is_in_no_file_and_no_argv(host: Rig) -> None:
    host.start(spec())
    host.until_serving("r1-g1")
    (pid,) = host.driver.look(host.state.load("r1-g1")).pids
    assert f"VLLM_API_KEY={KEY}" in Path(f"/proc/{pid}/environ").read_text()
    assert KEY not in Path(f"/proc/{pid}/cmdline").read_text()
    texts = [file.read_text() for file in host.host.state.rglob("*") if file.is_file()]
    assert [text for text in texts if KEY in text] == []
    assert (host.state.engine("r1-g1") / "launch.json").stat().st_mode & 0o077 == 0
    host.stop("r1-g1", 0)
    host.until_exited("r1-g1")


def test_systemd_in_trouble(host: Rig) -> None:
    (host.folder / "broken").touch()
    with host.state.locked():
        host.engines.start(spec().to_json())
    (host.folder / "broken").unlink()
    found = host.until_exited("r1-g1")
    assert found["cause"] == {
        "code": "driver_failed",
        "text": "systemctl start: Failed to connect to bus: No such file or directory",
    }


def test_a_start_that_comes_late_does_nothing(host: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker was killed after its note; systemd hears of it after the end was recorded."""
    driver = host.driver
    monkeypatch.setattr(systemd.SystemdDriver, "start", lambda *_: None)
    host.start(spec())
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(host.folder))
    monkeypatch.setenv("PATH", host.environ["PATH"])
    monkeypatch.setattr(systemd, "CGROUPS", host.folder / "cgroup")
    assert host.until_exited("r1-g1")["state"] == "exited"
    record = host.state.load("r1-g1")
    assert record
    driver.start(record, host.engines._launch(spec()))
    assert not any(_is_engine(pid, host) for pid in processes.everything())


def _is_engine(pid: int, rig: Rig) -> bool:
    try:
        words: list[Any] = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False
    return "inference.simulator" in words and str(rig.folder) in " ".join(words)


@pytest.mark.parametrize(
    ("code", "status", "noted", "expected"),
    [("1", "143", None, 143), ("2", "9", None, -9), ("3", "6", None, -6), ("0", "0", -15, -15),
     ("", "", None, None)],
)  # fmt: skip
def test_how_it_ended_by_systemds_account_or_the_note(
    code: str, status: str, noted: int | None, expected: int | None
) -> None:
    found = {"ExecMainCode": code, "ExecMainStatus": status}
    assert systemd._exit_code(found, {"code": noted}) == expected
