"""An engine that answers well but for one bad manner, which the simulator does not have.

Streams are written chunk by chunk on a raw socket, so that they can be slow, halved or disordered.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakes.raw_http import Connection, RawServer, Request

NAME = "nan"
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": NAME}
METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="nan"} 0.0
# TYPE vllm:spec_decode_num_draft_tokens counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="nan"} DRAFTED
# TYPE vllm:spec_decode_num_accepted_tokens counter
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="nan"} ACCEPTED
"""
Event = tuple[str, dict[str, Any]]


def chat_chunks() -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    return [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hello"}),
        chunk({"content": " there."}),
        chunk({}, "stop"),
        {**HEAD, "choices": [], "usage": USAGE},
    ]


CALL = {"type": "tool_use", "id": "t", "name": "weather", "input": {}}
PLACE = {"partial_json": '{"city": "Lisbon"}'}
THOUGHT = ({"type": "thinking", "thinking": ""}, {"thinking": "A greeting."})
TEXT = ({"type": "text", "text": ""}, {"text": "Hi"})
DELTAS = {"thinking": "thinking_delta", "text": "text_delta", "tool_use": "input_json_delta"}


def message_events(*blocks: tuple[dict[str, Any], dict[str, Any]], end: str) -> list[Event]:
    """Each block by its beginning and its only delta."""
    found: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9}}}
    ]
    for index, (block, delta) in enumerate(blocks):
        typed = {"type": DELTAS[block["type"]], **delta}
        found += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": typed},
            {"type": "content_block_stop", "index": index},
        ]
    usage = {"output_tokens": 3}
    found.append({"type": "message_delta", "delta": {"stop_reason": end}, "usage": usage})
    found.append({"type": "message_stop"})
    return [(str(event["type"]), event) for event in found]


def message_answer(**changed: Any) -> dict[str, Any]:
    blocks = [{"type": "thinking", "thinking": "A greeting."}, {"type": "text", "text": "Hi"}]
    usage = {"input_tokens": 9, "output_tokens": 3}
    return {"type": "message", "role": "assistant", "model": NAME, "content": blocks,
            "stop_reason": "end_turn", "usage": usage, **changed}  # fmt: skip


def response_events(*items: dict[str, Any]) -> list[Event]:
    """Of one response, its first event and its last."""
    found = [{"type": "response.created"}, {"type": "response.completed",
             "response": {"output": list(items), "status": "completed"}}]  # fmt: skip
    return [(str(event["type"]), event) for event in found]


def response_call(name: str = "weather", arguments: str = '{"city": "Lisbon"}') -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": arguments}


def chat_answer(**message: Any) -> dict[str, Any]:
    told = {"role": "assistant", "content": "Hello there.", **message}
    choice = {"index": 0, "message": told, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "model": NAME, "choices": [choice],
            "usage": USAGE}  # fmt: skip


class Manners:
    """What is answered on each route. A test changes one of them."""

    def __init__(self) -> None:
        self.chat: dict[str, Any] | bytes = chat_answer()
        self.status = 200
        self.chunks = chat_chunks()
        self.stream_type = "text/event-stream"
        self.message: dict[str, Any] = message_answer()
        self.messages = message_events(THOUGHT, TEXT, end="end_turn")
        self.messages_quiet = message_events(TEXT, end="end_turn")
        """Where thoughts are turned off."""
        self.messages_call = message_events((CALL, PLACE), end="tool_use")
        """Where tools are offered."""
        self.responses = response_events(response_call())
        self.switch = True
        """The chat template makes another prompt where thoughts are turned off."""
        self.done = True
        """A stream ends with `[DONE]` and the last chunk of its body."""
        self.cut = False
        """The connection is closed in the middle of a body that was announced as longer."""
        self.before: dict[int, float] = {}
        """Seconds of silence before the chunk of that number."""
        self.drip = 0.0
        """Seconds between single bytes of a plain answer; 0: at once."""
        self.drafted, self.accepted = 0, 0
        self.accepted_each = 0
        self.models = [NAME]


@contextmanager
def engine_with(change: Callable[[Manners], None]) -> Iterator[str]:
    """The URL of an engine with one manner changed."""
    manners = Manners()
    change(manners)
    with RawServer(lambda request, connection: _serve(manners, request, connection)) as server:
        yield f"http://{server.address}"


def _serve(manners: Manners, request: Request, connection: Connection) -> None:
    if request.target == "/v1/models":
        cards = [{"id": name, "max_model_len": 4096} for name in manners.models]
        connection.answer(200, {"object": "list", "data": cards})
    elif request.target == "/metrics":
        text = METRICS.replace("DRAFTED", str(manners.drafted))
        connection.answer(200, text.replace("ACCEPTED", str(manners.accepted)).encode())
    elif request.target == "/tokenize":
        quiet = manners.switch and _quiet(json.loads(request.body))
        connection.answer(200, {"count": 1, "tokens": [1, 2] if quiet else [1]})
    elif json.loads(request.body).get("stream"):
        _stream(manners, request, connection)
    else:
        manners.drafted += 12
        manners.accepted += manners.accepted_each
        _plain(manners, request, connection)


def _quiet(body: dict[str, Any]) -> bool:
    return (body.get("chat_template_kwargs") or {}).get("enable_thinking") is False


def _plain(manners: Manners, request: Request, connection: Connection) -> None:
    answer = manners.message if request.target == "/v1/messages" else manners.chat
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    if manners.cut:
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n" + body[:9])
        connection.socket.shutdown(socket.SHUT_RDWR)
        return
    if not manners.drip:
        connection.answer(manners.status, body)
        return
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
    for byte in body:
        time.sleep(manners.drip)
        connection.send(bytes([byte]))


def _stream(manners: Manners, request: Request, connection: Connection) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {manners.stream_type}\r\n"
    connection.send(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
    for number, line in enumerate(_lines(manners, request)):
        time.sleep(manners.before.get(number, 0))
        connection.chunk(line.encode())
    if manners.cut:
        connection.socket.shutdown(socket.SHUT_RDWR)
        return
    if manners.done:
        connection.chunk(b"data: [DONE]\n\n")
    connection.send(b"0\r\n\r\n")


def _lines(manners: Manners, request: Request) -> list[str]:
    body = json.loads(request.body)
    if request.target == "/v1/messages":
        quiet = manners.messages_quiet if _quiet(body) else manners.messages
        events = manners.messages_call if body.get("tools") else quiet
    elif request.target == "/v1/responses":
        events = manners.responses
    else:
        return [f"data: {json.dumps(chunk)}\n\n" for chunk in manners.chunks]
    return [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
