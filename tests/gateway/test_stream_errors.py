"""A stream that breaks off: the caller is told, in her API's shape, and nothing of the inside."""

import json

import httpx
import openai
import pytest

from tests.gateway.client import ROUTES, Member, Models
from tests.gateway.test_routes import TEXT, events

# What the engine's address, files and exceptions, LiteLLM's classes and the prompt look like.
INSIDE = (
    "10.9.8.7",
    "8100",
    "/opt/",
    "EngineCore",
    "vllm",
    "itellm",
    "Transfer",
    "input was",
    "//",
)
MANNERS = ("cut", "broken")


def last_error(route: str, answer: httpx.Response) -> dict:
    """The error of the last event that has one."""
    found = [event for event in events(answer) if "error" in json.dumps(event)]
    return found[-1]["response"]["error"] if route == "/v1/responses" else found[-1]["error"]


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("route", ROUTES)
def test_a_broken_stream_ends_with_an_error_and_names_nothing_inside(
    alice: Member, models: Models, route: str, manner: str
) -> None:
    answer = alice.call(route, models[manner], stream=True)
    text = json.dumps(last_error(route, answer))
    assert "The model's server broke the answer off." in text
    # Its ids are random letters, and an API's own event may carry the model's name.
    told = [line for line in answer.text.splitlines() if '"error"' in line or "message" in line]
    told = [line.replace(models.prefix, "").replace("fake-", "") for line in told]
    assert [word for word in INSIDE for line in told if word in line] == []


@pytest.mark.parametrize(
    ("route", "error"),
    [
        ("/v1/chat/completions", {"type": "server_error", "param": None, "code": "500"}),
        ("/v1/messages", {"type": "api_error"}),
        ("/v1/responses", {"code": "server_error"}),
    ],
)
def test_the_error_has_the_apis_shape(
    alice: Member, models: Models, route: str, error: dict
) -> None:
    found = last_error(route, alice.call(route, models["broken"], stream=True))
    del found["message"]
    assert found == error


@pytest.mark.parametrize("route", ROUTES)
def test_what_came_before_the_error_arrives(alice: Member, models: Models, route: str) -> None:
    answer = alice.call(route, models["broken"], stream=True)
    missing = [word for word in TEXT.split() if word not in answer.text]
    # The fake's third event on Messages and Responses comes before the whole text has.
    assert missing in ([], ["upstream"])


def test_a_whole_stream_of_responses_is_as_the_engine_sent_it(
    alice: Member, models: Models
) -> None:
    found = events(alice.call("/v1/responses", models["plain"], stream=True))
    assert "".join(event.get("delta", "") for event in found) == TEXT
    assert "error" not in [event["type"] for event in found]


def test_the_openai_package_raises_it(alice: Member, models: Models) -> None:
    client = openai.OpenAI(base_url=f"{alice.http.base_url}/v1", api_key=alice.key, max_retries=0)
    with pytest.raises(openai.APIError, match="broke the answer off") as caught:
        for _ in client.chat.completions.create(
            model=models["broken"], messages=[{"role": "user", "content": "hi"}], stream=True
        ):
            pass
    assert caught.value.code == "500"
