"""The gateway's counters in Redis: what is going on this minute, and what was refused.

Read only. The limiter's own keys are LiteLLM's (proxy/hooks/parallel_request_limiter_v3.py), those
of refusals are written by deploy/gateway/callbacks/nan_counts.py; tests/gateway/test_counts.py
holds both to the pinned version. They are not ours to rely on: without Redis a page says that it
does not know, and no day of usage waits.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import redis
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

log = structlog.get_logger(__name__)

WINDOW = 60
SLOT_SECONDS = 3600  # a slot whose holder died counts no longer than this
SECONDS = 0.3  # a page waits no longer
KINDS = ("requests", "max_parallel_requests", "failed", "left")


class Refused(NamedTuple):
    """In the order of the fields that `inference.usage.pull` writes."""

    refused_rpm: int
    refused_parallel: int
    failed: int
    left_early: int = 0


@dataclass(frozen=True)
class Now:
    """What one key is doing. `resets_in`: seconds until its minute begins anew; 0 if none runs."""

    running: int
    asked: int
    resets_in: int


class CountersUnavailable(Exception):
    """Redis can't be read now."""


class GatewayCounters:
    def __init__(self, client: "redis.Redis") -> None:
        self._redis = client

    def now(self, tokens: Sequence[str]) -> list[Now]:
        """One trip. Refused requests count as asked too, as the gateway's limit has it."""
        at = time.time()
        pipe = self._redis.pipeline(transaction=False)
        for token in tokens:
            place = f"{{api_key:{token}}}"
            pipe.zcount(f"{place}:max_parallel_requests", at - SLOT_SECONDS, "+inf")
            pipe.mget(f"{place}:window", f"{place}:requests")
        found = _read(pipe.execute)
        return [_now(*found[i : i + 2], at=at) for i in range(0, len(found), 2)]

    def used_since(self, seconds: float) -> list[str]:
        """The gateway's ids of the keys of which a call has ended in the last `seconds`."""
        found = _read(lambda: self._redis.zrangebyscore("nan:used", time.time() - seconds, "+inf"))
        return [token.decode() for token in found]

    def refused(self, day: date) -> dict[tuple[str, str], Refused]:
        """By the gateway's id of the key and the public name; everything of that day."""
        found = _read(lambda: self._redis.hgetall(f"nan:refused:{day.isoformat()}"))
        counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(KINDS))
        for field, count in found.items():
            token, model, kind = field.decode().split("|")
            counts[token, model][KINDS.index(kind)] = int(count)
        return {place: Refused(*figures) for place, figures in counts.items()}


def _now(running: int, minute: list[bytes | None], *, at: float) -> Now:
    began, asked = (float(value) if value else 0.0 for value in minute)
    left = began + 1 + WINDOW - at  # it is kept in whole seconds, cut off
    return Now(running, int(asked), min(WINDOW, ceil(left))) if left > 0 else Now(running, 0, 0)


def _read(call: Any) -> Any:
    try:
        return call()
    except (redis.RedisError, ValueError) as error:
        log.warning("gateway_counters_unavailable", error=type(error).__name__)
        raise CountersUnavailable from None


@cache
def counters() -> GatewayCounters:
    """This process's, with connections kept."""
    options: dict[str, Any] = {
        "socket_timeout": SECONDS,
        "socket_connect_timeout": SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }
    return GatewayCounters(redis.Redis.from_url(settings.GATEWAY_REDIS_URL, **options))
