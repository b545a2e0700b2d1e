"""Checks before anything is drained: each answers for itself, in the background."""

import json
import os
import socket
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from inference.gpu import preflight, weights
from inference.gpu.spec import EngineSpec
from tests.inference.gpu.rig import KEY, MODEL, REVISION, Rig, spec
from tests.waiting import wait_until

OK = {"ok": True, "code": "", "detail": ""}


@pytest.fixture(autouse=True)
def _environment(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The background process is told as the worker is."""
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)


def asked(rig: Rig, wanted: EngineSpec | dict[str, Any], request: str = "s1-p1") -> dict[str, Any]:
    found = wanted.to_json() if isinstance(wanted, EngineSpec) else wanted
    with rig.state.locked():
        preflight.begin(rig.state, request=request, spec=found)
        preflight.begin(rig.state, request=request, spec=found)

    def ended() -> dict[str, Any] | None:
        row: dict[str, Any] = rig.report()["preflights"][request]
        return None if row["state"] == "running" else row

    checks = wait_until(ended, seconds=20, every=0.05)["checks"]
    return {check.pop("name"): check for check in checks}


def test_all_is_well(rig: Rig) -> None:
    names = ("weights", "disk", "memory", "port", "flags", "parsers", "template", "context")
    assert asked(rig, spec()) == dict.fromkeys(names, OK)


@pytest.mark.parametrize(
    ("changes", "name", "code", "detail"),
    [
        ({"revision": "f" * 40}, "weights", "weights_missing",
         f"{MODEL}@{'f' * 40}: not on this host"),
        ({"revision": "f" * 40, "disk_mib": 10**8}, "disk", "disk_short", "100000000 MiB needed"),
        ({"gpus": (5,)}, "memory", "gpu_missing", "GPU 5 of 2"),
        ({"memory_mib": 24_577}, "memory", "gpu_memory",
         "GPU 0: 24577 MiB needed, 24576 of 24576 free"),
        ({"flags": {"tool-call-parser": "made_up", "enable-auto-tool-choice": True}}, "parsers",
         "parser_unknown", "made_up"),
        ({"environment": {"SIM_FAULTS": "refuse-flag"}}, "flags", "flag_refused", "unrecognized"),
        ({"environment": {"SIM_FAULTS": "bad-template"}}, "template", "template_bad", ""),
        ({"flags": {"max-model-len": 1_000_000}}, "context", "context_too_long", "1000000"),
    ],
)  # fmt: skip
def test_each_fault_is_named(
    rig: Rig, changes: dict[str, Any], name: str, code: str, detail: str
) -> None:
    found = asked(rig, spec(**changes))
    assert (found[name]["ok"], found[name]["code"]) == (False, code)
    assert detail in found[name]["detail"]


def test_a_bad_specification_is_one_check(rig: Rig) -> None:
    found = asked(rig, {**spec().to_json(), "port": 22})
    assert found == {
        "specification": {
            "ok": False,
            "code": "port_refused",
            "detail": "port: 22 is not accepted.",
        }
    }


def test_a_port_that_somebody_else_has(rig: Rig) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = asked(rig, spec(port=other.getsockname()[1]))
    assert found["port"]["code"] == "port_taken"


def test_what_the_same_replica_holds_does_not_count(rig: Rig) -> None:
    running = spec(instance="r1-g1", memory_mib=20_000)
    rig.start(running)
    rig.until_serving("r1-g1")
    assert rig.report()["gpus"][0]["used_mib"] == 20_000
    same = asked(rig, spec(instance="r1-g0-s1-p1", port=running.port, memory_mib=20_000), "same")
    assert (same["memory"], same["port"]) == (OK, OK)
    other = asked(rig, spec(instance="r2-g0", port=running.port, memory_mib=20_000), "other")
    assert (other["memory"]["code"], other["port"]["code"]) == ("gpu_memory", "port_taken")


def test_weights_that_are_cut_short_are_found(rig: Rig) -> None:
    snapshot = weights.snapshot(rig.host.hf_home, MODEL, REVISION)
    blob = (snapshot / "model.safetensors").resolve()
    blob.write_bytes(blob.read_bytes() + b"more")
    found = asked(rig, spec())
    assert found["weights"]["detail"].endswith("model.safetensors is cut short")


def test_a_blob_that_is_gone_is_found(rig: Rig) -> None:
    snapshot = weights.snapshot(rig.host.hf_home, MODEL, REVISION)
    (snapshot / "tokenizer_config.json").resolve().unlink()
    assert asked(rig, spec())["weights"]["detail"].endswith("tokenizer_config.json is missing")


def test_a_shard_that_is_gone_is_found(rig: Rig) -> None:
    snapshot = weights.snapshot(rig.host.hf_home, MODEL, REVISION)
    index = {"weight_map": {"a": "model-1.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weights.problem(snapshot) == "model-1.safetensors is missing"
    assert weights.present(rig.host.hf_home) == []


def test_a_size_that_differs_from_the_hubs_is_found(rig: Rig) -> None:
    snapshot = weights.snapshot(rig.host.hf_home, MODEL, REVISION)
    assert weights.problem(snapshot, sizes={"config.json": 1}) == (
        "config.json is missing or cut short"
    )


def test_an_engine_that_is_not_installed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAN_ENGINE_KIND", "vllm")
    monkeypatch.setenv("NAN_ENGINE_HOME", str(rig.folder / "nowhere"))
    assert asked(rig, spec())["flags"]["code"] == "engine_missing"


def test_an_engine_whose_check_breaks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.script("")
    python = rig.folder / "home" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "ImportError: no $VLLM_API_KEY" >&2\nexit 1\n')
    python.chmod(0o755)
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)
    found = asked(rig, spec())["flags"]
    assert found == {"ok": False, "code": "check_failed", "detail": "ImportError: no …"}
    assert KEY not in str(rig.report())


def test_a_check_that_was_killed_says_so(rig: Rig) -> None:
    folder = rig.state.folder / "preflights" / "s1-p1"
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({"request": "s1-p1", "spec": None}))
    os.utime(folder / "request.json", (0, time.time() - 60))
    row = rig.report()["preflights"]["s1-p1"]
    assert (row["state"], [check["code"] for check in row["checks"]]) == (
        "broken_off",
        ["check_broken_off"],
    )
    assert asked(rig, spec())["weights"] == OK  # asked again, it is done again


@pytest.mark.parametrize("request_name", ["", "../x", "a/b", "a\n", "x" * 101])
def test_a_hostile_request_name_does_nothing(rig: Rig, request_name: str) -> None:
    preflight.begin(rig.state, request=request_name, spec=spec().to_json())
    assert rig.report()["preflights"] == {}


Usage = namedtuple("Usage", "total used free")


def test_a_full_state_folder(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(2**40, 2**40, 2**20))
    rig.host.state.mkdir(exist_ok=True)
    found = preflight.check_disk(rig.host, spec())
    assert (found["code"], Path(found["detail"].split(":")[0])) == ("disk_short", rig.host.state)
