"""The simulator as engine: the same host, with memory of simulated GPUs."""

import os
import signal

import httpx
import pytest

from tests.inference.gpu.rig import KEY, Rig, spec


def test_it_serves_all_its_names_with_the_hosts_key(rig: Rig) -> None:
    wanted = spec()
    rig.start(wanted)
    rig.until_serving("r1-g1")
    url = f"http://127.0.0.1:{wanted.port}/v1/models"
    answer = httpx.get(url, headers={"Authorization": f"Bearer {KEY}"})
    assert [model["id"] for model in answer.json()["data"]] == ["small", "nan"]
    assert httpx.get(url).status_code == 401


def test_memory_is_held_until_the_end(rig: Rig) -> None:
    rig.start(spec(gpus=(1,), memory_mib=9000))
    rig.until_serving("r1-g1")
    gpus = rig.report()["gpus"]
    assert [(gpu["used_mib"], gpu["foreign_mib"]) for gpu in gpus] == [(0, 0), (9000, 0)]
    rig.stop("r1-g1")
    rig.until_exited("r1-g1")
    assert [gpu["used_mib"] for gpu in rig.report()["gpus"]] == [0, 0]


def test_memory_of_a_killed_engine_is_free_again(rig: Rig) -> None:
    rig.start(spec(environment={"SIM_ENGINE_CORE": "1"}))
    rig.until_serving("r1-g1")
    os.kill(rig.pid("r1-g1"), signal.SIGKILL)
    rig.until_exited("r1-g1")
    assert rig.family("r1-g1") == set()
    rig.until("r1-g1", lambda _: rig.report()["gpus"][0]["used_mib"] == 0)


def test_memory_that_stays_is_nobodys(rig: Rig) -> None:
    rig.start(spec(environment={"SIM_FAULTS": "keep-memory"}))
    rig.until_serving("r1-g1")
    rig.stop("r1-g1")
    rig.until_exited("r1-g1")
    gpu = rig.report()["gpus"][0]
    assert (gpu["used_mib"], gpu["foreign_mib"]) == (1000, 1000)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"environment": {"SIM_FAULTS": "die-after-loading"}}, "kv_cache_too_small"),
        ({"environment": {"SIM_FAULTS": "refuse-start"}}, "parser_unknown"),
        ({"environment": {"SIM_FAULTS": "refuse-flag"}}, "flag_refused"),
        ({"flags": {"max-model-len": 1_000_000}}, "context_too_long"),
        ({"memory_mib": 30_000}, "gpu_memory"),
    ],
)
def test_why_it_did_not_start(rig: Rig, changes: dict[str, object], code: str) -> None:
    rig.start(spec(**changes))
    found = rig.until_exited("r1-g1")
    assert found["cause"]["code"] == code
    assert found["cause"]["text"] != ""


def test_a_port_that_is_taken(rig: Rig) -> None:
    first = spec()
    rig.start(first)
    rig.until_serving("r1-g1")
    rig.start(spec(instance="r2-g1", port=first.port))
    assert rig.until_exited("r2-g1")["cause"]["code"] == "port_taken"
    assert rig.engine("r1-g1")["state"] == "running"


def test_loading_is_seen(rig: Rig) -> None:
    rig.start(spec(environment={"SIM_LOAD_SECONDS": "2"}))
    found = rig.until("r1-g1", lambda found: (found["progress"] or 0) > 5)
    assert found["phase"] == "loading weights"
    assert 5 < found["progress"] < 100
    assert rig.until_serving("r1-g1")["progress"] == 100
