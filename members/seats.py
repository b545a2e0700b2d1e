"""Seats come from the servers; members take them."""

from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Prefetch

from inference.models import Replica, Server
from members.models import Application, Membership

SHOWN_SECONDS = 30
"""How old the numbers on pages may be; decisions count anew."""


@dataclass(frozen=True)
class Seats:
    total: int
    taken: int
    """Active and suspended members, and approved people who have yet to confirm their address."""

    @property
    def free(self) -> int:
        return max(0, self.total - self.taken)


def count() -> Seats:
    replicas = Prefetch("replicas", Replica.objects.select_related("slot"))
    servers = Server.objects.filter(active=True).prefetch_related(replicas)
    unconfirmed = Application.objects.filter(
        state=Application.State.APPROVED, user__membership=None
    ).count()
    total = sum(server.seats_in_service for server in servers)
    return Seats(total=total, taken=Membership.objects.seated().count() + unconfirmed)


def shown() -> dict[str, int]:
    """Figures for pages: seats_total, seats_free, members_active, waiting."""
    figures: dict[str, int] | None = cache.get("members:seats")
    if figures is None:
        seats = count()
        figures = {
            "seats_total": seats.total,
            "seats_free": seats.free,
            "members_active": Membership.objects.active().count(),
            "waiting": Application.objects.waiting().count(),
        }
        cache.set("members:seats", figures, SHOWN_SECONDS)
    return figures


def changed() -> None:
    """Somebody applied, was decided about or left: pages count anew, staff's filters too."""
    cache.delete("members:seats")
    cache.delete("members:states")
