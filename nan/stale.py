"""A form that was opened before somebody else saved: it is not saved over her change unseen."""

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from django.db.models import Model

FIELD = "seen"
"""The hidden field; a request without it (a script's) says nothing about what it has seen."""


def digest(row: Model, names: Iterable[str]) -> str:
    """Of what a form shows of the row."""
    return mark([[name, getattr(row, name)] for name in names])


def mark(shown: Any) -> str:
    """Of whatever a page shows that decides what its button means."""
    return sha256(json.dumps(shown, default=str, sort_keys=True).encode()).hexdigest()[:16]


def changed_since(sent: Any, row: Model, names: Iterable[str]) -> bool:
    seen = sent.get(FIELD)
    return seen is not None and seen != digest(row, names)
