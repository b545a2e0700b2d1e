"""Makes the gateway have what the rows want, however often and by however many it is run.

Workers claim members' keys in small batches by a conditional UPDATE (a lease), one member's keys
always together. Each step calls the gateway outside of any transaction and then writes what it
confirmed, only while the lease is still theirs. A worker that dies leaves its lease to run out;
the next one looks before it acts. The plan of a member's steps is in `inference.plan`.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from inference import plan, reveal
from inference.claims import Claim, LostLease
from inference.gateway import Gateway, GatewayKey, GatewayRefused, GatewayUnavailable
from inference.limits import Limits
from inference.models import Key, KeyEvent, KeyHolder, KeyState
from inference.plan import Action, Step

log = structlog.get_logger(__name__)

PASS_SECONDS = 10
# How long a call whose answer was lost may still take effect at the gateway.
DOUBT = timedelta(seconds=60)
# The cookie that could open the key lives as long as the sealed key; later nobody could.
GIVE_UP = timedelta(seconds=settings.REVEAL_SECONDS - 120)
# Troubles of the gateway as a whole: no use in trying the next member's keys now.
WIDE = frozenset({"unreachable", "timeout", "not_admitted"})

Unavailable = (GatewayUnavailable, reveal.RevealUnavailable)


@cache
def gateway() -> Gateway:
    """One per process; httpx' client may be used by several threads."""
    return Gateway(settings.GATEWAY_URL, settings.LITELLM_MASTER_KEY, site=settings.SITE_URL)


def advance_due(*, client: Gateway | None = None, more: Callable[[], None] = lambda: None) -> int:
    """Takes what is due until nothing is, or for ten seconds. How many members it advanced.

    `more` is called when more is left than this call takes, to bring another worker in.
    """
    deadline, done = time.monotonic() + PASS_SECONDS, 0
    while True:
        if time.monotonic() > deadline:
            more()
            break
        claim = Claim.take_due()
        if not claim.holders:
            break
        if claim.full:
            more()
        _work(claim, client or gateway(), deadline)
        done += len(claim.holders)
    return done


def advance(owner_ref: UUID, *, client: Gateway | None = None) -> bool:
    """Brings one member's keys as far as they get now. False if another worker is at it."""
    deadline = time.monotonic() + PASS_SECONDS
    while True:
        claim = Claim.take(owner_ref)
        if not claim.holders:
            return False
        if _work(claim, client or gateway(), deadline):
            return True


def _work(claim: Claim, client: Gateway, deadline: float) -> bool:
    """Runs the plan of each member in the batch. True unless more was asked for meanwhile."""
    claim.read()
    with suppress(LostLease):  # Each member's own steps will find out, and say so.
        _doubt_what_was_interrupted(claim)
        claim.prepare(list(_to_be_made(claim)))
    left = dict(claim.holders)
    while left:
        owner_ref, holder = left.popitem()
        if time.monotonic() > deadline:
            claim.release([owner_ref, *left])
            break
        try:
            _run(holder, claim, client)
        except LostLease:
            log.warning("lease_lost", owner=str(owner_ref))
        except Unavailable as error:
            troubled = [owner_ref, *left] if error.code in WIDE else [owner_ref]
            _postpone(claim, troubled, error.code)
            if error.code in WIDE:
                break
        except Exception:
            claim.postpone([owner_ref, *left], "internal")
            claim.settle()
            raise
    return claim.settle()


def _to_be_made(claim: Claim) -> Iterator[Key]:
    """The keys that nothing has to be done for before they are made."""
    for owner_ref, holder in claim.holders.items():
        step = plan.next_step(holder, claim.keys[owner_ref], timezone.now())
        if step and step.action == Action.CREATE:
            yield step.key


def _run(holder: KeyHolder, claim: Claim, client: Gateway) -> None:
    keys, seen = claim.keys[holder.pk], set[UUID]()
    while step := plan.next_step(holder, keys, timezone.now(), seen=seen):
        try:
            STEPS[step.action](step, claim, client)
            seen.add(step.key.id)
        except Unavailable as error:
            if error.maybe_done and step.key.token:
                claim.write(step.key, doubtful_until=timezone.now() + DOUBT)
            raise
        except GatewayRefused as error:
            seen.discard(step.key.id)
            _refused(step, claim, error)


