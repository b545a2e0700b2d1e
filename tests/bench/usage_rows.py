"""Runs with Django inside a stack's settings: members with years of usage, and passes of the pull.

The gateway is the fake one, in this process; what it and the wire take is told apart.
"""

import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import redis
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inference.gateway import Gateway
from inference.models import Key, KeyHolder, Usage, UsageDay
from inference.usage.figures import today
from inference.usage.pull import Pulled, pull, pull_again
from members.models import User
from tests.fakes.gateway import MASTER_KEY, FakeGateway

FEW = 10


def used_for(user: User, days: int) -> None:
    """Every day, two names, and a new key each month."""
    holder = KeyHolder.objects.get(pk=user.public_id)
    months = range(days // 30 + 1)
    keys = [Key(holder=holder, state="deleted", hint="7Qf2", public_key=b"") for _ in months]
    Key.objects.bulk_create(keys)
    Usage.objects.bulk_create(
        Usage(
            day=today() - timedelta(days=n),
            holder=holder,
            key=keys[n // 30],
            model=model,
            requests=n,
            prompt_tokens=n * 9000,
            completion_tokens=n * 700,
        )
        for n in range(days)
        for model in ("nan", "qwen3-coder")
    )


def queries(session: str) -> int:
    client = Client(SERVER_NAME="127.0.0.1", HTTP_X_FORWARDED_FOR="127.0.0.1")
    client.cookies["session"] = session
    client.get("/usage/?days=90")
    with CaptureQueriesContext(connection) as captured:
        assert client.get("/usage/?days=90").status_code == 200
    return len(captured)


class _Timed(Gateway):
    """Knows how long the gateway took."""

    seconds = 0.0

    def activity(self, *asked: Any) -> Any:
        began = time.perf_counter()
        try:
            return super().activity(*asked)
        finally:
            self.seconds += time.perf_counter() - began


def passes(count: int) -> dict[str, dict[str, float]]:
    """A day of `count` new keys read as a whole; then a pass with a few changed, and with none."""
    tokens = _keys(count)
    marks = redis.Redis.from_url(settings.GATEWAY_REDIS_URL)
    with FakeGateway() as fake:
        client = _Timed(fake.url, MASTER_KEY, site="bench")
        for token in tokens:
            fake.usage.count(today(), token)
        found = {"all": _pass(client, count, lambda: pull_again([today()], client=client))}
        for token in tokens[:: max(1, count // FEW)][:FEW]:
            fake.usage.count(today(), token)
            marks.zadd("nan:used", {token: time.time()})
        found["few"] = _pass(client, FEW, lambda: pull(client=client))
        marks.delete("nan:used")
        found["none"] = _pass(client, 0, lambda: pull(client=client))
        client.close()
    UsageDay.objects.all().delete()
    Usage.objects.all().delete()
    return found


def _keys(count: int) -> list[str]:
    tokens = [uuid.uuid4().hex * 2 for _ in range(count)]
    holders = [KeyHolder(owner_ref=uuid.uuid4()) for _ in tokens]
    KeyHolder.objects.bulk_create(holders, batch_size=2000)
    Key.objects.bulk_create(
        (
            Key(holder=holder, token=token, state="active", public_key=b"")
            for holder, token in zip(holders, tokens, strict=True)
        ),
        batch_size=2000,
    )
    return tokens


def _pass(client: _Timed, expected: int, run: Callable[[], Pulled | None]) -> dict[str, float]:
    client.seconds = 0.0
    began = time.perf_counter()
    pulled = run()
    assert pulled is not None
    assert pulled.changed == expected, pulled
    whole = time.perf_counter() - began
    return {"ours": whole - client.seconds, "gateway": client.seconds}
