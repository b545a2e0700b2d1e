"""What people decide about a swap: plan, approve, cancel, pause, resume, abort, try again.

Each is one conditional UPDATE on the state that the decision was made for, so of two clicks, or
two admins, one counts and the other is told.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from inference import wake
from inference.fleet import alerts
from inference.fleet.errors import FleetRefused
from inference.models import (
    AtDeadline,
    CatalogModel,
    Goal,
    Replica,
    Slot,
    Swap,
    SwapReplica,
    SwapState,
)
from inference.names import life
from inference.swaps.parts import note, outdated

FARTHEST = timedelta(days=366)
"""What starts later was meant for another year."""


class SwapRefused(FleetRefused):
    """Not done, nothing changed; `code` has its sentence in inference.fleet.words."""


HELD_BY: list[Callable[[Slot], str]] = []
"""Who else may hold up a slot's swaps: each answers with a code of those words, or with nothing."""


def _must_be_free(slot: Slot) -> None:
    for held in HELD_BY:
        if code := held(slot):
            raise SwapRefused(code)


def plan(
    *,
    slot: Slot,
    model: CatalogModel,
    actor: Any,
    reason: str = "",
    drain_seconds: int = 900,
    at_deadline: str = AtDeadline.ABORT,
    watch_seconds: int = 120,
    start_at: datetime | None = None,
    retry_of: Swap | None = None,
) -> Swap:
    """Nothing is touched before it is approved."""
    if slot.model is None:
        raise SwapRefused("slot_empty")
    replicas = _replicas(slot, model)
    if start_at is not None and start_at <= timezone.now():
        raise SwapRefused("in_the_past")
    if start_at is not None and start_at > timezone.now() + FARTHEST:
        raise SwapRefused("swap_too_late")
    try:
        with transaction.atomic():
            swap = Swap.objects.create(
                slot=slot,
                from_model=slot.model,
                to_model=model,
                reason=reason.strip()[:200],
                drain_seconds=drain_seconds,
                at_deadline=at_deadline,
                watch_seconds=watch_seconds,
                start_at=start_at,
                proposed_by=actor,
                retry_of=retry_of,
            )
            SwapReplica.objects.bulk_create(
                SwapReplica(swap=swap, replica=replica, server_id=replica.server_id, position=n)
                for n, replica in enumerate(replicas, start=1)
            )
            life.begin(slot=slot, model=model)
            note(swap, "planned", actor=actor)
            alerts.close_of_slot("swap_failed", slot)
    except IntegrityError:
        raise SwapRefused("slot_busy") from None
    except life.NameTaken:
        raise SwapRefused("name_of_other_slot") from None
    return swap


def _replicas(slot: Slot, model: CatalogModel) -> list[Replica]:
    """Those that are to serve, in the order of the plan: server by server, so that one server's
    trouble is found on its first replica. Raises SwapRefused."""
    if slot.model is None:
        raise SwapRefused("slot_empty")
    _must_be_free(slot)
    if slot.model == model:
        raise SwapRefused("same_model")
    if slot.kind != model.kind:
        raise SwapRefused("other_kind")
    if not model.offered:
        raise SwapRefused("not_offered")
    replicas = list(slot.replicas.filter(goal=Goal.SERVE).order_by("server__name", "number"))
    if not replicas:
        raise SwapRefused("no_replicas")
    if any(len(replica.gpus) != model.gpus_needed for replica in replicas):
        raise SwapRefused("gpus_differ")
    return replicas


def refusal(*, slot: Slot, model: CatalogModel) -> str:
    """The code with which `plan` would refuse now; empty if it would not."""
    try:
        _replicas(slot, model)
    except SwapRefused as refused:
        return refused.code
    return "slot_busy" if slot.swaps.open().exists() else ""


def approve(*, swap: Swap, actor: Any) -> None:
    """By another admin than the one who planned it, unless the community has one admin only."""
    if settings.SWAP_SECOND_ADMIN and swap.proposed_by_id == actor.pk:
        raise SwapRefused("second_admin")
    _must_be_free(swap.slot)
    if swap.state == SwapState.PLANNED and outdated(swap):
        raise SwapRefused("plan_outdated")
    _change(
        swap,
        {"state": SwapState.PLANNED},
        {
            "state": SwapState.APPROVED,
            "approved_by": actor,
            "approved_at": timezone.now(),
            "start_at": swap.start_at or timezone.now(),
        },
    )
    note(swap, "approved", actor=actor)
    wake.fleet()


def start_now(*, swap: Swap, actor: Any) -> None:
    """An approved one that waits for its time doesn't wait any longer."""
    _change(swap, {"state": SwapState.APPROVED}, {"start_at": timezone.now()})
    note(swap, "start_now", actor=actor)
    wake.fleet()


def cancel(*, swap: Swap, actor: Any) -> None:
    """Before it has begun. A message that is on its way starts nothing: the row decides."""
    _change(
        swap,
        {"state__in": (SwapState.PLANNED, SwapState.APPROVED)},
        {"state": SwapState.CANCELLED, "finished_at": timezone.now()},
    )
    note(swap, "cancelled", actor=actor)


def pause(*, swap: Swap, actor: Any) -> None:
    """The replica under way is finished; the next one is not begun."""
    going_on = {"state": SwapState.RUNNING, "abort_asked": False}
    _change(swap, {**going_on, "paused_at": None}, {"paused_at": timezone.now()})
    note(swap, "paused", actor=actor)


def resume(*, swap: Swap, actor: Any) -> None:
    _change(swap, {"state": SwapState.RUNNING, "paused_at__isnull": False}, {"paused_at": None})
    note(swap, "resumed", actor=actor)
    wake.fleet()


def abort(*, swap: Swap, actor: Any) -> None:
    """Everything that was changed goes back to the old model."""
    _change(
        swap,
        {"state": SwapState.RUNNING, "abort_asked": False},
        {"abort_asked": True, "paused_at": None},
    )
    note(swap, "abort_asked", actor=actor)
    wake.fleet()


def retry(*, swap: Swap, actor: Any) -> Swap:
    """A new swap with the same choices; it has to be approved like any other."""
    if swap.state not in (SwapState.FAILED, SwapState.ABORTED, SwapState.CANCELLED):
        raise SwapRefused("not_now")
    return plan(
        slot=swap.slot,
        model=swap.to_model,
        actor=actor,
        reason=swap.reason,
        drain_seconds=swap.drain_seconds,
        at_deadline=swap.at_deadline,
        watch_seconds=swap.watch_seconds,
        retry_of=swap,
    )


def _change(swap: Swap, expected: dict[str, Any], values: dict[str, Any]) -> None:
    if not Swap.objects.filter(pk=swap.pk, **expected).update(**values):
        raise SwapRefused("not_now")
    swap.refresh_from_db()
