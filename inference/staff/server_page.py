"""What the pages say about servers, worked out from rows that were read in a fixed number of
queries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch
from django.utils import timezone

from inference.models import Alert, CatalogModel, Replica, Server

FRESH_SECONDS = 3600


@dataclass(frozen=True, kw_only=True)
class Gpu:
    index: int
    name: str
    used_mib: int
    total_mib: int
    foreign_mib: int

    @property
    def percent(self) -> int:
        return round(100 * self.used_mib / self.total_mib) if self.total_mib else 0


@dataclass(frozen=True, kw_only=True)
class Fetch:
    weights: str
    state: str
    percent: int | None
    code: str
    detail: str
    fresh: bool
    """Ended not long ago."""


@dataclass(frozen=True, kw_only=True)
class ServerView:
    server: Server
    replicas: Sequence[Replica]
    alerts: Sequence[Alert]
    now: datetime

    @property
    def waiting(self) -> bool:
        """Invited, and never heard of."""
        return self.server.reported_at is None

    @property
    def silent(self) -> bool:
        return not self.waiting and self.server.silent(self.now)

    @property
    def invited(self) -> bool:
        until = self.server.join_until
        return bool(self.waiting and until and until > self.now)

    @property
    def spent(self) -> bool:
        """Its host has been given the settings of a worker, against the token or by hand."""
        return not self.waiting or bool(self.server.join_until and not self.server.join_digest)

    @property
    def gpus(self) -> list[Gpu]:
        return [
            Gpu(
                index=found["index"],
                name=found.get("name", ""),
                used_mib=found["used_mib"],
                total_mib=found["total_mib"],
                foreign_mib=found.get("foreign_mib", 0),
            )
            for found in self.server.gpus
        ]

    @property
    def disk_free_mib(self) -> int | None:
        found = self.server.report.get("disk_free_mib")
        return int(found) if isinstance(found, int | float) else None

    @property
    def fetches(self) -> list[Fetch]:
        found: dict[str, dict[str, Any]] = self.server.report.get("fetches", {})
        return [
            Fetch(
                weights=weights,
                state=fetch.get("state", ""),
                percent=fetch.get("percent"),
                code=fetch.get("code", ""),
                detail=fetch.get("detail", ""),
                fresh=self.now.timestamp() - fetch.get("at", 0) < FRESH_SECONDS,
            )
            for weights, fetch in sorted(found.items())
        ]


def views(servers: Iterable[Server]) -> list[ServerView]:
    """Of servers that came from `with_rows`."""
    now = timezone.now()
    return [
        ServerView(
            server=server,
            replicas=list(server.replicas.all()),
            alerts=list(server.alerts.all()),
            now=now,
        )
        for server in servers
    ]


def with_rows() -> Any:
    """Servers with their replicas and open alerts: four queries however many there are."""
    replicas = Replica.objects.select_related("slot", "model", "goal_model")
    alerts = Alert.objects.filter(closed_at=None)
    return Server.objects.prefetch_related(
        Prefetch("replicas", replicas), Prefetch("alerts", alerts)
    )


def fetchable(view: ServerView) -> list[tuple[CatalogModel, bool]]:
    """Models of the catalogue, and whether the server has the weights already."""
    there = set(view.server.weights)
    return [(model, model.weights in there) for model in CatalogModel.objects.offered()]


def open_alerts() -> Any:
    """With everything that names what they are about."""
    return Alert.objects.filter(closed_at=None).select_related(
        "server", "slot", "replica__server", "replica__slot", "swap__slot"
    )
