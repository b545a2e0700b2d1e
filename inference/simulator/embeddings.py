"""`/v1/embeddings`: unit vectors that depend on the text alone."""

import asyncio
import base64
import hashlib
import math
import struct
import time
import uuid
from typing import Any

from inference.simulator import tokens
from inference.simulator.asks import (
    Ask,
    Turn,
    check_length,
    check_model,
    find_directives,
    obey,
    require,
)
from inference.simulator.engine import Engine
from inference.simulator.faults import ProcessFault
from inference.simulator.http import Answer, Request, json_answer


async def create(request: Request, engine: Engine) -> Answer:
    body = request.json()
    check_model(body, engine.options)
    texts = _texts(require(body, "input"))
    turns = tuple(Turn(role="user", text=text) for text in texts)
    ask = Ask(turns=turns, directives=find_directives(turns))
    obey(ask, body)
    counts = [tokens.count(text) for text in texts]
    for number in counts:
        check_length(prompt_tokens=number, max_tokens=None, max_model_len=engine.max_model_len)
    engine.start_pooling(request.cleanup, prompt_tokens=sum(counts))
    if ask.directives.hang or ProcessFault.HANG in engine.settings.faults:
        await asyncio.Event().wait()
    await asyncio.sleep(engine.settings.ttft_seconds + ask.directives.sleep)
    size = body.get("dimensions") or engine.settings.embedding_size
    packed = body.get("encoding_format") == "base64"
    return json_answer(
        {
            "id": f"embd-{uuid.uuid4().hex}",
            "object": "list",
            "created": int(time.time()),
            "model": engine.options.served_names[0],
            "data": [_entry(i, text, size, packed) for i, text in enumerate(texts)],
            "usage": {
                "prompt_tokens": sum(counts),
                "total_tokens": sum(counts),
                "completion_tokens": 0,
                "prompt_tokens_details": None,
            },
        }
    )


def _texts(given: Any) -> list[str]:
    """One text, many, one list of token ids, or many: a token id counts as a word."""
    if isinstance(given, str):
        return [given]
    if given and isinstance(given[0], int):
        return [" ".join(map(str, given))]
    return [text if isinstance(text, str) else " ".join(map(str, text)) for text in given]


def _entry(index: int, text: str, size: int, packed: bool) -> dict[str, Any]:
    vector = vector_of(text, size)
    shown: Any = vector
    if packed:
        shown = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
    return {"index": index, "object": "embedding", "embedding": shown}


def vector_of(text: str, size: int) -> list[float]:
    noise = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(size * 2)
    raw = [value / 32768 for value in struct.unpack(f"<{size}h", noise)]
    length = math.sqrt(sum(value * value for value in raw)) or 1.0
    return [value / length for value in raw]
