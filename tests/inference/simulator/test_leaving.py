"""Clients that leave, requests that hang or wait, and what is counted meanwhile."""

import json
import socket
from typing import Any

import pytest

from tests.inference.simulator.engines import RunningEngine, eventually

MESSAGES = [{"role": "user", "content": "[sim:hang]"}]
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": MESSAGES}),
    ("/v1/completions", {"prompt": "[sim:hang]"}),
    ("/v1/messages", {"model": "nan", "messages": MESSAGES, "max_tokens": 9}),
    ("/v1/responses", {"input": "[sim:hang]"}),
]


def send(engine: RunningEngine, path: str, body: dict[str, Any]) -> socket.socket:
    """A request whose answer is not waited for."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer secret-one\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", engine.port), timeout=5)
    connection.sendall(head.encode() + data)
    return connection


def running(engine: RunningEngine) -> int:
    return int(engine.metric("vllm:num_requests_running"))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(("path", "body"), BODIES, ids=[path for path, _ in BODIES])
def test_leaving_during_a_hang(
    engine: RunningEngine, path: str, body: dict[str, Any], stream: bool
) -> None:
    before = engine.counters()["routes"].get(path, {}).get("aborted", 0)
    connection = send(engine, path, {**body, "stream": stream})
    eventually(lambda: running(engine) == 1)
    connection.close()
    eventually(lambda: running(engine) == 0, seconds=0.5)
    assert engine.counters()["routes"][path]["aborted"] == before + 1
    assert engine.counters()["routes"][path]["running"] == 0


def test_leaving_an_embedding(engine: RunningEngine) -> None:
    connection = send(engine, "/v1/embeddings", {"input": "[sim:hang]"})
    eventually(lambda: running(engine) == 1)
    connection.close()
    eventually(lambda: running(engine) == 0, seconds=0.5)
    assert engine.counters()["routes"]["/v1/embeddings"]["aborted"] == 1


def test_leaving_in_the_middle_of_a_stream(engine: RunningEngine) -> None:
    before = engine.metric("vllm:generation_tokens_total")
    messages = [{"role": "user", "content": "[sim:tokens=4000]"}]
    connection = send(engine, "/v1/chat/completions", {"messages": messages, "stream": True})
    connection.recv(1000)
    connection.close()
    eventually(lambda: running(engine) == 0, seconds=0.5)
    assert engine.metric("vllm:generation_tokens_total") - before < 2000


def test_places_queue_and_refusal(bare: RunningEngine) -> None:
    held = [send(bare, "/v1/chat/completions", {"messages": MESSAGES}) for _ in range(2)]
    eventually(lambda: running(bare) == 2)
    held.append(send(bare, "/v1/chat/completions", {"messages": MESSAGES}))
    eventually(lambda: bare.metric("vllm:num_requests_waiting") == 1)
    refused = bare.chat("hi")
    assert refused.status_code == 503
    assert bare.metric("vllm:admission_rejections_total") == 1
    held[0].close()
    eventually(lambda: bare.metric("vllm:num_requests_waiting") == 0)
    assert running(bare) == 2
    for connection in held:
        connection.close()
    eventually(lambda: running(bare) == 0)
    assert bare.counters()["peak"] == 4
