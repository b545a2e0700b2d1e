"""Replacing a key: the two together never pass the member's limits, from begin to end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.api import ApiClient, GatewayAdmin, count_by
from tests.journeys.conftest import Client
from tests.stack import Stack
from tests.visitor import Visitor
from tests.waiting import at_once, wait_until


@contextmanager
def watched(gateway: GatewayAdmin, owner: str) -> Iterator[list[tuple[int, int]]]:
    """The sums of requests a minute and in parallel over her keys that work, again and again."""
    sums: list[tuple[int, int]] = []
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.05):
            limits = gateway.limits(owner)
            sums.append((sum(rpm for rpm, _ in limits), sum(n for _, n in limits)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield sums
    finally:
        end.set()
        thread.join()


def test_two_keys_share_the_limits_until_the_old_one_is_ended(
    stack: Stack, member: Visitor, gateway: GatewayAdmin, client: Client
) -> None:
    """K8, L4: 1 and 20 for the old key, 4 and 80 for the new one; then all of it for the new."""
    old = member.create_key()
    owner = member.public_id
    with watched(gateway, owner) as sums:
        member.post("/key/rotate")
        new = member.reveal()
        assert gateway.limits(owner) == [(20, 1), (80, 4)]
        assert client(old).call().status_code == 200
        assert five_at_most(client(old), client(new)) == {200: 5, 429: 3}
        member.post("/key/revoke", {"old_only": "1"})
        wait_until(lambda: gateway.limits(owner) == [(100, 5)], seconds=60, what="the full limits")
    assert client(old).call().status_code == 401
    assert client(new).call().status_code == 200
    assert [rpm for rpm, _ in sums if rpm > 100] == []
    assert [parallel for _, parallel in sums if parallel > 5] == []
    assert len(sums) > 10


def five_at_most(old: ApiClient, new: ApiClient) -> dict[int, int]:
    """Two calls at once with the old key and six with the new one."""
    text = "[sim:sleep=4] hello"
    calls = [partial(old.call, text=text)] * 2 + [partial(new.call, text=text)] * 6
    return count_by(answer.status_code for answer in at_once(calls))


PASS_A_DAY = """
import sys
from datetime import timedelta
from django.utils import timezone
from inference.models import Key, KeyHolder

now = timezone.now()
for key in Key.objects.filter(holder=sys.argv[1], outgoing=True):
    assert timedelta(hours=23) < key.remove_at - now < timedelta(hours=25), key.remove_at
Key.objects.filter(holder=sys.argv[1], outgoing=True).update(remove_at=now)
KeyHolder.objects.filter(pk=sys.argv[1]).update(due_at=now)
"""


def test_the_old_key_ends_by_itself_after_a_day(
    stack: Stack, member: Visitor, gateway: GatewayAdmin, client: Client
) -> None:
    old = member.create_key()
    member.post("/key/rotate")
    new = member.reveal()
    assert "Works until" in member.get("/key/")
    stack.python(PASS_A_DAY, member.public_id)
    began = time.monotonic()
    wait_until(
        lambda: gateway.limits(member.public_id) == [(100, 5)], seconds=60, what="the full limits"
    )
    assert client(old).call().status_code == 401
    assert client(new).call().status_code == 200
    assert time.monotonic() - began < 60
    wait_until(lambda: "Works until" not in member.get("/key/"), seconds=20, what="one key shown")
