"""`/v1/responses`, OpenAI's Responses API. Stateless: nothing is stored to be continued."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from inference.simulator.asks import (
    Ask,
    Tool,
    Turn,
    check_model,
    closes_thoughts,
    find_directives,
    obey,
    pick_tools,
    require,
    text_of,
    thinks,
)
from inference.simulator.engine import Engine, Generation
from inference.simulator.flags import Options
from inference.simulator.http import (
    Answer,
    ApiError,
    Request,
    event_lines,
    json_answer,
    stream_answer,
)
from inference.simulator.response_items import OpenItem, add_piece, open_item, opens
from inference.simulator.usage import responses_usage


async def create(request: Request, engine: Engine) -> Answer:
    body = request.json()
    generation = engine.start(_read(body, engine.options), request.cleanup)
    shell = _shell(body, generation, engine)
    if generation.ask.stream:
        return stream_answer(_events(generation, shell))
    items: list[OpenItem] = []
    async for piece in generation.pieces():
        if opens(items[-1] if items else None, piece):
            items.append(open_item(piece, generation, len(items)))
        add_piece(items[-1], piece)
    return json_answer(_finished(shell, [item.closed() for item in items], generation))


def _read(body: dict[str, Any], options: Options) -> Ask:
    check_model(body, options)
    if previous := body.get("previous_response_id"):
        raise ApiError(404, f"Response with id '{previous}' not found.")
    turns = tuple(_turns(body))
    choice = _choice(body.get("tool_choice"))
    tools = [
        Tool(name=entry["name"], schema=entry.get("parameters") or {})
        for entry in body.get("tools") or ()
        if entry.get("type") == "function" and (options.auto_tools or choice != "auto")
    ]
    ask = Ask(
        turns=turns,
        max_tokens=body.get("max_output_tokens"),
        stream=bool(body.get("stream")),
        tools=pick_tools(tools, choice=choice, auto_tools=options.auto_tools),
        tool_choice=choice,
        thinking=thinks(options, _template_kwargs(body)),
        closed_thoughts=closes_thoughts(options, _template_kwargs(body)),
        json_schema=((body.get("text") or {}).get("format") or {}).get("schema"),
        directives=find_directives(turns),
    )
    obey(ask, body)
    return ask


def _turns(body: dict[str, Any]) -> Iterator[Turn]:
    if body.get("instructions"):
        yield Turn(role="system", text=str(body["instructions"]))
    given = require(body, "input")
    if isinstance(given, str):
        yield Turn(role="user", text=given)
        return
    for item in given:
        if item.get("type") == "function_call_output":
            yield Turn(role="tool", text=text_of(item.get("output")), is_tool_result=True)
        else:
            text = text_of(item.get("content") or item.get("summary")) + item.get("arguments", "")
            yield Turn(role=item.get("role", "assistant"), text=text)


def _choice(value: Any) -> str:
    if not isinstance(value, dict):
        return value or "auto"
    return str(value.get("name", "auto"))


def _template_kwargs(body: dict[str, Any]) -> dict[str, Any]:
    off = (body.get("reasoning") or {}).get("effort") == "none"
    return {
        **({"enable_thinking": False} if off else {}),
        **(body.get("chat_template_kwargs") or {}),
    }


def _shell(body: dict[str, Any], generation: Generation, engine: Engine) -> dict[str, Any]:
    """The response before there is output; it repeats the request's settings, as vLLM does."""
    return {
        "id": f"resp_{generation.id}",
        "created_at": int(time.time()),
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata"),
        "model": engine.options.served_names[0],
        "object": "response",
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "temperature": body.get("temperature", 1.0),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "background": False,
        "max_output_tokens": body.get("max_output_tokens")
        or engine.max_model_len - generation.prompt_tokens,
        "max_tool_calls": None,
        "previous_response_id": None,
        "prompt": None,
        "reasoning": body.get("reasoning"),
        "service_tier": "auto",
        "status": "in_progress",
        "text": body.get("text"),
        "top_logprobs": None,
        "truncation": "disabled",
        "usage": None,
        "user": body.get("user"),
    }


def _finished(
    shell: dict[str, Any], output: list[dict[str, Any]], generation: Generation
) -> dict[str, Any]:
    cut = generation.finish_reason == "length"
    return {
        **shell,
        "output": output,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": responses_usage(generation),
    }


async def _events(generation: Generation, shell: dict[str, Any]) -> AsyncIterator[str]:
    """Every event carries its number in the stream; there is no `[DONE]`."""
    number = 0

    def event(content: dict[str, Any]) -> str:
        nonlocal number
        numbered = {**content, "sequence_number": number}
        number += 1
        return event_lines(content["type"], numbered)

    yield event({"type": "response.created", "response": shell})
    yield event({"type": "response.in_progress", "response": shell})
    item: OpenItem | None = None
    output: list[dict[str, Any]] = []
    async for piece in generation.pieces():
        if item is None or opens(item, piece):
            for content in item.ending() if item else ():
                yield event(content)
            output += [item.closed()] if item else []
            item = open_item(piece, generation, len(output))
            for content in item.beginning():
                yield event(content)
        if delta := add_piece(item, piece):
            yield event(delta)
    for content in item.ending() if item else ():
        yield event(content)
    output += [item.closed()] if item else []
    yield event({"type": "response.completed", "response": _finished(shell, output, generation)})
