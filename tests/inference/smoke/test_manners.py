"""Faults on the wire: order, halves, slowness, other programs. Each is named by its own code."""

from collections.abc import Callable
from typing import Any

import pytest

from inference import smoke
from inference.engine import Engine
from inference.smoke.words import WORDS
from tests.fakes.engine import (
    CALL,
    NAME,
    PLACE,
    TEXT,
    THOUGHT,
    Manners,
    chat_answer,
    engine_with,
    message_answer,
    message_events,
    response_call,
    response_events,
)

LIMITS = smoke.Limits(first=5, whole=8)
HURRIED = smoke.Limits(first=0.4, whole=1.2)
"""Where something comes late or never; all else may take its time on a busy machine."""
LATE = ("smoke_slow", "smoke_hang", "smoke_stream_hang", "smoke_stalled")
TARGET = smoke.Target(name=NAME, capabilities=frozenset({"chat", "tools", "speculative"}))
Change = Callable[[Manners], None]


def outcome(check: str, change: Change, *, code: str = "") -> smoke.Outcome:
    """`code`: the expected one."""
    limits = HURRIED if code in LATE else LIMITS
    with engine_with(change) as url, Engine(url) as engine:
        found = smoke.run(check, engine, TARGET, limits=limits)
    assert found.seconds < limits.whole + 1
    return found


def nothing(manners: Manners) -> None:
    pass


def put(name: str, value: Any) -> Change:
    return lambda manners: setattr(manners, name, value)


def drop(name: str, number: int) -> Change:
    return lambda manners: getattr(manners, name).pop(number)


def swap(one: int, other: int) -> Change:
    def change(manners: Manners) -> None:
        events = manners.messages
        events[one], events[other] = events[other], events[one]

    return change


def repeat(number: int) -> Change:
    return lambda manners: manners.messages.insert(number, manners.messages[number])


def event(number: int, **new: Any) -> Change:
    def change(manners: Manners) -> None:
        name, data = manners.messages[number]
        manners.messages[number] = (name, {**data, **new})

    return change


def rename(number: int, name: str) -> Change:
    def change(manners: Manners) -> None:
        manners.messages[number] = (name, manners.messages[number][1])

    return change


def chunk(number: int, **delta: Any) -> Change:
    return lambda manners: manners.chunks[number]["choices"][0]["delta"].update(delta)


WELL = ["health", "names", "chat", "stream", "thinking_off", "message", "messages",
        "messages_tools", "responses_tools"]  # fmt: skip


@pytest.mark.parametrize("check", WELL)
def test_without_a_bad_manner_all_is_well(check: str) -> None:
    assert outcome(check, nothing).code == ""


TEXT_DELTA = {"type": "text_delta", "text": "x"}
THINKING_DELTA = {"type": "thinking_delta", "thinking": "x"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(drop("messages", 0), id="no message_start"),
        pytest.param(repeat(0), id="message_start twice"),
        pytest.param(drop("messages", 1), id="a delta before its block"),
        pytest.param(drop("messages", 3), id="a block in a block"),
        pytest.param(repeat(3), id="a block closed twice"),
        pytest.param(swap(5, 6), id="a delta after its block"),
        pytest.param(event(4, index=5), id="an index out of count"),
        pytest.param(event(2, delta=TEXT_DELTA), id="text in a thinking block"),
        pytest.param(event(5, delta=THINKING_DELTA), id="thoughts in a text block"),
        pytest.param(drop("messages", 7), id="no message_delta"),
        pytest.param(swap(7, 8), id="message_stop too early"),
        pytest.param(swap(6, 7), id="message_delta within a block"),
        pytest.param(drop("messages", 6), id="a block never closed"),
        pytest.param(rename(8, "ping"), id="name and type differ"),
    ],
)
def test_a_wrong_order_of_events(change: Change) -> None:
    assert outcome("messages", change).code == "smoke_events"


