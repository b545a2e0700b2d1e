"""Requests that nobody sends by mistake, from outside through the whole product."""

import json

import httpx
import pytest

from tests.api import ROUTES, EngineCounts, payload
from tests.stack import Stack
from tests.visitor import members


@pytest.fixture(scope="module")
def headers(stack: Stack) -> dict[str, str]:
    (person,) = members(stack, 1)
    return {"Authorization": f"Bearer {person.create_key()}", "Content-Type": "application/json"}


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "script_name", "Script-Name", "PATH_INFO"])
@pytest.mark.parametrize("page", ["metrics", "readyz"])
def test_a_header_does_not_open_internal_pages(stack: Stack, name: str, page: str) -> None:
    for base in (stack.site, stack.url("web")):
        for value in ("/x", "//evil.example", "/y"):
            answer = httpx.get(f"{base}/x/{page}", headers={name: value})
            assert (base, answer.status_code, "evil.example" in answer.text) == (base, 404, False)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("body", ["[]", '"x"', "{", "5"])
def test_a_body_that_is_no_object_is_a_400(
    stack: Stack, headers: dict[str, str], route: str, body: str
) -> None:
    answer = httpx.post(stack.api + route, content=body, headers=headers)
    assert (answer.status_code, "request body" in answer.json()["error"]["message"]) == (400, True)


def test_a_million_answers_are_refused_and_the_gateway_stays(
    stack: Stack, headers: dict[str, str], engine: EngineCounts
) -> None:
    with engine.unwatched():
        before = engine.read()["started"]
        asked = {**payload(ROUTES[0], "hello"), "n": 1_000_000}
        answer = httpx.post(stack.api + ROUTES[0], content=json.dumps(asked), headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == (
            "`n` can only be 1. Send several requests instead, up to your limit in parallel "
            "(5 as a rule)."
        )
        assert engine.read()["started"] == before


@pytest.mark.parametrize("route", ROUTES)
def test_fields_and_queries_that_steer_are_not_obeyed(
    stack: Stack, headers: dict[str, str], route: str, engine: EngineCounts
) -> None:
    with engine.unwatched():
        before = engine.read()["started"]
        steering = {
            "num_retries": 20,
            "api_base": "http://127.0.0.1:1",
            "langfuse_host": "http://127.0.0.1:1",
            "user_config": {"model_list": []},
            "mock_response": "MOCKED",
            "custom_llm_provider": "ollama",
            "user": "a\0b",
        }
        url = f"{stack.api}{route}?api_base=http://127.0.0.1:1"
        asked = {**payload(route, "hello"), **steering}
        answer = httpx.post(url, content=json.dumps(asked), headers=headers, timeout=60)
        assert (answer.status_code, "MOCKED" in answer.text) == (200, False), answer.text
        asked |= payload(route, "[sim:status=500] hello")
        answer = httpx.post(url, content=json.dumps(asked), headers=headers, timeout=60)
        assert answer.status_code == 502
        assert engine.read()["started"] - before <= 2
