"""A callback of LiteLLM: counts what it refuses and what fails, by key, name and day (UTC).

LiteLLM's own totals leave failures out with `disable_error_logs`, and would not tell a limit a
minute from one in parallel. Here are numbers only: a hash in Redis for each day, whose fields are
`token|name|kind`. The name is one that the gateway has, or empty: a caller may write anything as
`model`. Callers whose key the gateway does not know are not counted.

Nothing depends on it: without Redis, or when it is slow, the refusal goes out uncounted.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server

KEPT_SECONDS: Final = 14 * 24 * 3600
PATIENCE_SECONDS: Final = 0.2
LIMITS: Final = ("requests", "max_parallel_requests")


class Counts(CustomLogger):
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


callback = Counts()
