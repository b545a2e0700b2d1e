"""Takes one sample: a tiny completion, then the engine's own counts."""

import time

from inference.engine import Engine, EngineUnavailable
from inference.watch.samples import Answered, Counts, Sample

DEADLINE = 20.0
SLOW = 5.0
"""Seconds above which a completion of 4 tokens is slow for any model that is worth serving."""
_PROMPT = "Say: ok"


def probe(
    engine: Engine, name: str, *, embedding: bool = False, seconds: float = DEADLINE
) -> Sample:
    """Never raises. Takes `seconds` and the time of `/metrics` (5 s) at most."""
    began = time.monotonic()
    code = _ask(engine, name, embedding=embedding, seconds=seconds)
    took = time.monotonic() - began
    answered: Answered = "failed" if code else "slow" if took > SLOW else "ok"
    return Sample(
        at=time.time(), answered=answered, seconds=round(took, 3), code=code, counts=_counts(engine)
    )


def _ask(engine: Engine, name: str, *, embedding: bool, seconds: float) -> str:
    """The failure's code, or nothing. Any well-formed answer will do: smoke has judged content."""
    messages = [{"role": "user", "content": _PROMPT}]
    path, body, key = "/v1/chat/completions", {"messages": messages, "max_tokens": 4}, "choices"
    if embedding:
        path, body, key = "/v1/embeddings", {"input": _PROMPT}, "data"
    try:
        answer = engine.ask(path, {"model": name, **body}, seconds=seconds)
    except EngineUnavailable as error:
        return error.code
    return "" if answer.get(key) else "unreadable"


def _counts(engine: Engine) -> Counts | None:
    try:
        return Counts.of(engine.metrics())
    except EngineUnavailable:
        return None
