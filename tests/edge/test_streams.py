"""Streams pass as they come, and end when either side leaves."""

from __future__ import annotations

import http.client
import queue
import socket
import threading
import time

import pytest

from tests.edge.conftest import Scene
from tests.fakes.raw_http import Connection, Request, request_bytes

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_each_chunk_arrives_before_the_next_is_sent(scene: Scene, path: str) -> None:
    seen: queue.Queue[bytes] = queue.Queue()
    sent = [f"data: {number}\n\n".encode() for number in range(5)]
    in_step: list[bool] = []

    def stream(request: Request, connection: Connection) -> None:
        connection.send(HEAD)
        for chunk in sent:
            connection.chunk(chunk)
            in_step.append(seen.get(timeout=5) == chunk)
        connection.send(b"0\r\n\r\n")

    scene.scripts["gateway"] = stream
    client = http.client.HTTPConnection("127.0.0.1", scene.edge.api, timeout=5)
    client.request("POST", path, b'{"stream":true}')
    response = client.getresponse()
    for chunk in sent:
        seen.put(response.read(len(chunk)))
    assert (response.status, response.read(), in_step) == (200, b"", [True] * 5)
    assert response.headers["content-type"] == "text/event-stream"
    client.close()


def test_a_good_answer_is_not_touched_byte_for_byte(scene: Scene) -> None:
    body = bytes(range(256)) * 400 + b'data: {"error":{"message":"http://10.0.0.1:8000"}}'
    scene.scripts["gateway"] = lambda request, connection: connection.answer(200, body)
    client = http.client.HTTPConnection("127.0.0.1", scene.edge.api, timeout=5)
    client.request("POST", "/v1/audio/speech", b"{}")
    response = client.getresponse()
    assert (response.status, response.read()) == (200, body)
    client.close()


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_leaves_is_noticed_within_a_second(scene: Scene, begun: bool) -> None:
    reached = threading.Event()
    gone: queue.Queue[float | None] = queue.Queue()

    def hang(request: Request, connection: Connection) -> None:
        if begun:
            connection.send(HEAD)
            connection.chunk(b"data: 1\n\n")
        reached.set()
        gone.put(connection.seconds_until_gone(5))

    scene.scripts["gateway"] = hang
    client = socket.create_connection(("127.0.0.1", scene.edge.api), 5)
    client.sendall(request_bytes("POST", "/v1/messages", body=b"{}"))
    assert reached.wait(5)
    if begun:
        client.recv(1000)
    left = time.monotonic()
    client.close()
    assert gone.get(timeout=6) is not None
    assert time.monotonic() - left < 1


def test_a_stream_that_breaks_is_broken_for_the_client(scene: Scene) -> None:
    def break_off(request: Request, connection: Connection) -> None:
        connection.send(HEAD)
        connection.chunk(b"data: 1\n\n")
        connection.socket.shutdown(2)

    scene.scripts["gateway"] = break_off
    client = http.client.HTTPConnection("127.0.0.1", scene.edge.api, timeout=5)
    client.request("POST", "/v1/chat/completions", b"{}")
    response = client.getresponse()
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    client.close()
    assert len(scene.gateway.requests) == 1
