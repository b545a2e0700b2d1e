"""A callback of LiteLLM: what an engine says of itself in a stream stays inside.

Once a stream has begun its status is 200 and nobody after LiteLLM can tell an error from an answer,
so the edge, which rewrites other errors, can't do it. LiteLLM passes on the engine's text, which
may name its address and its files and repeat the prompt.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from litellm.types.llms.openai import (
    BaseLiteLLMOpenAIResponseObject,
    ErrorEvent,
    ResponsesAPIStreamEvents,
)

BROKEN_OFF = (
    "The model's server broke the answer off. What had arrived until then is yours to keep;"
    " send the request again for a whole answer."
)
REFUSED = (
    "The model's server refused the request while answering it. Sending the same again will not"
    " help; change the request."
)
# Statuses below 500 that are not about the request itself.
PASSING = {408, 425, 429}


class StreamError(Exception):
    """Carries the attributes from which LiteLLM writes the event, in each API's own shape."""

    param = None

    def __init__(self, status: int) -> None:
        refused = 400 <= status < 500 and status not in PASSING
        self.message = REFUSED if refused else BROKEN_OFF
        self.type = "invalid_request_error" if refused else "server_error"
        self.status_code = status
        super().__init__(self.message)


class StreamErrors(CustomLogger):
    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: AsyncIterable[Any], request_data: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Errors reach us raised or, on Responses, as events of the engine's.

        A caller who leaves is no Exception (CancelledError, GeneratorExit) and passes untouched:
        LiteLLM gives her parallel slot back on it.
        """
        called = request_data.get("model")
        try:
            async for chunk in response:
                yield named(cleaned(chunk), called)
        except Exception as error:  # noqa: BLE001  # whatever it says is not for the caller
            raise StreamError(_status(error)) from None


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 502


def cleaned(chunk: Any) -> Any:
    """Responses' chunks are typed objects; those of the other APIs hold no errors."""
    if not isinstance(chunk, BaseLiteLLMOpenAIResponseObject):
        return chunk
    whole = getattr(chunk, "response", None)
    if getattr(whole, "error", None) is not None:
        whole.error = {"code": "server_error", "message": BROKEN_OFF}
    kind = getattr(chunk, "type", "")
    if not str(getattr(kind, "value", kind)).startswith("response."):
        return _error_event(getattr(chunk, "sequence_number", None) or 0)
    return chunk


def named(chunk: Any, called: Any) -> Any:
    """The first and the last event of Responses would say the engine's name for the model."""
    whole = getattr(chunk, "response", None)
    if isinstance(called, str) and getattr(whole, "model", None):
        whole.model = called
    return chunk


def _error_event(sequence_number: int) -> ErrorEvent:
    return ErrorEvent(
        type=ResponsesAPIStreamEvents.ERROR,
        sequence_number=sequence_number,
        code="server_error",
        message=BROKEN_OFF,
    )


callback = StreamErrors()
