"""Checks of `/v1/chat/completions`."""

import base64
import struct
import zlib
from typing import Any

from inference.smoke import expecting
from inference.smoke.answers import Answer
from inference.smoke.asking import Failed, Run

NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}
SHORT, LONG = 24, 512
"""Tokens at most: of a plain answer (few, so that a CPU says them in time), and of one with
thoughts before it."""
LONG_PROMPT = 24_000
"""Tokens, at most, of the long-context check: a GPU reads them in a few of the 10 seconds."""
_NEEDLE = "amber-4172"
_AGAIN = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
HELLO = "Say hello in one short sentence."
_PUZZLE = "Think for a moment, then answer in one sentence: why is 7 a prime number?"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Look up today's weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def quiet(run: Run) -> dict[str, Any]:
    """For checks that are not about thinking: without it where the model lets us."""
    return NO_THINKING if "reasoning" in run.target.capabilities else {}


def room(run: Run) -> int:
    """Tokens of an answer on the other routes: a model that thinks does so there, where nothing
    common to all can forbid it."""
    return LONG if "reasoning" in run.target.capabilities else SHORT


def sound(run: Run, answer: Answer) -> None:
    expecting.content(answer)
    expecting.ended(answer, "stop", "length")
    expecting.usage(answer.usage, "prompt_tokens", "completion_tokens")
    expecting.model(answer.model, run.target.all_names)


def plain(run: Run) -> None:
    sound(run, run.chat(HELLO, max_tokens=SHORT, **quiet(run)))


def stream(run: Run) -> None:
    sound(run, run.chat(HELLO, stream=True, max_tokens=SHORT, **quiet(run)))


def _thoughts(run: Run, *, streamed: bool) -> None:
    answer = run.chat(_PUZZLE, stream=streamed, max_tokens=LONG, **THINKING)
    expecting.no_thoughts_in(answer.content)
    if not answer.reasoning.strip():
        raise Failed("smoke_reasoning_missing", "no reasoning field")
    expecting.no_thoughts_in(answer.reasoning)
    sound(run, answer)


def reasoning(run: Run) -> None:
    _thoughts(run, streamed=False)


def reasoning_stream(run: Run) -> None:
    _thoughts(run, streamed=True)


def _calls_tool(run: Run, *, streamed: bool) -> None:
    prompt = "Use the tool to look up the weather in Lisbon."
    answer = run.chat(
        prompt, stream=streamed, max_tokens=LONG, tools=[TOOL], tool_choice="auto", **quiet(run)
    )
    expecting.no_thoughts_in(answer.content)
    expecting.tool_call(answer, tool="weather", argument="city")
    expecting.ended(answer, "tool_calls")


def tools(run: Run) -> None:
    _calls_tool(run, streamed=False)


def tools_stream(run: Run) -> None:
    _calls_tool(run, streamed=True)


def vision(run: Run) -> None:
    prompt = "Which colour fills this picture? If it is red, reply with exactly: red"
    picture = {"type": "image_url", "image_url": {"url": _red_square()}}
    content = [picture, {"type": "text", "text": prompt}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": SHORT}
    answer = run.chat_body({**body, "temperature": 0, **quiet(run)}, stream=False)
    sound(run, answer)
    if "red" not in (answer.content or "").lower():
        raise Failed("smoke_vision", "the picture was not recognised")


def long_context(run: Run) -> None:
    """The engine admits as many tokens as claimed, and finds one line in a long prompt."""
    served = {model.name: model.context for model in run.engine.models()}
    admitted = served.get(run.target.name)
    if admitted is not None and admitted < run.target.context:
        raise Failed("smoke_context", f"{admitted} tokens instead of {run.target.context}")
    find_line(run, _lines(run))


def find_line(run: Run, count: int) -> None:
    """Among so many others, of about 12 tokens each."""
    lines = [f"Line {number}: the harbour is quiet." for number in range(count)]
    lines.insert(len(lines) // 3, f"Whoever asks, reply with exactly: {_NEEDLE}")
    prompt = "\n".join(lines) + "\nOne line above says what to reply. Do as it says."
    answer = run.chat(prompt, max_tokens=SHORT, **quiet(run))
    sound(run, answer)
    if _NEEDLE not in (answer.content or ""):
        raise Failed("smoke_long_context", f"lost in {len(lines)} lines")


def _lines(run: Run) -> int:
    """About 12 tokens a line in common tokenizers; half of the context leaves room for others."""
    return min(LONG_PROMPT, run.target.context // 2) // 12


def speculative(run: Run) -> None:
    """Drafts are made and some are accepted. None at all is the sign of unloaded draft weights.

    The answer stands in the prompt, since n-grams are proposed only where five tokens occur again.
    Other requests may run meanwhile: they can only add to both counts.
    """
    before = run.engine.metrics()
    run.chat(f"Write this five times, as it is: {_AGAIN}", max_tokens=LONG, **quiet(run))
    after = run.engine.metrics()
    if after.drafted is None or after.accepted is None:
        raise Failed("smoke_speculative", "not configured")
    drafted = after.drafted - (before.drafted or 0)
    accepted = after.accepted - (before.accepted or 0)
    if accepted <= 0:
        raise Failed("smoke_speculative", f"0 of {drafted:.0f} accepted")


def _red_square(side: int = 64) -> str:
    """A PNG as a data URL. Vision models want some size: 64 is two patches of 32."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff\0\0" * side) * side)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
