"""The one header that reaches an engine: the same along a conversation, and nobody's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.gateway.client import ROUTES, Gateway, Member, Models

COMPLETIONS = "/v1/completions"
ALL = (*ROUTES, COMPLETIONS)
HEADER = "x-affinity"
SAID = "Why does the build fail?"


@pytest.fixture
def bob(gateway: Gateway, models: Models) -> Iterator[Member]:
    with gateway.member() as member:
        yield member


def asked(route: str, text: str, *, turns: int = 1) -> dict[str, Any]:
    """A conversation that began with `text`, as it is sent at its `turns`th turn."""
    if route == COMPLETIONS:
        return {"prompt": (text + " ") * 200 + "more " * turns}
    answers = [("assistant", "Let me see."), ("user", "Go on.")] * (turns - 1)
    messages = [{"role": role, "content": said} for role, said in [("user", text), *answers]]
    if route == "/v1/responses":
        return {"input": messages, "instructions": f"Turn {turns}"}
    return {"messages": messages, "max_tokens": 9}


def headers_of_last(models: Models) -> dict[str, str]:
    return dict(httpx.get(f"{models.engine}/state").json()["headers"][-1])


@pytest.fixture
def value(models: Models) -> Callable[..., str | None]:
    """What the engine gets with a call."""

    def call(member: Member, route: str, content: dict[str, Any], **headers: str) -> str | None:
        sent = {"model": models["plain"], **content}
        answer = member.http.post(route, headers={**member.headers, **headers}, json=sent)
        assert answer.status_code == 200, answer.text
        found = headers_of_last(models).get(HEADER)
        assert not found or found not in f"{answer.headers}{answer.text}"
        return found

    return call


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ALL)
def test_a_conversation_keeps_its_value(
    alice: Member, bob: Member, value: Callable[..., str | None], route: str, stream: bool
) -> None:
    first = value(alice, route, {**asked(route, SAID), "stream": stream})
    assert re.fullmatch("[0-9a-f]{16}", first or "")
    for turns in (2, 3):
        again = {**asked(route, SAID, turns=turns), "stream": stream}
        assert value(alice, route, again) == first
    assert value(alice, route, asked(route, "Another matter.")) != first
    assert value(bob, route, asked(route, SAID)) != first


@pytest.mark.parametrize("route", ALL)
def test_a_client_cannot_choose_it_or_any_other_header(
    alice: Member, models: Models, value: Callable[..., str | None], route: str
) -> None:
    first = value(alice, route, asked(route, SAID))
    chosen = {HEADER: "chosen", "x-other": "chosen", "x-request-id": "chosen"}
    fields = {"extra_headers": chosen, "headers": chosen, "default_headers": chosen}
    assert value(alice, route, {**asked(route, SAID), **fields}, **chosen) == first
    assert "chosen" not in headers_of_last(models).values()


def test_what_agents_change_from_turn_to_turn_does_not_count(
    alice: Member, value: Callable[..., str | None]
) -> None:
    """Claude Code: a line of the system prompt, the marks, and a text for a list with it."""
    mark = {"cache_control": {"type": "ephemeral"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    texts = [{"type": "text", "text": SAID, **mark}]

    def call(content: Any, more: dict[str, Any]) -> str | None:
        messages = [{"role": "user", "content": content}]
        return value(alice, ROUTES[1], {"messages": messages, "max_tokens": 9, **more})

    one, other, drawn, marked = (
        call(content, more)
        for content, more in (
            (texts, {"system": [{"type": "text", "text": "cch=1", **mark}]}),
            (SAID, {"system": [{"type": "text", "text": "cch=2"}]}),
            ([*texts, picture], {}),
            ([*texts, {**picture, **mark}], {}),
        )
    )
    assert (one, drawn) == (other, marked)
    assert one != drawn


def test_the_task_counts_and_not_only_the_folder_that_it_is_in(
    alice: Member, value: Callable[..., str | None]
) -> None:
    def task(text: str) -> str | None:
        roles = [("developer", "Be brief."), ("user", "<cwd>/home</cwd>"), ("user", text)]
        return value(alice, ROUTES[2], {"input": [{"role": r, "content": c} for r, c in roles]})

    assert task("Fix it.") == task("Fix it.") != task("Explain it.")


def test_a_client_s_own_name_for_the_conversation_counts(
    alice: Member, bob: Member, value: Callable[..., str | None]
) -> None:
    first = value(alice, ROUTES[2], {"input": "a", "prompt_cache_key": "session-1"})
    assert value(alice, ROUTES[2], {"input": "b", "prompt_cache_key": "session-1"}) == first
    assert value(alice, ROUTES[2], {"input": "a", "prompt_cache_key": "session-2"}) != first
    assert value(bob, ROUTES[2], {"input": "a", "prompt_cache_key": "session-1"}) != first


def test_the_routes_have_one_value_for_one_beginning(
    alice: Member, value: Callable[..., str | None]
) -> None:
    first = value(alice, ROUTES[0], asked(ROUTES[0], SAID))
    assert [value(alice, route, asked(route, SAID)) for route in ROUTES] == [first] * 3
