"""Calls that their callers leave around the first word, each counted once: as answered or as left.

The moments are spread closely over the time in which the first word comes through, so that some
leave before the gateway has it, some after, and some while it is being passed on.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from inference.usage.counters import GatewayCounters
from tests.gateway.client import ROUTES, Gateway, Member, Models, body
from tests.gateway.conftest import Own
from tests.gateway.test_usage import APPEARS_WITHIN_SECONDS, metrics
from tests.waiting import wait_until

STREAMS = 60
AT_ONCE = 6
STEP = 0.006  # seconds between two that leave
PROMPT_TOKENS = 8  # of each call; as LiteLLM counts them where the engine has not said it


def request(host: str, member: Member, route: str, model: str) -> bytes:
    sent = json.dumps(body(route, model, stream=True)).encode()
    head = (
        f"POST {route} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {member.key}",
        "Content-Type: application/json",
        f"Content-Length: {len(sent)}",
    )
    return "\r\n".join([*head, "", ""]).encode() + sent


async def leave(url: str, asked: bytes, seconds: float | None) -> float:
    """After so many seconds, or with the first word; how long that took."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    began = time.monotonic()
    writer.write(asked)
    await writer.drain()
    if seconds is None:
        await reader.readuntil(b"Hello")
    else:
        await asyncio.sleep(seconds)
    writer.close()
    return time.monotonic() - began


async def leave_all(url: str, asked: bytes) -> None:
    """Few at a time, so that they meet the moment and not a gateway that is behind."""
    first_word = sorted([await leave(url, asked, None) for _ in range(AT_ONCE)])[AT_ONCE // 2]
    await asyncio.gather(*(leave(url, asked, first_word / 4) for _ in range(AT_ONCE)))
    for start in range(2 * AT_ONCE, STREAMS, AT_ONCE):
        offsets = ((n - STREAMS / 2) * STEP for n in range(start, start + AT_ONCE))
        await asyncio.gather(*(leave(url, asked, first_word + offset) for offset in offsets))


def run(task: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: tests in a browser leave this one's loop running."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, task).result()


@pytest.mark.parametrize("route", ROUTES)
def test_u4_who_leaves_around_the_first_word_is_counted_once(
    own_gateway: Own, gateway: Gateway, models: Models, route: str
) -> None:
    counters = GatewayCounters(redis.Redis(port=own_gateway.redis_port))

    def left() -> int:
        found = counters.refused(datetime.now(UTC).date())
        return found[place].left_early if place in found else 0

    with gateway.member(rpm_limit=1000, max_parallel_requests=1000) as bob:
        place = bob.token, models["late"]
        host = urlsplit(gateway.url).netloc
        run(leave_all(gateway.url, request(host, bob, route, models["late"])))
        assert bob.call(route, models["plain"]).status_code == 200
        written = partial(metrics, gateway, bob.token)
        wait_until(lambda: models["plain"] in written(), seconds=APPEARS_WITHIN_SECONDS)

        def counted() -> tuple[int, int, int]:
            of_late = written().get(models["late"], {"api_requests": 0, "prompt_tokens": 0})
            return of_late["api_requests"], left(), of_late["prompt_tokens"]

        # A busy gateway may write some of the others after this one.
        wait_until(lambda: sum(counted()[:2]) >= STREAMS, seconds=APPEARS_WITHIN_SECONDS, every=1)
        requests, early, tokens = counted()
    assert requests + early == STREAMS
    assert tokens == requests * PROMPT_TOKENS
    assert requests > 0
    assert early > 0
