"""The order of a `/v1/messages` stream, which clients take at its word.

message_start, then blocks one after another (content_block_start, deltas of the block's own kind,
content_block_stop, indices counting from 0), message_delta, message_stop. `ping` may come anywhere.
https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inference.engine import Event
from inference.smoke.asking import Failed

_DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "redacted_thinking": set(),
    "tool_use": {"input_json_delta"},
}
_TEXT = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


@dataclass(kw_only=True)
class Message:
    """What the stream added up to: the text of each kind of block, in order."""

    blocks: list[tuple[str, str]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    begun: bool = False
    open: int | None = None
    ending: bool = False
    ended: bool = False

    def take(self, kind: str, data: dict[str, Any]) -> None:
        if self.ended:
            raise Failed("smoke_events", f"{kind} after message_stop")
        if kind == "message_start":
            self._need(not self.begun, "message_start twice")
            self.begun = True
            return
        self._need(self.begun, f"{kind} before message_start")
        if kind == "message_delta":
            self._need(self.open is None, "message_delta within a block")
            self.stop_reason = (data.get("delta") or {}).get("stop_reason") or self.stop_reason
            self.usage = data.get("usage") or self.usage
            self.ending = True
        elif kind == "message_stop":
            self._need(self.ending, "message_stop without message_delta")
            self.ended = True
        else:
            self._need(not self.ending, f"{kind} after message_delta")
            self._take_block(kind, data)

    def _take_block(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "content_block_start":
            self._need(self.open is None, "content_block_start within a block")
            self._need(data.get("index") == len(self.blocks), "content_block_start out of count")
            self.open = len(self.blocks)
            self.blocks.append((str((data.get("content_block") or {}).get("type")), ""))
            return
        self._need(self.open is not None, f"{kind} outside a block")
        self._need(data.get("index") == self.open, f"{kind} of another block")
        if kind == "content_block_stop":
            self.open = None
        elif kind == "content_block_delta":
            self._grow(data.get("delta") or {})

    def _grow(self, delta: dict[str, Any]) -> None:
        block, text = self.blocks[-1]
        kind = str(delta.get("type"))
        self._need(kind in _DELTAS.get(block, {kind}), f"{kind[:40]} in a {block[:40]} block")
        self.blocks[-1] = (block, text + str(delta.get(_TEXT.get(kind, ""), "")))

    def text(self, kind: str) -> str:
        return "".join(text for block, text in self.blocks if block == kind)

    @staticmethod
    def _need(condition: bool, otherwise: str) -> None:
        if not condition:
            raise Failed("smoke_events", otherwise)


_KNOWN = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
)


def read_message(events: Iterable[Event]) -> Message:
    """Raises Failed (`smoke_events`, or `smoke_half_stream` where it ends too early)."""
    message = Message()
    for event in events:
        if event.data is None:  # vLLM closes this stream with [DONE] too
            continue
        kind = str(event.data.get("type", ""))
        if kind == "error":
            raise Failed("smoke_server_error", "error event")
        if event.name and event.name != kind:
            raise Failed("smoke_events", "an event's name and type differ")
        if kind in _KNOWN:
            message.take(kind, event.data)
    if not message.ended:
        raise Failed("smoke_half_stream", "no message_stop")
    return message
