"""What the page of a swap says, worked out from its rows.

A replica's steps are the events that the fleet pass wrote about it during this swap, each lasting
until the next; those that are still to come follow them without times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import zip_longest
from typing import Any

from django.conf import settings
from django.db.models import Prefetch
from django.utils import timezone

from inference.models import (
    CatalogModel,
    FleetEvent,
    Goal,
    Replica,
    ReplicaState,
    Server,
    Swap,
    SwapClaim,
    SwapReplica,
    SwapState,
)
from inference.staff.swap_end import SwapEnd
from inference.swaps.parts import LEFT_ALONE

WAY = (
    ReplicaState.DRAINING,
    ReplicaState.STOPPING,
    ReplicaState.STARTING,
    ReplicaState.CHECKING,
    ReplicaState.JOINING,
    ReplicaState.SERVING,
)
MOVING = WAY[:-1]


@dataclass(frozen=True, kw_only=True)
class Step:
    state: str
    model: CatalogModel | None
    seconds: float | None
    """None: it has no length (it serves, it is off)."""
    begun: bool
    is_now: bool
    code: str
    """Why it ended badly; empty if it did not."""

    @property
    def label(self) -> Any:
        return ReplicaState(self.state).label


@dataclass(frozen=True, kw_only=True)
class PartView:
    """One replica in a swap."""

    part: SwapReplica
    steps: Sequence[Step]
    active: bool

    @property
    def replica(self) -> Replica:
        return self.part.replica

    @property
    def is_mine(self) -> bool:
        """What the replica's row says belongs to this swap, and not to what came after it."""
        return self.active and self.replica.swap_id == self.part.swap_id

    @property
    def report(self) -> dict[str, Any]:
        """Of the engine that runs there; once the swap is over, it may be a later one."""
        touched = self.part.state != SwapReplica.State.WAITING
        return self.replica.report if self.active and touched else {}

    @property
    def loading(self) -> bool:
        return self.is_mine and self.replica.state == ReplicaState.STARTING

    @property
    def draining(self) -> bool:
        return self.is_mine and self.replica.state == ReplicaState.DRAINING

    @property
    def watched(self) -> float | None:
        """Seconds since it serves the new model under the swap's eye; None: not now."""
        if self.part.state != SwapReplica.State.WATCHED:
            return None
        return (timezone.now() - self.part.state_since).total_seconds()

    @property
    def checks(self) -> list[dict[str, Any]]:
        """The smoke test of its last engine in this swap; of a failed one, what made it fail."""
        replica = self.replica
        if self.part.checks or not self.is_mine or replica.model_id != replica.goal_model_id:
            return list(self.part.checks)
        return list(replica.checks)

    @property
    def log(self) -> list[str]:
        """While it loads, its engine's lines; after a failure, those of the one that failed."""
        return list(self.part.log or self.report.get("log", []))

    @property
    def left_down(self) -> dict[str, Any]:
        """Why the old model did not come back here; empty if it did, or was not to."""
        return self.part.left_down if self.part.state == SwapReplica.State.DOWN else {}

    @property
    def refused(self) -> list[dict[str, Any]]:
        return [check for check in self.part.preflight if not check.get("ok")]


@dataclass(frozen=True, kw_only=True)
class FailedCheck:
    name: str
    replica: Replica


