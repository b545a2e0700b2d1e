"""What pages show of limits: refusals by kind and day, slots taken, what is left of the minute.

Read as the product reads them, by inference/usage/counters.py.
"""

import threading
from datetime import UTC, datetime
from functools import partial

import httpx
import pytest
import redis

from inference.usage.counters import GatewayCounters, Now, Refused
from tests.gateway.client import ROUTES, Gateway, Member, Models, body, statuses
from tests.gateway.conftest import Own
from tests.waiting import at_once, wait_until

until = partial(wait_until, seconds=15, every=0.05)


@pytest.fixture
def counters(own_gateway: Own) -> GatewayCounters:
    return GatewayCounters(redis.Redis(port=own_gateway.redis_port))


def of(counters: GatewayCounters, member: Member) -> dict[str, Refused]:
    found = counters.refused(datetime.now(UTC).date())
    return {model: counts for (token, model), counts in found.items() if token == member.token}


@pytest.mark.parametrize("route", ROUTES)
def test_refusals_are_told_apart_on_every_route(
    gateway: Gateway, models: Models, counters: GatewayCounters, route: str
) -> None:
    with gateway.member(rpm_limit=8, max_parallel_requests=2) as bob:
        answers = at_once([lambda: bob.call(route, models["slow"])] * 5)
        assert statuses(answers) == [200] * 2 + [429] * 3
        answers = [bob.call(route, models["plain"]) for _ in range(5)]
        assert statuses(answers) == [200] * 3 + [429] * 2
        assert of(counters, bob) == {
            models["slow"]: Refused(0, 3, 0),
            models["plain"]: Refused(2, 0, 0),
        }


@pytest.mark.parametrize("route", ROUTES)
def test_failures_are_the_engines_and_not_the_callers(
    gateway: Gateway, models: Models, counters: GatewayCounters, route: str
) -> None:
    with gateway.member() as bob:
        assert bob.call(route, models["error"]).status_code == 500
        assert bob.call(route, models["missing"]).status_code == 404
        assert bob.call(route, "nobody's").status_code == 400
        assert of(counters, bob) == {models["error"]: Refused(0, 0, 1)}


@pytest.mark.parametrize("manner", ["hang", "mute"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("route", ROUTES)
def test_u4_who_left_before_the_first_word_is_counted(
    gateway: Gateway,
    models: Models,
    counters: GatewayCounters,
    route: str,
    stream: bool,
    manner: str,
) -> None:
    with gateway.member() as bob:
        bob.give_up(route, models[manner], stream=stream)
        expected = {models[manner]: Refused(0, 0, 0, left_early=1)}
        until(lambda: of(counters, bob) == expected)


def test_u4_who_left_while_the_model_reasoned_is_counted(
    gateway: Gateway, models: Models, counters: GatewayCounters
) -> None:
    """On this route LiteLLM counts from the first word of the text on."""
    with gateway.member() as bob:
        with bob.stream("/v1/responses", models["thinks"]) as answer:
            lines = answer.iter_lines()
            assert any("reasoning_text.delta" in line for line in lines)
        expected = {models["thinks"]: Refused(0, 0, 0, left_early=1)}
        until(lambda: of(counters, bob) == expected)
        assert bob.token not in counters.used_since(60)


@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "api-key"])
def test_whichever_way_the_key_is_sent(
    gateway: Gateway, models: Models, counters: GatewayCounters, header: str
) -> None:
    with gateway.member() as bob:
        sent = {header: f"Bearer {bob.key}" if header == "Authorization" else bob.key}
        with pytest.raises(httpx.ReadTimeout):
            bob.http.post(
                ROUTES[1], headers=sent, json=body(ROUTES[1], models["hang"]), timeout=0.5
            )
        until(lambda: of(counters, bob) == {models["hang"]: Refused(0, 0, 0, left_early=1)})


@pytest.mark.parametrize("route", ROUTES)
def test_a_stream_that_had_begun_is_no_call_left_early(
    gateway: Gateway, models: Models, counters: GatewayCounters, route: str
) -> None:
    with gateway.member() as bob:
        with bob.stream(route, models["drip"]) as answer:
            assert any("Hello" in line for line in answer.iter_lines())
        until(lambda: bob.token in counters.used_since(60))
        assert of(counters, bob) == {}


def test_no_word_of_a_caller_gets_into_a_count(gateway: Gateway, counters: GatewayCounters) -> None:
    with gateway.member(rpm_limit=1) as bob:
        for _ in range(3):
            bob.chat("my secret project")
        assert of(counters, bob) == {"": Refused(2, 0, 0)}


def test_unknown_keys_are_not_counted(
    own_gateway: Own, alice: Member, models: Models, counters: GatewayCounters
) -> None:
    before = counters.refused(datetime.now(UTC).date())
    stranger = Member("sk-" + "x" * 40, alice.http)
    assert stranger.chat(models["plain"]).status_code == 401
    assert counters.refused(datetime.now(UTC).date()) == before


def test_what_is_going_on_now(gateway: Gateway, models: Models, counters: GatewayCounters) -> None:
    with gateway.member(rpm_limit=3) as bob:
        assert counters.now([bob.token]) == [Now(0, 0, 0)]
        calls = [threading.Thread(target=bob.chat, args=(models["slow"],)) for _ in range(2)]
        for call in calls:
            call.start()
        until(lambda: counters.now([bob.token])[0].running == 2)
        for call in calls:
            call.join()
        until(lambda: counters.now([bob.token])[0].running == 0)
        (now,) = counters.now([bob.token])
        assert now.asked == 2
        assert 40 < now.resets_in <= 60


@pytest.mark.parametrize("route", ROUTES)
def test_a_key_is_marked_when_its_call_has_ended(
    gateway: Gateway, models: Models, counters: GatewayCounters, route: str
) -> None:
    with gateway.member() as bob:
        assert bob.token not in counters.used_since(60)
        bob.call(route, models["plain"], stream=True)
        until(lambda: bob.token in counters.used_since(60))
