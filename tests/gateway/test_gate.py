"""What a body may ask of the gateway: one answer of the model, and nothing of LiteLLM."""

import io
import json
import wave
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.gateway.client import ROUTES, Member, Models, body, statuses
from tests.waiting import at_once

SEVERAL = "Send several requests instead, up to your limit in parallel (5 as a rule)."


def post(member: Member, route: str, content: Any, **headers: str) -> httpx.Response:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    sent = {"content-type": "application/json", **member.headers, **headers}
    return member.http.post(route, headers=sent, content=raw)


def seen(models: Models) -> list[dict[str, Any]]:
    """Names of the fields of each call that the engine got."""
    found: list[dict[str, Any]] = httpx.get(f"{models.engine}/state").json()["fields"]
    return found


def refusal(message: str, field: str | None) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": field, "code": "400"}
    return {"error": error}


@pytest.mark.parametrize("route", [*ROUTES, "/v1/completions", "/v1/embeddings"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "The request body must be a JSON object."),
        (b'"x"', "The request body must be a JSON object."),
        (b"5", "The request body must be a JSON object."),
        (b"", "The request body is not valid JSON."),
        (b"{", "The request body is not valid JSON."),
        (b'{"model":"a\\ud800', "The request body is not valid JSON."),
        (b'{"model":"\xff"}', "The request body is not valid JSON."),
        (b"[" * 100_000, "The request body is not valid JSON."),
        (
            b'{"model":"nan","input":' + b"[" * 500 + b"]" * 500 + b',"stop":' + b"[" * 500,
            "The request body is not valid JSON.",
        ),
    ],
    ids=["list", "text", "number", "nothing", "cut", "surrogate", "latin", "deep", "open"],
)
def test_a_body_is_an_object(alice: Member, route: str, content: bytes, message: str) -> None:
    answer = post(alice, route, content)
    assert (answer.status_code, answer.json()) == (400, refusal(message, None))


def test_a_body_is_not_nested_without_end(alice: Member, models: Models) -> None:
    raw = json.dumps(body(ROUTES[0], models["plain"]))[:-1].encode()
    answer = post(alice, ROUTES[0], raw + b',"stop":' + b"[" * 500 + b"]" * 500 + b"}")
    expected = refusal("The request body is nested too deeply.", None)
    assert (answer.status_code, answer.json()) == (400, expected)


@pytest.mark.parametrize("route", [ROUTES[0], "/v1/completions"])
@pytest.mark.parametrize("name", ["n", "best_of"])
@pytest.mark.parametrize("value", [0, 2, 64, 1_000_000, "2", 1.5, True, [1], -1])
def test_one_request_is_one_answer(
    alice: Member, models: Models, route: str, name: str, value: Any
) -> None:
    asked = {"model": models["plain"], "prompt": "x", "messages": [], name: value}
    answer = post(alice, route, asked)
    message = f"`{name}` can only be 1. {SEVERAL}"
    assert (answer.status_code, answer.json()) == (400, refusal(message, name))


@pytest.mark.parametrize(
    ("route", "field", "value", "message"),
    [
        ("/v1/completions", "prompt", ["a", "b"], f"`prompt` can only be one prompt. {SEVERAL}"),
        ("/v1/completions", "prompt", [[1], [2]], f"`prompt` can only be one prompt. {SEVERAL}"),
        ("/v1/completions", "prompt", {}, "`prompt` must be a text."),
        (ROUTES[0], "model", "a,b", f"`model` can only name one model. {SEVERAL}"),
        (ROUTES[0], "model", ["a", "b"], "`model` must be the name of a model."),
        (ROUTES[0], "model", "a\0b", "`model` must be the name of a model."),
        (ROUTES[0], "messages", "x", "`messages` must be a list of objects."),
        (ROUTES[0], "messages", [[{"role": "user"}]], "`messages` must be a list of objects."),
        (ROUTES[1], "messages", ["x"], "`messages` must be a list of objects."),
        (ROUTES[2], "input", 5, "`input` must be a text or a list of objects."),
        (ROUTES[2], "tools", "x", "`tools` must be a list of objects."),
        (ROUTES[0], "stream", "yes", "`stream` must be true or false."),
        (ROUTES[0], "response_format", "x", "`response_format` must be an object."),
        (ROUTES[1], "thinking", "x", "`thinking` must be an object."),
        (ROUTES[1], "tool_choice", "x", "`tool_choice` must be an object."),
        (ROUTES[2], "reasoning", "x", "`reasoning` must be an object."),
        (ROUTES[0], "messages", [{}], "Each of `messages` needs a `role`."),
        (
            ROUTES[1],
            "messages",
            [{"role": "user", "content": 5}],
            "The `content` of a message must be a text or a list.",
        ),
        (ROUTES[0], "stream_options", "x", "`stream_options` must be an object."),
        (
            "/v1/embeddings",
            "input",
            ["a"] * 2049,
            "`input` can hold 2048 texts at most; send the rest after.",
        ),
    ],
)
def test_what_would_be_several_or_make_no_sense_is_refused(
    alice: Member, models: Models, route: str, field: str, value: Any, message: str
) -> None:
    answer = post(alice, route, {"model": models["plain"], field: value})
    assert (answer.status_code, answer.json()) == (400, refusal(message, field))


