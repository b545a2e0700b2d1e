"""Handing a key from the gateway worker to its member's browser, once, and to nobody else.

The browser keeps the private half of an X25519 pair in a cookie, the row has the public half. The
worker seals the key to it and leaves it in Redis for ten minutes. So neither Redis nor Postgres
nor both together give the key away, and neither does the cookie alone.
"""

import base64
import binascii
import hashlib
from functools import cache
from typing import cast
from uuid import UUID

import redis
from django.conf import settings
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from redis.backoff import NoBackoff
from redis.retry import Retry


class RevealUnavailable(Exception):
    """Redis is away: a passing trouble."""

    code = "reveal_unavailable"
    maybe_done = True


class WrongBrowser(Exception):
    """The sealed key is there, but this browser does not hold the half that opens it."""


@cache
def _redis() -> "redis.Redis":
    """Tries once more at once, which is enough after a restart; a page must not wait longer."""
    return redis.Redis.from_url(
        str(settings.CACHES["default"]["LOCATION"]),
        socket_connect_timeout=1,
        socket_timeout=2,
        retry=Retry(NoBackoff(), 1),
    )


def _name(key_id: UUID, token: str) -> str:
    """Bound to the token, so that what a given-up attempt left can't be taken for the key."""
    return f"reveal:{key_id}:{token[:16]}"


def leave(key_id: UUID, token: str, value: str, public_key: bytes | memoryview) -> None:
    sealed = SealedBox(PublicKey(bytes(public_key))).encrypt(value.encode())
    try:
        _redis().set(_name(key_id, token), sealed, ex=settings.REVEAL_SECONDS)
    except (redis.RedisError, OSError):
        raise RevealUnavailable from None


def waiting(key_id: UUID, token: str) -> bool:
    try:
        return bool(_redis().exists(_name(key_id, token)))
    except (redis.RedisError, OSError):
        raise RevealUnavailable from None


def take(key_id: UUID, token: str, private_key: PrivateKey) -> str | None:
    """The key, if it waits and nobody else takes it at the same moment; then it is gone.

    Opened before it is deleted: a browser that can't open it must not destroy it.
    """
    name = _name(key_id, token)
    try:
        sealed = cast("bytes | None", _redis().get(name))
        if sealed is None:
            return None
        value = _open(sealed, private_key)
        if hashlib.sha256(value.encode()).hexdigest() != token:
            raise WrongBrowser
        return value if _redis().delete(name) == 1 else None
    except (redis.RedisError, OSError):
        raise RevealUnavailable from None


def look(key_id: UUID, token: str, private_key: PrivateKey) -> str | None:
    """As `take`, but it stays for the rest of its ten minutes: for who comes back in them."""
    try:
        sealed = cast("bytes | None", _redis().get(_name(key_id, token)))
    except (redis.RedisError, OSError):
        raise RevealUnavailable from None
    return None if sealed is None else _open(sealed, private_key)


def drop(key_id: UUID, token: str) -> None:
    """Nobody needs it any more. Redis forgets it by itself if this fails."""
    try:
        _redis().delete(_name(key_id, token))
    except (redis.RedisError, OSError):
        return


def _open(sealed: bytes, private_key: PrivateKey) -> str:
    try:
        return SealedBox(private_key).decrypt(sealed).decode()
    except (CryptoError, ValueError):
        raise WrongBrowser from None


def new_private_key() -> PrivateKey:
    return PrivateKey.generate()


def to_cookie(private_key: PrivateKey) -> str:
    return base64.urlsafe_b64encode(bytes(private_key)).decode().rstrip("=")


def from_cookie(text: str | None) -> PrivateKey | None:
    """None for an absent or mangled cookie; 43 characters hold the 32 bytes."""
    if not text or len(text) != 43:
        return None
    try:
        return PrivateKey(base64.urlsafe_b64decode(text + "="))
    except (binascii.Error, ValueError, TypeError, CryptoError):
        return None
