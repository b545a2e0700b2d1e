"""5 in parallel and 100 a minute, on every route."""

import time

import pytest
import redis

from inference.usage.counters import GatewayCounters
from tests.gateway.client import ROUTES, Gateway, Member, Models, statuses
from tests.gateway.conftest import Own
from tests.waiting import at_once, wait_until


@pytest.mark.parametrize("route", ROUTES)
def test_five_in_parallel(alice: Member, models: Models, route: str) -> None:
    answers = at_once([lambda: alice.call(route, models["slow"])] * 8)
    assert statuses(answers) == [200] * 5 + [429] * 3
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (
        "Limit type: max_parallel_requests. Current limit: 5" in refused.json()["error"]["message"]
    )


@pytest.mark.parametrize("route", ROUTES)
def test_requests_a_minute(gateway: Gateway, models: Models, route: str) -> None:
    with gateway.member(rpm_limit=3) as bob:
        answers = [bob.call(route, models["plain"]) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert "Limit type: requests. Current limit: 3" in answers[-1].json()["error"]["message"]


@pytest.mark.parametrize("route", ROUTES)
def test_a_refusal_says_what_is_left_of_the_minute(
    gateway: Gateway, models: Models, own_gateway: Own, route: str
) -> None:
    """LiteLLM says 60 s all the time, and on /v1/messages nothing. The member's page reads the same
    counter."""
    counters = GatewayCounters(redis.Redis(port=own_gateway.redis_port))
    with gateway.member(rpm_limit=1) as bob:
        bob.call(route, models["plain"])
        time.sleep(3)
        told = int(bob.call(route, models["plain"]).headers["retry-after"])
        (now,) = counters.now([bob.token])
        assert told - now.resets_in in (0, 1)  # a second may end between the two
        assert told <= 58


def test_the_product_limits_hold_to_the_last_request(alice: Member, models: Models) -> None:
    answers = [alice.chat(models["plain"]).status_code for _ in range(102)]
    assert answers == [200] * 100 + [429] * 2


def test_a_refusal_for_parallelism_uses_up_a_request(gateway: Gateway, models: Models) -> None:
    """L7: so the refusal's words must say so."""
    with gateway.member(rpm_limit=8, max_parallel_requests=5) as bob:
        assert statuses(at_once([lambda: bob.chat(models["slow"])] * 8)) == [200] * 5 + [429] * 3
        refused = bob.chat(models["plain"])
        assert refused.status_code == 429
        assert "Limit type: requests" in refused.json()["error"]["message"]


def test_changed_limits_hold_for_the_next_call(
    gateway: Gateway, alice: Member, models: Models, own_gateway: Own
) -> None:
    """Rotation: the outgoing key drops to 1 and 20, the new one gets 4 and 80."""
    counters = GatewayCounters(redis.Redis(port=own_gateway.redis_port))
    assert statuses(at_once([lambda: alice.chat(models["slow"])] * 3)) == [200, 200, 200]
    # A place is free slightly after the answer.
    wait_until(lambda: counters.now([alice.token])[0].running == 0, seconds=5, every=0.02)
    assert gateway.post("/key/update", key=alice.token, max_parallel_requests=1).status_code == 200
    assert statuses(at_once([lambda: alice.chat(models["slow"])] * 3)) == [200, 429, 429]
    assert gateway.post("/key/update", key=alice.token, rpm_limit=2).status_code == 200
    assert alice.chat(models["plain"]).status_code == 429
