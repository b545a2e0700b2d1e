"""Checks of what agents live on beside chat: tool calls over `/v1/messages` and `/v1/responses`;
and of a message that is not streamed, as programs ask for it. The probes make them too.

Here nothing common to all models turns thoughts off. An answer that was cut off while the model
still thought says nothing against it.
"""

from collections.abc import Iterator
from typing import Any

from inference.engine import Event
from inference.smoke import expecting
from inference.smoke.answers import Answer, ToolCall
from inference.smoke.asking import Failed, Run
from inference.smoke.chat_checks import HELLO, LONG, TOOL, room
from inference.smoke.events import read_message

_ASKED = "Use the tool to look up the weather in Lisbon."
_FUNCTION = TOOL["function"]


def message(run: Run) -> None:
    asked = [{"role": "user", "content": HELLO}]
    body = {"messages": asked, "max_tokens": room(run), "temperature": 0}
    answer = run.post("/v1/messages", body)
    try:
        kinds = {str(block["type"]): block for block in answer["content"]}
        text = str(kinds.get("text", {}).get("text", ""))
    except (KeyError, TypeError, AttributeError):
        raise Failed("smoke_unreadable", "no blocks") from None
    expecting.no_thoughts_in(text)
    cut = answer.get("stop_reason") == "max_tokens"
    if not text.strip() and not (cut and "thinking" in kinds):
        raise Failed("smoke_empty", "no text block")
    if answer.get("stop_reason") not in ("end_turn", "max_tokens", "stop_sequence"):
        raise Failed("smoke_finish", f"stop_reason {str(answer.get('stop_reason'))[:40]}")
    expecting.usage(answer.get("usage"), "input_tokens", "output_tokens")


def messages_tools(run: Run) -> None:
    tool = {
        "name": _FUNCTION["name"],
        "description": _FUNCTION["description"],
        "input_schema": _FUNCTION["parameters"],
    }
    asked = [{"role": "user", "content": _ASKED}]
    body = {"messages": asked, "max_tokens": LONG, "temperature": 0, "tools": [tool]}
    begun: list[dict[str, Any]] = []
    found = read_message(_noting(run.events("/v1/messages", body), begun))
    expecting.no_thoughts_in(found.text("text"))
    names = [str(block.get("name")) for block in begun if block.get("type") == "tool_use"]
    inputs = [text for kind, text in found.blocks if kind == "tool_use"]
    if found.stop_reason == "max_tokens" and not names and found.text("thinking"):
        return
    _calls_the_tool([*zip(names, inputs, strict=True)], said=found.text("text"))
    if found.stop_reason != "tool_use":
        raise Failed("smoke_finish", f"stop_reason {str(found.stop_reason)[:40]}")


def _noting(events: Iterator[Event], begun: list[dict[str, Any]]) -> Iterator[Event]:
    """Keeps what the blocks said of themselves when they began: a tool's name comes there only."""
    for event in events:
        if event.data is not None and event.data.get("type") == "content_block_start":
            begun.append(event.data.get("content_block") or {})
        yield event


def responses_tools(run: Run) -> None:
    """Streamed, as Codex asks; the calls are read from the finished response."""
    tool = {"type": "function", **_FUNCTION}
    body = {"input": _ASKED, "max_output_tokens": LONG, "temperature": 0, "tools": [tool]}
    last: dict[str, Any] = {}
    for event in run.events("/v1/responses", body):
        last = event.data or last
    if last.get("type") not in ("response.completed", "response.incomplete"):
        raise Failed("smoke_half_stream", "no response.completed")
    try:
        items = list(last["response"]["output"])
        calls = [
            (str(item["name"]), str(item["arguments"]))
            for item in items
            if item["type"] == "function_call"
        ]
    except (KeyError, TypeError):
        raise Failed("smoke_unreadable", "no output items") from None
    cut = last["type"] == "response.incomplete" and not calls
    if not (cut and any(item["type"] == "reasoning" for item in items)):
        _calls_the_tool(calls, said=str(items))


def _calls_the_tool(calls: list[tuple[str, str]], *, said: str) -> None:
    made = [ToolCall(name=name, arguments=arguments) for name, arguments in calls]
    answer = Answer(content=said, tool_calls=made)
    expecting.tool_call(answer, tool=_FUNCTION["name"], argument="city")
