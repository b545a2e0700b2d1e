"""From a result to a planned swap, with its date and words for members.

Below the quorum, with the current model kept, or after a tie, nothing starts by itself. A plan
still needs its second admin; members get their mail when it has one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.utils import timezone, translation

from inference.fleet.words import words as fleet_words
from inference.models import CatalogModel, Goal, Slot, Swap, SwapState
from inference.models.swaps import OPEN
from inference.names.changes import Changes, changes
from inference.swaps import plan
from members import mails
from members.models import Candidate, User, Vote
from members.voting import known, results
from members.voting.proposals import catalogued
from members.voting.refusals import WORDS, Refused

log = structlog.get_logger(__name__)

OVERHEAD = 1.25
"""Weights and a quarter: the least free memory with which a start makes sense."""
CONFIRMED = (SwapState.APPROVED, SwapState.RUNNING, SwapState.RETURNING, SwapState.DONE)
IN_VAIN = (SwapState.CANCELLED, SwapState.FAILED, SwapState.ABORTED)
"""A plan that ended so can be made again from the result."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a result asks for. `code` says why it can't be ratified (now); empty: it can."""

    code: str
    candidate: Candidate | None = None
    model: CatalogModel | None = None
    draft: dict[str, Any] = field(default_factory=dict)
    """For a form of the catalogue, where `model` is None; flags and names are the admin's work."""


def choice(vote: Vote) -> Choice:
    """Codes beside those of refusals: `tie` and `model_missing` can be dealt with by an admin."""
    code = _closed_code(vote)
    if code:
        return Choice(code=code)
    result = results.result(vote)
    candidate = vote.candidates.select_related("model", "proposal").get(code=result.winner)
    model = candidate.model or catalogued(candidate.repo)
    return Choice(
        code="model_missing" if model is None else "tie" if result.tied else "",
        candidate=candidate,
        model=model,
        draft={} if model else draft(candidate, vote.slot),
    )


def _closed_code(vote: Vote) -> str:
    if not vote.is_over:
        return "not_closed"
    if vote.swap and (vote.swap.state not in IN_VAIN or vote.swap.to_model == vote.slot.model):
        return "done"
    found = results.result(vote)
    if not found.quorum_met:
        return "quorum"
    return "kept" if found.keeps else "outdated" if _overtaken(vote) else ""


def _overtaken(vote: Vote) -> bool:
    """Members have voted again, or are voting: that counts, unless its plan came to nothing."""
    later = Vote.objects.filter(slot=vote.slot_id, closes_at__gt=vote.closes_at)
    return (later.over() | later.open()).exclude(swap__state__in=IN_VAIN).exists()


def draft(candidate: Candidate, slot: Slot) -> dict[str, Any]:
    """What we know of it, as fields of the catalogue. What is not known stays empty."""
    facts = candidate.facts or known.of_candidate(candidate).facts
    weights = -(-int(facts.get("weights_bytes", 0)) // known.MIB)
    replica = slot.replicas.filter(goal=Goal.SERVE).order_by("pk").first()
    gpus = len(replica.gpus) if replica else 1
    name = re.sub(r"[^a-z0-9.-]+", "-", candidate.title.lower()).strip("-.")[:40]
    found = {
        "name": name,
        "title": candidate.title[:80],
        "kind": slot.kind,
        "repo": candidate.repo,
        "revision": facts.get("revision", ""),
        "licence": facts.get("licence", ""),
        "config": facts.get("config", {}),
        "weights_mib": weights or None,
        "context_length": facts.get("context"),
        "capabilities": facts.get("capabilities", []),
        "gpus_needed": gpus,
        "memory_mib": int(weights * OVERHEAD / gpus) if gpus and weights else 0,
    }
    return {key: value for key, value in found.items() if value not in (None, "", {})}


@transaction.atomic
def ratify(
    *,
    vote: Vote,
    actor: User | None,
    start_at: datetime,
    announcement_es: str,
    announcement_en: str,
    model: CatalogModel | None = None,
    despite_tie: bool = False,
) -> Vote:
    """Two admins at once, or a second click: one plan. `model`: another entry of the same
    repository than the one that `choice` names.

    The plan is not joined to the locked row: who has waited for the lock would read it as it was
    before.
    """
    row = Vote.objects.select_for_update(of=("self",)).select_related("slot__model").get(pk=vote.pk)
    found = choice(row)
    chosen = _chosen(found, model or found.model, despite_tie)
    if not (announcement_es.strip() and announcement_en.strip()):
        raise Refused("no_announcement")
    if start_at > timezone.now() + plan.FARTHEST:
        raise Refused("starts_too_late")
    try:
        swap = plan.plan(
            slot=row.slot, model=chosen, actor=actor, reason=row.slug, start_at=start_at
        )
    except plan.SwapRefused as refusal:
        ours = refusal.code in WORDS
        raise Refused(refusal.code, "" if ours else fleet_words(refusal.code)) from None
    row.swap, row.state = swap, Vote.State.RATIFIED
    row.ratified_by, row.ratified_at, row.announced_at = actor, timezone.now(), None
    row.announcement_es = announcement_es.strip()[:2000]
    row.announcement_en = announcement_en.strip()[:2000]
    row.save()
    log.info("vote_ratified", vote=row.slug, swap=swap.pk)
    return row


def _chosen(found: Choice, model: CatalogModel | None, despite_tie: bool) -> CatalogModel:
    """What the swap is to put in, or Refused."""
    if found.candidate is None:
        raise Refused(found.code)
    if model is None:
        raise Refused("model_missing")
    if model.repo.lower() != found.candidate.repo.lower():
        raise Refused("other_model")
    if found.code == "tie" and not despite_tie:
        raise Refused("tie")
    return model


# -- Telling members ----------------------------------------------------------------------------
def announcement(vote: Vote, language: str | None = None) -> str:
    language = language or translation.get_language() or "es"
    return vote.announcement_en if language.startswith("en") else vote.announcement_es


def announce_due() -> int:
    """One mail to each member when the plan has its second admin."""
    waiting = Vote.objects.filter(state=Vote.State.RATIFIED, announced_at=None)
    return sum(_announce(vote.pk) for vote in waiting.filter(swap__state__in=CONFIRMED))


@transaction.atomic
def _announce(pk: int) -> bool:
    rows = Vote.objects.filter(pk=pk, announced_at=None).select_for_update(of=("self",))
    vote = rows.select_related("swap").first()
    if vote is None:
        return False
    vote.announced_at = timezone.now()
    vote.save(update_fields=["announced_at"])
    mails.vote_planned(vote)
    return True


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A rotation that is planned or under way."""

    swap: Swap
    vote: Vote | None
    starts: datetime | None
    confirmed: bool
    """It has its second admin."""
    changes: Changes
    announcement: str


def calendar() -> list[Entry]:
    """Next ones first; those without a date, which start once confirmed, last."""
    rows = Swap.objects.filter(state__in=OPEN)
    rows = rows.select_related("slot", "from_model", "to_model", "ratified_vote")
    return sorted(_entries(rows), key=lambda entry: (entry.starts is None, entry.starts))


def _entries(swaps: Iterable[Swap]) -> list[Entry]:
    return [
        Entry(
            swap=swap,
            vote=(vote := getattr(swap, "ratified_vote", None)),
            starts=swap.start_at,
            confirmed=swap.state in CONFIRMED,
            changes=changes(swap.from_model, swap.to_model),
            announcement=announcement(vote) if vote else "",
        )
        for swap in swaps
    ]