ELSEWHERE = (
    "Images, sounds and files come with the request, as `data:TYPE;base64,CONTENT`. "
    "Addresses and ids of files are not looked up."
)
INSIDE = "http://127.0.0.1:9/secret"
AROUND = {  # how a part stands in a body of each route
    ROUTES[0]: lambda part: {"messages": [{"role": "user", "content": [part]}]},
    ROUTES[1]: lambda part: {"max_tokens": 9, "messages": [{"role": "user", "content": [part]}]},
    ROUTES[2]: lambda part: {"input": [{"role": "user", "content": [part]}]},
}


@pytest.mark.parametrize("address", [INSIDE, "file:///etc/passwd", "https://example.org/a.png", ""])
@pytest.mark.parametrize(
    ("route", "part"),
    [
        (ROUTES[0], lambda a: {"type": "image_url", "image_url": {"url": a}}),
        (ROUTES[0], lambda a: {"image_url": a}),
        (ROUTES[0], lambda a: {"type": "video_url", "video_url": {"url": a, "detail": "low"}}),
        (ROUTES[0], lambda a: {"type": "audio_url", "audio_url": {"url": a}}),
        (ROUTES[0], lambda a: {"type": "file", "file": {"file_id": a}}),
        (ROUTES[0], lambda a: {"type": "text", "text": "x", "uuid": "1", "image_url": a}),
        (ROUTES[1], lambda a: {"type": "image", "source": {"type": "url", "url": a}}),
        (ROUTES[1], lambda a: {"type": "document", "source": {"type": "file", "file_id": a}}),
        (
            ROUTES[1],
            lambda a: {
                "type": "tool_result",
                "tool_use_id": "t",
                "content": [{"type": "image", "source": {"type": "url", "url": a}}],
            },
        ),
        (ROUTES[2], lambda a: {"type": "input_image", "image_url": a}),
        (ROUTES[2], lambda a: {"type": "input_file", "file_url": a}),
        (ROUTES[2], lambda a: {"type": "input_file", "file_id": a}),
    ],
)
def test_nothing_is_fetched_for_a_request(
    alice: Member, models: Models, route: str, part: Callable[[str], Any], address: str
) -> None:
    """Neither by LiteLLM nor by an engine: both stand in the servers' network."""
    before = len(seen(models))
    answer = post(alice, route, {"model": models["plain"], **AROUND[route](part(address))})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, ELSEWHERE)
    assert len(seen(models)) == before


def test_an_image_in_a_tools_result_is_looked_at_too(alice: Member, models: Models) -> None:
    found = {"type": "computer_screenshot", "image_url": INSIDE}
    item = {"type": "computer_call_output", "call_id": "c", "output": found}
    answer = post(alice, ROUTES[2], {"model": models["plain"], "input": [item]})
    assert (answer.status_code, answer.json()) == (400, refusal(ELSEWHERE, "input"))


