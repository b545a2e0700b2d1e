"""Says with a refusal when the caller's minute is over.

LiteLLM says 60 s, however much of the minute has passed, and nothing on /v1/messages. What is said
here comes from the counter by which it refuses, from which the member's page says it too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

REFUSED: Final = 429
HEADER: Final = b"retry-after"
Message = MutableMapping[str, Any]
Seconds = Callable[[], Awaitable[int | None]]


class Timed:
    """Passes an answer on. `seconds` is asked only where a limit refused; None: it isn't known."""

    def __init__(self, send: Callable[[Message], Awaitable[None]], seconds: Seconds) -> None:
        self.send, self.seconds = send, seconds

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == REFUSED:
            left = await self.seconds()
            if left is not None:
                others = [pair for pair in message["headers"] if pair[0].lower() != HEADER]
                message = {**message, "headers": [*others, (HEADER, b"%d" % left)]}
        await self.send(message)
