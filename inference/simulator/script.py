"""What the answer is. The same ask always gets the same answer."""

import itertools
import json
import re
from dataclasses import dataclass
from typing import Literal

from inference.simulator import tokens
from inference.simulator.asks import Ask, Tool
from inference.simulator.faults import ProcessFault
from inference.simulator.schema import example

Kind = Literal["reasoning", "content", "tool_name", "tool_arguments"]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One token and the field it belongs to."""

    kind: Kind
    text: str


@dataclass(frozen=True, kw_only=True)
class Script:
    pieces: tuple[Piece, ...]
    stop_reason: str | None
    """The stop string that ended the text, if one did."""
    calls_tool: bool


_THOUGHT = "The user wants an answer. A short one will do."
_ANSWER = "This is the simulated engine. It has no model, so every answer is this one sentence."
_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_EXACTLY = re.compile(
    r"reply with (?:exactly|only|the word)[: ]+[\"'`]?([^\"'`\n.]+)", re.IGNORECASE
)


def write(ask: Ask, faults: frozenset[ProcessFault]) -> Script:
    if ProcessFault.EMPTY_CONTENT in faults:
        return Script(pieces=(), stop_reason=None, calls_tool=False)
    tool = _tool_to_call(ask)
    lost = tool is not None and ProcessFault.LOSE_TOOL_CALLS in faults
    text, stop = _cut_at_stop("I will call the tool now." if lost else _text(ask), ask.stop)
    thinks = ask.thinking or ProcessFault.THINK_ANYWAY in faults
    reasoning = _THOUGHT if thinks else ""
    if ProcessFault.THINK_IN_CONTENT in faults:
        reasoning, text = "", f"{_THOUGHT}\n</think>\n\n{text}"
    pieces = _pieces("reasoning", reasoning)
    if tool is None or lost:
        return Script(pieces=pieces + _pieces("content", text), stop_reason=stop, calls_tool=False)
    arguments = json.dumps(example(tool.schema))
    pieces += (Piece(kind="tool_name", text=tool.name), *_pieces("tool_arguments", arguments))
    return Script(pieces=pieces, stop_reason=None, calls_tool=True)


def _pieces(kind: Kind, text: str) -> tuple[Piece, ...]:
    return tuple(Piece(kind=kind, text=token) for token in tokens.split(text))


def _tool_to_call(ask: Ask) -> Tool | None:
    """The first tool (or the named one), when the choice or the prompt demands it."""
    if not ask.tools or ask.tool_choice == "none":
        return None
    if ask.tool_choice not in ("auto", "required"):
        return next(tool for tool in ask.tools if tool.name == ask.tool_choice)
    answered = bool(ask.turns) and ask.turns[-1].is_tool_result
    asked = "use the tool" in ask.last_user.lower() and not answered
    return ask.tools[0] if asked or ask.tool_choice == "required" else None


def _text(ask: Ask) -> str:
    if ask.directives.tokens is not None:
        words = itertools.islice(itertools.cycle(_WORDS), ask.directives.tokens)
        return " ".join(words)
    if ask.json_schema is not None:
        return json.dumps(example(ask.json_schema))
    exactly = _EXACTLY.search(ask.last_user)
    return exactly[1].strip() if exactly else _ANSWER


def _cut_at_stop(text: str, stop: tuple[str, ...]) -> tuple[str, str | None]:
    """The text before the stop string that comes first."""
    found = [(text.find(word), word) for word in stop if word and word in text]
    if not found:
        return text, None
    position, word = min(found)
    return text[:position], word
