"""What can be said of a swap before it is proposed, for the page that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import timezone

from inference.models import CatalogModel, Replica, ReplicaState, Server, Slot, Swap
from inference.swaps import plan as swaps
from inference.swaps.capacity import left_out_of, notes_on
from inference.swaps.outlook import Outlook, ReplicaFit, outlook
from nan import stale


@dataclass(frozen=True, kw_only=True)
class Preview:
    slot: Slot
    model: CatalogModel
    outlook: Outlook
    order: Sequence[ReplicaFit]
    """As it would be carried out."""
    refusal: str
    """The code with which it would be refused now; then nothing is offered."""
    open: Swap | None

    @classmethod
    def of(cls, slot: Slot, model: CatalogModel) -> "Preview":
        seen = outlook(slot=slot, model=model)
        return cls(
            slot=slot,
            model=model,
            outlook=seen,
            order=sorted(seen.fits, key=lambda fit: (fit.replica.server.name, fit.replica.number)),
            refusal=swaps.refusal(slot=slot, model=model),
            open=slot.swaps.open().first(),
        )

    @property
    def queue_seconds(self) -> int:
        """How long the edge holds a request that no engine can take."""
        return int(settings.POOL_QUEUE_SECONDS)

    @property
    def name_days(self) -> int:
        return int(settings.RETIRED_NAME_DAYS)

    @property
    def silent(self) -> list[Server]:
        """Servers that do not report now."""
        now = timezone.now()
        return [server for server in self._servers if server.silent(now)]

    @property
    def without_weights(self) -> list[Server]:
        """Servers that report, and not that they have them."""
        return [s for s in self._servers if s.report and self.model.weights not in s.weights]

    @property
    def _servers(self) -> list[Server]:
        found = {fit.replica.server.name: fit.replica.server for fit in self.order}
        return list(found.values())

    @property
    def absent(self) -> list[Replica]:
        """Those that are to serve and do not: a swap waits for them."""
        rows = [fit.replica for fit in self.order]
        return [row for row in rows if row.state != ReplicaState.SERVING]

    @property
    def notes(self) -> list[Any]:
        return notes_on(fit.capacity for fit in self.order)

    @property
    def left_out(self) -> list[str]:
        return left_out_of(fit.capacity for fit in self.order)

    @property
    def refused_by_checks(self) -> bool:
        """It may be proposed, but by what is known the checks before the start end it."""
        return bool(self.outlook.code and not self.refusal)

    @property
    def seen(self) -> str:
        """Changes with what is decided about: what runs, what comes, and where."""
        told = [
            self.slot.model_id,
            self.model.revision,
            self.model.context_length,
            self.outlook.code,
            self.outlook.gained,
            self.outlook.lost,
            [fit.replica.pk for fit in self.order],
        ]
        return stale.mark(told)
