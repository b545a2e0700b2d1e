"""Two LiteLLM processes on one database and one Valkey: what one is told, the other obeys.

Measured on a busy machine, from the admin call's answer to the last call that was still let in at
the other instance, with calls on the key all the time: block 0.02 to 0.3 s, unblock 0.6 s, changed
limits 0.5 s, delete alone 59 s. So the product blocks before it deletes.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.gateway import parts
from tests.gateway.client import Gateway, Member, Models, statuses, token
from tests.gateway.conftest import Own
from tests.waiting import wait_until

MANY = 100_000
# Calls that both instances let through before either has heard of the other's. None were, in 250.
RPM_TOLERANCE = 2
BLOCK_SECONDS = 1
LIMIT_SECONDS = 2
# How long an instance trusts what it has read about a key; deleting does not shorten it.
DELETE_SECONDS = 60


@dataclass(frozen=True)
class Traffic:
    """Calls one after the other at one instance, and when each was answered with what."""

    member: Member
    pause: float
    seen: list[tuple[float, int]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stop.wait(self.pause):
            status = self.member.chat("stable").status_code
            self.seen.append((time.monotonic(), status))

    def last(self, status: int) -> float:
        return max((when for when, found in self.seen if found == status), default=0.0)

    def after(self, moment: float) -> set[int]:
        return {status for when, status in self.seen if when > moment}


@contextmanager
def traffic(*members: Member, pause: float = 0.02) -> Iterator[list[Traffic]]:
    flows = [Traffic(member, pause) for member in members]
    threads = [threading.Thread(target=flow.run) for flow in flows]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: all(flow.last(200) for flow in flows), seconds=10, every=0.05)
        yield flows
    finally:
        for flow in flows:
            flow.stop.set()
        for thread in threads:
            thread.join()


@dataclass(frozen=True)
class Pair:
    first: Gateway
    second: Gateway

    @contextmanager
    def member(self, **changes: object) -> Iterator[tuple[Member, Member]]:
        """One key, at each of the instances."""
        key, answer = self.first.generate(**changes)
        assert answer.status_code == 200, answer.text
        with ExitStack() as stack:
            yield tuple(
                Member(key=key, http=stack.enter_context(httpx.Client(base_url=url, timeout=30)))
                for url in (self.first.url, self.second.url)
            )
        self.first.post("/key/delete", keys=[token(key)])


@pytest.fixture(scope="module")
def pair(own_gateway: Own, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("second")
    master_key = own_gateway.environ["LITELLM_MASTER_KEY"]
    second = parts.gateway(
        folder,
        home=own_gateway.home,
        config=own_gateway.config,
        environ=own_gateway.environ,
        first=False,
    )
    with (
        second as url,
        Gateway(own_gateway.url, master_key) as first,
        Gateway(url, master_key) as other,
    ):
        yield Pair(first, other)


@pytest.fixture(scope="module")
def deleted(pair: Pair) -> Iterator[Callable[[], float]]:
    """Deletes a key at once, so that its minute passes beside the other tests.

    The value waits for the first refusal at the other instance, and gives the seconds to the last
    call that was let in.
    """
    with (
        pair.member(rpm_limit=MANY) as (_, second),
        traffic(second, pause=0.3) as [flow],
    ):
        answer = pair.first.post("/key/delete", keys=[second.token])
        began = time.monotonic()

        def seconds() -> float:
            left = began + DELETE_SECONDS + 5 - time.monotonic()
            wait_until(lambda: 401 in flow.after(began), seconds=left, what="never refused")
            time.sleep(1)
            return flow.last(200) - began

        assert answer.status_code == 200
        yield seconds


@pytest.mark.usefixtures("deleted")
def test_requests_a_minute_are_counted_together(pair: Pair) -> None:
    """L3: 250 within the minute, in turns."""
    with pair.member(max_parallel_requests=50) as both, ThreadPoolExecutor(4) as pool:
        began = time.monotonic()
        turns = itertools.islice(itertools.cycle(both), 250)
        found = statuses(list(pool.map(lambda member: member.chat("stable"), turns)))
        assert time.monotonic() - began < 60
    assert set(found) == {200, 429}
    assert 100 <= found.count(200) <= 100 + RPM_TOLERANCE


def test_five_in_parallel_are_counted_together(pair: Pair, models: Models) -> None:
    with pair.member() as (first, second), ThreadPoolExecutor(8) as pool:
        wait_until(lambda: second.chat(models["slow"]).status_code == 200, seconds=30)
        turns = itertools.islice(itertools.cycle((first, second)), 8)
        found = statuses(list(pool.map(lambda member: member.chat(models["slow"]), turns)))
    assert found == [200] * 5 + [429] * 3


def test_slots_held_at_one_are_taken_at_the_other(pair: Pair, models: Models) -> None:
    with pair.member() as (first, second):
        wait_until(lambda: second.chat(models["plain"]).status_code == 200, seconds=30)
        with ExitStack() as held:
            lines = []  # kept: httpx hangs up when nobody can read on
            for _ in range(5):
                answer = held.enter_context(first.stream("/v1/chat/completions", models["drip"]))
                lines.append(answer.iter_lines())
                next(lines[-1])
            assert second.chat(models["plain"]).status_code == 429
        wait_until(lambda: second.chat(models["plain"]).status_code == 200, seconds=5)


def test_a_block_reaches_the_other_under_traffic(pair: Pair) -> None:
    """K7: calls in flight must not put the old state of the key back."""
    with pair.member(rpm_limit=MANY) as both, traffic(*both) as flows:
        assert pair.first.post("/key/block", key=both[0].token).status_code == 200
        answered = time.monotonic()
        time.sleep(3 + BLOCK_SECONDS)
        assert [flow.after(answered + BLOCK_SECONDS) for flow in flows] == [{401}, {401}]


def test_a_deletion_after_a_block_lets_nobody_in_again(pair: Pair) -> None:
    """What revoking does."""
    with pair.member(rpm_limit=MANY) as both, traffic(*both) as flows:
        assert pair.first.post("/key/block", key=both[0].token).status_code == 200
        answered = time.monotonic()
        assert pair.first.post("/key/delete", keys=[both[0].token]).status_code == 200
        time.sleep(3 + BLOCK_SECONDS)
        assert [flow.after(answered + BLOCK_SECONDS) for flow in flows] == [{401}, {401}]


def test_changed_limits_reach_the_other_under_traffic(pair: Pair) -> None:
    """Downwards and up again."""
    with pair.member(rpm_limit=MANY) as both, traffic(*both) as flows:
        for limit, expected in ((1, 429), (MANY, 200)):
            answer = pair.first.post("/key/update", key=both[0].token, rpm_limit=limit)
            answered = time.monotonic()
            time.sleep(1 + LIMIT_SECONDS)
            found = [flow.after(answered + LIMIT_SECONDS) for flow in flows]
            assert (answer.status_code, found) == (200, [{expected}, {expected}])


def test_a_deletion_alone_takes_a_minute_at_the_other(deleted: Callable[[], float]) -> None:
    """Why the product never deletes without blocking first; a release that is quicker may pass."""
    assert deleted() <= DELETE_SECONDS + 1
