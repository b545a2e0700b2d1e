"""The catalogue as a file: a list of models with what their engines must be told.

[{"slug": "qwen…", "title": …, "repo": "owner/name", "revision": "40 hex digits", "kind": "chat",
  "licence": …, "weights_mib": …, "config": {the model's config.json}, "context": …, …}]
"""

import json
from pathlib import Path
from typing import Any

from django.conf import settings

from inference.models import CatalogModel

FOLDER = Path(settings.BASE_DIR) / "inference" / "catalogue"
FIRST = {"simulator": FOLDER / "local.json", "vllm": FOLDER / "cpu.json"}
"""What a new installation on one machine begins with: large models that are simulated, or small
ones that real vLLM serves on its CPU (made by deploy/engine/models.py)."""
OVERHEAD = 1.25
"""Weights and a quarter: the least memory with which a start makes sense. The engine takes all that
it is allowed to, so this decides only whether the card is free, not how much context fits."""


def read(file: Path) -> list[dict[str, Any]]:
    """Raises OSError or ValueError."""
    found = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(found, list):
        raise ValueError(f"{file} holds no list of models.")
    return found


def add(entry: dict[str, Any]) -> CatalogModel:
    """A new model, or the one of that name as it is. Raises django's ValidationError."""
    known = CatalogModel.objects.filter(name=entry["slug"]).first()
    if known:
        return known
    gpus = entry.get("gpus", 0 if entry["kind"] == "embedding" else 1)
    memory = int(entry["weights_mib"] * OVERHEAD / gpus) if gpus else 0
    model = CatalogModel(
        name=entry["slug"],
        title=entry["title"],
        kind=entry["kind"],
        repo=entry["repo"],
        revision=entry["revision"],
        licence=entry["licence"],
        weights_mib=entry["weights_mib"],
        config=entry["config"],
        gpus_needed=gpus,
        memory_mib=entry.get("memory_mib", memory),
        context_length=entry["context"],
        max_output=entry["max_output"],
        capabilities=entry["capabilities"],
        flags=entry["flags"],
        environment=entry.get("environment", {}),
        load_seconds=entry["load_seconds"],
    )
    model.full_clean()
    model.save()
    return model
