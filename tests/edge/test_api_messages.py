"""Which words of an engine's error reach the client, whatever the gateway sends."""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import Any

import pytest

from tests.edge.conftest import Scene
from tests.edge.errors import (
    CHAT,
    HASH,
    TIMEOUT,
    answering,
    anthropic,
    ask_both,
    litellm,
    openai,
    own_headers,
)
from tests.fakes.raw_http import Connection, Request, post

CONTEXT = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "litellm.BadRequestError: Hosted_vllmException - "
            + json.dumps({"error": {"message": CONTEXT, "type": "BadRequestError", "code": 400}})
            + ". Received Model Group=nan\nAvailable Model Group Fallbacks=None",
            CONTEXT,
        ),
        (
            "litellm.ContextWindowExceededError: litellm.BadRequestError: "
            f"ContextWindowExceededError: Hosted_vllmException - {CONTEXT}\nReceived Model Group=x",
            CONTEXT,
        ),
        (
            f"litellm.BadRequestError: Hosted_vllmException - {CONTEXT}\n\nLiteLLM: model group "
            "'nan' failed with the error above. No fallback was attempted.",
            CONTEXT,
        ),
        ("anthropic_messages: Missing parameter: 'messages'.", "Missing parameter: 'messages'."),
        ("at http://10.0.0.1:8000/v1/x?y=1 failed", "at [removed] failed"),
        ("to host engine-1:8000, or 10.0.0.1, or [fd00::1]:80", "to host [removed], or [removed], "
         "or [removed]"),
        ("Connect call failed ('127.0.0.1', 8100)", "Connect call failed ('[removed])"),
        (f"key {HASH} and sk-abc_DEF-1234 and sk-...wxyz", "key [removed] and [removed] and "
         "[removed]"),
        ('say "hi" \\ back\nnext\ttab \x01 ñ 漢 😀', 'say "hi" \\ back\nnext\ttab \x01 ñ 漢 😀'),
        ("z" * 999 + "ñ" + "z" * 500, "z" * 999 + "..."),
        ("x " * 700 + HASH * 30, "x " * 500 + "..."),
        ("word " * 10 + HASH[:50] * 100, "word word word word word word word word word word"),
    ],
)  # fmt: skip
def test_the_engines_message_is_kept_without_secrets(scene: Scene, said: str, shown: str) -> None:
    chat, messages = ask_both(scene, answering(400, litellm(said, "None", 400)))
    assert (chat.status, chat.json) == (
        400,
        openai(shown, "invalid_request_error", "invalid_request"),
    )
    assert (messages.status, messages.json) == (400, anthropic(shown, "invalid_request_error"))
    assert own_headers(chat) == own_headers(messages) == {}


def test_an_unknown_model_is_named(scene: Scene) -> None:
    said = (
        "{'error': '/chat/completions: Invalid model name passed in model=gpt-9. Call `/v1/models` "
        "to view available models for your key.'}"
    )
    chat, messages = ask_both(scene, answering(400, litellm(said, "None", 400)))
    text = "Unknown model 'gpt-9'. GET /v1/models lists the models you can use."
    assert (chat.status, chat.json) == (
        404,
        openai(text, "invalid_request_error", "model_not_found"),
    )
    assert (messages.status, messages.json) == (404, anthropic(text, "not_found_error"))


@pytest.mark.parametrize(
    "said", ["Not Found", "litellm.NotFoundError: OpenAIException - Not Found"]
)
def test_a_model_that_answers_elsewhere(scene: Scene, said: str) -> None:
    """Its engine has no such route: a chat model's for embeddings, and the other way round."""
    chat, messages = ask_both(scene, answering(404, litellm(said, "None", 404)))
    text = (
        "This model does not answer at this address. Embedding models answer at /v1/embeddings, "
        "all others at /v1/chat/completions, /v1/messages and /v1/responses."
    )
    assert (chat.status, chat.json) == (404, openai(text, "invalid_request_error", "wrong_api"))
    assert (messages.status, messages.json) == (404, anthropic(text, "not_found_error"))


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        (404, {"detail": "No such adapter"}, "No such adapter"),
        (422, {"detail": [{"loc": ["body", "n"], "msg": "Field required"}]}, "Field required"),
        (400, {"error": "no such voice"}, "no such voice"),
        (400, b'data: {"error": {"message": "too long", "code": "400"}}\n\n', "too long"),
    ],
)
def test_other_error_shapes_are_read(
    scene: Scene, status: int, body: bytes | dict[str, Any], shown: str
) -> None:
    chat, _ = ask_both(scene, answering(status, body))
    assert (chat.status, chat.json["error"]["message"]) == (status, shown)


