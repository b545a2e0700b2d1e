"""Whether a caller left before the first word of her answer. No total of LiteLLM's has such calls.

It ends them with a 499 that nobody reads, of some of which it tells no callback. On /v1/messages it
opens a stream by itself as soon as the engine takes the call, which may be long before the engine
has read the prompt; and on /v1/responses it counts nothing while the model reasons. There a call
just stops, so what has been sent says whether it had begun.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

CLIENT_LEFT: Final = 499
RESPONSES: Final = "/v1/responses"
OPENING: Final = b"event: message_start\n"
TOLD: Final = re.compile(
    rb'"type": ?"(?:response\.(?:(?!reasoning)\w+\.delta|completed|failed|incomplete)|error)"'
)
Message = MutableMapping[str, Any]


class Watched:
    """Passes an answer on."""

    def __init__(self, send: Callable[[Message], Awaitable[None]], path: str) -> None:
        self.send, self.path = send, path
        self.status = 0
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.begun |= not message.get("more_body") or self._says(message.get("body", b""))
        await self.send(message)

    @property
    def left_early(self) -> bool:
        """To be asked when the call is over."""
        return self.status == CLIENT_LEFT or (self.status == 200 and not self.begun)

    def _says(self, body: bytes) -> bool:
        """Anything that LiteLLM counts."""
        if self.begun or not body:
            return self.begun
        if self.path == RESPONSES:
            return TOLD.search(body) is not None
        return not (body.startswith(OPENING) and body.count(b"event: ") == 1)


def key_of(scope: MutableMapping[str, Any]) -> str:
    found = dict(scope["headers"])
    bearer = found.get(b"authorization", b"").rpartition(b" ")[2]
    key: bytes = bearer or found.get(b"x-api-key") or found.get(b"api-key", b"")
    return key.decode("latin-1")
