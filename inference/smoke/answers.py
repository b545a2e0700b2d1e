"""A chat answer, whole or put together from a stream, in one shape."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inference.engine import EngineUnavailable, Event


@dataclass(kw_only=True)
class ToolCall:
    name: str = ""
    arguments: str = ""
    """Text that should be JSON."""


@dataclass(kw_only=True)
class Answer:
    model: str = ""
    content: str | None = None
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    first_after: float | None = None
    """Seconds to the first piece of text, thought or tool call; streams only."""
    complete: bool = True
    """A stream said that it had ended (`[DONE]`)."""


def whole(body: dict[str, Any]) -> Answer:
    """Of `/v1/chat/completions`, not streamed."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        return Answer(
            model=str(body.get("model", "")),
            content=message.get("content"),
            reasoning=_reasoning(message),
            tool_calls=[_call(call) for call in message.get("tool_calls") or ()],
            finish_reason=choice.get("finish_reason"),
            usage=body.get("usage"),
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise EngineUnavailable("unreadable") from None


def streamed(events: Iterable[Event]) -> Answer:
    """Of the same route's chunks: role, deltas, finish, usage with no choices, `[DONE]`."""
    answer = Answer(complete=False)
    try:
        for event in events:
            if event.data is None:
                answer.complete = True
                continue
            answer.model = str(event.data.get("model", answer.model))
            answer.usage = event.data.get("usage") or answer.usage
            for choice in event.data.get("choices") or ():
                answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
                if _grow(answer, choice.get("delta") or {}) and answer.first_after is None:
                    answer.first_after = event.after
    except (KeyError, IndexError, TypeError, AttributeError):
        raise EngineUnavailable("unreadable") from None
    return answer


def _reasoning(message: dict[str, Any]) -> str:
    """`reasoning`, which vLLM called `reasoning_content` before."""
    return str(message.get("reasoning") or message.get("reasoning_content") or "")


def _call(call: dict[str, Any]) -> ToolCall:
    function = call["function"]
    return ToolCall(name=function.get("name") or "", arguments=function.get("arguments") or "")


def _grow(answer: Answer, delta: dict[str, Any]) -> bool:
    """Whether the chunk held anything; an opening chunk (role, empty content) does not count."""
    content = delta.get("content")
    if content is not None:
        answer.content = (answer.content or "") + content
    answer.reasoning += _reasoning(delta)
    for piece in delta.get("tool_calls") or ():
        while len(answer.tool_calls) <= piece.get("index", 0):
            answer.tool_calls.append(ToolCall())
        call, function = answer.tool_calls[piece.get("index", 0)], piece.get("function") or {}
        call.name += function.get("name") or ""
        call.arguments += function.get("arguments") or ""
    return bool(content or _reasoning(delta) or delta.get("tool_calls"))
