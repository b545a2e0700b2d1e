"""Secrets of the local stack: made at the first run, kept in one file of mode 600."""

import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from .state import write_atomically


def _token() -> str:
    return secrets.token_urlsafe(32)


def _api_key() -> str:
    return "sk-" + secrets.token_urlsafe(32)


MAKERS: Mapping[str, Callable[[], str]] = {
    "django_secret_key": lambda: secrets.token_urlsafe(50),
    "postgres_superuser": _token,
    "postgres_nan": _token,
    "postgres_litellm": _token,
    "valkey": _token,
    "litellm_master_key": _api_key,
    "litellm_salt_key": _api_key,
    "engine_api_key": _api_key,
}


class SecretsError(Exception):
    """The file is there but can't be used; making new secrets would lock the old data away."""


def load_or_make(file: Path) -> dict[str, str]:
    """The stored secrets; adds those that a newer version of the stack needs."""
    stored = _read(file)
    missing = {name: make() for name, make in MAKERS.items() if not stored.get(name)}
    if missing:
        stored.update(missing)
        write_atomically(file, json.dumps(stored, indent=2) + "\n", mode=0o600)
    file.chmod(0o600)
    return stored


def _read(file: Path) -> dict[str, str]:
    try:
        stored = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise SecretsError(_advice(file)) from error
    if not isinstance(stored, dict) or not all(isinstance(v, str) for v in stored.values()):
        raise SecretsError(_advice(file))
    return stored


def _advice(file: Path) -> str:
    return (
        f"{file} can't be read as JSON, so the local data can't be opened. Nothing was changed. "
        "Restore the file, or forget the local data with `make clean-data`."
    )
