"""What pages tell members to write as `model`, and what it can take."""

from dataclasses import dataclass

from django.conf import settings

from inference.models import Kind, Slot


@dataclass(frozen=True)
class Shown:
    """`context` and `output` in tokens; 0: not known, for no model is in the slot yet."""

    name: str
    title: str = ""
    context: int = 0
    output: int = 0


def shown() -> Shown:
    """The slot that new members start with: PUBLIC_MODEL's, else the first one for chat."""
    slots = Slot.objects.filter(kind=Kind.CHAT).select_related("model")
    found = {slot.name: slot for slot in slots}
    slot = found.get(settings.PUBLIC_MODEL) or next(iter(found.values()), None)
    if slot is None:
        return Shown(settings.PUBLIC_MODEL)
    if slot.model is None:
        return Shown(slot.name)
    context = slot.model.context_length
    return Shown(slot.name, slot.model.title, context, min(context, slot.model.max_output))
