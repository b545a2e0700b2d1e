"""What the tests say to the gateway: as its admin, and as a member on each of the API routes."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

ALLOWED = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/audio/transcriptions",
    "/v1/audio/speech",
    "/v1/models",
]
ROUTES = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
MANNERS = (
    "plain", "slow", "hang", "mute", "drip", "error", "missing", "rotating", "cut", "broken",
    "thinks", "late",
)  # fmt: skip


class Gateway:
    """LiteLLM's admin API."""

    def __init__(self, url: str, master_key: str) -> None:
        self.url = url
        headers = {"Authorization": f"Bearer {master_key}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(path, params=query)

    def generate(self, **changes: Any) -> tuple[str, httpx.Response]:
        """(our key, the answer), asked for as the product does, but for `changes`."""
        key = "sk-" + secrets.token_urlsafe(32)
        asked = {
            "key": key,
            "key_alias": str(uuid.uuid4()),
            "user_id": f"member-{uuid.uuid4().hex}",
            "rpm_limit": 100,
            "max_parallel_requests": 5,
            "allowed_routes": ALLOWED,
        }
        return key, self.post("/key/generate", **{**asked, **changes})

    @contextmanager
    def member(self, **changes: Any) -> Iterator[Member]:
        key, answer = self.generate(**changes)
        assert answer.status_code == 200, answer.text
        with httpx.Client(base_url=self.url, timeout=30) as http:
            yield Member(key=key, http=http)
        self.post("/key/delete", keys=[token(key)])


def token(key: str) -> str:
    """The id under which LiteLLM keeps a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def body(route: str, model: str, **more: Any) -> dict[str, Any]:
    if route == "/v1/responses":
        return {"model": model, "input": "hi", **more}
    return {
        "model": model,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        **more,
    }


@dataclass(frozen=True)
class Member:
    key: str = field(repr=False)
    http: httpx.Client

    @property
    def token(self) -> str:
        return token(self.key)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def call(self, route: str, model: str, **more: Any) -> httpx.Response:
        return self.http.post(route, headers=self.headers, json=body(route, model, **more))

    def chat(self, model: str, **more: Any) -> httpx.Response:
        return self.call(ROUTES[0], model, **more)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(path, headers=self.headers, params=query)

    def stream(self, route: str, model: str) -> AbstractContextManager[httpx.Response]:
        return self.http.stream(
            "POST", route, headers=self.headers, json=body(route, model, stream=True)
        )

    def give_up(self, route: str, model: str, *, stream: bool, seconds: float = 0.5) -> None:
        """Call, wait, and hang up before anything has come."""
        more = {"stream": True} if stream else {}
        try:
            self.http.post(
                route, headers=self.headers, json=body(route, model, **more), timeout=seconds
            )
        except httpx.ReadTimeout:
            return
        raise AssertionError("the engine answered although it was to hang")


def statuses(answers: list[httpx.Response]) -> list[int]:
    return sorted(answer.status_code for answer in answers)


@dataclass(frozen=True)
class Models:
    """Public name by manner."""

    gateway: Gateway
    engine: str
    prefix: str

    @classmethod
    def add(cls, gateway: Gateway, engine: str) -> Models:
        models = cls(gateway, engine, f"test-{uuid.uuid4().hex[:8]}")
        for manner in MANNERS:
            answer = models.add_one(models[manner], manner)
            assert answer.status_code == 200, answer.text
        return models

    def __getitem__(self, manner: str) -> str:
        return f"{self.prefix}-{manner}"

    def add_one(self, name: str, manner: str) -> httpx.Response:
        params = {"model": f"hosted_vllm/fake-{manner}", "api_base": f"{self.engine}/v1"}
        info = {"id": name, "max_input_tokens": 32768}
        return self.gateway.post(
            "/model/new", model_name=name, litellm_params=params, model_info=info
        )

    def remove(self) -> None:
        for manner in MANNERS:
            self.gateway.post("/model/delete", id=self[manner])
