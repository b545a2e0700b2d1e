"""Where a model of the catalogue fits, and where it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.fit import Fit
from inference.models import CatalogModel, Server
from inference.swaps.outlook import estimated


@dataclass(frozen=True, kw_only=True)
class Place:
    """One server: what it could hold, and what it holds already."""

    server: Server
    fit: Fit | None
    """None: nothing can be estimated (no GPU needed, or no figures)."""
    enough_gpus: bool
    has_weights: bool

    @property
    def fits(self) -> bool:
        return self.enough_gpus and (self.fit is None or self.fit.fits)


@dataclass(frozen=True, kw_only=True)
class Row:
    model: CatalogModel
    places: Sequence[Place]

    @property
    def notes(self) -> list[Any]:
        """What to know about the estimates; the same for each server."""
        return next((list(place.fit.notes) for place in self.places if place.fit), [])

    @property
    def fitting(self) -> list[Place]:
        return [place for place in self.places if place.fits]


def rows(models: Sequence[CatalogModel], servers: Sequence[Server]) -> list[Row]:
    """Servers that never reported are left out: nothing is known of them."""
    known = [server for server in servers if server.reported_at]
    return [
        Row(model=model, places=[_place(model, server) for server in known]) for model in models
    ]


def _place(model: CatalogModel, server: Server) -> Place:
    """On its largest GPUs, whether or not something else is there now."""
    largest = sorted(server.gpus, key=lambda gpu: -int(gpu["total_mib"]))
    chosen = [gpu["index"] for gpu in largest[: model.gpus_needed]]
    enough = len(chosen) == model.gpus_needed
    return Place(
        server=server,
        fit=estimated(server, chosen, model) if enough and chosen else None,
        enough_gpus=enough,
        has_weights=model.weights in server.report.get("weights", []),
    )
