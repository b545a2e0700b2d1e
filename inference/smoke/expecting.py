"""What must be true of an answer, each with the code of its failure."""

import json
from typing import Any

from inference.smoke.answers import Answer, ToolCall
from inference.smoke.asking import Failed

MARKERS = ("<think>", "</think>", "[THINK]", "[/THINK]", "<|channel|>")
"""Of thoughts that no reasoning parser took out of the text."""
CALL_MARKERS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")


def no_thoughts_in(text: str | None) -> None:
    found = [marker for marker in MARKERS if marker in (text or "")]
    if found:
        raise Failed("smoke_think_in_content", ", ".join(found))


def content(answer: Answer) -> None:
    """There is text, and it is only text. Thinking that used up the limit has none yet."""
    no_thoughts_in(answer.content)
    if answer.content and answer.content.strip():
        return
    if answer.reasoning and answer.finish_reason == "length":
        return
    raise Failed("smoke_empty", "content is " + ("null" if answer.content is None else "empty"))


def ended(answer: Answer, *reasons: str) -> None:
    if answer.finish_reason is None and not answer.complete:
        raise Failed("smoke_half_stream", "the stream ended in its middle")
    if answer.finish_reason not in reasons:
        raise Failed("smoke_finish", f"finish_reason {str(answer.finish_reason)[:40]}")
    if not answer.complete:
        raise Failed("smoke_half_stream", "no [DONE]")


def usage(found: dict[str, Any] | None, *names: str) -> None:
    """Each of `names` is there and positive: quotas and the usage page are counted from them."""
    for name in names:
        value = (found or {}).get(name)
        if not isinstance(value, int) or value <= 0:
            raise Failed("smoke_usage", f"{name} is {'missing' if value is None else 'not > 0'}")


def model(answer_model: str, names: tuple[str, ...]) -> None:
    if answer_model not in names:
        raise Failed("smoke_wrong_model", "the answer names another model")


def no_calls_in(text: str | None) -> None:
    """None that a tool parser should have taken out of the text."""
    if any(marker in (text or "") for marker in CALL_MARKERS):
        raise Failed("smoke_tool_call_lost", "left in the content")


def tool_call(answer: Answer, *, tool: str, argument: str) -> None:
    if not answer.tool_calls:
        no_calls_in(answer.content)
        raise Failed("smoke_tool_call_lost", "none made")
    whole_call(answer.tool_calls[0], tool=tool, argument=argument)


def whole_call(call: ToolCall, *, tool: str, argument: str) -> None:
    if call.name != tool:
        raise Failed("smoke_tool_call_lost", "a call of another name")
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        raise Failed("smoke_tool_arguments", "not JSON") from None
    if not isinstance(arguments, dict) or argument not in arguments:
        raise Failed("smoke_tool_arguments", "a required argument is missing")
