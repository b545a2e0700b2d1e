"""Bad manners on demand: of the whole process (`SIM_FAULTS`) or of one request (`[sim:…]`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ProcessFault(StrEnum):
    """Values of the comma-separated `SIM_FAULTS`, each for every model or as `MODEL:fault`."""

    REFUSE_FLAG = "refuse-flag"
    """Exits 2: `unrecognized arguments`, with the first flag of its own command line."""
    REFUSE_START = "refuse-start"
    """Exits 1 before loading, with a parser error."""
    DIE_AFTER_LOADING = "die-after-loading"
    """Exits 1 after the load time: the KV cache is too small."""
    HANG = "hang"
    """`/health` is 200 and no request is ever answered."""
    THINK_IN_CONTENT = "think-in-content"
    """`</think>` and the thoughts before it arrive in the content."""
    THINK_ANYWAY = "think-anyway"
    """Thinks also where that is turned off."""
    LOSE_TOOL_CALLS = "lose-tool-calls"
    """Announces a tool call in words, makes none."""
    EMPTY_CONTENT = "empty-content"
    """Finishes with `stop` and not one token."""
    STREAM_ONLY_HANG = "stream-only-hang"
    """Plain answers are right, streams stay silent."""
    BAD_TEMPLATE = "bad-template"
    """Exits 1 after the load time, as with any template that Jinja can't render."""
    KEEP_MEMORY = "keep-memory"
    """The simulated GPU memory stays taken after the end."""
    CORE_DIES = "core-dies"
    """A while after serving began: `/health` is 503 for a moment, then exit 0."""
    IGNORE_SIGTERM = "ignore-sigterm"
    """Also while loading."""
    HALF_DEAD_ON_SIGTERM = "half-dead-on-sigterm"
    """Port closed, streams silent, alive until the clients leave; without any, until SIGKILL."""

    @classmethod
    def parse(cls, text: str, names: Iterable[str] = ()) -> "frozenset[ProcessFault]":
        """Those for any model and those for one of `names`; all are checked."""
        mine = set(names)
        pairs = [word.strip().rpartition(":") for word in text.split(",") if word.strip()]
        cls.known([fault for _, _, fault in pairs])
        return frozenset(cls(fault) for model, _, fault in pairs if not model or model in mine)

    @classmethod
    def known(cls, words: Iterable[str]) -> "frozenset[ProcessFault]":
        unknown = sorted(set(words) - set(cls))
        if unknown:
            raise ValueError(f"SIM_FAULTS: unknown {unknown}; known: {', '.join(cls)}")
        return frozenset(cls(word) for word in words)


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
