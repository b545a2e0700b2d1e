"""What a client program calls."""

import json

import httpx
import pytest

from tests.gateway.client import ROUTES, Gateway, Member, Models, body

TEXT = "Hello from upstream"


def events(answer: httpx.Response) -> list[dict]:
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_chat(alice: Member, models: Models) -> None:
    answer = alice.chat(models["plain"])
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == TEXT
    assert answer.json()["usage"]["total_tokens"] == 18


def test_chat_streamed(alice: Member, models: Models) -> None:
    answer = alice.chat(models["plain"], stream=True)
    words = [event["choices"][0]["delta"].get("content") or "" for event in events(answer)]
    assert "".join(words) == TEXT
    assert answer.text.rstrip().endswith("data: [DONE]")


def test_messages_with_either_header(alice: Member, models: Models) -> None:
    with_bearer = alice.call("/v1/messages", models["plain"])
    with_x_api_key = alice.http.post(
        "/v1/messages",
        headers={"x-api-key": alice.key, "anthropic-version": "2023-06-01"},
        json=body("/v1/messages", models["plain"]),
    )
    for answer in (with_bearer, with_x_api_key):
        assert answer.status_code == 200
        assert answer.json()["content"][0]["text"] == TEXT


def test_messages_streamed_in_anthropics_order(alice: Member, models: Models) -> None:
    found = events(alice.call("/v1/messages", models["plain"], stream=True))
    assert [event["type"] for event in found] == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_messages_reach_the_engine_as_messages_or_chat(alice: Member, models: Models) -> None:
    before = len(httpx.get(f"{models.engine}/state").json()["seen"])
    alice.call("/v1/messages", models["plain"])
    seen = httpx.get(f"{models.engine}/state").json()["seen"][before:]
    assert len(seen) == 1
    assert seen[0] in {"/v1/messages", "/v1/chat/completions"}


def test_count_tokens(alice: Member, models: Models) -> None:
    asked = {"model": models["plain"], "messages": [{"role": "user", "content": "hi"}]}
    answer = alice.http.post("/v1/messages/count_tokens", headers=alice.headers, json=asked)
    assert answer.status_code == 200
    assert answer.json()["input_tokens"] > 0


def test_responses(alice: Member, models: Models) -> None:
    answer = alice.call("/v1/responses", models["plain"])
    assert answer.status_code == 200
    assert answer.json()["output"][0]["content"][0]["text"] == TEXT


def test_responses_streamed(alice: Member, models: Models) -> None:
    found = events(alice.call("/v1/responses", models["plain"], stream=True))
    assert [event["type"] for event in found] == [
        "response.created",
        *["response.output_text.delta"] * 3,
        "response.completed",
    ]


def test_models_are_listed_with_their_context(alice: Member, models: Models) -> None:
    found = {model["id"]: model for model in alice.get("/v1/models").json()["data"]}
    assert found[models["plain"]]["max_input_tokens"] == 32768


@pytest.mark.parametrize("route", ROUTES)
def test_unknown_model_is_the_callers_error(alice: Member, models: Models, route: str) -> None:
    assert alice.call(route, "no-such-model").status_code == 400


@pytest.mark.parametrize("route", ROUTES)
def test_engine_errors_keep_their_status(alice: Member, models: Models, route: str) -> None:
    """Twice: with cooldowns on, the second would be a 429 `No deployments available`."""
    assert [alice.call(route, models["error"]).status_code for _ in range(2)] == [500, 500]
    assert [alice.call(route, models["missing"]).status_code for _ in range(2)] == [404, 404]


def test_probes_answer_without_a_key_and_call_no_model(gateway: Gateway, models: Models) -> None:
    """P11. The supervisor's probes; /health would call every model."""
    before = httpx.get(f"{models.engine}/state").json()["seen"]
    assert "connected" in httpx.get(f"{gateway.url}/health/readiness").text
    assert httpx.get(f"{gateway.url}/health/liveliness").status_code == 200
    assert httpx.get(f"{models.engine}/state").json()["seen"] == before