@pytest.mark.parametrize(
    ("check", "change", "code"),
    [
        pytest.param("messages", drop("messages", 8), "smoke_half_stream", id="no end"),
        pytest.param("messages", event(7, usage=None), "smoke_usage", id="messages: no usage"),
        pytest.param("messages", event(7, delta={}), "smoke_finish", id="no stop_reason"),
        pytest.param("stream", drop("chunks", 4), "smoke_usage", id="no usage chunk"),
        pytest.param("stream", drop("chunks", 3), "smoke_finish", id="no finish chunk"),
        pytest.param("stream", put("done", False), "smoke_half_stream", id="no [DONE]"),
        pytest.param("stream", put("cut", True), "smoke_broken_off", id="cut"),
        pytest.param("stream", put("before", {1: 0.7}), "smoke_slow", id="slow first token"),
        pytest.param("stream", put("before", {1: 9}), "smoke_stream_hang", id="only a role"),
        pytest.param("stream", put("before", {2: 9}), "smoke_stalled", id="silent in its middle"),
        pytest.param("stream", chunk(1, content="</think>"), "smoke_think_in_content", id="tag"),
        pytest.param("stream", put("stream_type", "text/html"), "smoke_unreadable", id="a page"),
        pytest.param("chat", put("chat", b"<html>502"), "smoke_unreadable", id="HTML"),
        pytest.param("chat", put("chat", b"[]"), "smoke_unreadable", id="a list"),
        pytest.param("chat", put("chat", b"{}"), "smoke_unreadable", id="no choices"),
        pytest.param("chat", put("cut", True), "smoke_broken_off", id="half an answer"),
        pytest.param("chat", put("drip", 0.1), "smoke_hang", id="a byte now and then"),
        pytest.param("chat", put("status", 503), "smoke_server_error", id="503"),
        pytest.param("chat", put("status", 400), "smoke_refused", id="400"),
        pytest.param("names", put("models", ["x"]), "smoke_name_unknown", id="another name"),
    ],
)
def test_each_manner_is_named(check: str, change: Change, code: str) -> None:
    assert outcome(check, change, code=code).code == code
    assert code in WORDS


@pytest.mark.parametrize(
    ("check", "answer", "code"),
    [
        ("chat", chat_answer(content=None), "smoke_empty"),
        ("reasoning", chat_answer(), "smoke_reasoning_missing"),
        ("chat", chat_answer(content=" \n"), "smoke_empty"),
        ("chat", {**chat_answer(), "model": "other"}, "smoke_wrong_model"),
        ("chat", {**chat_answer(), "usage": None}, "smoke_usage"),
        ("chat", {**chat_answer(), "usage": {"prompt_tokens": 9}}, "smoke_usage"),
        ("chat", {**chat_answer(), "choices": [{"message": {"content": "x"}}]}, "smoke_finish"),
        ("tools", chat_answer(content="<tool_call>{}</tool_call>"), "smoke_tool_call_lost"),
        (
            "tools",
            chat_answer(tool_calls=[{"function": {"name": "weather", "arguments": '{"city"'}}]),
            "smoke_tool_arguments",
        ),
        (
            "tools",
            chat_answer(tool_calls=[{"function": {"name": "weather", "arguments": "{}"}}]),
            "smoke_tool_arguments",
        ),
        (
            "tools",
            chat_answer(tool_calls=[{"function": {"name": "other", "arguments": "{}"}}]),
            "smoke_tool_call_lost",
        ),
    ],
)
def test_each_wrong_answer_is_named(check: str, answer: dict[str, Any], code: str) -> None:
    assert outcome(check, put("chat", answer)).code == code


def said(*blocks: Any, end: str = "tool_use") -> Change:
    return put("messages_call", message_events(*blocks, end=end))


OTHER = {**CALL, "name": "other"}
IN_WORDS = (TEXT[0], {"text": "<tool_call>{}</tool_call>"})