def _refused(step: Step, claim: Claim, error: GatewayRefused) -> None:
    """Gone or taken: look what is there. Any other refusal ends a creation for good."""
    if error.code in ("not_found", "alias_taken"):
        claim.write(step.key, doubtful_until=timezone.now())
        if error.code == "not_found":
            return
    if step.action == Action.CREATE and error.code == "refused":
        _fail(step.key, claim, error.code)
    else:
        raise GatewayUnavailable(error.code, maybe_done=False)


def _postpone(claim: Claim, owners: Iterable[UUID], code: str) -> None:
    """Later again; but a creation that took too long fails, so that its member can act."""
    owners = list(owners)
    now = timezone.now()
    for key in [key for owner_ref in owners for key in claim.keys[owner_ref]]:
        late = key.state == KeyState.REQUESTED and key.requested_at < now - GIVE_UP
        if late and not key.leaving(now):
            _fail(key, claim, code)
    claim.postpone(owners, code)


def _doubt_what_was_interrupted(claim: Claim) -> None:
    """The worker before died in these: what it was doing may or may not have happened."""
    for holder in claim.holders.values():
        if holder.interrupted:
            for key in claim.keys[holder.pk]:
                if key.token:
                    claim.write(key, doubtful_until=timezone.now() + DOUBT)


def _fail(key: Key, claim: Claim, code: str) -> None:
    with transaction.atomic():
        claim.write(key, state=KeyState.FAILED, error_code=code, doubtful_until=None)
        KeyEvent.objects.create(holder_id=key.holder_id, key=key, what="failed", reason=code)


# -- The steps ----------------------------------------------------------------------------------


def _create(step: Step, claim: Claim, client: Gateway) -> None:
    """The id that the key will have is in its row before the gateway makes it, so that whatever
    happens next it can be found again and removed. The value itself is in memory only."""
    key, holder = step.key, claim.holders[step.key.holder_id]
    if key.pk not in claim.new:
        claim.prepare([key])
    new = claim.new.pop(key.pk)
    key.token, key.hint = new.token, new.hint
    client.create(new=new, alias=str(key.id), owner=str(key.holder_id), limits=step.limits)
    # A clean answer is the gateway's word. After any trouble it has to prove that it has the key.
    troubled = holder.attempts or holder.interrupted or key.doubtful_until
    if troubled and not client.accepts(new):
        raise GatewayUnavailable("not_accepted", maybe_done=True)
    reveal.leave(key.id, new.token, new.value, key.public_key)
    try:
        claim.write(key, state=KeyState.ACTIVE, active_at=timezone.now(), **_confirmed(step.limits))
    except LostLease:
        with suppress(GatewayUnavailable, GatewayRefused):
            client.delete(new.token)
        raise


def _look(step: Step, claim: Claim, client: Gateway) -> None:
    """Takes over what the gateway really has under this alias, and removes what nobody can own."""
    key = step.key
    found: GatewayKey | None = None
    alive = key.state in (KeyState.ACTIVE, KeyState.BLOCKED)
    for theirs in client.with_alias(str(key.id)):
        if alive and theirs.token == key.token:
            found = theirs
        else:
            remove(theirs.token, client)
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
    if key.leaving(timezone.now()):
        _deleted(key, claim)
    else:
        _fail(key, claim, "lost")


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
    claim.write(key, state=KeyState.DELETED, deleted_at=timezone.now(), doubtful_until=None)


def _confirmed(limits: Limits) -> dict[str, Any]:
    return {"rpm": limits.rpm, "parallel": limits.parallel}


STEPS = {
    Action.LOOK: _look,
    Action.BLOCK: _block,
    Action.DELETE: _delete,
    Action.FORGET: _forget,
    Action.LIMIT: _limit,
    Action.CREATE: _create,
    Action.UNBLOCK: _unblock,
}
