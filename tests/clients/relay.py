"""Stands before the edge and notes which calls pass, so that what a client needs is what it did."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx

from tests.clients.calls import call_of
from tests.fakes.raw_http import Connection, RawServer, Request

_OF_ONE_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


class Relay:
    """Everything goes on as it came, to `edge()`; what was answered well is in `calls`."""

    def __init__(self, edge: Callable[[], str]) -> None:
        self.edge = edge
        self.calls: set[str] = set()
        self.url = ""

    def pass_on(self, request: Request, connection: Connection) -> None:
        headers = [pair for pair in request.headers if pair[0].lower() not in _OF_ONE_HOP]
        url = self.edge() + request.target
        with (
            httpx.Client(timeout=300, headers={"accept-encoding": "identity"}) as client,
            client.stream(
                request.method, url, headers=headers, content=request.body or None
            ) as answer,
        ):
            if answer.is_success:
                self.calls |= _call(request)
            _give_back(answer, connection, whole=request.method != "HEAD")


def _call(request: Request) -> set[str]:
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        return set()
    call = call_of(urlsplit(request.target).path, body)
    return {call} if call else set()


def _give_back(answer: httpx.Response, connection: Connection, *, whole: bool) -> None:
    lines = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}"]
    lines += [f"{n}: {v}" for n, v in answer.headers.items() if n.lower() not in _OF_ONE_HOP]
    if not whole:
        connection.send("\r\n".join([*lines, "content-length: 0", "", ""]).encode())
        return
    connection.send("\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode())
    for chunk in answer.iter_raw():
        if chunk:
            connection.chunk(chunk)
    connection.send(b"0\r\n\r\n")


@contextmanager
def relayed(edge: Callable[[], str]) -> Iterator[Relay]:
    relay = Relay(edge)
    with RawServer(relay.pass_on) as server:
        relay.url = f"http://{server.address}"
        yield relay
