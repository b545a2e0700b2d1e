"""What a client reads when her key or limit is refused, or the gateway fails or is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.edge.conftest import Scene
from tests.edge.errors import (
    BAD_GATEWAY,
    CHAT,
    HASH,
    MESSAGES,
    TIMEOUT,
    answering,
    anthropic,
    ask_both,
    litellm,
    openai,
    own_headers,
)
from tests.edge.running import running_edge
from tests.fakes.raw_http import Connection, RawServer, Request, post


def key_texts(scene: Scene) -> dict[str, str]:
    site = f"http://127.0.0.1:{scene.edge.site}"
    return {
        "invalid_api_key": "Invalid API key. Check that it was copied whole; if it was rotated or "
        f"revoked, create another at {site}/key/.",
        "blocked_api_key": "This API key is paused, revoked, or stopped by an admin. Its "
        f"state stands at {site}/key/.",
        "missing_api_key": 'No API key was sent. Send it as "Authorization: Bearer sk-..." or '
        f'"x-api-key: sk-...". Your key: {site}/key/.',
        "key_check_unavailable": "Your key can't be checked at the moment; this says nothing about "
        "the key. Keep it and try again in a few seconds.",
        "permission_denied": f"This API key may not do that. What keys may do: {site}/key/.",
        "model_unavailable": "The model is not available at the moment; this is not your limit. "
        "Try again in a few seconds.",
    }


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Authentication Error, Invalid API key provided.", "invalid_api_key"),
        (
            "LiteLLM Virtual Key expected. Received=abcd****wxyz, expected to start with 'sk-'.",
            "invalid_api_key",
        ),
        ("Authentication Error - Expired Key. Key Expiry time 2026-01-01", "invalid_api_key"),
        (
            "Authentication Error, Malformed API Key passed in. Ensure Key has `Bearer ` prefix.",
            "invalid_api_key",
        ),
        ("Authentication Error, No api key passed in.", "missing_api_key"),
        (
            "Authentication Error, Key is blocked. Update via `/key/unblock` if you're an admin.",
            "blocked_api_key",
        ),
    ],
)
def test_a_bad_key_is_told_what_to_do_and_not_to_retry(scene: Scene, said: str, code: str) -> None:
    chat, messages = ask_both(scene, answering(401, litellm(said)))
    text = key_texts(scene)[code]
    assert (chat.status, chat.json) == (401, openai(text, "authentication_error", code))
    assert (messages.status, messages.json) == (401, anthropic(text, "authentication_error"))
    assert own_headers(chat) == own_headers(messages) == {"x-should-retry": "false"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, litellm("Authentication Error, ClientNotConnectedError")),
        (401, litellm("Authentication Error, FATAL: sorry, too many clients already")),
        (401, litellm("Authentication Error, All connection attempts failed")),
        (401, b""),
        (401, b"<html>"),
        (400, litellm("No connected db.", "no_db_connection", 400)),
        (503, litellm("Service Unavailable, the authentication database", "no_db_connection", 503)),
    ],
)
def test_p6_a_database_outage_is_never_an_invalid_key(
    scene: Scene, status: int, body: bytes | dict[str, Any]
) -> None:
    chat, messages = ask_both(scene, answering(status, body))
    text = key_texts(scene)["key_check_unavailable"]
    assert (chat.status, chat.json) == (503, openai(text, "server_error", "key_check_unavailable"))
    assert (messages.status, messages.json) == (503, anthropic(text, "overloaded_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "5"}


def test_a_forbidden_call_is_not_retried(scene: Scene) -> None:
    said = "Virtual key is not allowed to call this route. Only allowed to call routes: ['/v1/x']"
    chat, messages = ask_both(scene, answering(403, {"detail": said}))
    text = key_texts(scene)["permission_denied"]
    assert (chat.status, chat.json) == (403, openai(text, "permission_error", "permission_denied"))
    assert (messages.status, messages.json) == (403, anthropic(text, "permission_error"))
    assert own_headers(chat) == own_headers(messages) == {"x-should-retry": "false"}


def limited(kind: str, number: int) -> dict[str, Any]:
    said = (
        f"Rate limit exceeded for api_key: {HASH}. Limit type: {kind}. Current limit: {number}, "
        "Remaining: 0. Limit resets at: 2026-11-29 16:00:00 UTC"
    )
    return litellm(said, "None", 429)


PARALLEL = (
    "Limit reached: {} requests in parallel. Wait until one of your running requests ends, then "
    "try again. Refused requests count towards your requests per minute."
)
PER_MINUTE = (
    "Limit reached: {} requests per minute. Try again in {} seconds at most. "
    "Refused requests count too."
)


@pytest.mark.parametrize(
    ("headers", "body", "text", "code", "wait"),
    [
        (
            {"rate_limit_type": "max_parallel_requests", "retry__after": "60"},
            limited("max_parallel_requests", 5),
            PARALLEL.format(5),
            "max_parallel_requests",
            "1",
        ),
        # /v1/messages loses the headers.
        (
            {},
            {"type": "error", "error": limited("max_parallel_requests", 4)["error"]},
            PARALLEL.format(4),
            "max_parallel_requests",
            "1",
        ),
        (
            {"rate_limit_type": "max_parallel_requests"},
            b"",
            PARALLEL.format("your number of"),
            "max_parallel_requests",
            "1",
        ),
        (
            {"rate_limit_type": "requests", "retry__after": "60"},
            limited("requests", 100),
            PER_MINUTE.format(100, 60),
            "requests_per_minute",
            "60",
        ),
        (
            {"rate_limit_type": "requests", "retry__after": "17"},
            limited("requests", 80),
            PER_MINUTE.format(80, 17),
            "requests_per_minute",
            "17",
        ),
        (
            {"rate_limit_type": "requests", "retry__after": "3600"},
            limited("requests", 100),
            PER_MINUTE.format(100, 60),
            "requests_per_minute",
            "60",
        ),
        ({}, limited("requests", 100), PER_MINUTE.format(100, 60), "requests_per_minute", "60"),
        (
            {"rate_limit_type": "requests", "x-ratelimit-api_key-limit-requests": "30"},
            b"",
            PER_MINUTE.format(30, 60),
            "requests_per_minute",
            "60",
        ),
    ],
)
def test_a_limit_says_which_how_much_and_when(
    scene: Scene,
    headers: dict[str, str],
    body: bytes | dict[str, Any],
    text: str,
    code: str,
    wait: str,
) -> None:
    chat, messages = ask_both(scene, answering(429, body, **headers))
    assert (chat.status, chat.json) == (429, openai(text, "rate_limit_error", code))
    assert (messages.status, messages.json) == (429, anthropic(text, "rate_limit_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": wait}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (429, "No deployments available for selected model, Try again in 5 seconds."),
        (429, "litellm.RateLimitError: RateLimitError: Hosted_vllmException - busy"),
        (429, "Deployment has all max_parallel_requests slots in use."),
        (529, "overloaded"),
        (503, "litellm.ServiceUnavailableError: http://10.1.2.3:8000/v1"),
    ],
)
def test_s16_an_outage_is_not_the_members_limit(scene: Scene, status: int, said: str) -> None:
    chat, messages = ask_both(scene, answering(status, litellm(said, "None", status)))
    text = key_texts(scene)["model_unavailable"]
    assert (chat.status, chat.json) == (503, openai(text, "server_error", "model_unavailable"))
    assert (messages.status, messages.json) == (503, anthropic(text, "overloaded_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "5"}


@pytest.mark.parametrize("status", [302, 500, 501, 502, 599])
def test_a_failing_gateway_is_a_502(scene: Scene, status: int) -> None:
    body = litellm(f"Traceback sk-secret {HASH} http://10.0.0.1:8000", "None", status)
    chat, messages = ask_both(scene, answering(status, body, location="http://10.0.0.1/"))
    assert (chat.status, chat.json) == (502, openai(BAD_GATEWAY, "server_error", "bad_gateway"))
    assert (messages.status, messages.json) == (502, anthropic(BAD_GATEWAY, "api_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "2"}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "litellm.AuthenticationError: Hosted_vllmException - Invalid API key"),
        (403, "litellm.PermissionDeniedError: Hosted_vllmException - no"),
    ],
)
def test_an_engine_that_refuses_the_gateway_is_not_the_members_fault(
    scene: Scene, status: int, said: str
) -> None:
    chat, _ = ask_both(scene, answering(status, litellm(said, "None", status)))
    assert (chat.status, chat.json) == (502, openai(BAD_GATEWAY, "server_error", "bad_gateway"))
    assert own_headers(chat) == {"retry-after": "2"}


@pytest.mark.parametrize("status", [408, 504])
def test_a_timeout_behind_the_gateway_is_a_504(scene: Scene, status: int) -> None:
    chat, messages = ask_both(scene, answering(status, litellm("litellm.Timeout", "None", status)))
    assert (chat.status, chat.json) == (504, openai(TIMEOUT, "server_error", "timeout"))
    assert (messages.status, messages.json) == (504, anthropic(TIMEOUT, "timeout_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "5"}


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_gateway_that_breaks_off_is_a_502(scene: Scene, path: str) -> None:
    def break_off(request: Request, connection: Connection) -> None:
        connection.socket.shutdown(2)

    scene.scripts["gateway"] = break_off
    answer = post(scene.edge.api, path)
    expected = (
        openai(BAD_GATEWAY, "server_error", "bad_gateway")
        if path == CHAT
        else anthropic(BAD_GATEWAY, "api_error")
    )
    assert (answer.status, answer.json) == (502, expected)
    assert own_headers(answer) == {"retry-after": "2"}
    assert len(scene.gateway.requests) == 1, "a request that has begun is never replayed"


def test_a_dead_gateway_is_a_503(tmp_path: Path) -> None:
    with running_edge(tmp_path) as edge:
        text = (
            "The API is not available at the moment. Nothing was run; try again in a few seconds."
        )
        chat, messages = post(edge.api, CHAT), post(edge.api, MESSAGES)
    assert (chat.status, chat.json) == (503, openai(text, "server_error", "service_unavailable"))
    assert (messages.status, messages.json) == (503, anthropic(text, "overloaded_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "5"}


def test_a_hanging_gateway_is_a_504(tmp_path: Path) -> None:
    def hang(request: Request, connection: Connection) -> None:
        connection.seconds_until_gone(5)

    with (
        RawServer(hang) as gateway,
        running_edge(tmp_path, gateway=gateway.address, stream_timeout="300ms") as edge,
    ):
        chat, messages = post(edge.api, CHAT), post(edge.api, MESSAGES)
    assert (chat.status, chat.json) == (504, openai(TIMEOUT, "server_error", "timeout"))
    assert (messages.status, messages.json) == (504, anthropic(TIMEOUT, "timeout_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "5"}


def test_if_the_rewriting_fails_nothing_of_the_gateway_gets_out(tmp_path: Path) -> None:
    def break_rewriting(run_dir: Path) -> None:
        lua = run_dir / "errors.lua"
        broken = lua.read_text().replace("local answer = classify(", "local answer = nothing(")
        lua.write_text(broken)

    with (
        RawServer(answering(400, litellm(f"at http://10.0.0.1:8000 {HASH}"))) as gateway,
        running_edge(tmp_path, sabotage=break_rewriting, gateway=gateway.address) as edge,
    ):
        chat, messages = post(edge.api, CHAT), post(edge.api, MESSAGES)
    assert (chat.status, chat.json) == (502, openai(BAD_GATEWAY, "server_error", "bad_gateway"))
    assert (messages.status, messages.json) == (502, anthropic(BAD_GATEWAY, "api_error"))
