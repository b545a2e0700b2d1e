"""A gateway that counts, its counters in Redis, and a clock that tests move."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import redis
from django.conf import settings
from django.utils import timezone

from inference.gateway import Gateway
from inference.models import Key
from inference.usage import pull
from inference.usage.pull import Pulled
from members.models import User
from tests.fakes.gateway import FakeGateway


class Clock:
    """Of the whole of Django; tells real time until it is set."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @property
    def today(self) -> date:
        return self.now().date()

    def set(self, moment: datetime) -> None:
        self.ahead = moment - datetime.now(UTC)

    def forward(self, **span: float) -> None:
        self.ahead += timedelta(**span)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(timezone, "now", found.now)
    return found


@pytest.fixture(autouse=True)
def store() -> Iterator["redis.Redis"]:
    """The gateway's Redis, where its callback counts refusals."""
    client = redis.Redis.from_url(settings.GATEWAY_REDIS_URL)
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture
def take(client_of_fake: Gateway, clock: Clock) -> Callable[[], Pulled]:
    """A pass of the worker, some seconds after the last one."""

    def one() -> Pulled:
        clock.forward(seconds=20)
        done = pull.pull(client=client_of_fake)
        assert done is not None
        return done

    return one


@pytest.fixture
def key(make_key: Callable[[User], Key], member: User) -> Key:
    return make_key(member)


@pytest.fixture
def others_key(make_key: Callable[[User], Key], other_member: User) -> Key:
    return make_key(other_member)


@pytest.fixture
def counts(fake: FakeGateway, store: "redis.Redis") -> Callable[..., None]:
    """As if calls had just ended: the gateway counts them and its callback marks the key."""

    def count(day: object, token: str, *more: Any, **figures: Any) -> None:
        fake.usage.count(day, token, *more, **figures)
        store.zadd("nan:used", {token: time.time()})

    return count


def refuse(store: "redis.Redis", day: date, key: Key, kind: str, times: int = 1) -> None:
    """As deploy/gateway/callbacks/nan_counts.py does."""
    store.hincrby(f"nan:refused:{day}", f"{key.token}|nan|{kind}", times)
