"""What members are promised: 100 a minute, 5 in parallel, no token cap; and refusals that help."""

import re
import time
from collections.abc import Callable
from functools import partial

import httpx
import pytest

from tests.api import ROUTES, ApiClient, EngineCounts, GatewayAdmin, count_by, payload
from tests.journeys.conftest import Client
from tests.stack import Stack
from tests.visitor import Visitor, members
from tests.waiting import at_once, wait_until

PARALLEL = (
    "Limit reached: 5 requests in parallel. Wait until one of your running requests ends, then try "
    "again. Refused requests count towards your requests per minute."
)
IDLE = 20  # seconds; the probes come every 2
A_MINUTE = r"Limit reached: 100 requests per minute\. Try again in (\d+) seconds at most\."


@pytest.fixture(scope="module")
def people(stack: Stack) -> list[Visitor]:
    return members(stack, 3)


@pytest.fixture(scope="module")
def keys(people: list[Visitor]) -> list[str]:
    return [person.create_key() for person in people]


@pytest.fixture(scope="module")
def refusals(stack: Stack, keys: list[str]) -> tuple[dict[int, int], list[httpx.Response], float]:
    """110 calls within seconds, then one more on each route; and when the last was answered."""
    api = ApiClient(stack.api, keys[0])
    with httpx.Client(headers=api.headers, timeout=30) as http:
        url, body = stack.api + ROUTES[0], payload(ROUTES[0], "hello")

        def some() -> list[httpx.Response]:
            return [http.post(url, json=body) for _ in range(22)]

        began = time.monotonic()
        answers = [answer for batch in at_once([some] * 5) for answer in batch]
        assert time.monotonic() - began < 55, "too slow a machine to reach the limit in its minute"
    refused = [answer for answer in answers if answer.status_code == 429]
    more = [api.call(route) for route in ROUTES]
    return count_by(a.status_code for a in answers), [*refused, *more], time.monotonic()


def test_110_in_a_minute_are_100_and_10_refusals(
    refusals: tuple[dict[int, int], list[httpx.Response], float],
) -> None:
    counts, _, _ = refusals
    assert counts == {200: 100, 429: 10}


def test_a_refusal_by_the_minute_says_so_with_number_and_time(
    refusals: tuple[dict[int, int], list[httpx.Response], float],
) -> None:
    _, refused, _ = refusals
    for answer in refused:
        found = re.match(A_MINUTE, message_of(answer))
        assert found, answer.text
        assert found[1] == answer.headers["retry-after"]
        assert 1 <= int(found[1]) <= 60
    assert [answer.status_code for answer in refused[-3:]] == [429, 429, 429]
    assert "x-litellm" not in "".join(name for answer in refused for name in answer.headers)


@pytest.mark.parametrize("route", ROUTES)
def test_eight_at_once_are_five_answers_and_three_refusals(
    stack: Stack, keys: list[str], route: str
) -> None:
    api = ApiClient(stack.api, keys[1])
    answers = at_once([partial(api.call, route, "[sim:sleep=2] hello")] * 8)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert count_by(answer.status_code for answer in answers) == {200: 5, 429: 3}
    assert [message_of(answer) for answer in refused] == [PARALLEL] * 3
    assert [answer.headers["retry-after"] for answer in refused] == ["1"] * 3
    assert ("type" in refused[0].json()) == (route == "/v1/messages"), "the shape of the other API"


def test_all_slots_are_free_after_every_kind_of_end(
    stack: Stack, keys: list[str], engine: EngineCounts
) -> None:
    """L5: plain, streamed, cancelled, failed, hanging, on each route; then five pass at once."""
    before = engine.read()
    for route in ROUTES:
        for ends in (ends_well(stack, keys[2], route), ends_badly(stack, keys[2], route)):
            at_once(ends)
    left = time.monotonic()
    aborts = 3 * len(ROUTES)
    wait_until(
        lambda: (
            (now := engine.read())["running"] == 0 and now["aborted"] - before["aborted"] >= aborts
        ),
        seconds=5,
        what=f"{aborts} calls aborted at the engine",
    )
    assert time.monotonic() - left < 5
    for route in ROUTES:
        api = ApiClient(stack.api, keys[2])
        answers = at_once([partial(api.call, route, "[sim:sleep=1] hello")] * 5)
        assert [answer.status_code for answer in answers] == [200] * 5, route


