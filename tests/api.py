"""A client program: calls the API with a key, from outside. And the gateway's admin API."""

import json
import threading
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeVar

import httpx

from tests.stack import Stack

Result = TypeVar("Result")
ROUTES = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


def payload(
    route: str, text: str, *, stream: bool = False, model: str = "nan", longest: int = 64
) -> dict[str, object]:
    if route == "/v1/responses":
        return {"model": model, "input": text, "stream": stream}
    return {
        "model": model,
        "max_tokens": longest,
        "stream": stream,
        "messages": [{"role": "user", "content": text}],
    }


@dataclass
class ApiClient:
    base: str
    key: str
    timeout: float = 60
    model: str = "nan"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def call(
        self, route: str = "/v1/chat/completions", text: str = "hello", *, stream: bool = False
    ) -> httpx.Response:
        return httpx.post(
            self.base + route,
            json=payload(route, text, stream=stream, model=self.model),
            headers=self.headers,
            timeout=self.timeout,
        )

    def models(self) -> httpx.Response:
        return httpx.get(f"{self.base}/v1/models", headers=self.headers, timeout=self.timeout)

    def leave_midstream(self, route: str, text: str) -> None:
        """Reads the first event and is gone, long before the answer would have ended."""
        with httpx.stream(
            "POST",
            self.base + route,
            json=payload(route, text, stream=True, longest=8000),
            headers=self.headers,
            timeout=self.timeout,
        ) as answer:
            assert answer.status_code == 200
            next(answer.iter_bytes())

    def leave_waiting(self, route: str, text: str, *, seconds: float, stream: bool) -> None:
        """Gives up before the answer has begun."""
        try:
            httpx.post(
                self.base + route,
                json=payload(route, text, stream=stream),
                headers=self.headers,
                timeout=seconds,
            )
        except httpx.ReadTimeout:
            return
        raise AssertionError("the engine answered a call that was to hang")


@dataclass
class Traffic:
    """Calls with one key without a pause longer than `every`, and remembers what came back."""

    client: ApiClient
    every: float = 0.7  # seconds: below 100 a minute
    seen: list[tuple[float, int]] = field(default_factory=list)  # when it was sent, status
    _end: threading.Event = field(default_factory=threading.Event, repr=False)

    def __enter__(self) -> "Traffic":
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._end.wait(self.every):
            sent = time.monotonic()
            try:
                self.seen.append((sent, self.client.call().status_code))
            except httpx.TransportError:
                self.seen.append((sent, 0))

    def since(self, moment: float) -> list[int]:
        return [status for sent, status in list(self.seen) if sent >= moment]

    def last(self) -> int:
        return self.seen[-1][1] if self.seen else 0


@dataclass
class GatewayAdmin:
    """What only the gateway can tell, asked with its master key."""

    stack: Stack

    def call(self, method: str, path: str, **request: Any) -> Any:
        settings = self.stack.gateway_settings
        answer = httpx.request(
            method,
            settings["GATEWAY_URL"] + path,
            headers={"Authorization": f"Bearer {settings['LITELLM_MASTER_KEY']}"},
            timeout=20,
            **request,
        )
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.json()

    def rows(self, *owners: str) -> list[dict[str, Any]]:
        """All keys at the gateway, or those of some members."""
        rows: list[dict[str, Any]] = []
        page, pages = 1, 1
        while page <= pages:
            query = {"page": page, "size": 100, "return_full_object": "true"}
            answer = self.call("GET", "/key/list", params={**query, "sort_by": "token"})
            rows += answer["keys"]
            page, pages = page + 1, answer["total_pages"]
        return [row for row in rows if not owners or row["user_id"] in owners]

    def limits(self, owner: str) -> list[tuple[int, int]]:
        """Requests a minute and in parallel of each key that is not blocked, smallest first."""
        keys = [row for row in self.rows(owner) if not row["blocked"]]
        return sorted((row["rpm_limit"], row["max_parallel_requests"]) for row in keys)

    def make(self, **fields: Any) -> dict[str, Any]:
        return dict(self.call("POST", "/key/generate", json=fields))

    def change(self, verb: str, **fields: Any) -> None:
        self.call("POST", f"/key/{verb}", json=fields)


def count_by(values: Iterable[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


def _add(one: Any, other: Any) -> Any:
    """Numbers are added up, in mappings by their names; anything else is taken from the first."""
    if isinstance(one, dict):
        empty = {name: _nothing(value) for name, value in {**one, **other}.items()}
        return {name: _add({**empty, **one}[name], {**empty, **other}[name]) for name in empty}
    return one + other if isinstance(one, int) else one


def _nothing(like: Any) -> Any:
    return {} if isinstance(like, dict) else 0 if isinstance(like, int) else like


@dataclass
class EngineCounts:
    """What the simulated engines have seen; see /_sim/requests."""

    stack: Stack

    def ports(self) -> list[int]:
        """Of the replicas of the chat slot that run."""
        code = (
            "from inference.models import Replica; print([r.port for r in "
            "Replica.objects.filter(slot__number=1).exclude(instance='')])"
        )
        return list(json.loads(self.stack.python(code)))

    @cached_property
    def _ports(self) -> list[int]:
        return self.ports()

    def unwatched(self) -> AbstractContextManager[None]:
        """Without the completion a minute with which the fleet worker watches each replica."""
        return self.stack.frozen("worker-fleet")

    def read(self) -> dict[str, Any]:
        """All replicas together."""
        found = [
            httpx.get(f"http://127.0.0.1:{port}/_sim/requests", timeout=10).json()
            for port in self._ports
        ]
        return dict(reduce(_add, found))
