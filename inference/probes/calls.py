"""Which calls are probed, and how each is judged: as the smoke tests do, where both make the same.

The difference is where they go: through the edge and the gateway, with a key and its limits.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inference.engine import Event
from inference.models import CatalogModel
from inference.smoke import agent_checks, chat_checks, expecting, route_checks
from inference.smoke.asking import Failed, Limits, Run

LONGEST = 200_000
"""Tokens, at most, of the long prompt, which a GPU reads in the patience that this call has."""
LONG_PATIENCE = Limits(first=100, whole=110)
"""Less than the two minutes after which the broker hands a task to another worker. No other task
may take so long: docs/decisions.md says why this one may."""
SLOT_SECONDS = 8
"""In which the place of a call that was left must be free."""
LIMITED = "HTTP 429"
"""As checks tell of it in the detail of a failure."""


@dataclass(frozen=True, kw_only=True)
class Call:
    name: str
    title: Promise
    api: str
    """Of `inference.docs.pages.APIS`."""
    needs: frozenset[str]
    """Of the model's kind and capabilities."""
    run: Callable[[Run], None]
    limits: Limits | None = None
    """None: those of every call."""


def tools_parallel(run: Run) -> None:
    """What two calls at once gave is understood. Whether the model itself asks for two at once is
    its own choice, and no fault; but it makes one, and those that it makes must be whole."""
    asked = {
        "role": "user",
        "content": "Use the tool to look up the weather in Lisbon and in Porto, both at once.",
    }
    more = {"tools": [chat_checks.TOOL], "max_tokens": chat_checks.LONG, **chat_checks.quiet(run)}
    first = run.chat_body({"messages": [asked], "temperature": 0, **more}, stream=False)
    expecting.no_calls_in(first.content)
    expecting.tool_call(first, tool="weather", argument="city")
    for call in first.tool_calls[1:]:
        expecting.whole_call(call, tool="weather", argument="city")
    cities = ("Lisbon", "Porto")
    history = [asked, _two_calls(cities), *(_result(city) for city in cities)]
    answer = run.chat_body({"messages": history, "temperature": 0, **more}, stream=False)
    if not answer.tool_calls:
        expecting.content(answer)


def _two_calls(cities: tuple[str, ...]) -> dict[str, Any]:
    calls = [
        {
            "id": f"call_{city.lower()}",
            "type": "function",
            "function": {"name": "weather", "arguments": json.dumps({"city": city})},
        }
        for city in cities
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(city: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{city.lower()}", "content": f"{city}: sunny"}


def count_tokens(run: Run) -> None:
    body = {"messages": [{"role": "user", "content": "How many tokens are these?"}]}
    counted = run.post("/v1/messages/count_tokens", body).get("input_tokens")
    if type(counted) is not int or counted <= 0:
        raise Failed("probe_count")


def long_context(run: Run) -> None:
    """Close to the limit: three quarters of the context by a low estimate of a line's length,
    which comes to more where each digit is a token. Of a very long one see `cut_to`."""
    chat_checks.find_line(run, min(LONGEST, _close_to(run.target.context)) // 12)


def _close_to(context: int) -> int:
    return context * 3 // 4


def cut_to(call: Call, context: int) -> int | None:
    """Tokens of the prompt that was tried, where they say less than the call's title does."""
    long = call.name == "long_context" and _close_to(context) > LONGEST
    return LONGEST if long else None


def cancel(run: Run) -> None:
    """Leaves as many streams in their middle as may run at once; then there is room again for as
    many."""
    for _number in range(2):
        stream = run.events("/v1/chat/completions", _long_stream(run))
        _first(stream)
        stream.close()
    began = time.monotonic()
    while not _has_room_for_two(run):
        if time.monotonic() - began > SLOT_SECONDS:
            raise Failed("probe_slot_taken", f"after {SLOT_SECONDS} s")
        time.sleep(0.5)


def _has_room_for_two(run: Run) -> bool:
    stream = run.events("/v1/chat/completions", _long_stream(run))
    try:
        _first(stream)
        run.chat("Say hello.", max_tokens=chat_checks.SHORT, **chat_checks.quiet(run))
    except Failed as failed:
        if failed.detail != LIMITED:
            raise
        return False
    finally:
        stream.close()
    return True


def _long_stream(run: Run) -> dict[str, Any]:
    asked = [{"role": "user", "content": "Count from 1 to 2000, with commas."}]
    return {"messages": asked, "max_tokens": 4096, **chat_checks.quiet(run)}


def _first(stream: Any) -> Event:
    event: Event | None = next(stream, None)
    if event is None:
        raise Failed("smoke_half_stream", "no event")
    return event


def _call(
    name: str, title: Promise, run: Callable[[Run], None], *needs: str, api: str = "chat"
) -> Call:
    return Call(name=name, title=title, api=api, needs=frozenset(needs or ("chat",)), run=run)


_message, _response = partial(_call, api="messages"), partial(_call, api="responses")
CALLS: tuple[Call, ...] = (
    _call("chat", _("Chat"), chat_checks.plain),
    _call("stream", _("Chat, streamed"), chat_checks.stream),
    _call("tools", _("A tool call"), chat_checks.tools, "chat", "tools"),
    _call("tools_parallel", _("Several tool calls at once"), tools_parallel, "chat", "tools"),
    _call("tools_stream", _("A tool call, streamed"), chat_checks.tools_stream, "chat", "tools"),
    _call("reasoning", _("Reasoning"), chat_checks.reasoning, "chat", "reasoning"),
    _call(
        "reasoning_stream",
        _("Reasoning, streamed"),
        chat_checks.reasoning_stream,
        "chat",
        "reasoning",
    ),
    _message("message", _("Messages"), agent_checks.message),
    _message("messages", _("Messages, streamed, events in order"), route_checks.messages),
    _message(
        "messages_tools",
        _("Messages, streamed, with a tool call"),
        agent_checks.messages_tools,
        "chat",
        "tools",
    ),
    _message("count_tokens", _("Counting tokens"), count_tokens),
    _response("responses", _("Responses"), route_checks.responses),
    _response("responses_stream", _("Responses, streamed"), route_checks.responses_stream),
    _response(
        "responses_tools",
        _("Responses, streamed, with a tool call"),
        agent_checks.responses_tools,
        "chat",
        "tools",
    ),
    _call("vision", _("A picture"), chat_checks.vision, "chat", "vision"),
    replace(
        _call("long_context", _("A prompt close to the longest"), long_context),
        limits=LONG_PATIENCE,
    ),
    _call("cancel", _("Leaving in the middle"), cancel),
    _call("embedding", _("Embeddings"), route_checks.embedding, "embedding", api="embeddings"),
)
BY_NAME = {call.name: call for call in CALLS}


def claimed(model: CatalogModel) -> frozenset[str]:
    return frozenset({model.kind, *model.capabilities})


def calls_for(model: CatalogModel) -> list[Call]:
    has = claimed(model)
    return [call for call in CALLS if call.needs <= has]
