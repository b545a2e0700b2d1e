"""Output items of a response (reasoning, message, function call) and the events of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inference.simulator.engine import Generation
from inference.simulator.script import Kind, Piece

_PREFIX = {"reasoning": "rs", "content": "msg", "tool_name": "fc"}
_DELTA_EVENT: dict[Kind, str] = {
    "reasoning": "response.reasoning_text",
    "content": "response.output_text",
    "tool_name": "response.function_call_arguments",
}


@dataclass(kw_only=True)
class OpenItem:
    """An item that is still growing; `kind` is that of its first piece."""

    kind: Kind
    id: str
    call_id: str
    index: int
    name: str = ""
    text: str = ""

    def beginning(self) -> Iterator[dict[str, Any]]:
        item = {**self._item(""), "status": "in_progress"}
        if self.kind != "tool_name":
            item["content"] = []
        yield {"type": "response.output_item.added", "output_index": self.index, "item": item}
        if self.kind != "tool_name":
            yield self._part_event("added", self._part(""))

    def delta(self, text: str) -> dict[str, Any]:
        place = self._place()
        event = {"type": f"{_DELTA_EVENT[self.kind]}.delta", **place, "delta": text}
        return {**event, "logprobs": []} if self.kind == "content" else event

    def ending(self) -> Iterator[dict[str, Any]]:
        key = "arguments" if self.kind == "tool_name" else "text"
        done = {"type": f"{_DELTA_EVENT[self.kind]}.done", **self._place(), key: self.text}
        named = {"name": self.name} if self.kind == "tool_name" else {}
        yield {**done, **named, **({"logprobs": []} if self.kind == "content" else {})}
        if self.kind != "tool_name":
            yield self._part_event("done", self._part(self.text))
        item = self.closed()
        yield {"type": "response.output_item.done", "output_index": self.index, "item": item}

    def closed(self) -> dict[str, Any]:
        return self._item(self.text)

    def _item(self, text: str) -> dict[str, Any]:
        if self.kind == "tool_name":
            call = {"arguments": text, "call_id": self.call_id, "name": self.name}
            return {**call, "type": "function_call", "id": self.id, "status": "completed"}
        if self.kind == "reasoning":
            item: dict[str, Any] = {"id": self.id, "summary": [], "type": "reasoning"}
            more = {"encrypted_content": None, "status": None}
            return {**item, "content": [self._part(text)], **more}
        item = {"id": self.id, "content": [self._part(text)], "role": "assistant"}
        return {**item, "status": "completed", "type": "message"}

    def _part(self, text: str) -> dict[str, Any]:
        if self.kind == "reasoning":
            return {"text": text, "type": "reasoning_text"}
        return {"annotations": [], "text": text, "type": "output_text", "logprobs": None}

    def _place(self) -> dict[str, Any]:
        place = {"item_id": self.id, "output_index": self.index}
        return place if self.kind == "tool_name" else {**place, "content_index": 0}

    def _part_event(self, what: str, part: dict[str, Any]) -> dict[str, Any]:
        name = "reasoning_part" if self.kind == "reasoning" else "content_part"
        return {"type": f"response.{name}.{what}", **self._place(), "part": part}


def open_item(piece: Piece, generation: Generation, index: int) -> OpenItem:
    return OpenItem(
        kind=piece.kind,
        id=f"{_PREFIX[piece.kind]}_{generation.id[:24]}{index}",
        call_id=f"call_{generation.id[:24]}",
        index=index,
        name=piece.text if piece.kind == "tool_name" else "",
    )


def opens(item: OpenItem | None, piece: Piece) -> bool:
    return item is None or (piece.kind != item.kind and piece.kind != "tool_arguments")


def add_piece(item: OpenItem, piece: Piece) -> dict[str, Any] | None:
    """Grow the item; the event to send, if this piece has one (a tool's name has none)."""
    if piece.kind == "tool_name":
        return None
    item.text += piece.text
    return item.delta(piece.text)
