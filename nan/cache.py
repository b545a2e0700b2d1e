"""The cache: Redis, which may be away for a moment without breaking a page."""

from collections.abc import Callable
from typing import Any

import structlog
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

MISSING = object()


def _fail_open(name: str, fallback: Any) -> Callable[..., Any]:
    operation = getattr(RedisCache, name)

    def attempt(self: RedisCache, *args: Any, **kwargs: Any) -> Any:
        try:
            return operation(self, *args, **kwargs)
        except (RedisError, OSError) as error:
            log.warning("cache_unavailable", operation=name, error=type(error).__name__)
            return fallback

    return attempt


class FailOpenRedisCache(RedisCache):
    """Every operation on an unreachable Redis is a miss.

    What is kept here (rate limits, counts for pages) may be lost: while Redis is down, limits on
    sign-in attempts do not count. That is chosen over a site on which nobody can sign in.
    """

    add = _fail_open("add", True)
    _get = _fail_open("get", MISSING)
    set = _fail_open("set", None)
    touch = _fail_open("touch", False)
    delete = _fail_open("delete", False)
    get_many = _fail_open("get_many", {})
    set_many = _fail_open("set_many", [])
    delete_many = _fail_open("delete_many", None)
    has_key = _fail_open("has_key", False)
    clear = _fail_open("clear", False)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """A miss is the caller's default, here as anywhere."""
        value = self._get(key, default, version)
        return default if value is MISSING else value

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """A counter that can't be read is a missing one, which callers expect as ValueError."""
        try:
            return super().incr(key, delta, version)
        except (RedisError, OSError):
            raise ValueError(f"Key '{key}' not found") from None