PICTURE = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("route", "content"),
    [
        (ROUTES[0], [{"type": "image_url", "image_url": {"url": PICTURE}}]),
        (ROUTES[0], [{"type": "image_url", "image_url": {"url": "DATA" + PICTURE[4:]}}]),
        (ROUTES[0], [{"type": "text", "text": f"see {INSIDE}"}]),
        (ROUTES[0], INSIDE),
        (
            ROUTES[1],
            [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                }
            ],
        ),
        (ROUTES[2], [{"type": "input_image", "image_url": PICTURE}]),
    ],
)
def test_what_comes_along_passes(alice: Member, models: Models, route: str, content: Any) -> None:
    asked = AROUND[route]({})
    (asked.get("messages") or asked["input"])[0]["content"] = content
    answer = post(alice, route, {"model": models["plain"], **asked})
    assert answer.status_code == 200, answer.text


def test_what_a_tool_is_called_with_may_hold_any_address(alice: Member, models: Models) -> None:
    talk = [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "get", "input": {"url": INSIDE}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": f"seen {INSIDE}"}],
        },
    ]
    asked = {"model": models["plain"], "max_tokens": 9, "messages": talk}
    assert post(alice, ROUTES[1], asked).status_code == 200


def test_a_refused_body_takes_no_slot(alice: Member, models: Models) -> None:
    at_once([lambda: alice.chat(models["plain"], n=2)] * 10)
    assert statuses(at_once([lambda: alice.chat(models["slow"])] * 5)) == [200] * 5


STEERING = {
    "num_retries": 3,
    "max_retries": 3,
    "custom_llm_provider": "ollama",
    "fallbacks": ["x"],
    "context_window_fallbacks": [{"a": ["b"]}],
    "context_window_fallback_dict": {"a": "b"},
    "mock_response": "MOCKED",
    "mock_timeout": True,
    "mock_tool_calls": [],
    "timeout": 0.0001,
    "stream_timeout": 0.0001,
    "force_timeout": 0.0001,
    "request_timeout": 0.0001,
    "caching": True,
    "cache": {"ttl": 9999},
    "ttl": 5,
    "s-maxage": 5,
    "no-cache": True,
    "no-store": True,
    "no-log": True,
    "litellm_params": {"api_base": "http://127.0.0.1:1"},
    "litellm_metadata": {"tags": ["a"]},
    "litellm_call_id": "a",
    "litellm_session_id": "a",
    "tags": ["a"],
    "guardrails": ["x"],
    "policies": ["x"],
    "prompt_id": "x",
    "prompt_variables": {},
    "api_base": "http://127.0.0.1:1",
    "base_url": "http://127.0.0.1:1",
    "api_key": "x",
    "api_version": "x",
    "user_config": {"model_list": []},
    "langfuse_host": "http://127.0.0.1:1",
    "success_callback": ["x"],
    "extra_body": {"api_base": "http://127.0.0.1:1"},
    "extra_headers": {"a": "b"},
    "model_list": [],
    "router_settings_override": {},
    "specific_deployment": True,
    "user": "a\0b",
    "metadata": {"user_id": "a"},
    "safety_identifier": "a",
    "client_metadata": {"a": "b"},
    "background": True,
    "priority": -1,
    "mcp_servers": [],
}


@pytest.mark.parametrize("route", ROUTES)
def test_fields_that_steer_are_dropped_unread(alice: Member, models: Models, route: str) -> None:
    answer = alice.call(route, models["plain"], **STEERING)
    assert answer.status_code == 200, answer.text
    assert "Hello from upstream" in answer.text
    assert set(seen(models)[-1]["names"]) & set(STEERING) == set()


def test_retries_cannot_be_asked_for(alice: Member, models: Models) -> None:
    before = len(seen(models))
    assert alice.chat(models["error"], num_retries=50, max_retries=50).status_code == 500
    assert len(seen(models)) - before == 1


def test_a_query_does_not_steer(alice: Member, models: Models) -> None:
    asked = body(ROUTES[0], models["plain"])
    query = "?api_base=http://127.0.0.1:1&model=x&user=ZEBRA"
    assert post(alice, ROUTES[0] + query, asked).status_code == 200


def test_the_first_of_two_equal_names_is_not_read(alice: Member, models: Models) -> None:
    raw = json.dumps(body(ROUTES[0], models["plain"]))[:-1].encode()
    assert post(alice, ROUTES[0], raw + b',"n":9,"n":1}').status_code == 200
    assert post(alice, ROUTES[0], raw + b',"n":1,"n":9}').status_code == 400


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_json_is_json_whatever_its_header_says(alice: Member, models: Models, kind: str) -> None:
    asked = {**body(ROUTES[0], models["plain"]), "mock_response": "MOCKED"}
    answer = post(alice, ROUTES[0], asked, **{"content-type": kind})
    assert (answer.status_code, "MOCKED" in answer.text) == (200, False)


