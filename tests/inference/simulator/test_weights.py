"""Made-up weights in the hub's cache, and the check of a command line before a start."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference.simulator import hub
from tests.inference.simulator.engines import ROOT, end_of, running, spawn

REPO, REVISION = "example/model", "0123456789" * 4
OFFLINE = {"HF_HUB_OFFLINE": "1"}
OK = {"ok": True, "code": "", "detail": ""}


def tool(module: str, *words: str, said: str = "", **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", f"inference.simulator.{module}", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        input=said,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A cache with one model of 4096 tokens in it."""
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "x", "text_config": {"max_position_embeddings": 4096}}')
    tool("weights", REPO, REVISION, "--config", str(config), HF_HOME=str(tmp_path))
    return tmp_path


def verdicts(home: Path, *argv: str, model_path: str = "", **environment: str) -> dict[str, Any]:
    asked = json.dumps({"argv": argv, "model_path": model_path})
    found = json.loads(tool("check", said=asked, HF_HOME=str(home), **OFFLINE, **environment))
    return {verdict.pop("name"): verdict for verdict in found}


def test_layout(home: Path) -> None:
    repository = home / "hub" / "models--example--model"
    folder = repository / "snapshots" / REVISION
    assert (repository / "refs" / "main").read_text() == REVISION
    assert hub.find(home / "hub", REPO, REVISION) == folder
    assert hub.find(home / "hub", REPO, "main") == folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer_config.json",
    ]
    for path in folder.iterdir():
        assert not path.readlink().is_absolute()
        assert path.resolve().parent == repository / "blobs"
    assert [*home.glob("hub/*")] == [repository]


def test_progress_and_failure(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    words = (REPO, REVISION, str(progress))
    with pytest.raises(subprocess.CalledProcessError):
        tool("weights", *words, HF_HOME=str(tmp_path), SIM_FETCH_FAILS="revision_missing")
    assert json.loads(progress.read_text())["code"] == "revision_missing"
    said = tool("weights", *words, HF_HOME=str(tmp_path))
    assert "Fetching 4 files:  50%| 2/4" in said
    noted, folder = json.loads(progress.read_text()), Path(said.splitlines()[-1])
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert noted == {"total": sum(sizes.values()), "sizes": sizes}


def test_not_whole_without_a_blob_or_a_shard(home: Path) -> None:
    folder = hub.snapshot_folder(home / "hub", REPO, REVISION)
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    assert not hub.is_whole(folder)
    index.unlink()
    assert hub.is_whole(folder)
    (folder / "model.safetensors").resolve().unlink()
    assert hub.find(home / "hub", REPO, REVISION) is None


@pytest.mark.parametrize(
    ("repo", "revision"), [("../x/y", REVISION), ("model", REVISION), (REPO, "main"), (REPO, "")]
)
def test_names_that_lead_elsewhere(home: Path, repo: str, revision: str) -> None:
    with pytest.raises(ValueError, match="wanted"):
        hub.snapshot_folder(home, repo, revision)


def test_offline_start_from_the_cache(home: Path) -> None:
    with running("--revision", REVISION, HF_HOME=str(home), **OFFLINE) as engine:
        card = engine.http.get("/v1/models").json()["data"][0]
        assert card["max_model_len"] == 4096
    ended, err = end_of(spawn("--revision", "f" * 40, HF_HOME=str(home), **OFFLINE))
    assert (ended, "LocalEntryNotFoundError: Cannot find" in err) == (1, True)


def test_verdicts_on_a_good_command_line(home: Path) -> None:
    found = verdicts(home, REPO, "--revision", REVISION, "--max-model-len", "4096")
    assert found == dict.fromkeys(["flags", "parsers", "template", "context"], OK)


@pytest.mark.parametrize(
    ("words", "name", "code"),
    [
        (["--no-such-flag"], "flags", "flag_refused"),
        (["--speculative-config", "{x"], "flags", "flag_value"),
        (["--enable-auto-tool-choice"], "flags", "flag_value"),
        (["--enable-auto-tool-choice", "--tool-call-parser", "x"], "parsers", "parser_unknown"),
        (["--reasoning-parser", "x"], "parsers", "parser_unknown"),
        (["--chat-template", "/nowhere.jinja"], "template", "template_bad"),
        (["--chat-template", "{% if x"], "template", "template_bad"),
        (["--max-model-len", "4097"], "context", "context_too_long"),
    ],
)
def test_verdicts_on_a_bad_one(home: Path, words: list[str], name: str, code: str) -> None:
    found = verdicts(home, REPO, "--revision", REVISION, *words)
    assert {key: verdict["code"] for key, verdict in found.items() if not verdict["ok"]} == {
        name: code
    }


def test_verdicts_without_files(home: Path) -> None:
    found = verdicts(home, REPO, "--revision", "f" * 40)
    assert {name: verdict["code"] for name, verdict in found.items()} == {
        "flags": "",
        "parsers": "",
        "weights": "weights_missing",
    }
    elsewhere = verdicts(home, "/gone", model_path="/gone")
    assert elsewhere["weights"]["code"] == "weights_missing"
    here = str(hub.snapshot_folder(home / "hub", REPO, REVISION))
    assert verdicts(home, here, model_path=here)["context"] == OK


@pytest.mark.parametrize(
    ("fault", "name", "code"),
    [
        ("refuse-flag", "flags", "flag_refused"),
        ("refuse-start", "parsers", "parser_unknown"),
        ("bad-template", "template", "template_bad"),
    ],
)
def test_verdicts_with_a_fault(home: Path, fault: str, name: str, code: str) -> None:
    words = (REPO, "--revision", REVISION)
    assert verdicts(home, *words, SIM_FAULTS=f"{REPO}:{fault}")[name]["code"] == code
    assert verdicts(home, *words, SIM_FAULTS=f"other/model:{fault}")[name] == OK
