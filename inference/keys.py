"""What can be done with a member's key. Each use case changes rows and wakes the gateway worker.

Nothing here talks to the gateway: a change is wanted once it is committed, and true once the
worker has confirmed it (`pending_at_gateway`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from inference import plan, wake
from inference.limits import Limits, can_be_shared
from inference.models import Key, KeyEvent, KeyHolder, KeyState

# A new key comes with a new minute at the gateway; this keeps that from becoming a way around
# the limits, and is far above what a person needs.
NEW_KEYS_A_DAY = 20


class KeyRefused(Exception):
    """The use case can't be done now; `code` is one of the catalogue in `inference.errors`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


# -- The member's own -------------------------------------------------------------------------


@transaction.atomic
def request_key(*, user: Any, public_key: bytes) -> Key:
    """Her key: the one she has, or a new one. Ten calls at once give one key.

    The key can be opened only by who holds the private half of the key's `public_key`; a caller
    whose own half differs came second.
    """
    holder = _lock(user)
    current = _current(holder)
    if current and current.state != KeyState.FAILED:
        return current
    if current:
        _retire(current)
    return _new_key(holder, public_key=public_key, actor=user, what="requested")


@transaction.atomic
def rotate(
    *, user: Any, public_key: bytes, actor: Any, at_once: bool = False, reason: str = ""
) -> Key:
    """A new key in place of hers. The old one works on for a day with a share of the limits.

    `at_once` (it leaked, or nobody has seen it): every key she has stops first.
    """
    holder = _lock(user)
    current = _current(holder)
    if current and current.state == KeyState.REQUESTED:
        return current
    if current is None or current.state == KeyState.FAILED:
        raise KeyRefused("nothing_to_rotate")
    if at_once or not can_be_shared(holder.limits):
        for key in _live(holder):
            _retire(key)
        what = "replaced"
    else:
        _begin_overlap(holder, current)
        what = "rotated"
    return _new_key(
        holder, public_key=public_key, actor=actor, what=what, reason=reason, replaces=current
    )


@transaction.atomic
def end_overlap(*, user: Any, actor: Any) -> None:
    """The old key of a rotation stops now instead of tomorrow."""
    holder = _lock(user)
    for key in _live(holder).filter(outgoing=True):
        _retire(key)
        _record(holder, "overlap_ended", actor=actor, key=key)
    _wake(holder)


@transaction.atomic
def pause(*, user: Any, actor: Any) -> None:
    holder = _lock(user)
    if not holder.paused and _live(holder).exclude(state=KeyState.REQUESTED).exists():
        _set(holder, "paused", actor=actor, paused=True)


@transaction.atomic
def resume(*, user: Any, actor: Any) -> None:
    holder = _lock(user)
    if holder.paused:
        _set(holder, "resumed", actor=actor, paused=False)


@transaction.atomic
def revoke(*, user: Any, actor: Any, reason: str = "") -> None:
    """All of her keys stop and are deleted. She may make a new one."""
    _remove(_lock(user), "revoked", actor=actor, reason=reason)


# -- The admins' -------------------------------------------------------------------------------


@transaction.atomic
def hold(*, user: Any, actor: Any, reason: str) -> None:
    """Her keys stop until `release`; one that is still being made is given up, nobody has it."""
    holder = _lock(user)
    if holder.held:
        return
    for key in _live(holder).filter(state=KeyState.REQUESTED):
        _retire(key)
    _set(holder, "held", actor=actor, reason=reason, held=True)


@transaction.atomic
def release(*, user: Any, actor: Any) -> None:
    """Undoes `hold`. A pause of the member's own stays."""
    holder = _lock(user)
    if holder.held:
        _set(holder, "released", actor=actor, held=False)


@transaction.atomic
def remove_all(*, user: Any, actor: Any, reason: str) -> None:
    """She leaves, or an approval is undone: as `revoke`, on somebody's account. Repeatable."""
    holder = KeyHolder.objects.select_for_update().filter(pk=user.public_id).first()
    if holder:
        _remove(holder, "removed", actor=actor, reason=reason)


@transaction.atomic
def set_limits(
    *, user: Any, rpm: int | None, parallel: int | None, actor: Any, reason: str
) -> None:
    """Her own limits; None for what every member gets. The gateway takes anything, even -1."""
    if any(value is not None and value < 1 for value in (rpm, parallel)):
        raise ValueError("Limits are at least 1.")
    holder = _lock(user)
    text = f"{rpm or '·'} rpm, {parallel or '·'} parallel: {reason}"[:200]
    _set(holder, "limits", actor=actor, reason=text, own_rpm=rpm, own_parallel=parallel)


# -- The product's own -------------------------------------------------------------------------


@transaction.atomic
def replace_own(*, owner_ref: UUID, limits: Limits, public_key: bytes, reason: str) -> Key:
    """A new key for a holder that is no person; whatever it had before stops first."""
    KeyHolder.objects.get_or_create(owner_ref=owner_ref)
    holder = KeyHolder.objects.select_for_update().get(pk=owner_ref)
    for key in _live(holder):
        _retire(key)
    KeyHolder.objects.filter(pk=owner_ref).update(own_rpm=limits.rpm, own_parallel=limits.parallel)
    return _new_key(holder, public_key=public_key, actor=None, what="requested", reason=reason)


