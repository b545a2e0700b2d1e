"""Fetching weights through huggingface_hub from a hub of our own."""

import json
import os
import shutil
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference.gpu import background, fetching, weights
from tests.fakes.hub import FakeHub, etag
from tests.inference.gpu.rig import Rig
from tests.waiting import wait_until

REPO, REVISION = "example/Real-1B", "a" * 40
NAME = f"{REPO}@{REVISION}"
TOKEN = "hf_thetokenofthehub0123456789"


def shard(size: int) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + os.urandom(size)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    # Of different sizes, so that not all of those that come at once end at once.
    sizes = {f"model-{number:02}.safetensors": 170_000 + 20_000 * number for number in range(1, 13)}
    shards = {name: shard(size) for name, size in sizes.items()}
    index = {"weight_map": {f"layer.{name}": name for name in shards}}
    files = {"config.json": b"{}", "model.safetensors.index.json": json.dumps(index).encode()}
    files |= shards
    with FakeHub(REPO, REVISION, files) as running:
        yield running


@pytest.fixture
def host(rig: Rig, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """`vllm`, with this Python as the one that holds huggingface_hub."""
    rig.script("")
    python = rig.folder / "home" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    rig.environ |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)
    return rig


def begin(rig: Rig, *, revision: str = REVISION, disk_mib: int = 0) -> None:
    with rig.state.locked():
        fetching.begin(rig.host, rig.state, repo=REPO, revision=revision, disk_mib=disk_mib)


def wait(rig: Rig, name: str = NAME, seconds: float = 40) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while (found := rig.report()["fetches"][name])["state"] == "running":
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return dict(found)


def test_weights_come_at_the_pinned_commit_with_progress(host: Rig, hub: FakeHub) -> None:
    hub.bytes_per_second = 600_000
    begin(host)
    begin(host)  # a message that came twice
    percents = []
    while (found := host.report()["fetches"][NAME])["state"] == "running":
        percents.append(found["percent"])
        time.sleep(0.05)
    assert time.time() - found.pop("at") < 10
    assert found == {"state": "done", "percent": 100, "code": "", "detail": ""}
    assert percents == sorted(percents)
    assert len({percent for percent in percents if 0 < percent < 100}) > 2
    assert NAME in host.report()["weights"]
    snapshot = weights.snapshot(host.host.hf_home, REPO, REVISION)
    assert {file.name: file.read_bytes() for file in snapshot.iterdir()} == hub.files
    assert hub.sent == {name: len(content) for name, content in hub.files.items()}
    assert f"Bearer {TOKEN}" in hub.tokens
    assert TOKEN not in str(host.report())


def test_asked_again_it_fetches_nothing(host: Rig, hub: FakeHub) -> None:
    begin(host)
    wait(host)
    calls = len(hub.calls)
    begin(host)
    assert wait(host)["state"] == "done"
    assert len(hub.calls) == calls


def test_killed_it_keeps_what_was_whole(host: Rig, hub: FakeHub) -> None:
    hub.bytes_per_second = 600_000
    begin(host)
    blobs = weights.repository(host.host.hf_home, REPO) / "blobs"
    wait_until(lambda: len(_whole(blobs, hub)) >= 5, seconds=40, every=0.02)
    hub.bytes_per_second = 1_000  # what is on its way now stays so
    wait_until(lambda: any(blobs.glob("*.incomplete")), seconds=40, every=0.02)
    whole = _whole(blobs, hub)
    kill_fetch(fetching.folder_of(host.state, REPO, REVISION))
    os.utime(fetching.folder_of(host.state, REPO, REVISION) / "request.json", (0, time.time() - 60))
    found = host.report()["fetches"][NAME]
    assert (found["state"], found["code"]) == ("failed", "fetch_broken_off")
    assert NAME not in host.report()["weights"]
    remnants = list(blobs.glob("*.incomplete"))
    assert remnants
    for file in remnants:
        os.utime(file, (0, time.time() - weights.REMNANT_SECONDS - 1))
    hub.bytes_per_second = 0
    before = dict(hub.sent)
    begin(host)
    assert wait(host)["state"] == "done"
    assert {name for name in whole if hub.sent[name] != before[name]} == set()
    assert list(blobs.glob("*.incomplete")) == []


