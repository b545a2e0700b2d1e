"""A swap's replicas: reading them with their rows, and the few writes to them."""

from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from inference.fleet.goals import set_goal
from inference.fleet.machine import RETRIES
from inference.models import (
    AtDeadline,
    CatalogModel,
    FleetEvent,
    Goal,
    Replica,
    ReplicaState,
    Swap,
    SwapReplica,
    SwapState,
)

LEFT_ALONE = (
    SwapReplica.State.DONE,
    SwapReplica.State.RESTORED,
    SwapReplica.State.KEPT,
    SwapReplica.State.DOWN,
)
STEPS = {
    "draining": "drain",
    "starting": "start",
    "checking": "smoke",
    "joining": "serve",
    "serving": "watch",
}


def of(swap: Swap) -> list[SwapReplica]:
    """In the order of the plan."""
    return list(
        swap.parts.select_related(
            "replica__server", "replica__slot", "replica__model", "replica__goal_model", "server"
        )
    )


def outdated(swap: Swap) -> bool:
    """Whether others are to serve now than those of the plan: one that was taken out would be
    started by the swap, one that was put in would be left on the old model."""
    planned = set(swap.parts.values_list("replica", flat=True))
    wanted = set(swap.slot.replicas.filter(goal=Goal.SERVE).values_list("pk", flat=True))
    return not planned or planned != wanted


def others(part: SwapReplica) -> QuerySet[Replica]:
    """The slot's other replicas that are to serve."""
    slot = part.swap.slot
    return slot.replicas.filter(goal=Goal.SERVE).exclude(pk=part.replica_id)


def mark(part: SwapReplica, state: str) -> None:
    part.state, part.state_since = state, timezone.now()
    if state == SwapReplica.State.DOWN:
        part.left_down = _why(part.replica)
    part.save(update_fields=["state", "state_since", "left_down"])
    if state in LEFT_ALONE:
        let_go(part.swap, part.replica_id)


def send(part: SwapReplica, model: CatalogModel, state: str) -> None:
    """Gives the replica its goal. Killed between the two writes, it is given the same again."""
    swap = part.swap
    back = swap.state == SwapState.RETURNING
    set_goal(
        part.replica,
        model,
        swap=swap,
        drain_seconds=swap.drain_seconds,
        at_deadline=AtDeadline.CUT if back else swap.at_deadline,
    )
    mark(part, state)


def remember(part: SwapReplica) -> None:
    """What its engine of this swap said and how it was tested: the replica's row goes on."""
    replica = part.replica
    part.checks, part.log = replica.checks, replica.report.get("log") or replica.last_log
    part.save(update_fields=["checks", "log"])


def _why(replica: Replica) -> dict[str, Any]:
    """Of its last engine: the row forgets it with the next start."""
    log = replica.report.get("log") or replica.last_log
    cause = {"code": replica.error_code, "detail": replica.error_detail}
    return {**cause, "checks": replica.checks, "log": log}


def let_go(swap: Swap, replica_id: int | None = None) -> None:
    """From now on a replica that fails is started again by itself, and one that has failed in the
    swap too, as after its first failure. Without an id: all of them."""
    driven = Replica.objects.filter(swap=swap)
    if replica_id is not None:
        driven = driven.filter(pk=replica_id)
    failed = driven.filter(state=ReplicaState.FAILED, retry_at=None, goal=Goal.SERVE)
    failed.update(attempts=1, retry_at=timezone.now() + timedelta(seconds=RETRIES[1]))
    driven.update(swap=None, version=F("version") + 1)


def passed(part: SwapReplica) -> bool:
    """All checks before the start are known and good."""
    return bool(part.preflight) and all(check["ok"] for check in part.preflight)


def wait(swap: Swap, code: str) -> None:
    if swap.waiting_code != code:
        Swap.objects.filter(pk=swap.pk).update(waiting_code=code)
        swap.waiting_code = code


def note(
    swap: Swap,
    what: str,
    *,
    part: SwapReplica | None = None,
    detail: str = "",
    actor: Any = None,
) -> None:
    FleetEvent.objects.create(
        swap=swap,
        replica=part.replica if part else None,
        what=what,
        detail=detail[:400],
        actor=actor,
    )


def failed_step(replica: Replica) -> str:
    """The step in which it failed: the last state before *stopping* with an error."""
    if replica.error_code == "drain_deadline":
        return "drain"
    earlier = replica.events.exclude(what__in=("stopping", "failed", "cut")).order_by("-at", "-pk")
    last = earlier.first()
    return STEPS.get(last.what, last.what) if last else ""
