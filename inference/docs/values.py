"""What pages are filled with: from settings and rows, at the moment they are read."""

from dataclasses import dataclass

from django.conf import settings

from inference.deployment import STREAM_TIMEOUT, TIMEOUT
from inference.limits import Limits, outgoing_share
from inference.models import CatalogModel, Kind, Slot
from inference.names.shown import of_slot, usual

PLACEHOLDER = "YOUR_KEY"
"""In place of a key."""
UNKNOWN = "UNKNOWN"
"""In place of a figure of a model while the slot has none; pages say so beside it."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The slots that examples speak of, as they stand now."""

    chat: Slot | None
    embedding: Slot | None

    @property
    def model(self) -> CatalogModel | None:
        return self.chat.model if self.chat else None

    @property
    def embedding_model(self) -> CatalogModel | None:
        return self.embedding.model if self.embedding else None

    @property
    def runs(self) -> bool:
        return self.model is not None


def reading() -> Reading:
    """One query. The slot that new members start with, and the first one for embeddings."""
    slots = list(Slot.objects.select_related("model").order_by("number"))
    embedding = next((slot for slot in slots if slot.kind == Kind.EMBEDDING), None)
    return Reading(chat=usual(slots), embedding=embedding)


def values(now: Reading) -> dict[str, str]:
    """Every name that pages may use between double braces. All are text."""
    model, shown = now.model, of_slot(now.chat)
    limits = Limits(settings.MEMBER_RPM, settings.MEMBER_PARALLEL)
    old = outgoing_share(limits)
    return {
        "site_url": settings.SITE_URL,
        "api_url": settings.API_URL,
        "base_url": f"{settings.API_URL}/v1",
        "key": PLACEHOLDER,
        "model": shown.name,
        "model_name": model.name if model else UNKNOWN,
        "model_title": model.title if model else UNKNOWN,
        "context": str(shown.context or UNKNOWN),
        "output": str(shown.output or UNKNOWN),
        "short_output": str(shown.short_output),
        **_claims(model),
        "embedding_model": now.embedding.name if now.embedding else UNKNOWN,
        "rpm": str(limits.rpm),
        "parallel": str(limits.parallel),
        "old_rpm": str(old.rpm),
        "old_parallel": str(old.parallel),
        "silence_minutes": str(STREAM_TIMEOUT // 60),
        "answer_minutes": str(TIMEOUT // 60),
        "overlap_hours": str(settings.ROTATION_OVERLAP_SECONDS // 3600),
        "retired_days": str(settings.RETIRED_NAME_DAYS),
    }


def _claims(model: CatalogModel | None) -> dict[str, str]:
    """What a client is told that the model can do, as JSON."""
    sees, acts = (bool(model and model.has(name)) for name in ("vision", "tools"))
    return {
        "tools": _json(acts),
        "continue_tools": "tool_use" if acts else "",
        "images": _json(sees),
        "inputs": '"text", "image"' if sees else '"text"',
    }


def _json(yes: bool) -> str:
    return "true" if yes else "false"
