"""`/v1/messages` and `/v1/messages/count_tokens`, Anthropic's API as vLLM serves it."""

import json
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
    stops,
    text_of,
    thinks,
)
from inference.simulator.engine import Engine, Generation
from inference.simulator.flags import Options
from inference.simulator.http import Answer, Request, event_lines, json_answer, stream_answer
from inference.simulator.script import Kind, Piece
from inference.simulator.usage import messages_usage

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_DELTAS: dict[Kind, tuple[str, str]] = {
    "reasoning": ("thinking_delta", "thinking"),
    "content": ("text_delta", "text"),
    "tool_arguments": ("input_json_delta", "partial_json"),
}


async def create(request: Request, engine: Engine) -> Answer:
    body = request.json()
    require(body, "max_tokens")
    generation = engine.start(_read(body, engine.options), request.cleanup)
    model = engine.options.served_names[0]
    if generation.ask.stream:
        return stream_answer(_events(generation, model))
    blocks: list[dict[str, Any]] = []
    async for piece in generation.pieces():
        _grow(blocks, piece, generation)
    message = _message(generation, model)
    message["content"] = [_closed(block) for block in blocks]
    message["stop_reason"] = _STOP_REASONS[str(generation.finish_reason)]
    message["usage"] = messages_usage(generation)
    return json_answer(message)


async def count_tokens(request: Request, engine: Engine) -> Answer:
    body = request.json()
    ask = _read(body, engine.options)
    engine.refuse_if_stopping()
    return json_answer({"input_tokens": len(ask.prompt_pieces())})


def _read(body: dict[str, Any], options: Options) -> Ask:
    require(body, "model")
    check_model(body, options)
    turns = tuple(_turns(body))
    tools = [
        Tool(name=entry["name"], schema=entry["input_schema"])
        for entry in body.get("tools") or ()
        if "input_schema" in entry
    ]
    choice = _choice(body.get("tool_choice") or {})
    ask = Ask(
        turns=turns,
        max_tokens=body.get("max_tokens"),
        stop=stops(body.get("stop_sequences")),
        stream=bool(body.get("stream")),
        tools=pick_tools(tools, choice=choice, auto_tools=options.auto_tools),
        tool_choice=choice,
        thinking=thinks(options, _template_kwargs(body)),
        closed_thoughts=closes_thoughts(options, _template_kwargs(body)),
        directives=find_directives(turns),
    )
    obey(ask, body)
    return ask


def _turns(body: dict[str, Any]) -> Iterator[Turn]:
    if body.get("system"):
        yield Turn(role="system", text=text_of(body["system"]))
    for message in require(body, "messages"):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        result = any(block.get("type") == "tool_result" for block in blocks)
        role = str(message.get("role", "user"))
        yield Turn(role=role, text=text_of(content), is_tool_result=result)


def _choice(value: dict[str, Any]) -> str:
    kind = value.get("type", "auto")
    return value["name"] if kind == "tool" else "required" if kind == "any" else kind


def _template_kwargs(body: dict[str, Any]) -> dict[str, Any]:
    kind = (body.get("thinking") or {}).get("type")
    asked = {} if kind is None else {"enable_thinking": kind != "disabled"}
    return {**asked, **(body.get("chat_template_kwargs") or {})}


def _message(generation: Generation, model: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{generation.id}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": model,
    }


def _new_block(piece: Piece, generation: Generation) -> dict[str, Any]:
    if piece.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": generation.id}
    if piece.kind == "content":
        return {"type": "text", "text": ""}
    call_id = f"chatcmpl-tool-{generation.id[:16]}"
    return {"type": "tool_use", "id": call_id, "name": piece.text, "input": {}}


_BLOCK_TYPES = {
    "reasoning": "thinking",
    "content": "text",
    "tool_name": "",
    "tool_arguments": "tool_use",
}


def _opens(block: dict[str, Any] | None, piece: Piece) -> bool:
    return block is None or block["type"] != _BLOCK_TYPES[piece.kind]


def _grow(blocks: list[dict[str, Any]], piece: Piece, generation: Generation) -> None:
    """Add one token to the block it belongs to; a tool's input stays text until it is closed."""
    if _opens(blocks[-1] if blocks else None, piece):
        blocks.append(_new_block(piece, generation))
    if piece.kind in _DELTAS:
        key = _DELTAS[piece.kind][1]
        blocks[-1][key] = blocks[-1].get(key, "") + piece.text


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    """A tool input that was cut by `max_tokens` is not JSON; vLLM then gives an empty one."""
    if block["type"] != "tool_use":
        return block
    try:
        parsed = json.loads(block.pop("partial_json", "{}"))
    except ValueError:
        parsed = {}
    return {**block, "input": parsed}


async def _events(generation: Generation, model: str) -> AsyncIterator[str]:
    """message_start, blocks (start, deltas, stop), message_delta, message_stop, `[DONE]`."""
    block: dict[str, Any] | None = None
    index = -1
    async for piece in generation.pieces():
        if _opens(block, piece):
            before = _message_start(generation, model) if block is None else _stop(block, index)
            block, index = _new_block(piece, generation), index + 1
            yield before + _block_start(block, index)
        if piece.kind in _DELTAS:
            kind, key = _DELTAS[piece.kind]
            yield _block_delta(index, {"type": kind, key: piece.text})
    yield _message_start(generation, model) if block is None else _stop(block, index)
    for line in _message_end(generation):
        yield line


def _message_start(generation: Generation, model: str) -> str:
    usage = {"input_tokens": generation.prompt_tokens, "output_tokens": 0}
    message = {**_message(generation, model), "stop_reason": None, "stop_sequence": None}
    return event_lines(
        "message_start", {"type": "message_start", "message": {**message, "usage": usage}}
    )


def _block_start(block: dict[str, Any], index: int) -> str:
    shown = {key: value for key, value in block.items() if key != "signature"}
    content = {"type": "content_block_start", "index": index, "content_block": shown}
    return event_lines("content_block_start", content)


def _block_delta(index: int, delta: dict[str, Any]) -> str:
    content = {"type": "content_block_delta", "index": index, "delta": delta}
    return event_lines("content_block_delta", content)


def _stop(block: dict[str, Any], index: int) -> str:
    delta = {"type": "signature_delta", "signature": block.get("signature")}
    signed = _block_delta(index, delta) if block["type"] == "thinking" else ""
    content = {"type": "content_block_stop", "index": index}
    return signed + event_lines("content_block_stop", content)


def _message_end(generation: Generation) -> Iterator[str]:
    delta = {"stop_reason": _STOP_REASONS[str(generation.finish_reason)]}
    content = {"type": "message_delta", "delta": delta, "usage": messages_usage(generation)}
    yield event_lines("message_delta", content)
    yield event_lines("message_stop", {"type": "message_stop"})
    yield "data: [DONE]\n\n"