@transaction.atomic
def remove_own(*, owner_ref: UUID, reason: str) -> None:
    holder = KeyHolder.objects.select_for_update().filter(pk=owner_ref).first()
    if holder:
        _remove(holder, "removed", actor=None, reason=reason)


# -- Reading -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """A member's keys as her page shows them."""

    limits: Limits
    current: Key | None
    outgoing: Key | None
    leaving: list[Key]
    paused: bool
    held: bool
    pending: bool
    trouble: str

    @property
    def can_share(self) -> bool:
        return can_be_shared(self.limits)


def summary(user: Any) -> Summary:
    """Two queries, however many keys there have been."""
    now = timezone.now()
    holder = KeyHolder.objects.filter(pk=user.public_id).first()
    if holder is None:
        limits = Limits(settings.MEMBER_RPM, settings.MEMBER_PARALLEL)
        return Summary(limits, None, None, [], False, False, False, "")
    keys = list(_live(holder).order_by("requested_at"))
    return Summary(
        limits=holder.limits,
        current=next((k for k in keys if k.remove_at is None), None),
        outgoing=next((k for k in keys if k.outgoing and not k.leaving(now)), None),
        leaving=[k for k in keys if k.leaving(now)],
        paused=holder.paused,
        held=holder.held,
        pending=_pending(holder, keys, now),
        trouble=holder.error_code,
    )


def pending_at_gateway(user: Any) -> bool:
    """Whether the gateway has yet to confirm something that was asked for."""
    holder = KeyHolder.objects.filter(pk=user.public_id).first()
    return holder is not None and _pending(holder, list(_live(holder)), timezone.now())


def _pending(holder: KeyHolder, keys: list[Key], now: datetime) -> bool:
    seen = {key.id for key in keys}
    return plan.next_step(holder, keys, now, seen=seen) is not None


# -- Shared ------------------------------------------------------------------------------------


def _lock(user: Any) -> KeyHolder:
    """Her row, created at the first need, and nobody else in it until the commit."""
    locked = KeyHolder.objects.select_for_update().filter(pk=user.public_id)
    if holder := locked.first():
        return holder
    new = KeyHolder(owner_ref=user.public_id, member=user)
    KeyHolder.objects.bulk_create([new], ignore_conflicts=True)
    return locked.get()


def _live(holder: KeyHolder) -> Any:
    return Key.objects.live().filter(holder=holder)


def _current(holder: KeyHolder) -> Key | None:
    return Key.objects.current().filter(holder=holder).first()


def _new_key(
    holder: KeyHolder,
    *,
    public_key: bytes,
    actor: Any,
    what: str,
    reason: str = "",
    replaces: Key | None = None,
) -> Key:
    if holder.held:
        raise KeyRefused("held")
    today = Key.objects.filter(
        holder=holder, requested_at__gt=timezone.now() - timedelta(days=1)
    ).count()
    if today >= NEW_KEYS_A_DAY:
        raise KeyRefused("too_many")
    key = Key.objects.create(holder=holder, public_key=public_key, replaces=replaces)
    _record(holder, what, actor=actor, key=key, reason=reason)
    _wake(holder, paused=False)
    return key


def _begin_overlap(holder: KeyHolder, current: Key) -> None:
    if holder.paused:
        raise KeyRefused("paused")
    now = timezone.now()
    _live(holder).filter(outgoing=True, remove_at__lte=now).update(outgoing=False)
    if _live(holder).filter(outgoing=True).exists():
        raise KeyRefused("rotation_under_way")
    end = now + timedelta(seconds=settings.ROTATION_OVERLAP_SECONDS)
    Key.objects.filter(pk=current.pk).update(outgoing=True, remove_at=end)


def _retire(key: Key) -> None:
    """Wanted gone from now on. Touches nothing that the gateway worker writes."""
    now = timezone.now()
    if not key.leaving(now):
        Key.objects.filter(pk=key.pk).update(outgoing=False, remove_at=now)


def _remove(holder: KeyHolder, what: str, *, actor: Any, reason: str) -> None:
    for key in _live(holder):
        _retire(key)
        _record(holder, what, actor=actor, key=key, reason=reason)
    _wake(holder, paused=False)


def _set(holder: KeyHolder, what: str, *, actor: Any, reason: str = "", **values: Any) -> None:
    _record(holder, what, actor=actor, reason=reason)
    _wake(holder, **values)


def _record(
    holder: KeyHolder, what: str, *, actor: Any, key: Key | None = None, reason: str = ""
) -> None:
    KeyEvent.objects.create(holder=holder, key=key, actor=actor, what=what, reason=reason)


def _wake(holder: KeyHolder, **values: Any) -> None:
    """A worker in the middle of these keys sees at its end that `due_at` has moved."""
    KeyHolder.objects.filter(pk=holder.pk).update(**values, due_at=timezone.now())
    transaction.on_commit(wake.gateway_worker, robust=True)
