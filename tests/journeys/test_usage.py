"""What a member does shows on her page within a minute, counted once, and nowhere else."""

import csv
import io
import re
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.api import ROUTES, ApiClient, payload
from tests.stack import Stack
from tests.visitor import Visitor, members
from tests.waiting import at_once, wait_until

A_MINUTE = 60


@pytest.fixture(scope="module")
def people(stack: Stack) -> list[Visitor]:
    return members(stack, 2)


def today(person: Visitor) -> dict[str, int]:
    """Her figures of today by the file, all names and keys together."""
    rows = csv.DictReader(io.StringIO(person.get("/usage/usage.csv?days=7")))
    found: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("day_utc", "model", "key"):
                found[name] = found.get(name, 0) + int(value)
    return found


def leave_in_the_text(api: ApiClient, route: str) -> None:
    """Past the reasoning, which on /v1/responses counts as not begun."""
    asked = payload(route, "[sim:tokens=400] a long story", stream=True)
    with httpx.stream("POST", api.base + route, json=asked, headers=api.headers) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data:"))
        assert len(list(islice(lines, 60))) == 60


def until(person: Visitor, **wanted: int) -> dict[str, int]:
    def there() -> dict[str, int] | None:
        found = today(person)
        return found if all(found.get(n, 0) >= v for n, v in wanted.items()) else None

    return wait_until(there, seconds=A_MINUTE, what=f"usage to show {wanted}")


def test_from_calls_to_the_page(stack: Stack, people: list[Visitor]) -> None:
    mara, nora = people
    api = ApiClient(stack.api, mara.create_key())
    nora.create_key()
    for route in ROUTES:
        assert api.call(route).status_code == 200
        assert api.call(route, stream=True).status_code == 200
        leave_in_the_text(api, route)
        api.leave_waiting(route, "[sim:sleep=5] hello", seconds=0.7, stream=True)
    found = until(mara, requests=9, left_before_first_word=3)
    assert found["requests"] == 9
    assert found["left_before_first_word"] == 3
    assert found["input_tokens"] > 0
    assert found["output_tokens"] > 0
    assert today(nora) == {}
    page = mara.get("/usage/")
    assert f"{found['input_tokens']:,}" in page
    # Once more and by another key: the same figures, and the new ones beside them.
    mara.post("/key/rotate", {"at_once": "1"})
    api = ApiClient(stack.api, mara.reveal())
    assert api.call().status_code == 200
    assert until(mara, requests=10)["requests"] == 10
    assert len(set(re.findall(r"<code>(sk-….{4})</code>", mara.get("/usage/")))) == 2
    mara.post("/key/revoke")
    wait_until(lambda: "Create my key" in mara.get("/key/"), seconds=30, what="the key to be gone")
    assert today(mara)["requests"] == 10


def test_what_was_read_from_the_cache(stack: Stack, people: list[Visitor]) -> None:
    """As the engine tells it in `prompt_tokens_details`, on each of the routes."""
    mara = people[0]
    api = ApiClient(stack.api, mara.create_key())
    before = today(mara)
    told = 0
    for route in ROUTES:
        text = f"{route} " + "a word of a long beginning that stays the same " * 60
        cached = [cached_in(api.call(route, text=text).json()) for _time in range(2)]
        assert cached[1] > cached[0]
        told += sum(cached)
    wanted = before.get("cached_input_tokens", 0) + told
    found = until(mara, requests=before.get("requests", 0) + 6, cached_input_tokens=wanted)
    assert found["cached_input_tokens"] == wanted
    assert f"{wanted:,}" in mara.get("/usage/")


def cached_in(answer: dict[str, Any]) -> int:
    """By the names of OpenAI's two APIs, and of Anthropic's."""
    usage = answer["usage"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    return int(details.get("cached_tokens") or usage.get("cache_read_input_tokens") or 0)


def test_refusals_by_limit_and_what_is_left_now(stack: Stack, people: list[Visitor]) -> None:
    nora = people[1]
    nora.post("/key/rotate", {"at_once": "1"})
    api = ApiClient(stack.api, nora.reveal())
    answers = at_once([lambda: api.call(text="[sim:sleep=2] hello")] * 12)
    refused = sum(answer.status_code == 429 for answer in answers)
    assert refused > 0
    live = nora.http.get("/usage/live", headers={"HX-Request": "true"}).text
    assert re.search(r"\b88\s+of\s+100\b", live), live
    found = until(nora, refused_in_parallel=refused)
    assert found["refused_in_parallel"] == refused
    assert found["refused_requests_a_minute"] == 0
