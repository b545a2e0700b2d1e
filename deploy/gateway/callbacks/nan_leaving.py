"""Whether a caller left before LiteLLM had anything of her answer to count.

How an answer ends says that she left, not whether LiteLLM counts the call: that depends on which
of the engine's events it had read by then, by rules of its own for each API, and it may have read
one that it never sent. So the gate gives each call an id, LiteLLM's success event says which of
them it counts (nan_counts.py), and a call that was left is the one or the other.

Everything here is of one process: a call's gate and its event are in the same.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

CLIENT_LEFT: Final = 499
CALL_ID: Final = b"x-litellm-call-id"
# The event follows the end of a call within milliseconds; a busy process is given time.
PATIENCE_SECONDS: Final = 5
Message = MutableMapping[str, Any]

_open: dict[str, asyncio.Event] = {}


class Watched:
    """A call: passes on what is said, and looks how it ends."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self._receive, self._send = receive, send
        self.id = str(uuid.uuid4())
        self.status = 0
        self.gone = self.whole = False

    def __enter__(self) -> Watched:
        _open[self.id] = asyncio.Event()
        return self

    def __exit__(self, *_: object) -> None:
        del _open[self.id]

    async def receive(self) -> Message:
        message = await self._receive()
        self.gone |= message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.whole |= not message.get("more_body")
        await self._send(message)

    async def left_early(self) -> bool:
        """To be asked when the call is over; takes its time if she left and nothing counts it."""
        halfway = self.status == 200 and self.gone and not self.whole
        if self.status != CLIENT_LEFT and not halfway:
            return False
        with suppress(TimeoutError):
            await asyncio.wait_for(_open[self.id].wait(), PATIENCE_SECONDS)
        return not _open[self.id].is_set()


def counted(call_id: Any) -> None:
    """LiteLLM counts this call as answered. Calls that are over, or not the gate's, are ignored."""
    if call_id in _open:
        _open[call_id].set()


def key_of(scope: MutableMapping[str, Any]) -> str:
    found = dict(scope["headers"])
    bearer = found.get(b"authorization", b"").rpartition(b" ")[2]
    key: bytes = bearer or found.get(b"x-api-key") or found.get(b"api-key", b"")
    return key.decode("latin-1")
