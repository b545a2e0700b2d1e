"""What a model that is in no catalogue would mean on our servers: fit, requests, speed class."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils import translation

from inference.fit import NOT_READ, Told, estimate, figures_from_config
from inference.models import Goal, Replica, Slot

CONTEXTS = (32_768, 131_072)


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """All replicas of the slot on one server together. None: nothing can be said."""

    server: str
    gpus: int
    """Of one replica."""
    replicas: int
    fits: bool | None = None
    """At least one request of the shortest context."""
    requests: dict[int, int | None] = field(default_factory=dict)
    """At the same time, by context; 0 where the context does not fit or the model has no such."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Asked:
    config: dict[str, Any]
    weights_bytes: int | None
    context: int
    kv_dtype: str
    contexts: Sequence[int]


def prospects(
    slot: Slot,
    *,
    config: dict[str, Any],
    weights_bytes: int | None = None,
    context: int = 0,
    kv_dtype: str = "auto",
    contexts: Sequence[int] = CONTEXTS,
) -> list[Prospect]:
    """`context`: what the model is to be served with at most; 0: its own."""
    prefetch_related_objects([slot], "replicas__server")  # once for all models asked about
    rows = [replica for replica in slot.replicas.all() if replica.goal == Goal.SERVE]
    places: dict[tuple[str, int], list[Replica]] = {}
    for replica in sorted(rows, key=lambda one: (one.server.name, one.number)):
        places.setdefault((replica.server.name, len(replica.gpus)), []).append(replica)
    asked = _Asked(config, weights_bytes, context, kv_dtype, contexts)
    return [_place(name, replicas, asked) for (name, _), replicas in places.items()]


def _place(name: str, replicas: list[Replica], asked: _Asked) -> Prospect:
    """Replicas of equally many GPUs on one server are alike."""
    first, number = replicas[0], len(replicas)
    unknown = Prospect(
        server=name,
        gpus=len(first.gpus),
        replicas=number,
        requests=dict.fromkeys(asked.contexts),
    )
    kinds = first.server.kinds_of(first.gpus)
    if not kinds or not asked.config:
        return unknown
    try:
        figures = figures_from_config(asked.config, asked.weights_bytes)
        longest = asked.context or figures.context
        found = {
            length: estimate(
                figures,
                gpus_mib=[size for _, size in kinds],
                gpu_name=kinds[0][0],
                context=length,
                told=Told(kv_dtype=asked.kv_dtype),
            )
            for length in asked.contexts
        }
    except NOT_READ:
        return unknown
    shortest = found[min(asked.contexts)]
    return replace(
        unknown,
        fits=shortest.fits,
        requests={
            length: int(fit.concurrent) * number if fit.fits and length <= longest else 0
            for length, fit in found.items()
        },
        notes=_untranslated(shortest.notes),
    )


def _untranslated(notes: Sequence[Any]) -> tuple[str, ...]:
    """To be kept in a row and translated for each reader: `gettext(note)`."""
    with translation.override(None):
        return tuple(str(note) for note in notes)
