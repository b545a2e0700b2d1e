"""Makes the gateway have what the rows want, one member at a time, however often it is run.

A member's keys are claimed together by a conditional UPDATE (a lease). Each step calls the gateway
outside of any transaction and then writes what it confirmed, only while the lease is still ours.
A worker that dies leaves the lease to run out; the next one looks before it acts.
"""

import time
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from inference import plan, reveal
from inference.gateway import Gateway, GatewayKey, GatewayRefused, GatewayUnavailable, NewKey
from inference.limits import Limits
from inference.models import TRANSITIONS, Key, KeyEvent, KeyHolder, KeyState
from inference.plan import Action, Step

log = structlog.get_logger(__name__)

# Longer than a pass and its last call together can take (10 s, and 8 s twice).
LEASE = timedelta(seconds=40)
PASS_SECONDS = 10
# How long a call whose answer was lost may still take effect at the gateway.
DOUBT = timedelta(seconds=60)
# The cookie that could open the key lives as long as the sealed key; later nobody could.
GIVE_UP = timedelta(seconds=settings.REVEAL_SECONDS - 120)
LONGEST_WAIT = 30


class LostLease(Exception):
    """Another worker has taken over: stop, and take back what this one may have made."""


@cache
def gateway() -> Gateway:
    """One per process; httpx' client may be used by several threads."""
    return Gateway(settings.GATEWAY_URL, settings.LITELLM_MASTER_KEY, site=settings.SITE_URL)


def advance(owner_ref: UUID, *, client: Gateway | None = None) -> bool:
    """Brings one member's keys as far as they get. False if another worker is at it."""
    claim = Claim.take(owner_ref)
    if claim is None:
        return False
    try:
        _run(claim, client or gateway())
    except (GatewayUnavailable, reveal.RevealUnavailable) as error:
        claim.postpone(error.code)
    except LostLease:
        log.warning("lease_lost", owner=str(owner_ref))
    except Exception:
        claim.postpone("internal")
        raise
    return True


class Claim:
    """The right to change one member's keys; every write here fails once it has been lost."""

    def __init__(self, owner_ref: UUID, lease: datetime) -> None:
        self.owner_ref, self.lease = owner_ref, lease
        self.holder: KeyHolder
        self.keys: list[Key]
        self.seen: set[UUID] = set()

    @classmethod
    def take(cls, owner_ref: UUID) -> "Claim | None":
        now = timezone.now()
        holders = KeyHolder.objects.filter(pk=owner_ref)
        if holders.filter(lease_until=None).update(lease_until=now + LEASE):
            return cls(owner_ref, now + LEASE)
        if holders.filter(lease_until__lte=now).update(lease_until=now + LEASE):
            # The worker before died: what it was doing may or may not have happened.
            _keys(owner_ref).exclude(token="").update(doubtful_until=now + DOUBT)
            return cls(owner_ref, now + LEASE)
        return None

    def read(self) -> None:
        self.keys = list(_keys(self.owner_ref).select_related("holder").order_by("requested_at"))
        self.holder = self.keys[0].holder if self.keys else KeyHolder.objects.get(pk=self.owner_ref)

    def write(self, key: Key, **values: Any) -> None:
        """One row, and only while the lease is ours. Keeps `key` in step with its row."""
        state = values.get("state", key.state)
        if state != key.state and state not in TRANSITIONS[key.state]:
            raise ValueError(f"A key can't go from {key.state} to {state}.")
        ours = Key.objects.filter(pk=key.pk, holder__lease_until=self.lease)
        if not ours.update(**values, changed_at=timezone.now()):
            raise LostLease
        for name, value in values.items():
            setattr(key, name, value)
        if state == KeyState.DELETED:
            self.keys.remove(key)

    def settle(self) -> bool:
        """Gives the claim back, unless more was asked for in the meantime."""
        due = plan.next_due(self.keys, timezone.now())
        ours = KeyHolder.objects.filter(pk=self.owner_ref, lease_until=self.lease)
        if ours.filter(version=self.holder.version).update(
            lease_until=None, due_at=due, attempts=0, error_code=""
        ):
            return True
        if not ours.exists():
            raise LostLease
        return False

    def postpone(self, code: str) -> None:
        """Tries again after 1, 2, 4 … 30 seconds; the sweep on the beat wakes it up."""
        wait = min(2 ** min(self.holder.attempts, 10), LONGEST_WAIT)
        KeyHolder.objects.filter(pk=self.owner_ref, lease_until=self.lease).update(
            lease_until=None,
            due_at=timezone.now() + timedelta(seconds=wait),
            attempts=F("attempts") + 1,
            error_code=code,
        )
        log.warning("gateway_postponed", owner=str(self.owner_ref), code=code, wait=wait)


def _keys(owner_ref: UUID) -> Any:
    return Key.objects.live().filter(holder_id=owner_ref)


def _run(claim: Claim, client: Gateway) -> None:
    deadline = time.monotonic() + PASS_SECONDS
    while True:
        claim.read()
        while step := plan.next_step(claim.holder, claim.keys, timezone.now(), seen=claim.seen):
            if time.monotonic() > deadline:
                return claim.postpone("busy")
            _take(step, claim, client)
        if claim.settle():
            return None


def _take(step: Step, claim: Claim, client: Gateway) -> None:
    try:
        STEPS[step.action](step, claim, client)
    except (GatewayUnavailable, reveal.RevealUnavailable) as error:
        if error.maybe_done and step.key.token:
            claim.write(step.key, doubtful_until=timezone.now() + DOUBT)
        _give_up_if_late(step, claim, error.code)
        raise
    except GatewayRefused as error:
        _refused(step, claim, error)


