"""The ASGI application: routes, the API key, and clients that leave.

While a request is worked on, a second task listens for the client's disconnect and ends the work
at once; that holds for plain answers, streams and answers that have not begun.
"""

import asyncio
import hmac
import json
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from inference.simulator import about, chat, completions, embeddings, messages, responses
from inference.simulator.engine import Engine
from inference.simulator.http import Answer, ApiError, CutError, Request, json_answer
from inference.simulator.traffic import Traffic

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[Request, Engine], Awaitable[Answer]]

_EMBEDDINGS = "/v1/embeddings"
_MODEL_ROUTES: dict[str, Handler] = {
    "/v1/chat/completions": chat.complete,
    "/v1/completions": completions.complete,
    "/v1/messages": messages.create,
    "/v1/messages/count_tokens": messages.count_tokens,
    "/v1/responses": responses.create,
    _EMBEDDINGS: embeddings.create,
}
_ROUTES: dict[str, dict[str, Handler]] = {
    **{path: {"POST": handler} for path, handler in _MODEL_ROUTES.items()},
    "/v1/models": {"GET": about.models},
    "/health": {"GET": about.health},
    "/ping": {"GET": about.health, "POST": about.health},
    "/version": {"GET": about.version},
    "/metrics": {"GET": about.metrics},
    "/tokenize": {"POST": about.tokenize},
}
_COUNTERS = "/_sim/requests"
_FAULTS = "/_sim/faults"
"""POST a list: from now on these, for an engine that was well when it was checked."""


class Application:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.traffic = Traffic(model_routes=_MODEL_ROUTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        request = Request(method=scope["method"], path=scope["path"], headers=headers)
        if request.path == _FAULTS:
            self.engine.misbehave(json.loads(await _read_body(receive) or b"[]"))
        if request.path in (_COUNTERS, _FAULTS):
            await _send(about.counters(self.traffic, self.engine), send)
            return
        route = request.path if request.path in _ROUTES else "other"
        self.traffic.begin(route, headers)
        how = "aborted"
        try:
            with request.cleanup:
                how = await self._serve(request, receive, send)
        finally:
            self.traffic.end(route, how)

    async def _serve(self, request: Request, receive: Receive, send: Send) -> str:
        """How it ended: `finished`, `aborted` (client left) or `cut` (we broke it off)."""
        body = await _read_body(receive)
        if body is None:
            return "aborted"
        request.raw_body = body
        work = asyncio.ensure_future(self._work(request, send))
        gone = asyncio.ensure_future(_disconnect(receive))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else "aborted"
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _work(self, request: Request, send: Send) -> str:
        try:
            answer = await self._answer(request)
        except CutError:
            await _send_half(send)
            return "cut"
        try:
            return await _send(answer, send)
        except Exception as error:
            _report("broke a stream", error)
            raise

    async def _answer(self, request: Request) -> Answer:
        if self._refused(request):
            return json_answer({"error": "Unauthorized"}, status=401)
        handlers = _ROUTES.get(request.path)
        if handlers is None or not self._has(request.path):
            return json_answer({"detail": "Not Found"}, status=404)
        if request.method not in handlers:
            return json_answer({"detail": "Method Not Allowed"}, status=405)
        anthropic = request.path.startswith("/v1/messages")
        try:
            return await handlers[request.method](request, self.engine)
        except ApiError as error:
            return error.answer(anthropic=anthropic)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            _report("refused a body", error)
            return ApiError(400, "The request could not be read.").answer(anthropic=anthropic)

    def _has(self, path: str) -> bool:
        """vLLM has no route for what its model can't do."""
        runner = self.engine.settings.runner
        if not runner or path not in _MODEL_ROUTES:
            return True
        return (path == _EMBEDDINGS) == (runner == "pooling")

    def _refused(self, request: Request) -> bool:
        """vLLM guards `/v1` only and takes Bearer only; `x-api-key` is no key to it."""
        keys = self.engine.options.api_keys
        if not keys or not request.path.startswith("/v1"):
            return False
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        matches = [hmac.compare_digest(given.encode(), key.encode()) for key in keys]
        return scheme.lower() != "bearer" or not any(matches)


async def _read_body(receive: Receive) -> bytes | None:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(answer: Answer, send: Send) -> str:
    headers = [(b"content-type", answer.content_type.encode())]
    if answer.events is None:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.events is None:
        await send({"type": "http.response.body", "body": answer.body})
        return "finished"
    try:
        async for event in answer.events:
            body = event.encode("utf-8", "surrogatepass")
            await send({"type": "http.response.body", "body": body, "more_body": True})
    except CutError:
        return "cut"
    except ApiError as error:
        body = error.answer(anthropic=False).body
        last = b"data: " + body + b"\n\ndata: [DONE]\n\n"
        await send({"type": "http.response.body", "body": last, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return "finished"


async def _send_half(send: Send) -> None:
    """A plain answer that breaks off: more is announced than ever comes."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"id":', "more_body": True})


def _report(what: str, error: Exception) -> None:
    """Where it happened, without the message: that can hold words of the prompt."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    print(f"{what}: {type(error).__name__} at {frame.name}:{frame.lineno}", flush=True)
