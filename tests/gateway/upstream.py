"""An engine for the gateway's tests: OpenAI and Anthropic routes; the model's name decides how.

`…-slow` answers after a second, `…-hang` never begins, `…-mute` sends headers only, `…-drip`
streams two events and then one every ten seconds, `…-late` does so after half a second,
`…-thinks` with nothing but reasoning on /v1/responses, `…-error` answers 500 and repeats the prompt
in its error, as engines do, `…-missing` answers 404, `…-rotating` 503 as the pool does while a
slot's model is replaced.
`…-cut` breaks the connection off in the middle of a stream, and `…-broken` ends it with an error
event that names the engine's address and repeats the prompt.
`GET /state` tells what it saw, without the bodies of the calls.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

WORDS = ("Hello", " from", " upstream")
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
TOKENS = {"input_tokens": 11, "output_tokens": 7}
INTERNALS = "EngineCore at http://10.9.8.7:8100 died, see /opt/vllm/engine.py"
ROTATING = {
    "message": "A model rotation is under way since 14:05 UTC: the new model is still loading.",
    "type": "server_error",
    "param": None,
    "code": "model_rotating",
}
BEFORE = {"slow": 1, "late": 0.5, "hang": 3600}
"""Seconds, by manner."""
state: dict[str, Any] = {"open": 0, "seen": [], "fields": [], "headers": [], "cancelled": 0}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return
    if scope["path"] == "/state":
        await answer(send, state)
        return
    body = fields_of(await read(receive))
    state["seen"].append(scope["path"])
    state["fields"].append({"path": scope["path"], "names": sorted(body)})
    headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
    state["headers"].append(headers)
    async with counted(), departure(receive) as gone:
        work = asyncio.create_task(respond(scope["path"], body, send))
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            state["cancelled"] += 1
            work.cancel()
        elif work.exception():
            raise work.exception()


def fields_of(body: bytes) -> dict[str, Any]:
    """Of JSON, or the names (with their texts) of a form's parts."""
    if body.startswith(b"--"):
        parts = re.findall(rb'name="([^"]+)"[^\r]*\r\n(?:[^\r]+\r\n)*\r\n([^\r]{0,99})', body)
        return {name.decode(): text.decode(errors="replace") for name, text in parts}
    found: dict[str, Any] = json.loads(body or b"{}")
    return found


async def respond(path: str, body: dict[str, Any], send: Any) -> None:
    model = str(body.get("model", ""))
    await asyncio.sleep(BEFORE.get(model.rpartition("-")[2], 0))
    if model.endswith("-mute"):
        await stream(send, [], 0)
        await asyncio.sleep(3600)
    if model.endswith("-error"):
        message = f"input was: {body.get('messages') or body.get('input')}"
        await answer(send, {"error": {"message": message, "type": "server_error"}}, 500)
    elif model.endswith("-missing"):
        await answer(send, {"error": {"message": "no such model", "type": "NotFound"}}, 404)
    elif model.endswith("-rotating"):
        await answer(send, {"error": ROTATING}, 503)
    elif path not in ANSWERS:
        await answer(send, {"error": {"message": "no such path"}}, 404)
    elif body.get("stream"):
        slow = model.endswith(("-drip", "-thinks", "-late"))
        await stream(send, events_of(path, model, body), 10 if slow else 0)
        if model.endswith("-cut"):
            raise ConnectionAbortedError("as asked")
        await send({"type": "http.response.body", "body": b""})
    else:
        await answer(send, ANSWERS[path](model))


def chat(model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": USAGE,
    }


def chat_events(model: str) -> list[str]:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas = [{"role": "assistant", "content": WORDS[0]}, *({"content": w} for w in WORDS[1:])]
    chunks = [
        {**base, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas
    ]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**base, "choices": [], "usage": USAGE})
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]


def message(model: str, text: str = "".join(WORDS)) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": TOKENS,
    }


def message_events(model: str) -> list[str]:
    start = {"type": "message_start", "message": {**message(model, ""), "stop_reason": None}}
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": TOKENS}
    events = [
        start,
        block,
        *deltas,
        {"type": "content_block_stop", "index": 0},
        end,
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def response(model: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": "".join(WORDS), "annotations": []}
    output = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    usage = {
        **TOKENS,
        "total_tokens": 18,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": [output],
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response_events(model: str) -> list[str]:
    whole = response(model)
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**whole, "status": "in_progress", "output": [], "usage": None},
        }
    ]
    events += [
        {
            "type": f"response.{'reasoning' if model.endswith('-thinks') else 'output'}_text.delta",
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "delta": word,
        }
        for word in WORDS
    ]
    events.append({"type": "response.completed", "response": whole})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in numbered]


def completion(model: str) -> dict[str, Any]:
    choice = {"index": 0, "text": "".join(WORDS), "finish_reason": "stop", "logprobs": None}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": USAGE,
    }


def completion_events(model: str) -> list[str]:
    base = {**completion(model), "usage": None}
    choices = [{"index": 0, "text": word, "finish_reason": None} for word in WORDS]
    choices.append({"index": 0, "text": "", "finish_reason": "stop"})
    chunks = [f"data: {json.dumps({**base, 'choices': [choice]})}\n\n" for choice in choices]
    return [*chunks, "data: [DONE]\n\n"]


def transcription(model: str) -> dict[str, Any]:
    return {"text": "".join(WORDS)}


ANSWERS = {
    "/v1/chat/completions": chat,
    "/v1/completions": completion,
    "/v1/messages": message,
    "/v1/responses": response,
    "/v1/audio/transcriptions": transcription,
}
EVENTS = {
    "/v1/chat/completions": chat_events,
    "/v1/completions": completion_events,
    "/v1/messages": message_events,
    "/v1/responses": response_events,
}


def events_of(path: str, model: str, body: dict[str, Any]) -> list[str]:
    events = EVENTS[path](model)
    if model.endswith("-cut"):
        return events[:3]
    if model.endswith("-broken"):
        asked = body.get("messages") or body.get("input")
        return [*events[:3], broken_event(path, f"{INTERNALS} input was: {asked}")]
    return events


def broken_event(path: str, message: str) -> str:
    """What vLLM sends when generation fails after the answer has begun."""
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    if path == "/v1/chat/completions":
        return f"data: {json.dumps({'error': error})}\n\ndata: [DONE]\n\n"
    if path == "/v1/messages":
        event = {"type": "error", "error": {"type": "internal_error", "message": message}}
        return f"event: error\ndata: {json.dumps(event)}\n\n"
    event = {**error, "type": "error", "code": "500", "sequence_number": 3}
    return f"event: error\ndata: {json.dumps(event)}\n\n"


async def stream(send: Any, events: list[str], pause: float) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for number, event in enumerate(events):
        await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        if number > 0:  # LiteLLM holds the first event of /v1/responses until there is a second
            await asyncio.sleep(pause)


async def answer(send: Any, found: dict[str, Any], status: int = 200) -> None:
    body = json.dumps(found).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read(receive: Any) -> bytes:
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            return body


@asynccontextmanager
async def counted() -> AsyncIterator[None]:
    state["open"] += 1
    try:
        yield
    finally:
        state["open"] -= 1


@asynccontextmanager
async def departure(receive: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """A task that ends when the caller hangs up."""
    task = asyncio.create_task(receive())
    try:
        yield task
    finally:
        task.cancel()
