"""How names come and go with the models behind them. Rows only; `publish` follows them.

A slot's own name answers for good. A model's name answers while the slot serves the model, and for
some days after, when it reaches the model that came instead:

    (none) → live → leaving (has a day) → retired
               ↑──────┴───────────────────────┘   its model is back
"""

from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from inference import wake
from inference.models import CatalogModel, PublicName, Slot

log = structlog.get_logger(__name__)


class NameTaken(Exception):
    """Another slot answers to this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def claim_slot_name(slot: Slot) -> None:
    """Makes rows that are missing: the slot's own name, and that of the model it holds.

    Nothing that is there is changed, so this may be called with a slot read a while ago. Raises
    NameTaken if the slot's own name is another's.
    """
    own, _ = PublicName.objects.get_or_create(name=slot.name, defaults={"slot": slot})
    if own.slot_id != slot.pk:
        raise NameTaken(slot.name)
    if slot.model:
        PublicName.objects.get_or_create(
            name=slot.model.name, defaults={"slot": slot, "model": slot.model}
        )


def claim_all() -> None:
    for slot in Slot.objects.exclude(model=None).select_related("model"):
        try:
            claim_slot_name(slot)
        except NameTaken as taken:
            log.error("name_taken", name=taken.name, slot=slot.name)


def begin(*, slot: Slot, model: CatalogModel) -> None:
    """Before the first step of a swap to `model`: refuses one whose name is another slot's.

    Until `finish`, only the names that answered before do. They call engines by the slot's own
    name, which every one accepts, whichever model it holds.
    """
    claim_slot_name(slot)
    if PublicName.objects.live().filter(name=model.name).exclude(slot=slot).exists():
        raise NameTaken(model.name)


@transaction.atomic
def finish(*, slot: Slot, old: CatalogModel, new: CatalogModel) -> None:
    """Every replica serves `new`: its name answers, and that of `old` gets its last day.

    Called again, it changes nothing; so the last day stays.
    """
    if old != new:
        _leaves(slot, old)
    _answers(slot, new)
    wake.names()


def retire_due(now: datetime | None = None) -> int:
    """Names whose last day is over. Not before their members were told, and not while a swap is
    bringing their model back."""
    now = now or timezone.now()
    retired = PublicName.objects.due_to_retire(now).update(retired_at=now)
    if retired:
        log.info("names_retired", count=retired)
    return retired


def retired_names() -> dict[str, str]:
    """Each retired name, and the one to call instead: the present model's, else the slot's."""
    present = PublicName.objects.live().filter(name=OuterRef("slot__model__name")).values("name")
    rows = PublicName.objects.exclude(retired_at=None).annotate(
        successor=Coalesce(Subquery(present), "slot__name")
    )
    return dict(rows.values_list("name", "successor"))


def _leaves(slot: Slot, model: CatalogModel) -> None:
    last_day = timezone.now() + timedelta(days=settings.RETIRED_NAME_DAYS)
    named = PublicName.objects.live().filter(slot=slot, model=model, retire_at=None)
    named.update(retire_at=last_day, told_at=None, warned_at=None)


def _answers(slot: Slot, model: CatalogModel) -> None:
    row, made = PublicName.objects.select_for_update().get_or_create(
        name=model.name, defaults={"slot": slot, "model": model}
    )
    if made or (row.slot_id == slot.pk and row.is_settled):
        return
    if row.slot_id != slot.pk and row.retired_at is None:
        # Two swaps to one model at once, each for a slot of its own. Both slots' names answer.
        log.error("name_taken", name=model.name, slot=slot.name)
        return
    if row.retired_at:
        row.since = timezone.now()
    row.slot, row.model, row.error_code = slot, model, ""
    row.retire_at = row.retired_at = row.told_at = row.warned_at = None
    row.save()
