"""`/v1/completions`: a bare prompt, no template, no reasoning, no tools."""

from collections.abc import AsyncIterator
from typing import Any

from inference.simulator.asks import (
    Ask,
    Turn,
    answers_asked,
    check_model,
    find_directives,
    obey,
    require,
    stops,
)
from inference.simulator.engine import Engine, Generation
from inference.simulator.http import Answer, Request, data_line, json_answer, stream_answer
from inference.simulator.usage import chat_usage

_DEFAULT_MAX_TOKENS = 16


async def complete(request: Request, engine: Engine) -> Answer:
    body = request.json()
    generation = engine.start(_read(body, engine), request.cleanup)
    model = engine.options.served_names[0]
    if generation.ask.stream:
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return stream_answer(_events(generation, model, include_usage))
    text = "".join([piece.text async for piece in generation.pieces()])
    choices = [
        {**_choice(index, text, generation), "prompt_logprobs": None, "token_ids": None}
        for index in range(generation.ask.n)
    ]
    head = _head(generation, model)
    return json_answer({**head, "choices": choices, "usage": chat_usage(generation)})


def _read(body: dict[str, Any], engine: Engine) -> Ask:
    """Of a list of prompts only the first is answered; token ids count as one word each."""
    check_model(body, engine.options)
    prompt = require(body, "prompt")
    if isinstance(prompt, list):
        prompt = prompt[0] if isinstance(prompt[0], str) else " ".join(map(str, prompt))
    turns = (Turn(role="user", text=prompt),)
    ask = Ask(
        turns=turns,
        raw=True,
        max_tokens=body.get("max_tokens") or _DEFAULT_MAX_TOKENS,
        stop=stops(body.get("stop")),
        n=answers_asked(body),
        stream=bool(body.get("stream")),
        directives=find_directives(turns),
    )
    obey(ask, body)
    return ask


def _head(generation: Generation, model: str) -> dict[str, Any]:
    return {
        "id": f"cmpl-{generation.id}",
        "object": "text_completion",
        "created": generation.created,
        "model": model,
    }


def _choice(index: int, text: str, generation: Generation) -> dict[str, Any]:
    return {
        "index": index,
        "text": text,
        "logprobs": None,
        "finish_reason": generation.finish_reason,
        "stop_reason": generation.stop_reason,
    }


async def _events(generation: Generation, model: str, include_usage: bool) -> AsyncIterator[str]:
    """vLLM puts the finish reason on the last text chunk; here that chunk's text is empty."""
    head = _head(generation, model)
    async for piece in generation.pieces():
        for index in range(generation.ask.n):
            yield data_line({**head, "choices": [_choice(index, piece.text, generation)]})
    for index in range(generation.ask.n):
        yield data_line({**head, "choices": [_choice(index, "", generation)]})
    if include_usage:
        yield data_line({**head, "choices": [], "usage": chat_usage(generation)})
    yield "data: [DONE]\n\n"
