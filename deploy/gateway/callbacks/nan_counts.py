"""A callback of LiteLLM: counts what it refuses and what fails, by key, name and day (UTC), and
marks the keys whose calls have just ended.

LiteLLM's own totals leave failures out with `disable_error_logs`, and would not tell a limit a
minute from one in parallel. Here are numbers only: a hash in Redis for each day, whose fields are
`token|name|kind`. The name is one that the gateway has, or empty: a caller may write anything as
`model`. Callers whose key the gateway does not know are not counted.

Callers who leave before the first word of the answer are counted by the gate, if LiteLLM does not
count the call: see nan_leaving.py.

The marks (a sorted set, token by time) let the product ask for the totals of those keys only: a
day of all keys takes LiteLLM more than a millisecond for each.

Nothing depends on it: without Redis, or when it is slow, the refusal goes out uncounted.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server
from nan_leaving import counted

KEPT_SECONDS: Final = 14 * 24 * 3600
PATIENCE_SECONDS: Final = 0.2
MARKED_SECONDS: Final = 3600
MINUTE_SECONDS: Final = 60
LIMITS: Final = ("requests", "max_parallel_requests")


class Counts(CustomLogger):
    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Runs beside LiteLLM's own counting, after the answer."""
        counted(kwargs.get("litellm_call_id"))
        logged = kwargs.get("standard_logging_object") or {}
        token = (logged.get("metadata") or {}).get("user_api_key_hash")
        if token:
            with suppress(Exception):
                await asyncio.wait_for(mark(token), PATIENCE_SECONDS)

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        kind = kind_of(original_exception)
        token, owner = user_api_key_dict.api_key, user_api_key_dict.user_id
        if kind and token and owner:
            field = f"{token}|{name_of(request_data.get('model'))}|{kind}"
            # A failing count must not become a failing answer.
            with suppress(Exception):
                await asyncio.wait_for(count(field), PATIENCE_SECONDS)


def kind_of(error: Exception) -> str:
    """Which limit refused, or `failed` for what is not the caller's fault; else empty."""
    status = getattr(error, "status_code", None)
    if status == 429:
        limit = (getattr(error, "headers", None) or {}).get("rate_limit_type")
        return limit if limit in LIMITS else ""
    return "failed" if isinstance(status, int) and status >= 500 else ""


def name_of(called: Any) -> str:
    router = proxy_server.llm_router
    known = isinstance(called, str) and router is not None and called in router.model_names
    return called if known and "|" not in called else ""


async def count(field: str) -> None:
    cache = proxy_server.redis_usage_cache
    if cache is None:
        return
    day = f"nan:refused:{datetime.now(UTC).date().isoformat()}"
    async with cache.init_async_client().pipeline(transaction=False) as pipe:
        pipe.hincrby(day, field, 1)
        pipe.expire(day, KEPT_SECONDS)
        await pipe.execute()


async def left(key: str, called: Any) -> None:
    """Her key was let in: otherwise there would have been another answer."""
    field = f"{token_of(key)}|{name_of(called)}|left"
    with suppress(Exception):
        await asyncio.wait_for(count(field), PATIENCE_SECONDS)


def token_of(key: str) -> str:
    """As LiteLLM keeps keys."""
    return hashlib.sha256(key.encode()).hexdigest()


async def resets_in(key: str) -> int | None:
    """Seconds until the key's minute begins anew, by LiteLLM's own counter; None if it can't be
    read. The product's page reads the same (inference/usage/counters.py)."""
    with suppress(Exception):
        began = await asyncio.wait_for(minute_began(key), PATIENCE_SECONDS)
        # The beginning is kept in whole seconds, cut off: the minute ends up to one later.
        left = math.ceil(began + 1 + MINUTE_SECONDS - time.time())
        return max(1, min(MINUTE_SECONDS, left))
    return None


async def minute_began(key: str) -> float:
    cache = proxy_server.redis_usage_cache
    return float(await cache.init_async_client().get(f"{{api_key:{token_of(key)}}}:window"))


async def mark(token: str) -> None:
    cache = proxy_server.redis_usage_cache
    if cache is None:
        return
    now = time.time()
    async with cache.init_async_client().pipeline(transaction=False) as pipe:
        pipe.zadd("nan:used", {token: now})
        pipe.zremrangebyscore("nan:used", "-inf", now - MARKED_SECONDS)
        pipe.expire("nan:used", MARKED_SECONDS)
        await pipe.execute()


callback = Counts()
