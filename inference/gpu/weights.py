"""Models' weights on this host, in Hugging Face's cache layout below HF_HOME.

    hub/models--ORG--NAME/snapshots/COMMIT/FILE → ../../blobs/ETAG

https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

import json
import re
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from inference.gpu.flags import REVISION

INCOMPLETE = ".incomplete"
# A fetch that lives writes all the time; somebody else's may be at work in the same cache.
REMNANT_SECONDS = 600
_REPO_FOLDER = re.compile(r"models--([A-Za-z0-9_.-]+?)--([A-Za-z0-9_.-]+)", re.ASCII)
_HEADER_BYTES = 100 * 1024 * 1024
_KINDS = ("*.safetensors", "*.bin", "*.gguf", "*.pt", "*.pth")


def repository(hf_home: Path, repo: str) -> Path:
    return hf_home / "hub" / f"models--{repo.replace('/', '--')}"


def snapshot(hf_home: Path, repo: str, revision: str) -> Path:
    return repository(hf_home, repo) / "snapshots" / revision


def problem(folder: Path, *, sizes: dict[str, int] | None = None) -> str:
    """What is wrong with a snapshot; empty if it is whole.

    `sizes`: the hub's own list of files, known where the weights were fetched by this host.
    Otherwise the index, the links, and the length that each safetensors file says it has.
    """
    if not folder.is_dir():
        return "not on this host"
    if not (folder / "config.json").is_file():
        return "config.json is missing"
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and not path.exists():
            return f"{path.name} is missing"
        if path.suffix == ".safetensors" and not _has_its_length(path):
            return f"{path.name} is cut short"
    for name, size in (sizes or {}).items():
        if not (folder / name).is_file() or (folder / name).stat().st_size != size:
            return f"{name} is missing or cut short"
    return _missing_shard(folder)


def present(hf_home: Path) -> list[str]:
    """`org/name@commit` of every snapshot that looks whole; cheap enough for each report."""
    return sorted(
        f"{repo}@{folder.name}"
        for repo, folder in _snapshots(hf_home)
        if (folder / "config.json").is_file() and not _missing_shard(folder)
    )


def bytes_here(hf_home: Path, repo: str, *, since: float) -> int:
    """Really on disk: whole files, and those still coming that were written after `since`."""
    total = 0
    for file in _blobs(hf_home, repo):
        with suppress(OSError):
            found = file.stat()
            if file.suffix != INCOMPLETE or found.st_mtime >= since:
                total += min(found.st_size, found.st_blocks * 512)
    return total


def free_mib(folder: Path) -> int:
    """On the disk where `folder` is or will be."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free // 2**20


def drop_remnants(hf_home: Path, repo: str) -> None:
    """Of fetches that were killed: huggingface_hub 2 neither continues nor removes them."""
    for file in _blobs(hf_home, repo):
        with suppress(OSError):
            if file.suffix == INCOMPLETE and file.stat().st_mtime < time.time() - REMNANT_SECONDS:
                file.unlink()


def _blobs(hf_home: Path, repo: str) -> list[Path]:
    blobs = repository(hf_home, repo) / "blobs"
    return sorted(blobs.iterdir()) if blobs.is_dir() else []


def _snapshots(hf_home: Path) -> Iterator[tuple[str, Path]]:
    for folder in (hf_home / "hub").glob("models--*/snapshots/*"):
        name = _REPO_FOLDER.fullmatch(folder.parent.parent.name)
        if name and REVISION.fullmatch(folder.name):
            yield f"{name[1]}/{name[2]}", folder


def _missing_shard(folder: Path) -> str:
    indexes = sorted(folder.glob("*.index.json"))
    for index in indexes:
        try:
            shards: dict[str, Any] = json.loads(index.read_text())["weight_map"]
        except (OSError, ValueError, KeyError, TypeError):
            return f"{index.name} can't be read"
        for shard in sorted(set(shards.values())):
            if not (folder / str(shard)).is_file():
                return f"{shard} is missing"
    if indexes or any(any(folder.glob(kind)) for kind in _KINDS):
        return ""
    return "no weights in it"


def _has_its_length(file: Path) -> bool:
    """Eight bytes of header length, the header, then the tensors up to the greatest offset.

    https://huggingface.co/docs/safetensors/index#format
    """
    try:
        with file.open("rb") as content:
            length: int = struct.unpack("<Q", content.read(8))[0]
            if length > _HEADER_BYTES:
                return False
            header = json.loads(content.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        expected: int = 8 + length + max(ends, default=0)
        return file.stat().st_size == expected
    except (OSError, ValueError, KeyError, TypeError, struct.error, AttributeError):
        return False
