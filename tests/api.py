"""A client program: calls the API with a key, from outside."""

from dataclasses import dataclass

import httpx

ROUTES = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


def payload(
    route: str, text: str, *, stream: bool = False, model: str = "nan"
) -> dict[str, object]:
    if route == "/v1/responses":
        return {"model": model, "input": text, "stream": stream}
    return {
        "model": model,
        "max_tokens": 64,
        "stream": stream,
        "messages": [{"role": "user", "content": text}],
    }


@dataclass
class ApiClient:
    base: str
    key: str
    timeout: float = 60

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def call(
        self, route: str = "/v1/chat/completions", text: str = "hello", *, stream: bool = False
    ) -> httpx.Response:
        return httpx.post(
            self.base + route,
            json=payload(route, text, stream=stream),
            headers=self.headers,
            timeout=self.timeout,
        )

    def models(self) -> httpx.Response:
        return httpx.get(f"{self.base}/v1/models", headers=self.headers, timeout=self.timeout)
