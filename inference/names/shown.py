"""What pages tell members to write as `model`, and what it can take."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from inference.models import Kind, Slot

SHORT_OUTPUT = 8192


@dataclass(frozen=True)
class Shown:
    """`context` and `output` in tokens; 0: not known, for no model is in the slot yet."""

    name: str
    title: str = ""
    context: int = 0
    output: int = 0

    @property
    def short_output(self) -> int:
        """What clients are told to ask for at most whose own default leaves little context."""
        return min(SHORT_OUTPUT, self.output or SHORT_OUTPUT)


def shown() -> Shown:
    slots = Slot.objects.filter(kind=Kind.CHAT).select_related("model")
    return of_slot(usual(slots))


def usual(slots: Iterable[Slot]) -> Slot | None:
    """The one that new members start with: PUBLIC_MODEL's, else the first one for chat."""
    chats = {slot.name: slot for slot in slots if slot.kind == Kind.CHAT}
    return chats.get(settings.PUBLIC_MODEL) or next(iter(chats.values()), None)


def of_slot(slot: Slot | None) -> Shown:
    if slot is None:
        return Shown(settings.PUBLIC_MODEL)
    if slot.model is None:
        return Shown(slot.name)
    context = slot.model.context_length
    return Shown(slot.name, slot.model.title, context, min(context, slot.model.max_output))
