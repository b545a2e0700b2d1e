"""Whatever way a call ends, its parallel slot comes back: afterwards 5 in parallel pass again.

One parametrised test for each way, because releases of LiteLLM have leaked on single routes.
"""

import time

import httpx
import pytest

from tests.gateway.client import ROUTES, Member, Models, statuses
from tests.waiting import at_once

# A slot of a stream that was broken off is free slightly after the client has gone.
SETTLE_SECONDS = 0.5
ABORT_SECONDS = 5


@pytest.fixture(autouse=True)
def _all_five_are_free_again(alice: Member, models: Models) -> object:
    yield
    time.sleep(SETTLE_SECONDS)
    assert statuses(at_once([lambda: alice.chat(models["slow"])] * 5)) == [200] * 5


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("route", ROUTES)
def test_after_answers(alice: Member, models: Models, route: str, stream: bool) -> None:
    more = {"stream": True} if stream else {}
    assert statuses(at_once([lambda: alice.call(route, models["slow"], **more)] * 5)) == [200] * 5


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("route", ROUTES)
def test_after_the_client_gave_up_on_a_hanging_engine(
    alice: Member, models: Models, route: str, stream: bool
) -> None:
    """L5: and the engine is told to stop."""
    for _ in range(5):
        alice.give_up(route, models["hang"], stream=stream)
    assert open_calls(models, ABORT_SECONDS) == 0


@pytest.mark.parametrize("route", ROUTES)
def test_after_a_stream_broken_off(alice: Member, models: Models, route: str) -> None:
    for _ in range(5):
        with alice.stream(route, models["drip"]) as answer:
            next(answer.iter_lines())
    assert open_calls(models, ABORT_SECONDS) == 0


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("route", ROUTES)
def test_after_errors(alice: Member, models: Models, route: str, stream: bool) -> None:
    more = {"stream": True} if stream else {}
    found = [alice.call(route, models[m], **more).status_code for m in ("error", "missing") * 3]
    assert found == [500, 404] * 3
    assert alice.call(route, "no-such-model", **more).status_code == 400


@pytest.mark.parametrize("manner", ["cut", "broken"])
@pytest.mark.parametrize("route", ROUTES)
def test_after_streams_that_the_engine_broke_off(
    alice: Member, models: Models, route: str, manner: str
) -> None:
    for _ in range(5):
        assert alice.call(route, models[manner], stream=True).status_code == 200


def open_calls(models: Models, seconds: float) -> int:
    """How many calls the engine still has open, at the latest after `seconds`."""
    deadline = time.monotonic() + seconds
    while (
        count := httpx.get(f"{models.engine}/state").json()["open"]
    ) and time.monotonic() < deadline:
        time.sleep(0.1)
    return int(count)
