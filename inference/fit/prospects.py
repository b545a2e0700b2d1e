"""What a model that is in no catalogue would mean on our servers: fit, requests, speed class."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils import translation

from inference.fit import estimate, figures_from_config
from inference.fit.kinds import EXPERTS, EXPERTS_PER_TOKEN, first_of, text_part
from inference.fit.weights import count_bytes
from inference.models import Goal, Replica, Slot

MIB = 2**20
CONTEXTS = (32_768, 131_072)
# What a configuration raises that is not as any known one.
_NOT_READ = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


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
    sizes = [gpu["total_mib"] for gpu in first.server.gpus if gpu["index"] in first.gpus]
    if not sizes or not asked.config:
        return unknown
    try:
        figures = figures_from_config(asked.config, asked.weights_bytes)
        longest = asked.context or figures.context
        found = {
            length: estimate(figures, gpus_mib=sizes, context=length, kv_dtype=asked.kv_dtype)
            for length in asked.contexts
        }
    except _NOT_READ:
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


def active_bytes(config: dict[str, Any], weights_bytes: int | None = None) -> int | None:
    """What must be read for each token: all weights, of experts only those that a token passes.

    The speed of decoding follows it, on the same GPUs. None where the configuration does not say.
    """
    try:
        total = count_bytes(config)
        share = count_bytes(_one_token(config)) / total
    except _NOT_READ:
        return None
    return int((weights_bytes or total) * share)


def _one_token(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with as many experts as one token uses."""
    text = dict(text_part(config))
    if used := first_of(text, EXPERTS_PER_TOKEN):
        text.update({name: used for name in EXPERTS if text.get(name)})
    return {**config, "text_config": text} if config.get("text_config") else text
