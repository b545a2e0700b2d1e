"""What a model holds in one place: by what an engine has said there, else by the estimate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.fit import NOT_READ, Fit, Told, batch, estimate, figures_from_config, from_flags
from inference.models import CatalogModel, Measurement, Server, measured_with

MIB = 2**20
Known = Mapping[str, Measurement]
"""By what they were measured with: `Measurement.objects.of(models)`."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    fit: Fit | None = None
    """None where nothing is estimated: no GPU, no figures, or ones that make no sense."""
    measured: Measurement | None = None
    at_once: int | None = None
    """Requests at most, however short, by the engine's flags."""
    least: Fit | None = None
    """The estimate at the context that a slot must carry."""
    least_context: int = 0

    @property
    def fits(self) -> bool | None:
        """An engine that has served there is proof."""
        if self.measured:
            return True
        return self.fit.fits if self.fit else None

    @property
    def kv_tokens(self) -> int | None:
        if self.measured:
            return self.measured.kv_tokens
        return self.fit.kv_tokens if self.fit else None

    @property
    def concurrent(self) -> float | None:
        """Requests of the model's whole context at once."""
        if self.measured:
            return self._at_most(self.measured.concurrent)
        return self._at_most(self.fit.concurrent) if self.fit else None

    @property
    def concurrent_at_least(self) -> float | None:
        """Requests of `least_context` at once. A state, or a window, takes as much of the cache in
        a short request as in a long one, so they are not as many more as they are shorter."""
        if not self.least_context:
            return self.concurrent
        if not self.measured:
            return self._at_most(self.least.concurrent) if self.least else None
        if self.fit is None or self.least is None:
            return self._at_most(self.measured.kv_tokens / self.least_context)
        share = self.least.blocks_per_request / self.fit.blocks_per_request
        return self._at_most(self.measured.concurrent / share)

    @property
    def notes(self) -> tuple[Any, ...]:
        """On an estimate that nothing has replaced."""
        return self.fit.notes if self.fit and not self.measured else ()

    @property
    def left_out(self) -> tuple[str, ...]:
        return self.fit.left_out if self.fit and not self.measured else ()

    def _at_most(self, concurrent: float) -> float:
        return concurrent if self.at_once is None else min(concurrent, self.at_once)


def notes_on(found: Iterable[Capacity]) -> list[Any]:
    """What to know about the estimates among these, which are of one model."""
    return list(next((one.notes for one in found if one.notes), ()))


def left_out_of(found: Iterable[Capacity]) -> list[str]:
    """Flags that those estimates do not follow."""
    return list(next((one.left_out for one in found if one.left_out), ()))


def capacity(
    model: CatalogModel,
    server: Server,
    gpus: Sequence[int],
    *,
    known: Known,
    least_context: int = 0,
) -> Capacity:
    """On these GPUs of the server; none: on its CPU."""
    kinds = server.kinds_of(gpus)
    told = _told(model)
    return Capacity(
        fit=_estimate(model, kinds, told, model.context_length),
        measured=known.get(measured_with(model, server, gpus)),
        at_once=_at_once(model, kinds, told),
        least=_estimate(model, kinds, told, least_context) if least_context else None,
        least_context=least_context,
    )


def _told(model: CatalogModel) -> Told | None:
    try:
        return from_flags(model.flags)
    except NOT_READ:
        return None


def _estimate(
    model: CatalogModel, kinds: Sequence[tuple[str, int]], told: Told | None, context: int
) -> Fit | None:
    if not kinds or not model.config or told is None:
        return None
    try:
        return estimate(
            figures_from_config(model.config, model.weights_mib * MIB),
            gpus_mib=[size for _, size in kinds],
            gpu_name=kinds[0][0],
            context=context,
            told=told,
        )
    except NOT_READ:
        return None


def _at_once(
    model: CatalogModel, kinds: Sequence[tuple[str, int]], told: Told | None
) -> int | None:
    if told is None:
        return None
    smallest = min((size for _, size in kinds), default=None)
    name = kinds[0][0] if kinds else ""
    found = batch(told, gpu_mib=smallest, gpu_name=name, context=model.context_length)
    return found.sequences
