"""Claiming members' keys for one worker, by leases in the rows.

`due_at` says when a member's keys need a step. A claim moves it to a value of its own; if it is
another one when the claim is given back, somebody asked for more in the meantime.
"""

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F, FloatField, Q, QuerySet, Value
from django.db.models.functions import Cast, Least, Power
from django.db.models.functions import Now as DatabaseNow
from django.utils import timezone

from inference import plan
from inference.gateway import NewKey
from inference.models import TRANSITIONS, Key, KeyHolder, KeyState

log = structlog.get_logger(__name__)

# Longer than a pass and its last call together can take (10 s, and 8 s twice).
LEASE = timedelta(seconds=40)
BATCH = 8
LONGEST_WAIT = 15
HAD_LEASE = ExpressionWrapper(Q(lease_until__isnull=False), output_field=BooleanField())


class LostLease(Exception):
    """Another worker has taken over: stop, and take back what this one may have made."""


class Claim:
    """The right to change the keys of some members; writes fail once it has been lost."""

    def __init__(self, lease: datetime) -> None:
        self.lease = lease
        self.full = False
        self.holders: dict[UUID, KeyHolder] = {}
        self.keys: dict[UUID, list[Key]] = {}
        self.new: dict[UUID, NewKey] = {}
        self._given_up: set[UUID] = set()

    @classmethod
    def take_due(cls) -> "Claim":
        """Up to a batch of the members whose next step is due, the longest due first."""
        due = KeyHolder.objects.due(timezone.now()).select_for_update(skip_locked=True)
        claim = cls._take(due[:BATCH])
        claim.full = len(claim.holders) == BATCH
        return claim

    @classmethod
    def take(cls, owner_ref: UUID) -> "Claim":
        """This member's, due or not, unless a worker is at them."""
        free = KeyHolder.objects.free(timezone.now()).filter(pk=owner_ref)
        return cls._take(free.select_for_update())

    @classmethod
    @transaction.atomic
    def _take(cls, holders: "QuerySet[KeyHolder]") -> "Claim":
        # The random part keeps two claims of the same microsecond apart.
        claim = cls(timezone.now() + LEASE + timedelta(microseconds=secrets.randbelow(10**6)))
        claim.holders = {holder.pk: holder for holder in holders}
        if claim.holders:
            KeyHolder.objects.filter(pk__in=claim.holders).update(
                interrupted=HAD_LEASE, lease_until=claim.lease, due_at=claim.lease
            )
        for holder in claim.holders.values():
            holder.interrupted = holder.lease_until is not None
            holder.lease_until = holder.due_at = claim.lease
        return claim

    def read(self) -> None:
        self.keys = {owner_ref: [] for owner_ref in self.holders}
        live = Key.objects.live().filter(holder__in=self.holders, holder__lease_until=self.lease)
        for key in live.order_by("requested_at"):
            self.keys[key.holder_id].append(key)

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
            self.keys[key.holder_id].remove(key)

    def prepare(self, keys: Sequence[Key]) -> None:
        """Makes the values of keys about to be created and stores their ids, in one statement."""
        made = {key.pk: NewKey.make() for key in keys}
        rows = [Key(pk=pk, token=new.token, hint=new.hint) for pk, new in made.items()]
        ours = Key.objects.filter(holder__lease_until=self.lease)
        if rows and ours.bulk_update(rows, ["token", "hint"]) != len(rows):
            raise LostLease
        self.new |= made

    def postpone(self, owners: Iterable[UUID], code: str) -> None:
        """Tries again after 1, 2, 4 … 15 seconds; the sweep on the beat wakes it up."""
        owners = self._leave(owners)
        seconds = Least(Power(Value(2.0), Cast("attempts", FloatField())), Value(LONGEST_WAIT))
        self._ours(owners).update(
            lease_until=None,
            due_at=DatabaseNow() + seconds * Value(timedelta(seconds=1)),
            attempts=Least(F("attempts") + 1, Value(30)),
            error_code=code,
        )
        log.warning("gateway_given_up", code=code, members=len(owners))

    def release(self, owners: Iterable[UUID]) -> None:
        """Time is up before their turn: whoever comes next goes on at once."""
        self._ours(self._leave(owners)).update(lease_until=None, due_at=timezone.now())

    def _leave(self, owners: Iterable[UUID]) -> list[UUID]:
        """They are not settled by this claim, and values that were made for them are dropped."""
        owners = list(owners)
        self._given_up.update(owners)
        unused = [key.pk for owner in owners for key in self.keys[owner] if key.pk in self.new]
        if unused:
            Key.objects.filter(pk__in=unused).update(token="", hint="")
        return owners

    def settle(self) -> bool:
        """Gives the claim back. False if more was asked for meanwhile: those stay due."""
        now = timezone.now()
        done = [owner_ref for owner_ref in self.holders if owner_ref not in self._given_up]
        later = {o: due for o in done if (due := plan.next_due(self.keys[o], now))}
        released: dict[str, Any] = {"lease_until": None, "attempts": 0, "error_code": ""}
        at_rest = [o for o in done if o not in later]
        settled = self._ours(at_rest).filter(due_at=self.lease).update(due_at=None, **released)
        for owner_ref, due in later.items():
            ours = self._ours([owner_ref]).filter(due_at=self.lease)
            settled += ours.update(due_at=due, **released)
        if settled == len(done):
            return True
        return not self._ours(done).update(**released)

    def _ours(self, owners: Iterable[UUID]) -> "QuerySet[KeyHolder]":
        return KeyHolder.objects.filter(pk__in=list(owners), lease_until=self.lease)
