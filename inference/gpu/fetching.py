"""Fetching weights at a pinned commit, long before an engine needs them."""

import hashlib
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from inference.excerpt import excerpt
from inference.gpu import background, kinds, logtail, programs, weights
from inference.gpu.host import Host
from inference.gpu.spec import is_commit, is_repository
from inference.gpu.state import HostState, read_json

_PERCENT = re.compile(r"(\d{1,3})%")
# Engines write logs and compiled kernels on the same disk.
SPARE_MIB = 2048


def begin(host: Host, state: HostState, *, repo: str, revision: str, disk_mib: int) -> None:
    """Nothing to do while it runs or when all is there; after a failure it goes on."""
    if not (is_repository(repo) and is_commit(revision)):
        return
    folder = folder_of(state, repo, revision)
    request = {"repo": repo, "revision": revision, "disk_mib": max(0, int(disk_mib))}
    if folder.exists() and background.state(folder) == "running":
        return
    if _succeeded(folder) and not _problem(host, folder, request):
        return
    background.begin("fetch", folder, request)


def folder_of(state: HostState, repo: str, revision: str) -> Path:
    key = hashlib.sha256(f"{repo}@{revision}".encode()).hexdigest()[:24]
    return state.folder / "fetches" / key


def sizes(state: HostState, repo: str, revision: str) -> dict[str, int] | None:
    """The hub's list of files, if this host fetched them."""
    found = read_json(folder_of(state, repo, revision) / "progress.json") or {}
    return found.get("sizes")


def run(host: Host, folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """In the background process. `disk_mib` is checked first: a full disk harms what runs."""
    weights.drop_remnants(host.hf_home, request["repo"])
    here = weights.bytes_here(host.hf_home, request["repo"], since=time.time()) // 2**20
    host.hf_home.mkdir(parents=True, exist_ok=True)
    free = weights.free_mib(host.hf_home)
    whole = kinds.disk_mib(host, request["disk_mib"])
    missing = max(0, whole - here) + SPARE_MIB * bool(whole)
    if free < missing:
        return _failed("disk_short", f"{missing} MiB needed, {free} MiB free")
    environment = kinds.environment(host)
    del environment["HF_HUB_OFFLINE"]
    environment |= {"HF_TOKEN": host.hub_token} if host.hub_token else {}
    environment |= {"HF_ENDPOINT": host.hub_url} if host.hub_url else {}
    command = [*kinds.fetch(host), request["repo"], request["revision"]]
    if host.kind != "simulator":
        command.append(str(folder / "progress.json"))
    if programs.carry_out(command, environment=environment, seconds=None).returncode:
        said = read_json(folder / "progress.json") or {}
        detail = said.get("detail") or "; ".join(logtail.tail(folder / "output.log")[-1:])
        return _failed(said.get("code") or "fetch_failed", logtail.redacted(detail, host.secrets))
    problem = _problem(host, folder, request)
    return _failed("weights_missing", problem) if problem else {"state": "done", "percent": 100}


def look(host: Host, folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Its row in a report; `at`: when it ended."""
    now = background.state(folder)
    if now == "done":
        found: dict[str, Any] = {"percent": 0, "code": "", "detail": ""}
        found |= read_json(folder / "result.json") or {}
        with suppress(FileNotFoundError):  # it is being fetched anew
            found["at"] = (folder / "result.json").stat().st_mtime
        return found
    percent = _percent(host, folder, request)
    if now == "broken_off":
        return {"state": "failed", "percent": percent, "code": "fetch_broken_off", "detail": ""}
    return {"state": "running", "percent": percent, "code": "", "detail": ""}


def _percent(host: Host, folder: Path, request: dict[str, Any]) -> int:
    """Below 100 until it is done."""
    if host.kind == "simulator":
        said = [found[1] for line in logtail.tail(folder / "output.log")
                if (found := _PERCENT.search(line))]  # fmt: skip
        return min(99, int(said[-1])) if said else 0
    progress = read_json(folder / "progress.json") or {}
    total = progress.get("total") or request["disk_mib"] * 2**20
    since = (folder / "request.json").stat().st_mtime
    here = weights.bytes_here(host.hf_home, request["repo"], since=since)
    return min(99, 100 * here // total) if total else 0


def _succeeded(folder: Path) -> bool:
    found = read_json(folder / "result.json")
    return isinstance(found, dict) and found.get("state") == "done"


def _problem(host: Host, folder: Path, request: dict[str, Any]) -> str:
    known = (read_json(folder / "progress.json") or {}).get("sizes")
    snapshot = weights.snapshot(host.hf_home, request["repo"], request["revision"])
    return weights.problem(snapshot, sizes=known)


def _failed(code: str, detail: str) -> dict[str, Any]:
    return {"state": "failed", "percent": 0, "code": code, "detail": excerpt(detail, 300)}
