"""Putting the old model back, one replica at a time, whatever state each was left in."""

from inference.fleet import alerts
from inference.models import ReplicaState, Swap, SwapReplica, SwapState
from inference.swaps import parts

State = SwapReplica.State
OVER = (State.RESTORED, State.DOWN, State.KEPT)


def begin_return(swap: Swap, *, code: str, detail: str, step: str) -> None:
    """Of two causes at once the first one counts."""
    running = Swap.objects.filter(pk=swap.pk, state=SwapState.RUNNING)
    values = {"error_code": code, "error_detail": detail[:400], "error_step": step}
    if running.update(state=SwapState.RETURNING, waiting_code="", paused_at=None, **values):
        parts.note(swap, "returning", detail=code)


def go_back(swap: Swap, found: list[SwapReplica]) -> bool:
    """True when every replica that was touched is restored, down, or left as it is on purpose."""
    touched = [part for part in found if part.state not in (State.WAITING, *OVER)]
    if not touched:
        return True
    # The one under way first, the others in the reverse order of the plan.
    part = next((p for p in touched if p.state == State.RETURNING), None) or max(
        touched, key=lambda p: (p.state == State.CHANGING, p.position)
    )
    if part.state == State.RETURNING:
        _look(swap, part)
        return False
    others = set(parts.others(part).values_list("state", flat=True))
    serves = part.replica.state == ReplicaState.SERVING
    if serves and others == {ReplicaState.FAILED}:
        # Serving the new model is worth more than serving none.
        parts.mark(part, State.KEPT)
        parts.note(swap, "not_restored", part=part)
        alerts.open_alert("not_restored", replica=part.replica)
    elif serves and others - {ReplicaState.SERVING, ReplicaState.FAILED}:
        # One that serves is not taken out while another is still on its way.
        parts.wait(swap, "others_not_serving")
    else:
        parts.wait(swap, "")
        parts.send(part, swap.from_model, State.RETURNING)
    return False


def _look(swap: Swap, part: SwapReplica) -> None:
    replica = part.replica
    if replica.state == ReplicaState.SERVING and replica.model_id == swap.from_model_id:
        parts.mark(part, State.RESTORED)
        parts.note(swap, "restored", part=part)
    elif replica.state == ReplicaState.FAILED and replica.retry_at is None:
        parts.mark(part, State.DOWN)
        parts.note(swap, "down", part=part, detail=replica.error_code)
