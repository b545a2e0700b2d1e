"""Routes about the engine itself: health, version, models, metrics, tokenizer, counters."""

import time
from typing import Any

from inference.simulator import chat, tokens
from inference.simulator.asks import check_model, require
from inference.simulator.engine import Engine
from inference.simulator.http import Answer, Request, json_answer
from inference.simulator.traffic import Traffic

VERSION = "0.32.0+simulator"
_STARTED = int(time.time())


async def health(request: Request, engine: Engine) -> Answer:
    """200 as long as the core lives, hanging and draining included: as vLLM's."""
    return Answer(status=503 if engine.dead else 200)


async def version(request: Request, engine: Engine) -> Answer:
    return json_answer({"version": VERSION})


async def metrics(request: Request, engine: Engine) -> Answer:
    kind = "text/plain; version=1.0.0; charset=utf-8"
    return Answer(body=engine.metrics.text(), content_type=kind)


async def models(request: Request, engine: Engine) -> Answer:
    return json_answer(
        {"object": "list", "data": [_card(n, engine) for n in engine.options.served_names]}
    )


def _card(name: str, engine: Engine) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": _STARTED,
        "owned_by": "vllm",
        "root": engine.options.model,
        "parent": None,
        "max_model_len": engine.max_model_len,
        "permission": [],
    }


async def tokenize(request: Request, engine: Engine) -> Answer:
    body = request.json()
    if "messages" in body:
        pieces = chat.read({**body, "stream": False}, engine.options).prompt_pieces()
    else:
        check_model(body, engine.options)
        pieces = tokens.split(str(require(body, "prompt")))
    ids = [tokens.token_id(piece) for piece in pieces]
    strings = pieces if body.get("return_token_strs") else None
    length = engine.max_model_len
    answer = {"count": len(ids), "max_model_len": length, "tokens": ids, "token_strs": strings}
    return json_answer(answer)


def counters(traffic: Traffic, engine: Engine) -> Answer:
    return json_answer({**traffic.snapshot(), "prompts_seen": engine.prompts_seen})
