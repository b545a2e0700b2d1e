"""The only client of one engine (vLLM or its simulator). Knows nothing of our rows.

Every call opens its own connection: a check must pass through the engine's `accept`, and an idle
connection may be one that the engine has already given up. Bodies are never logged and are in no
exception; an engine's error text can repeat the prompt.
https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
"""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import httpx

from inference.engine_metrics import EngineMetrics, read_metrics

LIMITS = httpx.Limits(max_connections=16, max_keepalive_connections=0)
TIMEOUT = httpx.Timeout(5, connect=2)
"""For the short calls (health, models, metrics); generating calls carry their own deadline."""
MAX_EVENTS = 20_000
_DONE = "[DONE]"


class EngineUnavailable(Exception):
    """No usable answer. The code says why: `unreachable`, `timeout`, `broken_off`, `unreadable`,
    `not_admitted`, `refused` (4xx), `not_found`, `server_error` (5xx)."""

    def __init__(self, code: str, *, status: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    name: str
    context: int | None
    """Tokens that the engine was started for; None where it doesn't say."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One server-sent event. `after`: seconds since the request was sent."""

    name: str
    data: dict[str, Any] | None
    """None for `[DONE]`."""
    after: float


class Engine:
    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        *,
        timeout: httpx.Timeout = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=timeout,
            limits=LIMITS,
            transport=transport,
            verify=_authorities(),
            trust_env=False,  # a proxy of the environment has no business between us and an engine
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def healthy(self) -> bool:
        """Whether it says so. A hanging, sleeping or draining engine says so too."""
        try:
            return self._http.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def version(self) -> str:
        return str(_object(self._got("/version").content).get("version", ""))

    def models(self) -> tuple[ServedModel, ...]:
        """All served names; the first is the one that answers and metric labels carry."""
        try:
            return tuple(
                ServedModel(name=str(card["id"]), context=card.get("max_model_len"))
                for card in _object(self._got("/v1/models").content)["data"]
            )
        except (KeyError, TypeError, AttributeError):
            raise EngineUnavailable("unreadable") from None

    def metrics(self) -> EngineMetrics:
        """https://docs.vllm.ai/en/latest/usage/metrics.html"""
        try:
            return read_metrics(self._got("/metrics").text)
        except (ValueError, KeyError):
            raise EngineUnavailable("unreadable") from None

    def ask(self, path: str, body: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """One whole answer within `seconds`, connecting included."""
        with self._sent(path, body, seconds) as response:
            return _object(response.read())

    def stream(self, path: str, body: Mapping[str, Any], *, seconds: float) -> Iterator[Event]:
        """Events as they come, until the stream ends or `seconds` are over (then `timeout`).

        A stream that just ends is no error here: whether it was complete is seen in its events.
        """
        began = time.monotonic()
        with self._sent(path, {**body, "stream": True}, seconds) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise EngineUnavailable("unreadable")
            for number, (name, data) in enumerate(_events(response.iter_lines())):
                if number >= MAX_EVENTS:
                    raise EngineUnavailable("unreadable")
                yield Event(name=name, data=_payload(data), after=time.monotonic() - began)

    def _got(self, path: str) -> httpx.Response:
        with _as_engine_errors(None):
            response = self._http.get(path)
        _check(response)
        return response

    @contextmanager
    def _sent(self, path: str, body: Mapping[str, Any], seconds: float) -> Iterator[httpx.Response]:
        """The answer's beginning, checked. httpx bounds each read only, the deadline all of them
        (a drop every second would else last for ever)."""
        with _Deadline(seconds) as deadline, _as_engine_errors(deadline):
            request = self._http.build_request(
                "POST",
                path,
                json=dict(body),
                timeout=httpx.Timeout(seconds, connect=min(2, seconds)),
                extensions={"trace": deadline.trace},
            )
            response = self._http.send(request, stream=True)
            try:
                _check(response)
                yield response
            finally:
                response.close()


class _Deadline:
    """Ends a blocked read at a moment, from a timer's thread, by shutting the socket down."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(max(0.0, seconds), self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """https://www.encode.io/httpcore/extensions/#trace"""
        if event == "connection.connect_tcp.complete":
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._end()

    def _end(self) -> None:
        self.passed = True
        with self._lock:
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    self._socket = None  # already closed


@contextmanager
def _as_engine_errors(deadline: _Deadline | None) -> Iterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
        raise EngineUnavailable("unreachable") from None
    except httpx.TimeoutException:
        raise EngineUnavailable("timeout") from None
    except (httpx.TransportError, httpx.StreamError):
        over = deadline is not None and deadline.passed
        raise EngineUnavailable("timeout" if over else "broken_off") from None
    except (httpx.DecodingError, UnicodeDecodeError):
        raise EngineUnavailable("unreadable") from None
    if deadline is not None and deadline.passed:
        raise EngineUnavailable("timeout")


def _check(response: httpx.Response) -> None:
    status = response.status_code
    if status in (401, 403):
        raise EngineUnavailable("not_admitted", status=status)
    if status == 404:
        raise EngineUnavailable("not_found", status=status)
    if status >= 500:
        raise EngineUnavailable("server_error", status=status)
    if status != 200:
        raise EngineUnavailable("refused", status=status)


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """https://html.spec.whatwg.org/multipage/server-sent-events.html"""
    name = ""
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))


def _payload(data: str) -> dict[str, Any] | None:
    return None if data == _DONE else _object(data)


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise EngineUnavailable("unreadable") from None
    if not isinstance(found, dict):
        raise EngineUnavailable("unreadable")
    return found


@cache
def _authorities() -> ssl.SSLContext:
    """Read once: else each client spends 20 ms of processor time on them, also for `http:`."""
    return httpx.create_ssl_context(trust_env=False)