def ends_well(stack: Stack, key: str, route: str) -> list[Callable[[], object]]:
    api = ApiClient(stack.api, key)
    return [
        partial(expect, api, 200, route, "hello"),
        partial(expect, api, 200, route, "hello", stream=True),
        partial(expect, api, 502, route, "[sim:status=500] hello"),
        partial(expect, api, 502, route, "[sim:status=500] hello", stream=True),
        partial(expect, api, 400, route, "[sim:echo-error] hello"),
    ]


def ends_badly(stack: Stack, key: str, route: str) -> list[Callable[[], object]]:
    api = ApiClient(stack.api, key)
    return [
        partial(api.leave_midstream, route, "[sim:tokens=4000] hello"),
        partial(api.leave_waiting, route, "[sim:hang] hello", seconds=2, stream=False),
        partial(api.leave_waiting, route, "[sim:hang] hello", seconds=2, stream=True),
        partial(api.call, route, "[sim:die-midstream] hello"),
    ]


def expect(api: ApiClient, status: int, route: str, text: str, *, stream: bool = False) -> None:
    answer = api.call(route, text, stream=stream)
    assert answer.status_code == status, f"{route} {text} stream={stream}: {answer.text}"


def test_there_is_no_token_cap(
    people: list[Visitor], keys: list[str], client: Client, gateway: GatewayAdmin
) -> None:
    """L6: hundreds of thousands of tokens in a minute, and no limit on the key but our two."""
    long = "word " * 90_000
    used = 0
    for _ in range(3):
        answer = client(keys[1]).call(text=f"{long} [sim:tokens=60]")
        assert answer.status_code == 200, answer.text
        used += answer.json()["usage"]["total_tokens"]
    assert used > 250_000
    row = gateway.rows(people[1].public_id)[0]
    assert (row["rpm_limit"], row["max_parallel_requests"]) == (100, 5)
    unlimited = ("tpm_limit", "max_budget", "budget_duration", "expires", "soft_budget_cooldown")
    assert [row.get(name) or None for name in unlimited] == [None] * len(unlimited)


def test_an_idle_product_asks_the_engines_for_next_to_nothing(
    stack: Stack, engine: EngineCounts
) -> None:
    """P11: many rounds of every probe and no completion but the watcher's own, one of four tokens
    a minute at each replica; nothing is restarted for its health.

    Stands here because the next test would wait for as long.
    """
    restarts = {name: part["restarts"] for name, part in stack.record["parts"].items()}
    before = engine.read()
    time.sleep(IDLE)
    after = engine.read()
    watched = len(engine.ports()) * (1 + IDLE // 60)
    assert 0 <= after["started"] - before["started"] <= watched
    assert after["routes"]["/health"]["finished"] > before["routes"]["/health"]["finished"] + 5
    assert restarts == {name: part["restarts"] for name, part in stack.record["parts"].items()}
    assert all(part["state"] in ("ready", "done") for part in stack.record["parts"].values())


def test_after_the_time_told_calls_pass_again(
    refusals: tuple[dict[int, int], list[httpx.Response], float], keys: list[str], client: Client
) -> None:
    """Last in this file, so that most of the minute has passed."""
    _, refused, answered = refusals
    wait = int(refused[-1].headers["retry-after"]) - (time.monotonic() - answered)
    time.sleep(max(0, wait))
    assert client(keys[0]).call().status_code == 200


def message_of(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["message"])
