"""What can be said about a swap before it is planned: where it fits, what changes for members."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.models import CatalogModel, Goal, Measurement, Replica, Slot, Swap
from inference.swaps.capacity import Capacity, Known, capacity


@dataclass(frozen=True, kw_only=True)
class ReplicaFit:
    """One replica's place."""

    replica: Replica
    capacity: Capacity
    code: str = ""
    """Why the model can't run there."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    fits: tuple[ReplicaFit, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    context_before: int
    context_after: int
    concurrent: float | None
    """Full-context requests at once, all replicas together; None if unknown."""
    at_least: float | None
    """Likewise, of the context that the slot must carry."""
    shortfall: str = ""
    """Why all together would be too little for the slot."""
    code: str = ""
    """Why the whole can't be done; empty when nothing speaks against it."""
    gap: bool = False
    """One replica only: nobody serves while the new engine loads."""
    load_seconds: int = 0


def outlook(*, slot: Slot, model: CatalogModel) -> Outlook:
    replicas = list(slot.replicas.filter(goal=Goal.SERVE).select_related("server", "slot"))
    known = Measurement.objects.of([model])
    fits = tuple(look(replica, model, known) for replica in replicas)
    before = set(slot.model.capabilities) if slot.model else set()
    after = set(model.capabilities)
    at_least = total([fit.capacity.concurrent_at_least for fit in fits])
    shortfall = short(slot, model, fits, at_least)
    return Outlook(
        fits=fits,
        gained=tuple(sorted(after - before)),
        lost=tuple(sorted(before - after)),
        context_before=slot.model.context_length if slot.model else 0,
        context_after=model.context_length,
        concurrent=total([fit.capacity.concurrent for fit in fits]),
        at_least=at_least,
        shortfall=shortfall,
        code=next((fit.code for fit in fits if fit.code), "") or shortfall,
        gap=len(replicas) == 1,
        load_seconds=model.load_seconds,
    )


def look(replica: Replica, model: CatalogModel, known: Known) -> ReplicaFit:
    found = capacity(
        model,
        replica.server,
        replica.gpus,
        known=known,
        least_context=replica.slot.least_context,
    )
    code = "does_not_fit" if found.fits is False else ""
    if len(replica.gpus) != model.gpus_needed:
        found, code = Capacity(), "gpus_differ"
    return ReplicaFit(replica=replica, capacity=found, code=code)


def total(found: Sequence[float | None]) -> float | None:
    known = [number for number in found if number is not None]
    return sum(known) if known and len(known) == len(found) else None


def short(
    slot: Slot, model: CatalogModel, fits: Sequence[ReplicaFit], at_least: float | None
) -> str:
    """Whether the slot's requirement would not be met: its context, and how many at once at it."""
    if slot.least_context > model.context_length:
        return "context_too_short"
    if at_least is None or at_least >= slot.least_concurrent:
        return ""
    measured = all(fit.capacity.measured for fit in fits)
    return "capacity_measured" if measured else "capacity"


def of_swap(swap: Swap) -> Outlook:
    return outlook(slot=swap.slot, model=swap.to_model)
