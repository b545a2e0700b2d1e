"""A scripted HTTP/1.1 server on loopback that can behave badly, and a client without manners.

`RawServer(script)` calls `script(request, connection)` in a thread of its own per request; the
script writes whatever bytes it likes. Health paths are answered with `health_status` and are not
recorded.
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

HEALTH_PATHS = ("/health", "/health/liveliness")


@dataclass
class Request:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class Connection:
    socket: socket.socket

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(
        self, status: int, body: bytes | dict[str, Any] = b"", headers: dict[str, str] | None = None
    ) -> None:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        head = f"HTTP/1.1 {status} Scripted\r\ncontent-length: {len(content)}\r\n"
        for name, value in (headers or {}).items():
            head += f"{name}: {value}\r\n"
        self.send(head.encode() + b"\r\n" + content)

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def seconds_until_gone(self, limit: float) -> float | None:
        """How long until the peer closed; None if it still holds on after `limit`."""
        begun = time.monotonic()
        readable, _, _ = select.select([self.socket], [], [], limit)
        if not readable:
            return None
        try:
            left = self.socket.recv(1) == b""
        except OSError:
            left = True
        return time.monotonic() - begun if left else None


Script = Callable[[Request, Connection], None]


@dataclass
class RawServer:
    script: Script
    requests: list[Request] = field(default_factory=list)
    health_status: int = 200

    def __enter__(self) -> RawServer:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def refuse(self) -> None:
        """New connections, from now on. Alone, `close` lets one more in."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as reader:
            try:
                while (request := _read_request(reader)) is not None:
                    self._answer(request, Connection(client))
            except OSError:
                return

    def _answer(self, request: Request, connection: Connection) -> None:
        if request.target in HEALTH_PATHS:
            connection.answer(self.health_status)
            return
        self.requests.append(request)
        self.script(request, connection)


def _read_request(reader: Any) -> Request | None:
    line = reader.readline().decode("latin-1").split()
    if len(line) != 3:
        return None
    headers = []
    while (raw := reader.readline().decode("latin-1").strip()) != "":
        name, _, value = raw.partition(":")
        headers.append((name, value.strip()))
    request = Request(line[0], line[1], headers, b"")
    length = request.values("content-length")
    request.body = reader.read(int(length[0])) if length else b""
    return request


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def exchange(port: int, raw: bytes, *, timeout: float = 10) -> Answer:
    """Send exactly these bytes and read one answer."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(raw)
        return read_answer(connection)


def read_answer(connection: socket.socket) -> Answer:
    response = http.client.HTTPResponse(connection)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def request_bytes(
    method: str,
    target: str,
    *,
    body: bytes | None = None,
    host: str = "127.0.0.1",
    headers: dict[str, str] | None = None,
) -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n"
    if body is not None:
        head += f"Content-Length: {len(body)}\r\n"
    for name, value in (headers or {}).items():
        head += f"{name}: {value}\r\n"
    return head.encode("latin-1") + b"\r\n" + (body or b"")


def post(port: int, path: str, body: bytes = b"{}", **options: Any) -> Answer:
    return exchange(port, request_bytes("POST", path, body=body, **options))


def get(port: int, path: str, **options: Any) -> Answer:
    return exchange(port, request_bytes("GET", path, **options))
