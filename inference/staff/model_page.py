"""Where a model of the catalogue fits, and where it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.models import CatalogModel, Measurement, Server
from inference.swaps.capacity import Capacity, Known, capacity, left_out_of, notes_on


@dataclass(frozen=True, kw_only=True)
class Place:
    """One server: what it could hold, and what it holds already."""

    server: Server
    capacity: Capacity
    enough_gpus: bool
    has_weights: bool

    @property
    def fits(self) -> bool:
        return self.enough_gpus and self.capacity.fits is not False


@dataclass(frozen=True, kw_only=True)
class Row:
    model: CatalogModel
    places: Sequence[Place]

    @property
    def notes(self) -> list[Any]:
        return notes_on(place.capacity for place in self.places)

    @property
    def left_out(self) -> list[str]:
        return left_out_of(place.capacity for place in self.places)

    @property
    def fitting(self) -> list[Place]:
        return [place for place in self.places if place.fits]


def rows(models: Sequence[CatalogModel], servers: Sequence[Server]) -> list[Row]:
    """Servers that never reported are left out: nothing is known of them."""
    known = [server for server in servers if server.reported_at]
    measured = Measurement.objects.of(models)
    return [
        Row(model=model, places=[_place(model, server, measured) for server in known])
        for model in models
    ]


def _place(model: CatalogModel, server: Server, known: Known) -> Place:
    """On its largest GPUs, whether or not something else is there now."""
    largest = sorted(server.gpus, key=lambda gpu: -int(gpu["total_mib"]))
    chosen = [gpu["index"] for gpu in largest[: model.gpus_needed]]
    enough = len(chosen) == model.gpus_needed
    return Place(
        server=server,
        capacity=capacity(model, server, chosen, known=known) if enough else Capacity(),
        enough_gpus=enough,
        has_weights=model.weights in server.weights,
    )
