"""Checks that thoughts stay away when they are turned off, where the model has a switch for it."""

from typing import Any

from inference.smoke import expecting
from inference.smoke.asking import Failed, Run
from inference.smoke.chat_checks import HELLO, NO_THINKING, SHORT, THINKING, sound
from inference.smoke.events import read_message

_ASKED = [{"role": "user", "content": HELLO}]


def thinking_off(run: Run) -> None:
    """Plain, streamed, and over `/v1/messages`. A parser that takes all text for thoughts, or one
    that never heard of the switch, leaves such an answer without its content."""
    if not _has_a_switch(run):
        return
    for streamed in (False, True):
        answer = run.chat(HELLO, stream=streamed, max_tokens=SHORT, **NO_THINKING)
        _none("chat, streamed" if streamed else "chat", answer.reasoning)
        sound(run, answer)
    body = {"messages": _ASKED, "max_tokens": SHORT, "temperature": 0, **NO_THINKING}
    message = read_message(run.events("/v1/messages", body))
    _none("messages", message.text("thinking"))
    expecting.no_thoughts_in(message.text("text"))


def _has_a_switch(run: Run) -> bool:
    """Whether the chat template makes another prompt of it. Some models think always.

    https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html#tokenizer-api
    """
    return _prompt(run, THINKING) != _prompt(run, NO_THINKING)


def _prompt(run: Run, switched: dict[str, Any]) -> list[int]:
    found = run.post("/tokenize", {"messages": _ASKED, **switched}).get("tokens")
    if not isinstance(found, list):
        raise Failed("smoke_unreadable", "no tokens")
    return found


def _none(where: str, thoughts: str) -> None:
    if thoughts.strip():
        raise Failed("smoke_thinks_anyway", where)
