"""Parallel slots that a killed gateway left taken in Redis."""

from __future__ import annotations

from typing import Any

PATTERN = "*:max_parallel_requests"


def release(redis: Any) -> int:
    """Give all parallel slots back; returns how many counters there were.

    LiteLLM counts a member's calls in Redis and counts down when each ends. After SIGKILL nobody
    counts down, and her five slots stay taken for up to an hour. For the first instance only:
    beside a running one this forgets open calls, so members briefly get more than five.
    """
    found = list(redis.scan_iter(match=PATTERN, count=1000))
    if found:
        redis.unlink(*found)
    return len(found)