def _whole(blobs: Path, hub: FakeHub) -> set[str]:
    there = {file.name for file in blobs.glob("*")} if blobs.is_dir() else set()
    return {name for name, content in hub.files.items() if etag(content) in there}


def kill_fetch(folder: Path) -> None:
    """Returns when they are gone, and their lock with them."""
    killed = []
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join(process.cmdline()):
                process.kill()
                killed.append(process)
        except psutil.Error:
            continue
    psutil.wait_procs(killed, timeout=10)


def test_a_connection_that_breaks_is_taken_up_again(host: Rig, hub: FakeHub) -> None:
    hub.cut_after = 100_000
    begin(host)
    found = wait(host)
    if found["state"] == "failed":
        assert found["code"] == "hub_unreachable"
        begin(host)
        found = wait(host)
    assert found["state"] == "done"
    assert hub.cut == {name for name in hub.files if name.startswith("model-")}


def test_a_short_disk_is_said_before_a_byte_comes(host: Rig, hub: FakeHub) -> None:
    begin(host, disk_mib=10**8)
    found = wait(host)
    assert (found["state"], found["code"]) == ("failed", "disk_short")
    assert "100002048 MiB needed" in found["detail"]
    assert hub.calls == []


def test_what_the_hub_has_not_is_named(host: Rig) -> None:
    begin(host, revision="b" * 40)
    assert wait(host, f"{REPO}@{'b' * 40}")["code"] == "revision_missing"


def test_a_gated_model_is_named_and_the_token_is_not(host: Rig, hub: FakeHub) -> None:
    hub.gated = True
    begin(host)
    found = wait(host)
    assert found["code"] == "repo_gated"
    assert TOKEN not in str(found)


def test_no_hub_is_said(host: Rig, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    begin(host)
    assert wait(host)["code"] == "hub_unreachable"


@pytest.mark.parametrize("repo", ["../x", "a/../../b", "-x/y", "a/b\n"])
def test_a_hostile_name_fetches_nothing(host: Rig, repo: str) -> None:
    fetching.begin(host.host, host.state, repo=repo, revision=REVISION, disk_mib=0)
    assert host.report()["fetches"] == {}


def _is_locked(folder: Path) -> bool:
    lock = background.take_lock(folder)
    if lock is not None:
        lock.close()
    return lock is None


def test_two_never_run_at_once(host: Rig, hub: FakeHub) -> None:
    hub.bytes_per_second = 600_000
    begin(host)
    folder = fetching.folder_of(host.state, REPO, REVISION)
    wait_until(lambda: _is_locked(folder), seconds=10, every=0.02)
    background.begin("fetch", folder, {"repo": REPO, "revision": REVISION, "disk_mib": 0})
    assert wait(host)["state"] == "done"
    assert hub.sent == {name: len(content) for name, content in hub.files.items()}


def test_simulated_weights_come_from_the_simulator(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in rig.environ.items():
        monkeypatch.setenv(name, value)
    begin(rig)
    assert wait(rig)["state"] == "done"
    assert NAME in rig.report()["weights"]


def test_damaged_weights_are_fetched_again(host: Rig, hub: FakeHub) -> None:
    begin(host)
    wait(host)
    blob = (weights.snapshot(host.host.hf_home, REPO, REVISION) / "model-02.safetensors").resolve()
    shutil.copy(blob, host.folder / "kept")
    os.truncate(blob, 1000)
    assert weights.problem(blob.parent.parent / "snapshots" / REVISION) != ""
    blob.unlink()
    begin(host)
    assert wait(host)["state"] == "done"
    assert blob.read_bytes() == (host.folder / "kept").read_bytes()
