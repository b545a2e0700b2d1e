"""Which requests belong to one conversation: the pool sends those to the same engine.

An engine that served the last turn has nearly all of the next prompt in its prefix cache. The value
is the same in each turn, says nothing to who reads it (a keyed hash, and 64 bits of it), and is the
same in every instance with the same salt. Two conversations with one value only share an engine,
within the pool's bound.

Hashed is what a person said before the model's first word: agents rewrite the rest from turn to
turn. Claude Code moves its `cache_control` marks along and changes the system prompt's first line;
Codex puts the same description of the folder before every task, so one message is not enough.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import orjson

HEADER: Final = "x-affinity"
BEGINNING: Final = 65_536  # bytes hashed; who has that much in common has its cache in common
BEGINNING_OF_PROMPT: Final = 1_000  # characters, or tokens: a prompt grows at its end
CREDENTIALS: Final = (b"authorization", b"x-api-key", b"api-key")
BEFORE_THE_ANSWER: Final = ("system", "developer", "user")

Headers = Iterable[tuple[bytes, bytes]]


class Affinity:
    def __init__(self, salt: str) -> None:
        """`salt`: LITELLM_SALT_KEY. What is made of it here opens nothing that it encrypts."""
        self._secret = hmac.digest(salt.encode(), b"affinity of conversations", "sha256")

    def value(self, path: str, headers: Headers, body: dict[str, Any]) -> str | None:
        """16 hex digits; None on routes whose requests have no next turn."""
        if path not in BEGINNINGS:
            return None
        made = hmac.new(self._secret, digestmod="sha256")
        for part in (_caller(headers), _beginning(path, body)):
            made.update(hashlib.sha256(part).digest())
        return made.hexdigest()[:16]


def _caller(headers: Headers) -> bytes:
    return b"\n".join(sorted(value for name, value in headers if name in CREDENTIALS))


def _beginning(path: str, body: dict[str, Any]) -> bytes:
    """A client's own name for the conversation (Codex sends one) is better than its text."""
    named = body.get("prompt_cache_key")
    if isinstance(named, str) and named:
        return b"name\n" + named.encode(errors="replace")[:BEGINNING]
    return b"text\n" + b"\n".join(BEGINNINGS[path](body))[:BEGINNING]


def _of_messages(body: dict[str, Any]) -> Iterator[bytes]:
    return _said(body.get("messages"))


def _of_input(body: dict[str, Any]) -> Iterator[bytes]:
    return _said(body.get("input"))


def _of_prompt(body: dict[str, Any]) -> Iterator[bytes]:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    yield orjson.dumps(prompt[:BEGINNING_OF_PROMPT] if isinstance(prompt, str | list) else None)


def _said(messages: Any) -> Iterator[bytes]:
    """What stands in the person's messages, up to the first that is the model's or a tool's."""
    if isinstance(messages, str):
        yield messages.encode()
        return
    for message in messages if isinstance(messages, list) else ():
        if message.get("role") not in BEFORE_THE_ANSWER:
            return
        if message["role"] == "user":
            yield from _parts(message.get("content"))


def _parts(content: Any) -> Iterator[bytes]:
    """The same for a text as for a list with it, which clients use by turns."""
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text.encode()
        elif isinstance(part, dict):
            yield orjson.dumps({name: part[name] for name in part if name != "cache_control"})


BEGINNINGS: Final[dict[str, Callable[[dict[str, Any]], Iterator[bytes]]]] = {
    "/v1/chat/completions": _of_messages,
    "/v1/messages": _of_messages,
    "/v1/responses": _of_input,
    "/v1/completions": _of_prompt,
}
