"""Requests, answers and errors of the simulator, between raw ASGI and the routes."""

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    raw_body: bytes = b""
    cleanup: ExitStack = field(default_factory=ExitStack)
    """Closed by the server when the request ends in whatever way, also by the client leaving."""

    def json(self) -> dict[str, Any]:
        """The body as an object; refuses as vLLM does, without repeating it."""
        if self.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise ApiError(415, "Unsupported Media Type: Only 'application/json' is allowed")
        try:
            body = json.loads(self.raw_body)
        except ValueError:
            raise ApiError(400, "JSON decode error") from None
        if not isinstance(body, dict):
            raise ApiError(400, "Input should be a valid dictionary")
        return body


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer, or with `events` a stream of server-sent events."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    events: AsyncIterator[str] | None = None


class CutError(Exception):
    """The connection has to break here, without an end of the answer."""


_TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    415: "Unsupported Media Type",
    429: "RateLimitError",
    500: "InternalServerError",
    501: "NotImplementedError",
    503: "ServiceUnavailableError",
}


class ApiError(Exception):
    """A refusal; `str()` is empty of the message, which may repeat a prompt."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, invalid: bool = False
    ) -> None:
        super().__init__(status)
        self.status, self.message, self.param = status, message, param
        self.invalid = invalid
        """Found before the route's own code: of one kind and shape, whatever API was called."""

    @property
    def type(self) -> str:
        if self.invalid:
            return "Bad Request"
        return _TYPES.get(self.status, "InternalServerError")

    def answer(self, *, anthropic: bool) -> Answer:
        """The error in the shape of the API that was called."""
        if anthropic and not self.invalid:
            error = {"type": self.type, "message": self.message}
            return json_answer({"type": "error", "error": error}, status=self.status)
        body = {"message": self.message, "type": self.type, "param": self.param}
        return json_answer({"error": {**body, "code": self.status}}, status=self.status)


def json_answer(content: Any, *, status: int = 200) -> Answer:
    return Answer(status=status, body=dumps(content).encode())


def dumps(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def data_line(content: Any) -> str:
    return f"data: {dumps(content)}\n\n"


def event_lines(name: str, content: Any) -> str:
    return f"event: {name}\n{data_line(content)}"


def stream_answer(events: AsyncIterator[str]) -> Answer:
    return Answer(content_type="text/event-stream; charset=utf-8", events=events)
