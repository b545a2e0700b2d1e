"""A gateway with bad manners, its client, and short ways to say what tests do."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.utils import timezone
from nacl.public import PrivateKey

from inference import keys, provisioning, reveal
from inference.gateway import Gateway
from inference.models import Key, KeyHolder
from members.models import User
from tests.fakes.gateway import MASTER_KEY, FakeGateway

QUICK = httpx.Timeout(0.8)


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    with FakeGateway() as gateway:
        yield gateway


@pytest.fixture
def client_of_fake(fake: FakeGateway) -> Iterator[Gateway]:
    client = Gateway(fake.url, MASTER_KEY, site=settings.SITE_URL, timeout=QUICK)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def _use_the_fake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "client_of_fake" in request.fixturenames:
        client = request.getfixturevalue("client_of_fake")
        monkeypatch.setattr(provisioning, "gateway", lambda: client)
        monkeypatch.setattr("inference.reconcile.gateway", lambda: client)


@pytest.fixture
def pair() -> PrivateKey:
    return reveal.new_private_key()


@pytest.fixture
def make_key(client_of_fake: Gateway, pair: PrivateKey) -> Callable[[User], Key]:
    def make(user: User) -> Key:
        key = keys.request_key(user=user, public_key=bytes(pair.public_key))
        provisioning.advance(user.public_id)
        key.refresh_from_db()
        assert key.state == "active"
        return key

    return make


def advance(user: Any) -> None:
    """Until nothing is left to do, however often it was postponed."""
    for _ in range(20):
        KeyHolder.objects.filter(pk=user.public_id, due_at__isnull=False).update(
            due_at=timezone.now()
        )
        provisioning.advance(user.public_id)
        if not keys.pending_at_gateway(user):
            return
    raise AssertionError("still pending at the gateway")


def live(user: Any) -> list[tuple[str, int, int]]:
    found = Key.objects.of(user).live().order_by("requested_at")
    return [(key.state, key.rpm, key.parallel) for key in found]