def _refused(step: Step, claim: Claim, error: GatewayRefused) -> None:
    """Gone or taken: look what is there. Any other refusal ends a creation for good."""
    if error.code in ("not_found", "alias_taken"):
        claim.seen.discard(step.key.id)
        claim.write(step.key, doubtful_until=timezone.now())
        if error.code == "alias_taken":
            raise GatewayUnavailable(error.code, maybe_done=False)
        return
    if step.action != Action.CREATE:
        raise GatewayUnavailable(error.code, maybe_done=False)
    _fail(step.key, claim, error.code)


def _give_up_if_late(step: Step, claim: Claim, code: str) -> None:
    now = timezone.now()
    for key in [k for k in claim.keys if k.state == KeyState.REQUESTED]:
        if key.requested_at < now - GIVE_UP and not key.leaving(now):
            _fail(key, claim, code)


def _fail(key: Key, claim: Claim, code: str) -> None:
    with transaction.atomic():
        claim.write(key, state=KeyState.FAILED, error_code=code)
        _record(claim, key, "failed", code)


def _record(claim: Claim, key: Key, what: str, reason: str = "") -> None:
    KeyEvent.objects.create(holder_id=claim.owner_ref, key=key, what=what, reason=reason)


# -- The steps ----------------------------------------------------------------------------------


def _create(step: Step, claim: Claim, client: Gateway) -> None:
    """Stores the id that the key will have before the gateway makes it, so that whatever happens
    next the key can be found again and removed. The value itself lives in this frame only."""
    key, new = step.key, NewKey.make()
    claim.write(key, token=new.token, hint=new.hint)
    client.create(new=new, alias=str(key.id), owner=str(claim.owner_ref), limits=step.limits)
    # A clean answer is the gateway's word. After any trouble it has to prove that it has the key.
    troubled = claim.holder.attempts or key.doubtful_until
    if troubled and not client.accepts(new):
        raise GatewayUnavailable("not_accepted", maybe_done=True)
    reveal.leave(key.id, new.token, new.value, key.public_key)
    try:
        with transaction.atomic():
            claim.write(
                key, state=KeyState.ACTIVE, active_at=timezone.now(), **_confirmed(step.limits)
            )
            _record(claim, key, "made")
    except LostLease:
        with suppress(GatewayUnavailable, GatewayRefused):
            client.delete(new.token)
        raise


def _look_at(step: Step, claim: Claim, client: Gateway) -> None:
    """Takes over what the gateway really has under this alias, and removes what nobody can own."""
    key = step.key
    found: GatewayKey | None = None
    alive = key.state in (KeyState.ACTIVE, KeyState.BLOCKED)
    for theirs in client.with_alias(str(key.id)):
        if alive and theirs.token == key.token:
            found = theirs
        else:
            remove(theirs.token, client)
    claim.seen.add(key.id)
    settled = key.doubtful_until is None or key.doubtful_until <= timezone.now()
    doubt = {"doubtful_until": None if settled else key.doubtful_until}
    if key.active_at is None:
        claim.write(key, token="", hint="", **doubt)
    elif key.state == KeyState.FAILED:
        claim.write(key, **doubt)
    elif found is None:
        _missing(key, claim)
    else:
        state = KeyState.BLOCKED if found.blocked else KeyState.ACTIVE
        claim.write(key, state=state, **_confirmed(found.limits), **doubt)


def _missing(key: Key, claim: Claim) -> None:
    """A key that the gateway has lost can't be made again: nobody has its plaintext."""
    now = timezone.now()
    if key.leaving(now):
        return _deleted(key, claim)
    with transaction.atomic():
        claim.write(key, state=KeyState.FAILED, error_code="lost", doubtful_until=None)
        _record(claim, key, "failed", "lost")
    return None


def remove(token: str, client: Gateway) -> None:
    """Blocks first: a deletion alone takes a minute to reach every gateway instance."""
    with suppress(GatewayRefused):
        client.block(token)
    client.delete(token)


def _block(step: Step, claim: Claim, client: Gateway) -> None:
    client.block(step.key.token)
    claim.write(step.key, state=KeyState.BLOCKED)


def _unblock(step: Step, claim: Claim, client: Gateway) -> None:
    client.unblock(step.key.token)
    claim.write(step.key, state=KeyState.ACTIVE)


def _limit(step: Step, claim: Claim, client: Gateway) -> None:
    client.limit(step.key.token, step.limits)
    claim.write(step.key, **_confirmed(step.limits))


def _delete(step: Step, claim: Claim, client: Gateway) -> None:
    client.delete(step.key.token)
    _deleted(step.key, claim)


def _forget(step: Step, claim: Claim, client: Gateway) -> None:
    """The gateway never had it."""
    _deleted(step.key, claim)


def _deleted(key: Key, claim: Claim) -> None:
    with transaction.atomic():
        claim.write(key, state=KeyState.DELETED, deleted_at=timezone.now(), doubtful_until=None)
        _record(claim, key, "deleted")


def _confirmed(limits: Limits) -> dict[str, int]:
    return {"rpm": limits.rpm, "parallel": limits.parallel}


STEPS = {
    Action.LOOK: _look_at,
    Action.BLOCK: _block,
    Action.DELETE: _delete,
    Action.FORGET: _forget,
    Action.LIMIT: _limit,
    Action.CREATE: _create,
    Action.UNBLOCK: _unblock,
}
