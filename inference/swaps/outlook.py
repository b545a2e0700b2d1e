"""What can be said about a swap before it is planned: where it fits, what changes for members."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.fit import NOT_READ, Fit, estimate, figures_from_config
from inference.models import CatalogModel, Goal, Replica, Server, Slot, Swap

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class ReplicaFit:
    """One replica's place. `fit` is None where nothing is estimated: no GPU, or no figures."""

    replica: Replica
    fit: Fit | None
    measured: dict[str, Any]
    """What an engine with this model said on the same kind of place; empty if none has."""
    code: str = ""
    """Why it can't run there."""

    @property
    def concurrent(self) -> float | None:
        found = self.measured.get("concurrent") or (self.fit.concurrent if self.fit else None)
        return None if found is None else float(found)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    fits: tuple[ReplicaFit, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    context_before: int
    context_after: int
    concurrent: float | None
    """Full-context requests at once, all replicas together; None if unknown."""
    code: str = ""
    """Why the whole can't be done; empty when nothing speaks against it."""
    gap: bool = False
    """One replica only: nobody serves while the new engine loads."""
    load_seconds: int = 0


def outlook(*, slot: Slot, model: CatalogModel) -> Outlook:
    replicas = list(slot.replicas.filter(goal=Goal.SERVE).select_related("server", "slot"))
    known = measured(model)
    fits = tuple(look(replica, model, known.get(len(replica.gpus), {})) for replica in replicas)
    before = set(slot.model.capabilities) if slot.model else set()
    after = set(model.capabilities)
    carried = total(fits)
    return Outlook(
        fits=fits,
        gained=tuple(sorted(after - before)),
        lost=tuple(sorted(before - after)),
        context_before=slot.model.context_length if slot.model else 0,
        context_after=model.context_length,
        concurrent=carried,
        code=next((fit.code for fit in fits if fit.code), "") or short(slot, model, carried),
        gap=len(replicas) == 1,
        load_seconds=model.load_seconds,
    )


def look(replica: Replica, model: CatalogModel, known: dict[str, Any]) -> ReplicaFit:
    code = ""
    if len(replica.gpus) != model.gpus_needed:
        code = "gpus_differ"
    fit = None if code else estimated(replica.server, replica.gpus, model)
    if fit is not None and not fit.fits:
        code = "does_not_fit"
    return ReplicaFit(replica=replica, fit=fit, measured=known, code=code)


def estimated(server: Server, gpus: Sequence[int], model: CatalogModel) -> Fit | None:
    """None where nothing can be said: no GPU, no figures, or ones that make no sense."""
    sizes = server.sizes_mib(gpus)
    if not sizes or not model.config:
        return None
    try:
        figures = figures_from_config(model.config, model.weights_mib * MIB)
        return estimate(
            figures,
            gpus_mib=sizes,
            context=model.context_length,
            kv_dtype=str(model.flags.get("kv-cache-dtype", "auto")),
            utilisation=float(model.flags.get("gpu-memory-utilization", 0.9)),
        )
    except NOT_READ:
        return None


def measured(model: CatalogModel) -> dict[int, dict[str, Any]]:
    """By the number of GPUs, from replicas that run the model now; it beats the estimate."""
    alike = Replica.objects.filter(model=model).exclude(measured={}).order_by("-pk")
    return {len(other.gpus): dict(other.measured) for other in alike}


def total(fits: Sequence[ReplicaFit]) -> float | None:
    known = [fit.concurrent for fit in fits if fit.concurrent is not None]
    return sum(known) if known and len(known) == len(fits) else None


def short(slot: Slot, model: CatalogModel, carried: float | None) -> str:
    """Whether the slot's requirement would not be met: its context, and how many at once at it.

    A longer context than required leaves room for more requests of the required one.
    """
    if slot.least_context > model.context_length:
        return "context_too_short"
    if carried is None or not slot.least_concurrent:
        return ""
    at_least = carried * model.context_length / (slot.least_context or model.context_length)
    return "capacity" if at_least < slot.least_concurrent else ""


def of_swap(swap: Swap) -> Outlook:
    return outlook(slot=swap.slot, model=swap.to_model)
