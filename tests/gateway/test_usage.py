"""Usage by day, model and key: what the usage pages read."""

import time
from datetime import UTC, datetime
from typing import Any

from inference.gateway import Gateway as Admin
from inference.usage.reading import Counted, read_day, read_keys
from tests.gateway.client import ROUTES, Gateway, Models

APPEARS_WITHIN_SECONDS = 40


def metrics(gateway: Gateway, token: str) -> dict[str, dict[str, Any]]:
    """{public name of the model: metrics} of one key today, from the call for all keys."""
    today = datetime.now(UTC).date().isoformat()
    answer = gateway.get(
        "/user/daily/activity", start_date=today, end_date=today, page_size=1000
    ).json()
    assert answer["metadata"]["has_more"] is False
    return {
        name: group["api_key_breakdown"][token]["metrics"]
        for day in answer["results"]
        for name, group in day["breakdown"]["model_groups"].items()
        if token in group["api_key_breakdown"]
    }


def wait_for(gateway: Gateway, token: str, requests: int) -> dict[str, dict[str, Any]]:
    deadline = time.monotonic() + APPEARS_WITHIN_SECONDS
    while True:
        found = metrics(gateway, token)
        seen = sum(each["successful_requests"] for each in found.values())
        if seen >= requests or time.monotonic() > deadline:
            return found
        time.sleep(1)


def test_every_route_is_counted_and_survives_the_key(
    gateway: Gateway, models: Models, master_key: str
) -> None:
    """U4: also streams whose client did not ask for usage, and after the key is deleted."""
    with gateway.member() as bob:
        bob.chat(models["plain"])
        bob.chat(models["plain"], stream=True)
        bob.call("/v1/messages", models["plain"])
        bob.call("/v1/messages", models["plain"], stream=True)
        bob.call("/v1/responses", models["plain"])
        bob.call("/v1/responses", models["plain"], stream=True)
        found = wait_for(gateway, bob.token, requests=6)
    assert list(found) == [models["plain"]]
    counted = found[models["plain"]]
    assert (counted["successful_requests"], counted["prompt_tokens"]) == (6, 66)
    assert (counted["completion_tokens"], counted["total_tokens"]) == (42, 108)
    taken_over = Counted(6, 66, 42, 0)
    place, day = (bob.token, models["plain"]), datetime.now(UTC).date()
    product = Admin(gateway.url, master_key, site="test")
    assert read_day(product, day)[place] == taken_over
    assert read_keys(product, day, [bob.token]) == {place: taken_over}
    product.close()
    assert gateway.get("/key/list", key_hash=bob.token).json()["keys"] == []
    assert metrics(gateway, bob.token) == found


def test_a_stream_left_halfway_is_counted_on_every_route(gateway: Gateway, models: Models) -> None:
    """U4. The engine has not said its usage by then, so LiteLLM counts the tokens itself."""
    for route in ROUTES:
        with gateway.member() as bob:
            with bob.stream(route, models["drip"]) as answer:
                lines = (line for line in answer.iter_lines() if line.startswith("data:"))
                for _ in range(2):
                    next(lines)
            counted = wait_for(gateway, bob.token, requests=1)[models["drip"]]
        assert counted["api_requests"] == 1
        assert counted["prompt_tokens"] > 0
        assert counted["completion_tokens"] > 0