@dataclass(frozen=True, kw_only=True)
class SwapPage:
    swap: Swap
    parts: Sequence[PartView]
    events: Sequence[FleetEvent]
    now: datetime

    @classmethod
    def of(cls, swap: Swap) -> "SwapPage":
        """Of a swap that came from `whole`."""
        now, events = timezone.now(), list(swap.events.all())
        parts = [
            PartView(part=part, steps=_steps(swap, part, events, now), active=swap.is_active)
            for part in swap.parts.all()
        ]
        return cls(swap=swap, parts=parts, events=events, now=now)

    @property
    def moving(self) -> bool:
        """Whether the page should look again: something may change without its reader."""
        return self.swap.is_open

    @property
    def seconds(self) -> float | None:
        began, ended = self.swap.started_at, self.swap.finished_at
        return ((ended or self.now) - began).total_seconds() if began else None

    @property
    def done(self) -> int:
        """How many have been changed to the new model, and not back."""
        changed = (SwapReplica.State.DONE, SwapReplica.State.KEPT)
        return sum(view.part.state in changed for view in self.parts)

    @property
    def serving(self) -> dict[str, int]:
        """How many replicas serve which model now."""
        found: dict[str, int] = {}
        for view in self.parts:
            replica = view.replica
            if replica.state == ReplicaState.SERVING and replica.model:
                found[replica.model.title] = found.get(replica.model.title, 0) + 1
        return found

    @property
    def current(self) -> PartView | None:
        """The replica that is being changed."""
        busy = (
            SwapReplica.State.CHANGING,
            SwapReplica.State.WATCHED,
            SwapReplica.State.RETURNING,
        )
        return next((view for view in self.parts if view.part.state in busy), None)

    def offers(self, person: Any) -> list[str]:
        """What this admin may do now, most expected first. The use cases decide; this is a
        courtesy."""
        swap = self.swap
        if swap.state == SwapState.PLANNED:
            own = swap.proposed_by_id == person.pk and settings.SWAP_SECOND_ADMIN
            return ["cancel"] if own else ["approve", "cancel"]
        if swap.state == SwapState.APPROVED:
            later = swap.start_at is not None and swap.start_at > self.now
            return ["start", "cancel"] if later else ["cancel"]
        if swap.state == SwapState.RUNNING and not swap.abort_asked:
            return ["resume" if swap.paused_at else "pause", "abort"]
        return ["retry"] if self.end and self.end.can_retry else []

    # -- What it waits for
    @property
    def silent(self) -> list[Server]:
        """Servers that do not report, on which the swap has something left to do."""
        left = [v.part.server for v in self.parts if v.part.state not in LEFT_ALONE]
        found = {server.pk: server for server in left if server.silent(self.now)}
        return list(found.values()) if self.swap.is_active else []

    @property
    def absent(self) -> list[Replica]:
        """Other replicas that have to serve before the next one is begun."""
        if self.swap.waiting_code != "others_not_serving":
            return []
        waiting = (v.replica.pk for v in self.parts if v.part.state == SwapReplica.State.WAITING)
        rows = self.swap.slot.replicas.filter(goal=Goal.SERVE).exclude(pk=next(waiting, 0))
        return list(rows.exclude(state=ReplicaState.SERVING).select_related("server"))

    @property
    def busy(self) -> list[SwapClaim]:
        """Other swaps that are changing one of its servers."""
        if self.swap.waiting_code != "server_busy":
            return []
        servers = [view.part.server_id for view in self.parts]
        claims = SwapClaim.objects.filter(server__in=servers).exclude(swap=self.swap)
        return list(claims.select_related("server", "swap__slot"))

    # -- What went wrong
    @property
    def failed_check(self) -> FailedCheck | None:
        """The check that ended it: of the smoke test, or of those before anything is touched."""
        early = self.swap.error_step == "preflight"
        for view in self.parts if self.swap.error_code else ():
            for check in view.part.preflight if early else view.part.checks:
                if check.get("ok") is False and check.get("code") == self.swap.error_code:
                    return FailedCheck(name=check["name"], replica=view.replica)
        return None

    @property
    def left_down(self) -> list[PartView]:
        return [view for view in self.parts if view.left_down]

    @cached_property
    def end(self) -> SwapEnd | None:
        """None while it is open."""
        if self.swap.is_open:
            return None
        return SwapEnd.of(self.swap, [view.part for view in self.parts])

    @property
    def about_to_start(self) -> bool:
        start_at = self.swap.start_at
        return self.swap.state == SwapState.APPROVED and bool(start_at and start_at <= self.now)

    @property
    def needs_another(self) -> bool:
        return self.swap.state == SwapState.PLANNED and settings.SWAP_SECOND_ADMIN


def whole() -> Any:
    """Swaps with all that the page shows: five queries for any number of replicas."""
    replicas = Replica.objects.select_related("server", "slot", "model", "goal_model")
    parts = SwapReplica.objects.select_related("server").prefetch_related(
        Prefetch("replica", replicas)
    )
    events = FleetEvent.objects.select_related("actor", "model", "replica__server")
    return Swap.objects.select_related(
        "slot", "from_model", "to_model", "proposed_by", "approved_by", "retry_of"
    ).prefetch_related(Prefetch("parts", parts), Prefetch("events", events))


def _steps(
    swap: Swap, part: SwapReplica, events: Iterable[FleetEvent], now: datetime
) -> list[Step]:
    taken = [
        event
        for event in events
        if event.replica_id == part.replica_id and event.what in ReplicaState
    ]
    steps = [
        _step(swap, event, following, now)
        for event, following in _pairs(taken)
        if event.what != ReplicaState.FAILED or following is None  # it was started again
    ]
    return [*steps, *_ahead(swap, part, taken)]


def _pairs(events: Sequence[FleetEvent]) -> Iterable[tuple[FleetEvent, FleetEvent | None]]:
    return zip_longest(events, events[1:])


def _step(swap: Swap, event: FleetEvent, following: FleetEvent | None, now: datetime) -> Step:
    """An engine that failed is told by the next event: it is stopped, for a reason."""
    end = following.at if following else now
    is_now = following is None and swap.is_active and event.what in MOVING
    timed = event.what in MOVING and (following is not None or is_now)
    failed = following is not None and following.what == ReplicaState.STOPPING
    return Step(
        state=event.what,
        model=event.model,
        seconds=(end - event.at).total_seconds() if timed else None,
        begun=True,
        is_now=is_now,
        code=following.detail if failed and following else "",
    )


def _ahead(swap: Swap, part: SwapReplica, taken: Sequence[FleetEvent]) -> list[Step]:
    """What has yet to come on the way to the new model; nothing once it goes back."""
    if swap.state not in (SwapState.PLANNED, SwapState.APPROVED, SwapState.RUNNING):
        return []
    if part.state not in (SwapReplica.State.WAITING, SwapReplica.State.CHANGING):
        return []
    if taken and part.replica.error_code:  # it will go back
        return []
    at = WAY.index(ReplicaState(taken[-1].what)) + 1 if taken and taken[-1].what in WAY else 0
    return [
        Step(state=state, model=None, seconds=None, begun=False, is_now=False, code="")
        for state in WAY[at:]
    ]
