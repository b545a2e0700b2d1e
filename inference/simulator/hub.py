"""Hugging Face's cache, as its own library lays it out below HF_HOME.

    hub/models--ORG--NAME/refs/main             the commit
    hub/models--ORG--NAME/blobs/ETAG            the content, once
    hub/models--ORG--NAME/snapshots/COMMIT/FILE relative links to the blobs

Standard library only: deploy/engine/models.py uses it in vLLM's environment.
See https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_REVISION = re.compile(r"[0-9a-f]{40}")


def hub_folder(environ: Mapping[str, str]) -> Path:
    if hub := environ.get("HF_HUB_CACHE"):
        return Path(hub)
    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(environ.get("HF_HOME") or cache).expanduser() / "hub"


def snapshot_folder(hub: Path, repo: str, revision: str) -> Path:
    """Where it is or would be. Raises ValueError for names that could lead elsewhere."""
    if not _REPO.fullmatch(repo) or ".." in repo or "--" in repo:
        raise ValueError(f"{repo!r} is no repository: ORG/NAME is wanted.")
    if not _REVISION.fullmatch(revision):
        raise ValueError(f"{revision!r} is no commit: 40 hexadecimal digits are wanted.")
    return _repo_folder(hub, repo) / "snapshots" / revision


def find(hub: Path, repo: str, revision: str) -> Path | None:
    """The snapshot that a branch or a commit names, if it is here and whole."""
    named = _repo_folder(hub, repo) / "refs" / revision
    commit = named.read_text().strip() if named.is_file() else revision
    folder = _repo_folder(hub, repo) / "snapshots" / commit
    return folder if is_whole(folder) else None


def is_whole(folder: Path) -> bool:
    """A configuration, every link with its blob, and every shard that the index names."""
    if not (folder / "config.json").is_file():
        return False
    if not all(path.exists() for path in folder.rglob("*")):
        return False
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return any(folder.glob("*.safetensors"))
    shards: set[str] = set(json.loads(index.read_text())["weight_map"].values())
    return all((folder / shard).exists() for shard in shards)


def place(hub: Path, repo: str, revision: str, source: Path, *, branch: str = "main") -> Path:
    """Move the files of `source` into the cache; a snapshot appears whole or not at all."""
    folder = snapshot_folder(hub, repo, revision)
    repository = _repo_folder(hub, repo)
    for name in ("blobs", "refs", "snapshots"):
        (repository / name).mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f"{revision}.{uuid.uuid4().hex}.incomplete")
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        within = path.relative_to(source)
        blob = repository / "blobs" / _etag(path)
        path.replace(blob)
        link = unfinished / within
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, (folder / within).parent))
    if folder.exists():
        shutil.rmtree(folder)
    unfinished.rename(folder)
    (repository / "refs" / branch).write_text(revision)
    return folder


def _repo_folder(hub: Path, repo: str) -> Path:
    return hub / f"models--{repo.replace('/', '--')}"


def _etag(path: Path) -> str:
    """As the hub names blobs: big files by SHA-256, small ones by their Git object id."""
    content = path.read_bytes()
    if path.suffix in {".safetensors", ".gguf", ".bin"}:
        return hashlib.sha256(content).hexdigest()
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
