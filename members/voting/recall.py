"""Recall: a fifth of the members ask within fourteen days, and a rotation is voted on again."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from inference.models import Slot, Swap, SwapState
from members.models import Candidate, Membership, RecallSignature, User, Vote
from members.voting import rounds
from members.voting.clock import moment
from members.voting.refusals import Refused
from nan.celery import enqueue

log = structlog.get_logger(__name__)

PERCENT = 20
DAYS = 14


@dataclass(frozen=True, kw_only=True)
class Petition:
    swap: Swap
    until: datetime
    signed: int
    """By people who are members now."""
    needed: int
    mine: bool
    vote: Vote | None
    """The round that came of it."""


def petition(slot: Slot, user: User | None = None) -> Petition | None:
    """About the last rotation, while it can be recalled or is being voted on again."""
    swap = _last_rotation(slot)
    return None if swap is None else _petition(swap, user)


def _last_rotation(slot: Slot) -> Swap | None:
    done = Swap.objects.filter(slot=slot, state=SwapState.DONE, to_model=slot.model_id)
    rows = done.filter(finished_at__gt=moment() - timedelta(days=DAYS))
    return rows.select_related("slot__model", "from_model").order_by("-finished_at").first()


def _petition(swap: Swap, user: User | None) -> Petition:
    signatures = RecallSignature.objects.filter(swap=swap)
    active = Membership.objects.in_good_standing()
    return Petition(
        swap=swap,
        until=(swap.finished_at or moment()) + timedelta(days=DAYS),
        signed=signatures.filter(user__in=active.values("user")).count(),
        needed=max(1, -(-active.count() * PERCENT // 100)),
        mine=bool(user and signatures.filter(user=user).exists()),
        vote=Vote.objects.filter(recalls=swap).first(),
    )


@transaction.atomic
def sign(*, swap: Swap, user: User) -> Petition:
    """The signature that completes the fifth makes the round; the beat opens it."""
    if not user.is_member:
        raise Refused("not_member")
    row = Swap.objects.select_for_update(of=("self",)).select_related("slot").get(pk=swap.pk)
    if _last_rotation(row.slot) != row:
        raise Refused("no_rotation")
    RecallSignature.objects.get_or_create(swap=row, user=user)
    _complete(row)
    return _petition(row, user)


def complete_due() -> None:
    """Where members have left since, those who signed may have become a fifth."""
    for slot in Slot.objects.exclude(model=None):
        swap = _last_rotation(slot)
        if swap and not Vote.objects.filter(recalls=swap).exists():
            _complete(swap)


@transaction.atomic
def _complete(swap: Swap) -> None:
    row = Swap.objects.select_for_update(of=("self",)).select_related("slot").get(pk=swap.pk)
    found = _petition(row, None)
    if found.signed >= found.needed and found.vote is None:
        _prepare(row)


def unsign(*, swap: Swap, user: User) -> None:
    """A round that was made stays."""
    RecallSignature.objects.filter(swap=swap, user=user).delete()


def _prepare(swap: Swap) -> Vote:
    """Between the new model, which is *keep*, and the previous one."""
    now = moment()
    vote = rounds.prepare(
        slot=swap.slot,
        slug=f"{rounds.RECALL}{swap.pk}",
        actor=None,
        kind=Vote.Kind.RECALL,
        recalls=swap,
        opens_at=now,
        closes_at=now + rounds.RECALL_LASTS,
    )
    old = swap.from_model
    Candidate.objects.create(
        vote=vote, position=1, code=old.repo, model=old, title=str(old), repo=old.repo
    )
    log.info("recall_prepared", vote=vote.slug, swap=swap.pk)
    enqueue("members.tasks.advance_votes")
    return vote
