"""Which model is meant: a name without files, a folder, or a repository in the hub's cache."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.simulator import hub
from inference.simulator.flags import Options

_LENGTH_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
)  # fmt: skip
_GENERATE = ("ForCausalLM", "ForConditionalGeneration")
_NOT_CACHED = (
    "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot "
    "folder for the specified revision on the local disk and outgoing traffic has been disabled. "
    "To enable repo look-ups and downloads online, pass 'local_files_only=False' as input."
)
_NO_FOLDER = (
    "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' "
    "or 'namespace/repo_name': '{}'. Use `repo_type` argument if needed."
)


@dataclass(frozen=True, kw_only=True)
class Model:
    names: tuple[str, ...]
    """Every name by which `SIM_FAULTS` may mean this engine."""
    folder: Path | None = None
    missing: str | None = None
    """vLLM's words when the files can't be had."""

    @classmethod
    def of(cls, options: Options, environ: Mapping[str, str]) -> "Model":
        names = tuple(dict.fromkeys((*options.served_names, *_names(options.model))))
        if options.model.startswith(("/", "./", "../")):
            there = Path(options.model).is_dir()
            missing = None if there else _NO_FOLDER.format(options.model)
            return cls(names=names, folder=Path(options.model) if there else None, missing=missing)
        if "/" not in options.model or not _is_offline(environ):
            return cls(names=names)
        folder = hub.find(hub.hub_folder(environ), options.model, options.revision or "main")
        return cls(names=names, folder=folder, missing=None if folder else _NOT_CACHED)

    def at(self, folder: Path) -> "Model":
        """The same, with its files where the caller found them."""
        missing = None if folder.is_dir() else _NO_FOLDER.format(folder)
        return Model(names=self.names, folder=None if missing else folder, missing=missing)

    @property
    def context(self) -> int | None:
        """The length that the configuration allows, where there is one."""
        config = _json(self.folder / "config.json") if self.folder else {}
        both = {**config, **(config.get("text_config") or {})}
        return min((int(both[key]) for key in _LENGTH_KEYS if both.get(key)), default=None)

    def runner(self, chosen: str) -> str:
        """`generate` or `pooling`, each with routes of its own; empty where files say neither."""
        if chosen != "auto" or self.folder is None:
            return chosen.removeprefix("auto")
        found = " ".join(_json(self.folder / "config.json").get("architectures") or ())
        if not found:
            return ""
        return "generate" if found.endswith(_GENERATE) else "pooling"

    def chat_template(self) -> str | None:
        """The model's own."""
        if self.folder is None:
            return None
        file = self.folder / "chat_template.jinja"
        if file.is_file():
            return file.read_text()
        template = _json(self.folder / "tokenizer_config.json").get("chat_template")
        return template if isinstance(template, str) else None


def _is_offline(environ: Mapping[str, str]) -> bool:
    """Only a cache that was named is asked; nobody's own cache is meant."""
    named = environ.get("HF_HOME") or environ.get("HF_HUB_CACHE")
    return environ.get("HF_HUB_OFFLINE") in ("1", "true", "True", "ON", "YES") and bool(named)


def _names(model: str) -> Iterator[str]:
    """`org/name` and `name`, also out of a snapshot's path."""
    yield model
    for part in Path(model).parts:
        if part.startswith("models--"):
            model = part.removeprefix("models--").replace("--", "/")
            yield model
    yield Path(model).name


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
