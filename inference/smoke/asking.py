"""What every check is given, what it says, and how it asks the engine within its time."""

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from inference.engine import Engine, EngineUnavailable, Event
from inference.smoke import answers


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds. A whole check ends at `whole`, however many calls it makes.

    10 and 20: a warm GPU engine gives a first token of a short prompt in well under a second, a
    first call after the start may compile for some seconds, and a member's patience ends there.
    """

    first: float = 10
    whole: float = 20


LIMITS = Limits()
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the model is claimed to be; `name` is the first of the names served."""

    name: str
    capabilities: frozenset[str]
    """Of `chat`, `tools`, `reasoning`, `vision`, `embedding`, `speculative`."""
    context: int = 0
    """Tokens; 0 where nothing is claimed."""
    names: tuple[str, ...] = ()
    """Every name that must answer; empty: `name` alone."""

    @property
    def all_names(self) -> tuple[str, ...]:
        return self.names or (self.name,)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    ok: bool
    code: str = ""
    detail: str = ""
    """Figures and names of fields; never a word of a prompt or an answer."""
    seconds: float = 0.0


class Failed(Exception):
    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(kw_only=True)
class Run:
    """One check's conversation with the engine under test."""

    engine: Engine
    target: Target
    limits: Limits = LIMITS
    began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        return max(0.05, self.limits.whole - (time.monotonic() - self.began))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with_name = {"model": self.target.name, **body}
        return _named(
            lambda: self.engine.ask(path, with_name, seconds=self.left()), hang="smoke_hang"
        )

    def events(self, path: str, body: Mapping[str, Any]) -> Generator[Event, None, None]:
        """A stream whose silence is named: from its beginning, late, or in its middle."""
        stream = self.engine.stream(path, {"model": self.target.name, **body}, seconds=self.left())
        seen = False
        while True:
            hang = "smoke_stalled" if seen else "smoke_stream_hang"
            event = _named(lambda: next(stream, None), hang=hang)
            if event is None:
                return
            if not seen and not _is_opening(event):
                seen = True
                if event.after > self.limits.first:
                    raise Failed("smoke_slow", f"first token after {event.after:.1f} s")
            yield event

    def chat(self, prompt: str, *, stream: bool = False, **more: Any) -> answers.Answer:
        body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0, **more}
        return self.chat_body(body, stream=stream)

    def chat_body(self, body: dict[str, Any], *, stream: bool) -> answers.Answer:
        if not stream:
            found = self.post("/v1/chat/completions", body)
            return _named(lambda: answers.whole(found), hang="smoke_hang")
        asked = {**body, "stream_options": {"include_usage": True}}
        events = self.events("/v1/chat/completions", asked)
        return _named(lambda: answers.streamed(events), hang="smoke_stalled")


_OPENINGS = ("response.created", "response.in_progress", "message_start", "ping")


def _is_opening(event: Event) -> bool:
    """Sent before there is a token: some routes do so at once, even where none will ever come."""
    if event.data is None:
        return False
    if event.data.get("type") in _OPENINGS:
        return True
    deltas = [choice.get("delta") or {} for choice in event.data.get("choices") or ()]
    return bool(deltas) and all("role" in delta and not delta.get("content") for delta in deltas)


_CODES = {
    "unreachable": "smoke_unreachable",
    "broken_off": "smoke_broken_off",
    "unreadable": "smoke_unreadable",
    "not_admitted": "smoke_not_admitted",
    "not_found": "smoke_name_unknown",
    "refused": "smoke_refused",
    "server_error": "smoke_server_error",
}


def _named(ask: Callable[[], T], *, hang: str) -> T:
    try:
        return ask()
    except EngineUnavailable as error:
        raise failure(error, hang=hang) from None


def failure(error: EngineUnavailable, *, hang: str) -> Failed:
    detail = f"HTTP {error.status}" if error.status else ""
    return Failed(hang if error.code == "timeout" else _CODES[error.code], detail)
