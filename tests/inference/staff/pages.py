"""What the tests of the fleet's pages have in common."""

from django.http import HttpResponse

from inference.models import CatalogModel, Replica, Slot

NEW_SWAP = "/staff/swaps/new/?slot=nan&model=birch"
CHOICE = {"at_deadline": "abort", "drain_minutes": "15", "watch_seconds": "120", "reason": "Vote"}
Fleet = tuple[Slot, list[Replica], CatalogModel]
"""A slot, its replicas, and another model for it."""


def html(answer: HttpResponse) -> str:
    """On one line, however the template is broken."""
    return " ".join(answer.content.decode().split())
