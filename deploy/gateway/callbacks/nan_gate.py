"""What stands in front of LiteLLM on the routes that run a model.

Pure ASGI. Reads the body once, refuses what would be more than one request, keeps only the fields
and headers that are for the model (nan_fields.py), and writes the body anew, so that LiteLLM can
read nothing else in it: no second key of the same name, no form in place of JSON. It adds the one
header that LiteLLM is to send to the engine (nan_affinity.py). Then it steps aside: of the answer
it touches only how long a refusal is to be waited for (nan_waiting.py), and a client's leaving
reaches LiteLLM, which gives her parallel slot back on it. If she left before anything of the answer
was there to count, that is counted (nan_leaving.py).

Errors are in OpenAI's shape; the edge puts them into the dialect of the caller.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Final

import nan_fields
import nan_forms
import orjson
from nan_affinity import HEADER, Affinity
from nan_leaving import CALL_ID, Watched, key_of
from nan_refusals import Refused, check
from nan_waiting import Timed

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Left = Callable[[str, Any], Awaitable[None]]
ResetsIn = Callable[[str], Awaitable[int | None]]

JSON_ROUTES: Final = {
    "/v1/chat/completions": nan_fields.CHAT,
    "/v1/completions": nan_fields.COMPLETIONS,
    "/v1/responses": nan_fields.RESPONSES,
    "/v1/messages": nan_fields.MESSAGES,
    "/v1/messages/count_tokens": nan_fields.MESSAGES,
    "/v1/embeddings": nan_fields.EMBEDDINGS,
    "/v1/audio/speech": nan_fields.SPEECH,
}
FORM_ROUTES: Final = {"/v1/audio/transcriptions": nan_fields.TRANSCRIPTIONS}
ROUTES: Final = frozenset(JSON_ROUTES | FORM_ROUTES)


class Gate:
    def __init__(self, app: App, left: Left, resets_in: ResetsIn) -> None:
        """`left`: told of the key and the name that was called when a caller has left early.
        `resets_in`: seconds until the minute of a key begins anew."""
        self.app, self.left, self.resets_in = app, left, resets_in
        self.affinity = Affinity(os.environ["LITELLM_SALT_KEY"])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        path = scope.get("path")
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # its messages would pass unread
            return
        if scope["type"] != "http" or scope["method"] != "POST" or path not in ROUTES:
            await self.app(scope, receive, send)
            return
        body = await _read(receive)
        if body is None:
            return
        called: Any = ""
        try:
            if path in FORM_ROUTES:
                kind, body = await nan_forms.rewritten(scope, body, FORM_ROUTES[path])
            else:
                kind, (called, body) = b"application/json", self._rewritten(scope, body)
        except Refused as refusal:
            await _refuse(send, refusal)
            return

        timed = Timed(send, partial(self.resets_in, key_of(scope)))
        with Watched(_Body(body, receive), timed) as call:
            cleaned = _cleaned(scope, kind, len(body), call.id)
            try:
                await self.app(cleaned, call.receive, call.send)
            finally:
                if await call.left_early():
                    await self.left(key_of(scope), called)

    def _rewritten(self, scope: MutableMapping[str, Any], body: bytes) -> tuple[Any, bytes]:
        """The name that is called, and the body for LiteLLM."""
        path = scope["path"]
        kept = _kept(body, JSON_ROUTES[path])
        check(path, kept)
        try:
            if value := self.affinity.value(path, scope["headers"], kept):
                kept["extra_headers"] = {HEADER: value}  # a client's own is in no list of fields
            return kept.get("model"), orjson.dumps(kept)
        except (TypeError, ValueError):  # 254 levels at most
            raise Refused("The request body is nested too deeply.") from None


async def _read(receive: Receive) -> bytes | None:
    """None when the client left before she had sent it all. The edge bounds the length."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


class _Body:
    """The new body once, then whatever the server has to say: that the client has left."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        if self.body is None:
            return await self.receive()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _kept(body: bytes, allowed: frozenset[str]) -> dict[str, Any]:
    found = _parsed(body)
    if not isinstance(found, dict):
        raise Refused("The request body must be a JSON object.")
    return {name: value for name, value in found.items() if name in allowed}


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\ud" not in body and b"\\uD" not in body:
            raise Refused("The request body is not valid JSON.") from None
    # JavaScript's clients cut text in the middle of an emoji, and half of one is no character.
    try:
        repaired = json.dumps(json.loads(body), ensure_ascii=False).encode(errors="replace")
        return orjson.loads(repaired)
    except (ValueError, RecursionError):
        raise Refused("The request body is not valid JSON.") from None


def _cleaned(
    scope: MutableMapping[str, Any], kind: bytes, length: int, call_id: str
) -> dict[str, Any]:
    replaced = (b"content-type", b"content-length")
    headers = [
        (name, value)
        for name, value in scope["headers"]
        if name in nan_fields.HEADERS and name not in replaced
    ]
    headers += [(b"content-type", kind), (b"content-length", b"%d" % length)]
    headers.append((CALL_ID, call_id.encode()))
    return {**scope, "headers": headers, "query_string": b""}


async def _refuse(send: Send, refusal: Refused) -> None:
    error = {
        "message": refusal.message,
        "type": "invalid_request_error",
        "param": refusal.field,
        "code": "400",
    }
    body = orjson.dumps({"error": error})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
