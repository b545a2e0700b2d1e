"""What an engine does to its machine: memory, processes, time; and faults set for one model."""

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.inference.simulator.engines import (
    RunningEngine,
    end_of,
    eventually,
    running,
    spawn,
)

CORE = {"SIM_ENGINE_CORE": "1"}


def gpus(folder: Path, **more: str) -> dict[str, str]:
    return {
        "SIM_GPU_DIR": str(folder),
        "SIM_MEMORY_MIB": "2048",
        "CUDA_VISIBLE_DEVICES": "0,1",
        **more,
    }


def held(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.glob("gpu*/*")}


def core_of(engine: RunningEngine) -> psutil.Process:
    [core] = psutil.Process(engine.process.pid).children()
    return core


def test_memory_is_held_until_the_end(tmp_path: Path) -> None:
    with running(**gpus(tmp_path)) as engine:
        pid = engine.process.pid
        assert held(tmp_path) == {f"gpu0/{pid}": "2048", f"gpu1/{pid}": "2048"}
        engine.terminate()
        assert engine.process.wait(5) == 0
        eventually(lambda: held(tmp_path) == {})


def test_memory_is_given_back_by_a_killed_engine(tmp_path: Path) -> None:
    with running(**gpus(tmp_path)) as engine:
        engine.process.kill()
        eventually(lambda: held(tmp_path) == {})


def test_memory_stays_with_the_core(tmp_path: Path) -> None:
    """As after a SIGKILL of vLLM's API server: the port is free, the memory is not."""
    with running(**gpus(tmp_path), **CORE) as engine:
        core, group = core_of(engine), os.getpgid(engine.process.pid)
        engine.process.kill()
        engine.process.wait()
        time.sleep(0.3)
        assert len(held(tmp_path)) == 2
        assert (core.is_running(), core.name(), os.getpgid(core.pid)) == (
            True,
            "VLLM::EngineCor",
            group,
        )
        with running(port=engine.port):
            pass
        core.kill()
        eventually(lambda: held(tmp_path) == {})


def test_memory_kept_after_the_end(tmp_path: Path) -> None:
    with running(**gpus(tmp_path, SIM_FAULTS="keep-memory")) as engine:
        engine.terminate()
        engine.process.wait(5)
        time.sleep(0.3)
        assert len(held(tmp_path)) == 2


def test_memory_short(tmp_path: Path) -> None:
    (tmp_path / "gpu1").mkdir()
    (tmp_path / "gpu1" / "77").write_text("3000")
    ended, err = end_of(spawn(**gpus(tmp_path, SIM_GPU_TOTAL_MIB="4096")))
    assert (ended, held(tmp_path)) == (1, {"gpu1/77": "3000"})
    assert "Free memory on device cuda:1 (1.07/4.00 GiB) on startup is less than desired" in err


def test_no_core_is_left_by_an_engine_that_ends() -> None:
    with running(**CORE) as engine:
        core = core_of(engine)
        engine.terminate()
        assert engine.process.wait(5) == 0
        assert not core.is_running()


def test_no_core_is_left_by_a_start_that_is_given_up() -> None:
    process = spawn(SIM_LOAD_SECONDS="30", **CORE)
    assert process.stdout
    while "Loading" not in process.stdout.readline():
        pass
    [core] = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGTERM)
    assert (end_of(process)[0], core.is_running()) == (143, False)


def test_core_takes_sigterm_only_without_its_parent() -> None:
    with running(**CORE) as engine:
        core = core_of(engine)
        core.terminate()
        time.sleep(0.2)
        assert engine.chat("hi").status_code == 200
        engine.process.kill()
        engine.process.wait()
        core.terminate()
        eventually(lambda: not core.is_running())


@pytest.mark.parametrize("fault", ["", "core-dies"])
def test_core_dies(fault: str) -> None:
    with running(
        SIM_FAULTS=fault, SIM_CORE_DEAD_SECONDS="0.5", SIM_CORE_DIES_AFTER="0.3", **CORE
    ) as engine:
        if not fault:
            core_of(engine).kill()
        eventually(lambda: engine.http.get("/health").status_code == 503)
        assert engine.chat("hi").status_code == 500
        assert engine.process.wait(3) == 0


def test_loading_says_how_far_it_is() -> None:
    process = spawn(SIM_LOAD_SECONDS="0.1", SIM_KV_CACHE_TOKENS="200000", SIM_FAULTS="bad-template")
    out, err = process.communicate(timeout=10)
    shares = [line.partition("shards: ")[2][:4] for line in out.splitlines() if "shards: " in line]
    assert shares == [" 25%", " 50%", " 75%", "100%"]
    assert "GPU KV cache size: 200,000 tokens, Maximum concurrency for 131,072 tokens" in out
    assert (process.returncode, "jinja2.exceptions.TemplateSyntaxError" in err) == (1, True)


def test_refused_flag() -> None:
    ended, err = end_of(spawn(SIM_FAULTS="refuse-flag"))
    assert (ended, "error: unrecognized arguments: --host" in err) == (2, True)


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    return tmp_path / "faults.json"


@pytest.mark.parametrize("name", ["nan", "nan-sim-35b", "example/model", "model"])
def test_faults_of_one_model(faults: Path, name: str) -> None:
    """By each name: those that are served, the repository, its last part."""
    faults.write_text(json.dumps({name: ["empty-content"], "another": ["refuse-start"]}))
    with running(SIM_FAULTS_FILE=str(faults), SIM_FAULTS="another:hang") as engine:
        answer = engine.chat("hi").json()
    assert answer["choices"][0]["message"]["content"] == ""


def test_faults_file_changes_between_two_starts(faults: Path) -> None:
    with running(SIM_FAULTS_FILE=str(faults)) as engine:
        assert engine.chat("hi").json()["choices"][0]["message"]["content"]
    faults.write_text('{"*": ["die-after-loading"]}')
    assert end_of(spawn(SIM_FAULTS_FILE=str(faults)))[0] == 1
    faults.write_text('{"*": ["no-such-fault"]}')
    assert "unknown ['no-such-fault']" in end_of(spawn(SIM_FAULTS_FILE=str(faults)))[1]
    faults.write_text("{")
    assert "SIM_FAULTS_FILE" in end_of(spawn(SIM_FAULTS_FILE=str(faults)))[1]


def test_load_time_of_one_model(faults: Path) -> None:
    faults.write_text('{"example/model": {"load_seconds": 1}, "another": {"load_seconds": 60}}')
    began = time.monotonic()
    with running(SIM_FAULTS_FILE=str(faults), SIM_LOAD_SECONDS="60"):
        assert 1 < time.monotonic() - began < 5


def test_a_snapshots_folder_goes_by_its_repository(faults: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--org--some-model" / "snapshots" / ("0" * 40)
    folder.mkdir(parents=True)
    faults.write_text('{"org/some-model": ["refuse-start"]}')
    assert end_of(spawn(model=str(folder), SIM_FAULTS_FILE=str(faults)))[0] == 1
