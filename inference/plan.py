"""What has to happen next at the gateway for one member's keys: a pure function of her rows.

The order keeps her keys together within her limits at every moment, also when a worker dies
between two steps: look where something is unknown, take away, lower, and only then give.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

from inference.limits import (
    NOTHING,
    Limits,
    can_be_shared,
    incoming_share,
    outgoing_share,
)
from inference.models import Key, KeyHolder, KeyState


class Action(Enum):
    LOOK = "look"
    BLOCK = "block"
    DELETE = "delete"
    FORGET = "forget"
    LIMIT = "limit"
    CREATE = "create"
    UNBLOCK = "unblock"


@dataclass(frozen=True)
class Step:
    action: Action
    key: Key
    limits: Limits = NOTHING


def next_step(
    holder: KeyHolder, keys: Sequence[Key], now: datetime, *, seen: Collection[UUID] = ()
) -> Step | None:
    """`keys`: all of the holder's keys that are not deleted. `seen`: looked at in this pass."""
    return (
        _look(keys, seen)
        or _take_away(holder, keys, now)
        or _lower(holder, keys, now)
        or (None if holder.stopped else _give(holder, keys, now))
    )


def next_due(keys: Sequence[Key], now: datetime) -> datetime | None:
    """When something will have to be done although nobody asks: an overlap ends, a doubt lapses."""
    moments = [k.remove_at for k in keys if k.remove_at and k.remove_at > now]
    moments += [k.doubtful_until for k in keys if k.doubtful_until]
    return min(moments, default=None)


def target(holder: KeyHolder, key: Key, keys: Sequence[Key], now: datetime) -> Limits:
    """The limits that `key` should have, given its siblings."""
    sharing = any(
        k.outgoing and not _leaving(holder, k, now) and k.state != KeyState.FAILED for k in keys
    )
    if not sharing:
        return holder.limits
    return (outgoing_share if key.outgoing else incoming_share)(holder.limits)


def _leaving(holder: KeyHolder, key: Key, now: datetime) -> bool:
    """Its time has come; or her limits became too small for two keys to share."""
    return key.leaving(now) or (key.outgoing and not can_be_shared(holder.limits))


def _look(keys: Sequence[Key], seen: Collection[UUID]) -> Step | None:
    for key in keys:
        half_made = bool(key.token) and key.active_at is None
        if half_made or (key.doubtful_until and key.id not in seen):
            return Step(Action.LOOK, key)
    return None


def _take_away(holder: KeyHolder, keys: Sequence[Key], now: datetime) -> Step | None:
    for key in keys:
        leaving = _leaving(holder, key, now)
        if key.state == KeyState.ACTIVE and (leaving or holder.stopped):
            return Step(Action.BLOCK, key)
        if leaving and key.state != KeyState.ACTIVE:
            return Step(Action.DELETE if key.token else Action.FORGET, key)
    return None


def _lower(holder: KeyHolder, keys: Sequence[Key], now: datetime) -> Step | None:
    for key in keys:
        if key.state in (KeyState.ACTIVE, KeyState.BLOCKED):
            lowered = key.limits.lower(target(holder, key, keys, now))
            if lowered != key.limits:
                return Step(Action.LIMIT, key, lowered)
    return None


def _give(holder: KeyHolder, keys: Sequence[Key], now: datetime) -> Step | None:
    for key in keys:
        wanted = target(holder, key, keys, now)
        if key.state == KeyState.REQUESTED:
            return Step(Action.CREATE, key, wanted)
        if key.state == KeyState.FAILED:
            continue
        if key.limits != wanted:
            return Step(Action.LIMIT, key, wanted)
        if key.state == KeyState.BLOCKED:
            return Step(Action.UNBLOCK, key)
    return None
