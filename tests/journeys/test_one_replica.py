"""A swap of a slot that one replica serves: the gap that was announced, and what is said in it.

The edge of the tests' stack lets requests wait for 20 s.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, product

import httpx
import pytest

from tests.api import ROUTES, ApiClient
from tests.conftest import HURRIED
from tests.fleet import Fleet
from tests.journeys.conftest import HOME
from tests.load import ENDS
from tests.pages.markup import words
from tests.pool_log import asked
from tests.visitor import Visitor
from tests.waiting import wait_until

WAIT = int(HURRIED["POOL_QUEUE_SECONDS"])
LOADING = WAIT + 8
EVERY = 1.5  # seconds from one later call to the next
KINDS = list(product(ROUTES, (False, True)))
"""Each route, plain and streamed."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    route: str
    stream: bool
    seconds: float
    got: httpx.Response

    @property
    def whole(self) -> bool:
        end = ENDS[self.route] if self.stream else "}"
        return self.got.status_code == 200 and end in self.got.text


@dataclass
class Callers:
    """People who call at will, whatever they wait for."""

    client: ApiClient
    crowd: ThreadPoolExecutor

    def ask(self, route: str, stream: bool) -> "Future[Answer]":
        return self.crowd.submit(self._ask, route, stream=stream)

    def _ask(self, route: str, *, stream: bool) -> Answer:
        began = time.monotonic()
        got = self.client.call(route, stream=stream)
        return Answer(route=route, stream=stream, seconds=time.monotonic() - began, got=got)

    def ask_until(self, fleet: Fleet, state: str) -> "list[Future[Answer]]":
        """One after another, until the first replica is in this state."""
        sent, kinds = [], cycle(KINDS)

        def over() -> bool:
            if fleet.replicas()[0]["state"] == state:
                return True
            sent.append(self.ask(*next(kinds)))
            return False

        wait_until(over, seconds=90, what=f"the replica to be {state}", every=EVERY)
        return sent


@pytest.fixture
def alone(fleet: Fleet) -> Iterator[Fleet]:
    """The slot with its first replica only."""
    fleet.act_on_replica("take_out", 2)
    fleet.until_replica(2, "off")
    yield fleet
    fleet.end_swaps()
    fleet.act_on_replica("put_in_service", 2)
    fleet.settle()
    fleet.go_home(HOME)  # others count on what it can do


def must_announce(page: str, fleet: Fleet, new: str) -> None:
    minutes = fleet.ask(f"CatalogModel.objects.get(name={new!r}).load_seconds // 60")
    assert f"nobody serves while the new engine loads (at most {minutes} min)" in page
    assert f"Requests wait up to {WAIT} s, then get a 503" in page


def must_tell(answer: Answer, since: str) -> None:
    """After the whole wait (once), in the route's dialect, since when, and when to come back."""
    said = answer.got.json()
    assert (answer.got.status_code, answer.got.headers.get("retry-after")) == (503, "30"), said
    assert f"A model rotation is under way since {since} UTC" in said["error"]["message"]
    if answer.route == "/v1/messages":
        assert (said["type"], said["error"]["type"]) == ("error", "overloaded_error")
    else:
        assert said["error"]["code"] == "model_rotating"
    assert WAIT - 1 < answer.seconds < 2 * WAIT


def test_calls_wait_in_the_gap_or_are_told_of_the_rotation(
    alone: Fleet, load_key: str, staff: Visitor
) -> None:
    new = alone.other_model()
    must_announce(words(staff.get(f"/staff/swaps/new/?slot=nan&model={new}")), alone, new)
    with (
        ThreadPoolExecutor(50) as crowd,
        alone.faults({new: {"load_seconds": LOADING}}),
    ):
        callers = Callers(ApiClient(alone.stack.api, load_key), crowd)
        swap = alone.plan(new)
        alone.until_step(swap, "starting")
        began = time.time()
        early = [call.result() for call in [callers.ask(*kind) for kind in KINDS]]
        assert alone.replicas()[0]["state"] == "starting", "the gap was over too soon"
        late = [call.result() for call in callers.ask_until(alone, "serving")]
    alone.until(swap, "done", seconds=30)
    since = alone.ask(f"f'{{Swap.objects.get(pk={swap}).started_at:%H:%M}}'")
    served = [answer for answer in late if answer.whole]
    for answer in [*early, *(answer for answer in late if not answer.whole)]:
        must_tell(answer, since)
    assert max(answer.seconds for answer in served) > 3  # they did wait
    assert {(answer.route, answer.stream) for answer in served} >= set(KINDS[:4])
    must_be_answered_once(alone, new, began, len(served))
    after = [callers.client.call(route, stream=stream).status_code for route, stream in KINDS]
    assert after == [200] * len(KINDS)


def must_be_answered_once(fleet: Fleet, new: str, began: float, number: int) -> None:
    """Each by the one engine, which is the new model's; who was refused asked it nothing."""
    replica = fleet.replicas()[0]
    assert (replica["model"], replica["state"]) == (new, "serving")
    wait_until(lambda: len(asked(fleet.stack, since=began)) >= number, seconds=10, what="the log")
    assert [(one.number, one.status) for one in asked(fleet.stack, since=began)] == [
        (replica["number"], 200)
    ] * number
