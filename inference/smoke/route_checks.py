"""Checks of the names, the other APIs and embeddings."""

import math
from collections.abc import Iterator
from typing import Any

from inference.engine import Event
from inference.smoke import expecting
from inference.smoke.asking import Failed, Run
from inference.smoke.chat_checks import HELLO, room
from inference.smoke.events import read_message


def health(run: Run) -> None:
    if not run.engine.healthy():
        raise Failed("smoke_unhealthy")


def names(run: Run) -> None:
    """`/v1/models` lists every name, and a call by each is answered under the first."""
    served = [model.name for model in run.engine.models()]
    missing = [name for name in run.target.all_names if name not in served]
    if missing:
        raise Failed("smoke_name_unknown", f"{len(missing)} of {len(run.target.all_names)} names")
    for name in run.target.all_names:
        if "embedding" in run.target.capabilities:
            answer = run.post("/v1/embeddings", {"model": name, "input": "hello"})
        else:
            messages = [{"role": "user", "content": HELLO}]
            body = {"model": name, "messages": messages, "max_tokens": 1}
            answer = run.post("/v1/chat/completions", body)
        expecting.model(str(answer.get("model", "")), run.target.all_names)


def messages(run: Run) -> None:
    asked = [{"role": "user", "content": HELLO}]
    body = {"messages": asked, "max_tokens": room(run), "temperature": 0}
    message = read_message(run.events("/v1/messages", body))
    expecting.no_thoughts_in(message.text("text"))
    if not message.text("text").strip() and not (
        message.text("thinking") and message.stop_reason == "max_tokens"
    ):
        raise Failed("smoke_empty", "no text block")
    if message.stop_reason not in ("end_turn", "max_tokens", "stop_sequence"):
        raise Failed("smoke_finish", f"stop_reason {str(message.stop_reason)[:40]}")
    expecting.usage(message.usage, "output_tokens")


def _responses_body(run: Run) -> dict[str, Any]:
    return {"input": HELLO, "max_output_tokens": room(run), "temperature": 0}


def responses(run: Run) -> None:
    _sound_response(run.post("/v1/responses", _responses_body(run)))


def responses_stream(run: Run) -> None:
    """Begins with `response.created`, counts its events, ends with the finished response.

    https://platform.openai.com/docs/api-reference/responses-streaming
    """
    last: dict[str, Any] = {}
    for number, data in enumerate(_data(run.events("/v1/responses", _responses_body(run)))):
        kind = str(data.get("type"))
        if number == 0 and kind != "response.created":
            raise Failed("smoke_events", "does not begin with response.created")
        if data.get("sequence_number") != number:
            raise Failed("smoke_events", "sequence_number out of count")
        last = data
    if last.get("type") not in ("response.completed", "response.incomplete"):
        raise Failed("smoke_half_stream", "no response.completed")
    _sound_response(last.get("response") or {})


def _data(events: Iterator[Event]) -> Iterator[dict[str, Any]]:
    return (event.data for event in events if event.data is not None)


def _sound_response(response: dict[str, Any]) -> None:
    try:
        items = {str(item["type"]): item for item in response["output"]}
        parts = items.get("message", {}).get("content") or []
        text = "".join(str(part.get("text", "")) for part in parts)
    except (KeyError, TypeError, AttributeError):
        raise Failed("smoke_unreadable", "no output items") from None
    expecting.no_thoughts_in(text)
    cut = response.get("status") == "incomplete"
    if not text.strip() and not (cut and "reasoning" in items):
        raise Failed("smoke_empty", "no message item")
    if response.get("status") not in ("completed", "incomplete"):
        raise Failed("smoke_finish", f"status {str(response.get('status'))[:40]}")
    expecting.usage(response.get("usage"), "input_tokens", "output_tokens")


def embedding(run: Run) -> None:
    """Two texts give two different vectors of one length, finite and not all zero."""
    answer = run.post("/v1/embeddings", {"input": ["a quiet harbour", "seven is prime"]})
    try:
        vectors = [[float(x) for x in entry["embedding"]] for entry in answer["data"]]
    except (KeyError, TypeError, ValueError):
        raise Failed("smoke_unreadable", "no vectors") from None
    if len(vectors) != 2 or len(vectors[0]) != len(vectors[1]):
        raise Failed("smoke_embedding", f"{len(vectors)} vectors, or of two lengths")
    for vector in vectors:
        if not all(map(math.isfinite, vector)) or not any(vector):
            raise Failed("smoke_embedding", "not finite, or all zero")
    if vectors[0] == vectors[1]:
        raise Failed("smoke_embedding", "the same vector for two texts")
    expecting.usage(answer.get("usage"), "prompt_tokens")
