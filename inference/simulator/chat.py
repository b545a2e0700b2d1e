"""`/v1/chat/completions` in vLLM's shapes, whole and streamed."""

from collections.abc import AsyncIterator
from typing import Any

from inference.simulator.asks import (
    Ask,
    Tool,
    Turn,
    answers_asked,
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
from inference.simulator.http import Answer, Request, data_line, json_answer, stream_answer
from inference.simulator.script import Piece
from inference.simulator.usage import chat_usage


async def complete(request: Request, engine: Engine) -> Answer:
    body = request.json()
    ask = read(body, engine.options)
    generation = engine.start(ask, request.cleanup)
    model = engine.options.served_names[0]
    if ask.stream:
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return stream_answer(_events(generation, model, include_usage))
    return json_answer(await _whole(generation, model))


def read(body: dict[str, Any], options: Options) -> Ask:
    check_model(body, options)
    turns = tuple(_turns(require(body, "messages")))
    tools = [_tool(entry["function"]) for entry in body.get("tools") or () if "function" in entry]
    choice = _choice(body.get("tool_choice"))
    ask = Ask(
        turns=turns,
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        stop=stops(body.get("stop")),
        n=answers_asked(body),
        stream=bool(body.get("stream")),
        tools=pick_tools(tools, choice=choice, auto_tools=options.auto_tools),
        tool_choice=choice,
        thinking=thinks(options, body.get("chat_template_kwargs")),
        closed_thoughts=closes_thoughts(options, body.get("chat_template_kwargs")),
        json_schema=_json_schema(body.get("response_format") or {}),
        directives=find_directives(turns),
    )
    obey(ask, body)
    return ask


def _turns(messages: list[dict[str, Any]]) -> list[Turn]:
    turns = []
    for message in messages:
        calls = "".join(text_of(call.get("function")) for call in message.get("tool_calls") or ())
        text = text_of(message.get("reasoning")) + text_of(message.get("content")) + calls
        role = str(message.get("role", "user"))
        turns.append(Turn(role=role, text=text, is_tool_result=role == "tool"))
    return turns


def _tool(function: dict[str, Any]) -> Tool:
    return Tool(name=function["name"], schema=function.get("parameters") or {})


def _choice(value: Any) -> str:
    return value["function"]["name"] if isinstance(value, dict) else value or "auto"


def _json_schema(response_format: dict[str, Any]) -> dict[str, Any] | None:
    if response_format.get("type") == "json_object":
        return {"type": "object"}
    return (response_format.get("json_schema") or {}).get("schema")


async def _whole(generation: Generation, model: str) -> dict[str, Any]:
    text: dict[str, str] = {}
    async for piece in generation.pieces():
        text[piece.kind] = text.get(piece.kind, "") + piece.text
    return {
        "id": f"chatcmpl-{generation.id}",
        "object": "chat.completion",
        "created": generation.created,
        "model": model,
        "choices": [_choice_of(generation, text, index) for index in range(generation.ask.n)],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": chat_usage(generation),
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
    }


def _choice_of(generation: Generation, text: dict[str, str], index: int) -> dict[str, Any]:
    name = text.get("tool_name")
    call = {"name": name, "arguments": text.get("tool_arguments", "")}
    calls = [{"id": _call_id(generation, index), "type": "function", "function": call}]
    message = {
        "role": "assistant",
        "content": text.get("content") if name else text.get("content", ""),
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": calls if name else [],
        "reasoning": text.get("reasoning"),
    }
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": generation.finish_reason,
        "stop_reason": generation.stop_reason,
        "token_ids": None,
    }


def _call_id(generation: Generation, index: int) -> str:
    return f"chatcmpl-tool-{generation.id[:15]}{index}"


async def _events(generation: Generation, model: str, include_usage: bool) -> AsyncIterator[str]:
    """Role chunk, deltas, finish chunk, usage chunk if asked for, `[DONE]`."""
    head = {
        "id": f"chatcmpl-{generation.id}",
        "object": "chat.completion.chunk",
        "created": generation.created,
        "model": model,
    }

    def chunk(index: int, delta: dict[str, Any], **more: Any) -> str:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None, **more}
        return data_line({**head, "choices": [choice]})

    begun = False
    async for piece in generation.pieces():
        for index in range(generation.ask.n):
            if not begun:
                yield chunk(index, {"role": "assistant", "content": ""})
            yield chunk(index, _delta(piece, _call_id(generation, index)))
        begun = True
    finish = {"finish_reason": generation.finish_reason, "stop_reason": generation.stop_reason}
    for index in range(generation.ask.n):
        if not begun:
            yield chunk(index, {"role": "assistant", "content": ""})
        yield chunk(index, {"content": ""}, **finish)
    if include_usage:
        yield data_line({**head, "choices": [], "usage": chat_usage(generation)})
    yield "data: [DONE]\n\n"


def _delta(piece: Piece, call_id: str) -> dict[str, Any]:
    if piece.kind in ("reasoning", "content"):
        return {piece.kind: piece.text}
    if piece.kind == "tool_arguments":
        return {"tool_calls": [{"index": 0, "function": {"arguments": piece.text}}]}
    call = {"id": call_id, "type": "function", "index": 0}
    return {"tool_calls": [{**call, "function": {"name": piece.text, "arguments": ""}}]}
