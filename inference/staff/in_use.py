"""An entry of the catalogue that something runs or is about to run: what its engine was told stays
as it was told, so that pages never speak of weights that nobody serves."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from inference.models import CatalogModel, FleetEvent, Replica, Swap

FIXED = (
    "kind", "repo", "revision", "context_length", "gpus_needed", "flags", "environment",
)  # fmt: skip
"""What identifies that which runs."""


def users(model: CatalogModel) -> Sequence[str]:
    """The slots that have it, run it or are to move to it, by name; none: it may be changed."""
    if model.pk is None:
        return []
    there = Replica.objects.filter(Q(model=model) | Q(goal_model=model))
    slots = {
        *model.slots.values_list("name", flat=True),
        *there.values_list("slot__name", flat=True),
        *Swap.objects.open().filter(to_model=model).values_list("slot__name", flat=True),
    }
    return sorted(slots)


def note_change(model: CatalogModel, names: Sequence[str], *, added: bool, actor: Any) -> None:
    """Who saved the entry, and which fields of it."""
    FleetEvent.objects.create(
        model=model,
        what="model_added" if added else "model_changed",
        actor=actor,
        detail="" if added else ", ".join(names)[:400],
    )


def changed_meanwhile(model: CatalogModel) -> str:
    changes = FleetEvent.objects.filter(model=model, what="model_changed").select_related("actor")
    last = changes.order_by("at", "pk").last()
    if last is None or last.actor is None:
        return _(
            "Changed meanwhile. Nothing was saved; your input is kept below. Look at it again."
        )
    return _(
        "Changed meanwhile by %(who)s. Nothing was saved; your input is kept below. Look at it"
        " again, then save."
    ) % {"who": last.actor.call_name}
