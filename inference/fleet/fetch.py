"""Asking a server to fetch a model's weights, long before a swap needs them."""

from typing import Any

from inference.fleet import tell
from inference.fleet.change import note_server
from inference.models import CatalogModel, Server


def fetch_weights(*, server: Server, model: CatalogModel, actor: Any) -> None:
    """Returns at once; progress stands in the server's report. Asking twice fetches once."""
    tell.fetch(server, model.repo, model.revision, model.weights_mib)
    note_server(server, "fetch", actor=actor, detail=model.weights)
