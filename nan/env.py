"""Reading settings from the environment: typed, with the remedy in the error."""

import os
from typing import Any
from urllib.parse import unquote, urlsplit


class Unset(Exception):
    """A variable that has no default is missing; the message names it and says what to do."""


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name)
    if value:
        return value
    if default is None:
        raise Unset(f"{name} is not set. Set it in the environment; .env.example explains it.")
    return default


def flag(name: str, default: bool = False) -> bool:
    return text(name, "1" if default else "0").lower() in {"1", "true", "yes", "on"}


def number(name: str, default: int) -> int:
    value = text(name, str(default))
    try:
        return int(value)
    except ValueError:
        raise Unset(f"{name} must be a whole number, not {value!r}.") from None


def postgres(name: str, *, pool_size: int) -> dict[str, Any]:
    """`postgresql://user:password@host:port/database` as a Django database setting.

    Each process holds at most `pool_size` connections, so that the sum over all processes can be
    kept below Postgres' max_connections. It waits at most three seconds for one, and not at all
    while the database is known to be away (nan/postgres/base.py). After an outage it is back within
    two seconds: the pool's own waits would grow to minutes, and a connection that broke meanwhile
    is noticed before a query is sent over it.
    """
    url = urlsplit(text(name))
    return {
        "ENGINE": "nan.postgres",
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": str(url.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "pool": {
                "min_size": 1,
                "max_size": pool_size,
                "timeout": 3,
                "reconnect_timeout": 2,
            },
            "connect_timeout": 3,
        },
    }


def redis(name: str, *, database: int) -> str:
    """The Redis URL with its database number replaced (0 broker and gateway, 1 cache)."""
    url = urlsplit(text(name))
    return url._replace(path=f"/{database}").geturl()


def mail(name: str) -> dict[str, Any]:
    """`smtp://user:password@host:587` (STARTTLS) or `smtps://…:465` as Django's e-mail settings."""
    url = urlsplit(text(name, "smtp://localhost:25"))
    return {
        "EMAIL_HOST": url.hostname or "localhost",
        "EMAIL_PORT": url.port or 25,
        "EMAIL_HOST_USER": unquote(url.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(url.password or ""),
        "EMAIL_USE_SSL": url.scheme == "smtps",
        "EMAIL_USE_TLS": url.scheme == "smtp" and url.port == 587,
    }
