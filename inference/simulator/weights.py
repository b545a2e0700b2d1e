"""Weights for an engine that needs none: a snapshot in the hub's cache, made on the spot.

    python -m inference.simulator.weights REPO REVISION [PROGRESS_FILE] [--config FILE]

Writes below HF_HOME, says how far it is, and exits 0. PROGRESS_FILE gets {"total", "sizes"} at
first, {"code", "detail"} after a failure. SIM_FETCH_SECONDS is the time it takes, SIM_FETCH_FAILS
the code with which it fails; a run that was broken off leaves nothing that looks whole.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from inference.simulator import hub

_CONFIG = {
    "architectures": ["SimulatedForCausalLM"],
    "model_type": "simulated",
    "max_position_embeddings": 131_072,
    "vocab_size": 32_000,
}
_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
)


def write(repo: str, revision: str, contents: dict[str, bytes], *, seconds: float = 0) -> Path:
    """The snapshot's folder."""
    cache = hub.hub_folder(os.environ)
    folder = hub.snapshot_folder(cache, repo, revision)
    if hub.is_whole(folder):
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        for done, (name, content) in enumerate(contents.items(), start=1):
            time.sleep(seconds / len(contents))
            (Path(made) / name).write_bytes(content)
            share = f"{100 * done // len(contents):3d}%| {done}/{len(contents)}"
            print(f"Fetching {len(contents)} files: {share}", flush=True)
        return hub.place(cache, repo, revision, Path(made))


def _files(config: dict[str, Any]) -> dict[str, bytes]:
    """The last one makes it whole. Its shape is that of a safetensors file without tensors."""
    return {
        "config.json": _json(config),
        "generation_config.json": _json({"temperature": 0.7}),
        "tokenizer_config.json": _json({"chat_template": _TEMPLATE}),
        "model.safetensors": struct.pack("<Q", 2) + b"{}",
    }


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode() + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.simulator.weights")
    parser.add_argument("repo")
    parser.add_argument("revision")
    parser.add_argument("progress", nargs="?", type=Path)
    parser.add_argument("--config", type=Path, help="the model's config.json")
    options = parser.parse_args()
    contents = _files(json.loads(options.config.read_text()) if options.config else _CONFIG)
    sizes = {name: len(content) for name, content in contents.items()}
    progress: dict[str, Any] = {"total": sum(sizes.values()), "sizes": sizes}
    _note(options.progress, progress)
    seconds = float(os.environ.get("SIM_FETCH_SECONDS") or 0)
    try:
        if code := os.environ.get("SIM_FETCH_FAILS"):
            raise OSError(code)
        print(write(options.repo, options.revision, contents, seconds=seconds))
    except (ValueError, OSError) as error:
        code = os.environ.get("SIM_FETCH_FAILS", "hub_unreachable")
        _note(options.progress, {**progress, "code": code, "detail": str(error)})
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _note(file: Path | None, content: dict[str, Any]) -> None:
    if file is not None:
        unfinished = file.with_name(f"{file.name}.new")
        unfinished.write_text(json.dumps(content))
        unfinished.replace(file)


if __name__ == "__main__":
    sys.exit(main())
