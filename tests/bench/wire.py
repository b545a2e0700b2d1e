"""A kept-alive connection to one part: as little as possible between the clock and the server."""

import http.client
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    seconds: float

    def ok(self, *statuses: int) -> "Answer":
        """Itself, if the status is one of these; a measurement of errors measures nothing."""
        if self.status not in (statuses or (200,)):
            raise SystemExit(f"Unexpected answer {self.status}: {self.body[:500].decode()}")
        return self

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Wire:
    url: str
    _http: http.client.HTTPConnection = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._http = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)

    def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Answer:
        began = time.perf_counter()
        try:
            answer = self._send(method, path, headers, body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # Closed for having been idle: the next one counts, from its own start.
            self._http.close()
            began = time.perf_counter()
            answer = self._send(method, path, headers, body)
        content = answer.read()
        return Answer(answer.status, answer.headers, content, time.perf_counter() - began)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> http.client.HTTPResponse:
        self._http.request(method, path, body=body, headers=dict(headers))
        return self._http.getresponse()

    def post_json(self, path: str, *, key: str, content: Any) -> Answer:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        return self.request("POST", path, headers=headers, body=json.dumps(content).encode())

    def get_api(self, path: str, *, key: str) -> Answer:
        return self.request("GET", path, headers={"Authorization": f"Bearer {key}"})


@dataclass
class Browser:
    """One signed-in person's browser: a session made in the database, cookies, forms."""

    wire: Wire
    session: str
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cookies |= {"session": self.session, "csrf": secrets.token_hex(16)}

    def get(self, path: str, *, fragment: bool = False) -> Answer:
        extra = {"HX-Request": "true"} if fragment else {}
        return self._kept(self.wire.request("GET", path, headers={**self._headers, **extra}))

    def post(self, path: str, **data: Any) -> Answer:
        body = urlencode({**data, "csrfmiddlewaretoken": self.cookies["csrf"]}, doseq=True)
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        return self._kept(self.wire.request("POST", path, headers=headers, body=body.encode()))

    @property
    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"Cookie": cookies, "Accept-Language": "en", "X-Forwarded-For": "127.0.0.1"}

    def _kept(self, answer: Answer) -> Answer:
        for header in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = header.split(";", 1)[0].partition("=")
            self.cookies[name] = value
        return answer