def test_half_an_emoji_is_replaced(alice: Member, models: Models) -> None:
    raw = json.dumps(body(ROUTES[0], models["plain"])).replace('"hi"', r'"hi \ud83d"').encode()
    assert post(alice, ROUTES[0], raw).status_code == 200


def test_32_mib_pass(alice: Member, models: Models) -> None:
    asked = body(ROUTES[0], models["plain"])
    asked["messages"][0]["content"] = "x" * (32 * 2**20 - 200)
    answer = post(alice, ROUTES[0], asked)
    assert answer.status_code == 200, answer.text


CHAT = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 20,
    "min_p": 0.1,
    "n": 1,
    "repetition_penalty": 1.1,
    "chat_template_kwargs": {"enable_thinking": False},
    "min_tokens": 1,
    "stop_token_ids": [1],
    "structured_outputs": {"regex": "a+"},
    "include_reasoning": False,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "response_format": {"type": "json_object"},
    "seed": 7,
    "logprobs": True,
    "top_logprobs": 2,
}


def test_fields_of_the_model_reach_it(alice: Member, models: Models) -> None:
    assert alice.chat(models["plain"], **CHAT).status_code == 200
    assert set(CHAT) - set(seen(models)[-1]["names"]) == set()


CLAUDE_CODE = {
    "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium"},
    "metadata": {"user_id": "a"},
    "tools": [{"name": "f", "description": "f", "input_schema": {"type": "object"}}],
}
CODEX = {
    "instructions": "a",
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "a",
    "service_tier": "auto",
    "text": {"verbosity": "medium"},
    "truncation": "auto",
    "client_metadata": {"a": "b"},
}
OPENCODE = {"stream_options": {"include_usage": True}, "max_tokens": 32, "tool_choice": "auto"}


@pytest.mark.parametrize(
    ("route", "fields"),
    [(ROUTES[0], OPENCODE), (ROUTES[1], CLAUDE_CODE), (ROUTES[2], CODEX)],
    ids=["opencode", "Claude Code", "Codex"],
)
def test_agents_requests_pass(
    alice: Member, models: Models, route: str, fields: dict[str, Any]
) -> None:
    answer = alice.call(route, models["plain"], stream=True, **fields)
    assert (answer.status_code, "Hello" in answer.text) == (200, True), answer.text


def test_a_client_that_leaves_is_noticed_behind_the_gate(alice: Member, models: Models) -> None:
    for route in ROUTES:
        alice.give_up(route, models["hang"], stream=False)
    assert statuses(at_once([lambda: alice.chat(models["slow"])] * 5)) == [200] * 5


def test_a_websocket_does_not_pass(alice: Member) -> None:
    upgrade = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    answer = alice.http.get("/v1/responses", headers={**alice.headers, **upgrade})
    assert answer.status_code == 403


def sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, 8000, 8, "NONE", ""))
        out.writeframes(b"\0" * 16)
    return file.getvalue()


def test_a_form_is_put_together_anew(alice: Member, models: Models) -> None:
    fields = {"model": models["plain"], "mock_response": "MOCKED", "user": "ZEBRA", "timeout": "0"}
    answer = alice.http.post(
        "/v1/audio/transcriptions",
        headers=alice.headers,
        data=fields,
        files={"file": ("ZEBRA.wav", sound(), "audio/wav")},
    )
    assert (answer.status_code, "MOCKED" in answer.text) == (200, False), answer.text
    assert set(seen(models)[-1]["names"]) & {"user", "mock_response", "timeout"} == set()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("application/json", "Send the file as multipart/form-data."),
        ("multipart/form-data", "The form could not be read."),
        ("multipart/form-data; boundary=a", "The form could not be read."),
    ],
)
def test_a_broken_form_is_refused(alice: Member, kind: str, message: str) -> None:
    answer = post(alice, "/v1/audio/transcriptions", b"{}", **{"content-type": kind})
    assert (answer.status_code, answer.json()) == (400, refusal(message, None))
