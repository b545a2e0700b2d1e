"""Keeps Python's collector of garbage from holding up every stream for half a second.

A full collection looks at every object, and starting LiteLLM leaves more than a million: 0.5 s
every twenty seconds under load. They stay to the end, so they are taken out of its sight.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

STARTED: Final = "lifespan.startup.complete"
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Settled:
    """Around an application: when it has started, what is there no longer counts as garbage."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        async def settling(message: Message) -> None:
            if message["type"] == STARTED:
                gc.collect()
                gc.freeze()
            await send(message)

        await self.app(scope, receive, settling if scope["type"] == "lifespan" else send)
