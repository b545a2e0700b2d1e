"""Steady traffic of members: some stream, one calls plainly, and each remembers every end."""

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

ENDS = {
    "/v1/chat/completions": "[DONE]",
    "/v1/messages": "message_stop",
    "/v1/responses": "response.completed",
}

PAUSE_AFTER_TROUBLE = 0.5
"""Seconds; else those whose gateway is down ask it a thousand times before it is back."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """`end`: `whole`, or what went wrong with it. Times by `time.monotonic()`."""

    route: str
    stream: bool
    sent: float
    first: float
    ended: float
    status: int
    end: str
    detail: str = ""

    @property
    def well(self) -> bool:
        return self.status == 200 and self.end == "whole"


@dataclass(frozen=True, kw_only=True)
class Outage:
    """Of a part that requests go through: from before it was killed until it was ready again."""

    began: float
    ended: float

    def met(self, call: Call) -> bool:
        """It ran when the part was killed, or was sent before it was back."""
        return call.sent <= self.ended and call.ended >= self.began


@dataclass
class Load:
    """`streams` clients that stream one answer after another, and one that calls plainly.

    Routes go round: chat, messages, responses. An answer has `tokens` words, which at the
    simulator's pace take `tokens / 400` seconds, `sleep` seconds after the question.
    """

    base: str
    key: str
    model: str = "nan"
    streams: int = 4
    tokens: int = 400
    sleep: float = 0
    pause: float = 0.05
    calls: list[Call] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event, repr=False)
    _threads: list[threading.Thread] = field(default_factory=list, repr=False)

    def __enter__(self) -> "Load":
        for number in range(self.streams + 1):
            thread = threading.Thread(target=self._run, args=(number,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(60)

    @property
    def bad(self) -> list[Call]:
        return [call for call in list(self.calls) if not call.well]

    def since(self, moment: float) -> list[Call]:
        return [call for call in list(self.calls) if call.sent >= moment]

    def bad_outside(self, outages: Sequence[Outage]) -> list[Call]:
        return [call for call in self.bad if not any(outage.met(call) for outage in outages)]

    def well_after(self, outage: Outage) -> int:
        return sum(call.well for call in self.since(outage.ended))

    def summary(self) -> dict[str, int]:
        return dict(Counter(f"{call.status} {call.end}" for call in list(self.calls)))

    def _run(self, number: int) -> None:
        routes = list(ENDS)
        turn = number
        with httpx.Client(base_url=self.base, timeout=httpx.Timeout(120, connect=10)) as client:
            while not self._end.wait(self.pause):
                route = routes[turn % len(routes)]
                turn += 1
                call = self.one(client, route, stream=number < self.streams)
                self.calls.append(call)
                if not call.well:
                    self._end.wait(PAUSE_AFTER_TROUBLE)

    def one(self, client: httpx.Client, route: str, *, stream: bool) -> Call:
        sent = time.monotonic()
        heard: dict[str, Any] = {"status": 0, "first": 0.0}
        try:
            end, detail = self._ask(client, route, stream, heard)
        except httpx.HTTPError as error:
            end, detail = type(error).__name__, str(error)[:200]
        return Call(
            route=route,
            stream=stream,
            sent=sent,
            first=(heard["first"] or time.monotonic()) - sent,
            ended=time.monotonic(),
            status=heard["status"],
            end=end,
            detail=detail,
        )

    def _ask(
        self, client: httpx.Client, route: str, stream: bool, heard: dict[str, Any]
    ) -> tuple[str, str]:
        body = _body(route, self, stream=stream)
        headers = {"Authorization": f"Bearer {self.key}"}
        with client.stream("POST", route, json=body, headers=headers) as answer:
            heard["status"] = answer.status_code
            text = ""
            for piece in answer.iter_text():
                heard["first"] = heard["first"] or time.monotonic()
                text += piece
        if answer.status_code != 200:
            return "refused", text[:300]
        return _how_it_ended(route, text, stream=stream)


class LongStream(threading.Thread):
    def __init__(self, base: str, key: str, *, tokens: int) -> None:
        super().__init__(daemon=True)
        self._load = Load(base, key, tokens=tokens)
        self.call: Call | None = None

    def run(self) -> None:
        with httpx.Client(base_url=self._load.base, timeout=120) as client:
            self.call = self._load.one(client, "/v1/chat/completions", stream=True)

    def ended(self, seconds: float = 90) -> str:
        """`whole`, or how it was broken off."""
        self.join(seconds)
        assert self.call is not None, "the stream still runs"
        return self.call.end


def _body(route: str, load: Load, *, stream: bool) -> dict[str, Any]:
    text = f"[sim:tokens={load.tokens}][sim:sleep={load.sleep:g}] count"
    body = {"model": load.model, "stream": stream}
    if route == "/v1/responses":
        return {**body, "input": text, "max_output_tokens": 4 * load.tokens}
    messages = [{"role": "user", "content": text}]
    return {**body, "max_tokens": 4 * load.tokens, "messages": messages}


def _how_it_ended(route: str, text: str, *, stream: bool) -> tuple[str, str]:
    if not stream:
        try:
            json.loads(text)
        except ValueError:
            return "unreadable", text[-200:]
        return "whole", ""
    if any(mark in text for mark in ("event: error", "event: response.failed", '{"error"')):
        return "error event", text[-300:]
    return ("whole", "") if ENDS[route] in text else ("cut", text[-200:])