@pytest.mark.parametrize(
    ("change", "code", "detail"),
    [
        (said(TEXT, end="end_turn"), "smoke_tool_call_lost", "none made"),
        (said(IN_WORDS, end="end_turn"), "smoke_tool_call_lost", "left in the content"),
        (said((OTHER, PLACE)), "smoke_tool_call_lost", "a call of another name"),
        (said((CALL, {"partial_json": '{"city"'})), "smoke_tool_arguments", "not JSON"),
        (
            said((CALL, {"partial_json": "{}"})),
            "smoke_tool_arguments",
            "a required argument is missing",
        ),
        (said((CALL, PLACE), end="end_turn"), "smoke_finish", "stop_reason end_turn"),
        (drop("messages_call", 0), "smoke_events", "content_block_start before message_start"),
        (drop("messages_call", 5), "smoke_half_stream", "no message_stop"),
        (put("before", {2: 9}), "smoke_stalled", ""),
    ],
)
def test_a_tool_call_over_messages(change: Change, code: str, detail: str) -> None:
    """As Claude Code asks for it, streamed."""
    found = outcome("messages_tools", change, code=code)
    assert (found.code, found.detail) == (code, detail)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (put("responses", response_events({"type": "message"})), "smoke_tool_call_lost"),
        (put("responses", response_events(response_call("other"))), "smoke_tool_call_lost"),
        (
            put("responses", response_events(response_call(arguments="{"))),
            "smoke_tool_arguments",
        ),
        (drop("responses", 1), "smoke_half_stream"),
    ],
)
def test_a_tool_call_over_responses(change: Change, code: str) -> None:
    """As Codex asks for it, streamed."""
    assert outcome("responses_tools", change).code == code


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"content": []}, "smoke_empty"),
        ({"content": [{"type": "thinking", "thinking": "x"}]}, "smoke_empty"),
        ({"content": [{"type": "text", "text": "</think> Hi"}]}, "smoke_think_in_content"),
        ({"content": "Hi"}, "smoke_unreadable"),
        ({"stop_reason": None}, "smoke_finish"),
        ({"usage": {"input_tokens": 9}}, "smoke_usage"),
    ],
)
def test_a_message_that_is_not_streamed(changed: dict[str, Any], code: str) -> None:
    assert outcome("message", put("message", message_answer(**changed))).code == code


def test_thoughts_that_used_up_a_message_s_limit_are_no_empty_answer() -> None:
    cut = message_answer(content=[{"type": "thinking", "thinking": "x"}], stop_reason="max_tokens")
    assert outcome("message", put("message", cut)).ok
    thinking = said(THOUGHT, end="max_tokens")
    assert outcome("messages_tools", thinking).ok


def taken_for_thoughts(manners: Manners) -> None:
    """A parser that waits for the end of thoughts which never began."""
    manners.chat = chat_answer(content=None, reasoning="Hello there.")
    manners.chat["choices"][0]["finish_reason"] = "length"


@pytest.mark.parametrize(
    ("change", "code", "detail"),
    [
        (put("chat", chat_answer(reasoning="A greeting.")), "smoke_thinks_anyway", "chat"),
        (taken_for_thoughts, "smoke_thinks_anyway", "chat"),
        (chunk(1, reasoning="A greeting."), "smoke_thinks_anyway", "chat, streamed"),
        (
            put("messages_quiet", message_events(THOUGHT, TEXT, end="end_turn")),
            "smoke_thinks_anyway",
            "messages",
        ),
        (put("chat", chat_answer(content="</think> Hi")), "smoke_think_in_content", "</think>"),
        (put("chat", chat_answer(content=None)), "smoke_empty", "content is null"),
    ],
)
def test_thoughts_that_were_turned_off(change: Change, code: str, detail: str) -> None:
    found = outcome("thinking_off", change)
    assert (found.code, found.detail) == (code, detail)
    assert code in WORDS


def test_a_model_without_a_switch_may_think() -> None:
    def always(manners: Manners) -> None:
        manners.chat, manners.switch = chat_answer(reasoning="A greeting."), False

    assert outcome("thinking_off", always).ok


def test_thinking_that_used_up_the_limit_is_no_empty_answer() -> None:
    answer = chat_answer(content=None, reasoning="First,")
    answer["choices"][0]["finish_reason"] = "length"
    assert outcome("chat", put("chat", answer)).ok


@pytest.mark.parametrize(("accepted", "ok"), [(0, False), (7, True)])
def test_drafts_that_are_never_accepted(accepted: int, ok: bool) -> None:
    found = outcome("speculative", put("accepted_each", accepted))
    assert (found.ok, found.code) == (ok, "" if ok else "smoke_speculative")
    assert found.detail == ("" if ok else "0 of 12 accepted")


def test_no_word_of_an_answer_is_in_an_outcome() -> None:
    secret = {**chat_answer(content="tell nobody 4711"), "model": "4711", "usage": {"4711": 4711}}
    assert "4711" not in repr(outcome("chat", put("chat", secret)))