GENERAL = "The request was refused: check its fields against the API's documentation."
LONE = b'{"error":{"message":"a\\ud800b \\ud83d\\ude00 \\u00f1"}}'


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", GENERAL),
        (b"<html>10.0.0.1</html>", GENERAL),
        (b'{"error":{"message":"never ends', GENERAL),
        (b'{"error":{"message":"bad \\u12"}}', GENERAL),
        (b'{"error":{"message":""}}', GENERAL),
        (b'{"error":{"message":null}}', GENERAL),
        (b'{"error":{"message":"' + b"y" * 100_000 + b'"}}', GENERAL),
        (b'{"error":{"message":"' + b"\\" * 100_000, GENERAL),
        (b'{"message":' * 9_000, GENERAL),
        (b"\xff\xfe\x00" * 30_000, GENERAL),
        (b'{"error":{"message":"raw \xff\xed\xa0\x80 end"}}', "raw � end"),
        (b'{"error":{"message":"quote \\" slash \\\\ nul \\u0000 del \x7f"}}',
         'quote " slash \\ nul \x00 del \x7f'),
        (b'{"error":{"message":"a\\udc00\\udc00b"}}', "a�b"),
        (LONE, "a�b 😀 ñ"),
    ],
)  # fmt: skip
def test_hostile_bodies_become_valid_json(scene: Scene, body: bytes, shown: str) -> None:
    chat, messages = ask_both(scene, answering(400, body))
    assert (chat.status, messages.status) == (400, 400)
    # How many marks a broken sequence gives is of no matter.
    assert re.sub("�+", "�", chat.json["error"]["message"]) == shown
    assert re.sub("�+", "�", messages.json["error"]["message"]) == shown


@pytest.mark.parametrize(
    "text", ["a.", "::1", "sk-", "'message': '", '\\"message\\": \\"', "http://"]
)
def test_hostile_texts_cost_little_time(scene: Scene, text: str) -> None:
    body = b'{"error":{"message":"' + (text * 15_000)[:15_000].encode() + b'x"}}'
    scene.scripts["gateway"] = answering(400, body)
    begun = time.monotonic()
    assert post(scene.edge.api, CHAT).json["error"]["type"] == "invalid_request_error"
    assert time.monotonic() - begun < 0.5


def test_an_error_body_that_never_ends_is_answered(scene: Scene) -> None:
    def hang(request: Request, connection: Connection) -> None:
        connection.send(b"HTTP/1.1 400 Bad\r\ncontent-length: 500\r\n\r\n{")
        connection.seconds_until_gone(5)

    chat, messages = ask_both(scene, hang)
    assert (chat.status, chat.json) == (504, openai(TIMEOUT, "server_error", "timeout"))
    assert (messages.status, messages.json) == (504, anthropic(TIMEOUT, "timeout_error"))


def test_the_connection_serves_on_after_an_error(scene: Scene) -> None:
    scene.scripts["gateway"] = answering(400, b"y" * 100_000)
    connection = http.client.HTTPConnection("127.0.0.1", scene.edge.api, timeout=5)
    for _ in range(3):
        connection.request("POST", CHAT, b"{}")
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["error"]["message"]) == (400, GENERAL)
    connection.close()


@pytest.mark.parametrize(
    "said",
    [
        "litellm.APIConnectionError: Hosted_vllmException - 'str' object has no attribute 'get'",
        "'int' object is not iterable",
        "'<' not supported between instances of 'str' and 'int'",
        "f() got an unexpected keyword argument 'x'",
        "Traceback (most recent call last):",
    ],
)
def test_pythons_words_are_replaced(scene: Scene, said: str) -> None:
    chat, messages = ask_both(scene, answering(400, litellm(said, "None", 400)))
    assert (chat.status, chat.json) == (
        400,
        openai(GENERAL, "invalid_request_error", "invalid_request"),
    )
    assert (messages.status, messages.json) == (400, anthropic(GENERAL, "invalid_request_error"))


def test_a_field_that_the_gateway_would_obey_is_a_400(scene: Scene) -> None:
    """It says so with a 401, which would read as a wrong key or as an outage."""
    said = "Authentication Error, Rejected Request: api_base is not allowed in request body. Enable"
    chat, messages = ask_both(scene, answering(401, litellm(said)))
    text = (
        "The request has a field that is not allowed. Send only fields of the API's documentation."
    )
    assert (chat.status, chat.json) == (
        400,
        openai(text, "invalid_request_error", "invalid_request"),
    )
    assert (messages.status, messages.json) == (400, anthropic(text, "invalid_request_error"))
    assert own_headers(chat) == own_headers(messages) == {}


def test_the_gates_own_words_reach_the_caller(scene: Scene) -> None:
    said = "`n` can only be 1. Send several requests instead, up to your limit in parallel (5)."
    chat, messages = ask_both(scene, answering(400, litellm(said, "invalid_request_error", 400)))
    assert (chat.json["error"]["message"], messages.json["error"]["message"]) == (said, said)
