"""How a slot stands, from its row, its replicas and what was last seen of it in the pool."""

from collections.abc import Sequence
from datetime import datetime

from inference.models import Goal, Replica, Slot


def begins(replicas: Sequence[Replica], now: datetime) -> bool:
    """All that are to serve are on their way, and none because it had failed: a start of
    everything, or the first one."""
    wanted = [one for one in replicas if one.goal == Goal.SERVE]
    return bool(wanted) and all(one.begins(now) for one in wanted)


def is_out(slot: Slot, replicas: Sequence[Replica]) -> bool:
    """It has a model, and admins have taken all its engines out: planned, and so not down."""
    wanted = any(one.goal == Goal.SERVE for one in replicas)
    return bool(slot.model_id and not wanted and not slot.rotating_since)


def state_of(
    slot: Slot, replicas: Sequence[Replica], up: int | None, now: datetime, *, rotating: bool
) -> str:
    """`up`: engines in service by the last look at the pool, None if that is too long ago;
    `rotating`: the slot's engines were being changed then, or are."""
    wanted = sum(one.goal == Goal.SERVE for one in replicas)
    if is_out(slot, replicas):
        return "out"
    if not wanted and not slot.rotating_since:
        return "off"
    if not up and not slot.rotating_since and begins(replicas, now):
        return "starting"
    if up is None:
        return "unknown"
    if up == 0:
        return "rotation" if rotating else "down"
    return "up" if up >= wanted or rotating else "degraded"
