"""What is more than one request, or would make LiteLLM stumble: refused before it is read.

One request takes one parallel slot, so whatever runs the model several times for one body is not
offered. LiteLLM itself would also take a list of conversations, and model names with commas. What
would have something fetched is in nan_media.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import nan_media

LONGEST_EMBEDDINGS_LIST: Final = 2048  # OpenAI's own limit
LONGEST_MODEL_NAME: Final = 200
SEVERAL: Final = "Send several requests instead, up to your limit in parallel (5 as a rule)."
ELSEWHERE: Final = (
    "Images, sounds and files come with the request, as `data:TYPE;base64,CONTENT`. "
    "Addresses and ids of files are not looked up."
)

# Where LiteLLM looks into a value without looking at its kind, and fails with a 500.
OBJECTS: Final = {
    "/v1/chat/completions": ("stream_options", "chat_template_kwargs", "response_format"),
    "/v1/completions": ("stream_options", "response_format"),
    "/v1/responses": ("stream_options", "reasoning", "text"),
    "/v1/messages": ("thinking", "output_config", "tool_choice"),
    "/v1/messages/count_tokens": ("thinking", "output_config", "tool_choice"),
}


class Refused(Exception):
    """A request that is the caller's mistake; `field` is the one to change."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def check(path: str, body: dict[str, Any]) -> None:
    _check_model(body.get("model"))
    for name in ("n", "best_of"):
        value = body.get(name)
        if value is not None and (type(value) is not int or value != 1):
            raise Refused(f"`{name}` can only be 1. {SEVERAL}", name)
    for name in ("messages", "tools", "functions"):
        _check_objects(name, body.get(name))
    for name in OBJECTS.get(path, ()):
        if not isinstance(body.get(name), dict | None):
            raise Refused(f"`{name}` must be an object.", name)
    _check_messages(body.get("messages") or ())
    if not isinstance(body.get("stream"), bool | None):
        raise Refused("`stream` must be true or false.", "stream")
    if path == "/v1/completions":
        _check_prompt(body.get("prompt"))
    if path == "/v1/embeddings":
        _check_embeddings(body.get("input"))
    if path == "/v1/responses":
        _check_input(body.get("input"))
    _check_media(body)


def _check_media(body: dict[str, Any]) -> None:
    for name in ("messages", "input"):
        if nan_media.is_elsewhere(body.get(name)):
            raise Refused(ELSEWHERE, name)


def _check_model(model: Any) -> None:
    """A missing one is LiteLLM's to refuse: it says which models there are."""
    if model is None:
        return
    if not isinstance(model, str) or len(model) > LONGEST_MODEL_NAME or not model.isprintable():
        raise Refused("`model` must be the name of a model.", "model")
    if "," in model:
        raise Refused(f"`model` can only name one model. {SEVERAL}", "model")


def _check_objects(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Refused(f"`{name}` must be a list of objects.", name)


def _check_messages(messages: Iterable[dict[str, Any]]) -> None:
    for message in messages:
        if not isinstance(message.get("role"), str):
            raise Refused("Each of `messages` needs a `role`.", "messages")
        if not isinstance(message.get("content"), str | list | None):
            raise Refused("The `content` of a message must be a text or a list.", "messages")


def _check_prompt(prompt: Any) -> None:
    """A text, a list of tokens (numbers), or a list of one of either."""
    if isinstance(prompt, list):
        if len(prompt) > 1 and not all(type(item) is int for item in prompt):
            raise Refused(f"`prompt` can only be one prompt. {SEVERAL}", "prompt")
    elif not isinstance(prompt, str | None):
        raise Refused("`prompt` must be a text.", "prompt")


def _check_embeddings(texts: Any) -> None:
    if not isinstance(texts, str | list | None):
        raise Refused("`input` must be a text or a list of texts.", "input")
    many = isinstance(texts, list) and not all(type(item) is int for item in texts)
    if many and len(texts) > LONGEST_EMBEDDINGS_LIST:
        message = f"`input` can hold {LONGEST_EMBEDDINGS_LIST} texts at most; send the rest after."
        raise Refused(message, "input")


def _check_input(found: Any) -> None:
    if isinstance(found, str | None):
        return
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Refused("`input` must be a text or a list of objects.", "input")
