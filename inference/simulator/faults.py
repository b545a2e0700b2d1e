"""Bad manners on demand: of the whole process (`SIM_FAULTS`) or of one request (`[sim:…]`)."""

import re
from dataclasses import dataclass
from enum import StrEnum


class ProcessFault(StrEnum):
    """Values of the comma-separated `SIM_FAULTS`."""

    REFUSE_START = "refuse-start"
    """Exits 1 before loading, with a parser error."""
    DIE_AFTER_LOADING = "die-after-loading"
    """Exits 1 after the load time: the KV cache is too small."""
    HANG = "hang"
    """`/health` is 200 and no request is ever answered."""
    THINK_IN_CONTENT = "think-in-content"
    """`</think>` and the thoughts before it arrive in the content."""
    LOSE_TOOL_CALLS = "lose-tool-calls"
    """Announces a tool call in words, makes none."""
    EMPTY_CONTENT = "empty-content"
    """Finishes with `stop` and not one token."""
    STREAM_ONLY_HANG = "stream-only-hang"
    """Plain answers are right, streams stay silent."""
    IGNORE_SIGTERM = "ignore-sigterm"
    HALF_DEAD_ON_SIGTERM = "half-dead-on-sigterm"
    """With requests in flight: port closed, streams silent, alive until the clients leave."""

    @classmethod
    def parse(cls, text: str) -> "frozenset[ProcessFault]":
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = sorted(set(names) - set(cls))
        if unknown:
            raise ValueError(f"SIM_FAULTS: unknown {unknown}; known: {', '.join(cls)}")
        return frozenset(cls(name) for name in names)


_DIRECTIVE = re.compile(r"\[sim:([a-z-]+)(?:=([0-9.]+))?\]")


@dataclass(frozen=True, kw_only=True)
class Directives:
    """What the last user message asks the simulator to do with this one request."""

    hang: bool = False
    status: int | None = None
    sleep: float = 0.0
    """Seconds added before the first token."""
    tokens: int | None = None
    """Exact length of the answer's text."""
    echo_error: bool = False
    """A 400 that repeats the prompt, as vLLM's validation errors do."""
    die_midstream: bool = False
    """The connection is cut after half of the answer."""


def directives_in(text: str) -> Directives:
    """Unknown names and values out of place are ignored: they are only words of a prompt."""
    found = dict(_DIRECTIVE.findall(text))
    return Directives(
        hang="hang" in found,
        status=_integer(found.get("status")),
        sleep=_number(found.get("sleep")) or 0.0,
        tokens=_integer(found.get("tokens")),
        echo_error="echo-error" in found,
        die_midstream="die-midstream" in found,
    )


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
