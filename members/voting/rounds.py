"""Rounds: prepared, opened with a frozen roll, and extended by two admins."""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from inference.models import CatalogModel, Slot, Swap
from members import mails
from members.models import Candidate, Extension, Membership, RollEntry, User, Vote
from members.models.votes import KEEP
from members.voting import compare, known
from members.voting.clock import Moment, moment
from members.voting.proposals import catalogued
from members.voting.refusals import Refused, words
from members.voting.shortlist import changeable, preparing, take_off, title_of

log = structlog.get_logger(__name__)

QUORUM_PERCENT = 30
RECALL_LASTS = timedelta(days=7)
LONGEST = timedelta(days=60)
"""A vote that is open can't be cancelled, and no other can open for its slot."""
SHORTEST = timedelta(hours=24)
BOUNDS = ("closes_too_late", "closes_too_soon")
FARTHEST = timedelta(days=366)
"""What opens later was meant for another year."""
SAID = timedelta(minutes=1)
"""So long the log repeats that a vote can't open; it is tried at every beat until it can."""
TAKEN = ("propose", "proposals", "recall", "add")
"""Words of addresses of the pages."""
RECALL = "recall-"
"""Names of recalls begin so; one that a regular round had taken could not be voted on."""


# -- Preparing ----------------------------------------------------------------------------------
@transaction.atomic
def prepare(
    *,
    slot: Slot,
    slug: str,
    actor: User | None,
    quorum_percent: int = QUORUM_PERCENT,
    public_result: bool = False,
    **more: Any,
) -> Vote:
    """A round with the current model on its ballot. Raises also django's ValidationError."""
    if slot.model is None:
        raise Refused("nothing_runs")
    regular = more.get("kind", Vote.Kind.REGULAR) == Vote.Kind.REGULAR
    taken = (regular and reserved(slug)) or Vote.objects.filter(slug__iexact=slug).exists()
    if taken:
        raise Refused("slug_taken")
    vote = Vote(
        slot=slot,
        slug=slug,
        created_by=actor,
        quorum_percent=quorum_percent,
        public_result=public_result,
        **more,
    )
    _check(vote)
    try:
        with transaction.atomic():
            vote.save()
    except IntegrityError:
        raise Refused("slug_taken") from None
    Candidate.objects.create(vote=vote, position=0, code=KEEP, **_of_model(slot))
    return vote


def reserved(slug: str) -> bool:
    return slug.lower() in TAKEN or slug.lower().startswith(RECALL)


def _check(vote: Vote) -> None:
    """What people type. Raises ValidationError."""
    typed = ("slug", "quorum_percent", "public_result")
    vote.clean_fields(exclude={one.name for one in Vote._meta.fields if one.name not in typed})


def _of_model(slot: Slot) -> dict[str, Any]:
    model = slot.model
    if model is None:
        raise Refused("nothing_runs")
    return {"model": model, "title": str(model), "repo": model.repo}


@transaction.atomic
def set_rules(*, vote: Vote, actor: User | None, quorum_percent: int, public_result: bool) -> Vote:
    row = changeable(vote)
    row.quorum_percent, row.public_result = quorum_percent, public_result
    _check(row)
    row.save(update_fields=["quorum_percent", "public_result"])
    log.info("vote_rules", vote=row.slug, actor=actor and str(actor.public_id))
    return row


@transaction.atomic
def schedule(*, vote: Vote, actor: User | None, opens_at: datetime, closes_at: datetime) -> Vote:
    """The beat opens it then, in the name of this admin."""
    row = changeable(vote)
    if opens_at >= closes_at:
        raise Refused("opens_after_close")
    if closes_at <= moment():
        raise Refused("in_the_past")
    _bound(max(opens_at, moment()), closes_at)
    if opens_at > moment() + FARTHEST:
        raise Refused("opens_too_late")
    row.opens_at, row.closes_at, row.opened_by = opens_at, closes_at, actor
    row.save(update_fields=["opens_at", "closes_at", "opened_by"])
    return row


def _bound(opens: datetime, closes: datetime) -> None:
    """A local stack may close within minutes: people try it, and tests."""
    if closes - opens > LONGEST:
        raise Refused("closes_too_late")
    if closes - opens < SHORTEST and not settings.LOCAL_STACK:
        raise Refused("closes_too_soon")


@transaction.atomic
def cancel(*, vote: Vote, actor: User | None) -> Vote:
    """What was on the ballot is open for another round."""
    row = changeable(vote)
    for candidate in row.candidates.exclude(code=KEEP):
        take_off(candidate=candidate, actor=actor)
    row.state = Vote.State.CANCELLED
    row.save(update_fields=["state"])
    log.info("vote_cancelled", vote=row.slug, actor=actor and str(actor.public_id))
    return row


# -- Opening ------------------------------------------------------------------------------------
def missing(vote: Vote) -> list[str]:
    """What stands in the way of opening; each has its words in `refusals`."""
    found = []
    others = list(vote.candidates.exclude(code=KEEP))
    if vote.slot.model is None:
        found.append("nothing_runs")
    elif any(_is(other, vote.slot.model) for other in others):
        found.append("current_changed")
    if not others:
        found.append("no_candidate")
    if vote.closes_at is None:
        found.append("no_deadline")
    elif vote.closes_at <= moment() and not vote.waits:
        found.append("in_the_past")
    if Vote.objects.open().filter(slot=vote.slot_id).exists():
        found.append("other_open")
    if Swap.objects.open().filter(slot=vote.slot_id).exists():
        found.append("swap_ahead")
    if not Membership.objects.in_good_standing().exists():
        found.append("nobody")
    return found


def why(vote: Vote, code: str) -> str:
    """The sentence for one of `missing`; a swap that stands in the way is named."""
    swap = Swap.objects.open().filter(slot=vote.slot_id).select_related("to_model").first()
    if code != "swap_ahead" or swap is None:
        return words(code)
    day = swap.started_at or swap.start_at
    said = {
        "model": swap.to_model,
        "number": swap.pk,
        "state": swap.get_state_display(),
        "day": date_format(timezone.localtime(day), "DATETIME_FORMAT") if day else _("no date"),
    }
    return (
        _(
            "Swap %(number)s to %(model)s (%(state)s, %(day)s) is not over. Wait until it is done,"
            " or cancel it; then open the vote."
        )
        % said
    )


def _is(candidate: Candidate, model: CatalogModel) -> bool:
    if candidate.model_id:
        return candidate.model_id == model.pk
    return candidate.repo.lower() == model.repo.lower()


@transaction.atomic
def open_vote(*, vote: Vote, actor: User | None, closes_at: datetime | None = None) -> Vote:
    """From now on nothing about it changes: options with what is said of them, rules, roll.
    `actor` is None where the beat opens a recall, which no admin does."""
    row = changeable(vote) if actor else preparing(vote)
    if closes_at:
        row.closes_at = closes_at
    if problems := missing(row):
        raise Refused(problems[0], why(row, problems[0]))
    if closes_at:
        _bound(moment(), closes_at)
    _freeze_options(row)
    row.roll_size, row.roll_digest = _freeze_roll(row)
    row.state, row.opened_at, row.opened_by = Vote.State.OPEN, moment(), actor
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise Refused("other_open") from None
    mails.vote_opened(row)
    log.info("vote_opened", vote=row.slug, roll=row.roll_size)
    return row


def _freeze_options(vote: Vote) -> None:
    """The current model as it is now, and for each option what voters will be told."""
    vote.candidates.filter(code=KEEP).update(**_of_model(vote.slot))
    before = known.of_current(vote.slot)
    for candidate in vote.candidates.select_related("proposal", "model"):
        candidate.model = candidate.model or catalogued(candidate.repo)
        now = before if candidate.is_current else known.of_candidate(candidate)
        candidate.facts = now.facts
        candidate.outlook = compare.look(now, vote.slot, before).to_json()
        if not candidate.is_current:
            candidate.title = title_of(candidate.repo, candidate.model)
        candidate.save(update_fields=["model", "title", "facts", "outlook"])


def _freeze_roll(vote: Vote) -> tuple[int, str]:
    people = dict(Membership.objects.in_good_standing().values_list("user", "user__public_id"))
    RollEntry.objects.bulk_create(RollEntry(vote=vote, user_id=user) for user in sorted(people))
    return len(people), digest(map(str, people.values()))


def digest(public_ids: Iterable[str]) -> str:
    """SHA-256, in hex, of the opaque ids on the roll, sorted, each with a line feed at its end."""
    text = "".join(f"{public_id}\n" for public_id in sorted(public_ids))
    return hashlib.sha256(text.encode()).hexdigest()


def holds_swaps(slot: Slot) -> str:
    """Its ballots compare with the model that runs."""
    return "vote_open" if Vote.objects.open().filter(slot=slot).exists() else ""


def drop_moot_recalls() -> None:
    """Of a rotation that another one has followed: nobody could vote about it any more."""
    waiting = Vote.objects.filter(kind=Vote.Kind.RECALL, state=Vote.State.PREPARING)
    moot = waiting.exclude(recalls__to_model=F("slot__model"))
    for vote in moot:
        if waiting.filter(pk=vote.pk).update(state=Vote.State.CANCELLED):
            log.info("recall_moot", vote=vote.slug)


def open_due() -> int:
    """Those whose time has come; one that can't open is tried again at the next beat."""
    drop_moot_recalls()
    opened = 0
    due = Vote.objects.filter(state=Vote.State.PREPARING, opens_at__lte=Moment())
    for vote in due.select_related("opened_by"):
        try:
            open_vote(vote=vote, actor=vote.opened_by, closes_at=_full_length(vote))
            opened += 1
        except Refused as refusal:
            if vote.opens_at and moment() - vote.opens_at < SAID:
                log.warning("vote_not_opened", vote=vote.slug, code=refusal.code)
    return opened


def _full_length(vote: Vote) -> datetime | None:
    """A recall that had to wait for another round still lasts its days."""
    return moment() + RECALL_LASTS if vote.kind == Vote.Kind.RECALL else None


def current(slot: Slot) -> Vote | None:
    return Vote.objects.open().filter(slot=slot).first()


def taking_ballots(vote: Vote) -> bool:
    return taking(vote).exists()


def taking(vote: Vote) -> "QuerySet[Vote]":
    """Its row, by the database's clock: whether or not a task has closed it."""
    return Vote.objects.open().filter(pk=vote.pk, closes_at__gt=Moment())


# -- Extending ----------------------------------------------------------------------------------
@transaction.atomic
def ask_extension(*, vote: Vote, actor: User, closes_at: datetime, reason: str) -> Extension:
    if not reason.strip():
        raise Refused("no_reason")
    row = _extensible(vote, closes_at)
    return Extension.objects.create(
        vote=row,
        closes_at=closes_at,
        closed_before=row.closes_at,
        reason=reason.strip()[:300],
        asked_by=actor,
    )


@transaction.atomic
def confirm_extension(*, extension: Extension, actor: User) -> Vote:
    """By another admin, before the deadline that stands."""
    vote = _extensible(extension.vote, extension.closes_at)
    row = Extension.objects.select_for_update().get(pk=extension.pk)
    if row.confirmed_at:
        raise Refused("confirmed")
    if row.asked_by_id is None or row.asked_by_id == actor.pk:
        raise Refused("second_admin")
    if row.closed_before != vote.closes_at:
        raise Refused("superseded")
    row.confirmed_by, row.confirmed_at = actor, timezone.now()
    row.save(update_fields=["confirmed_by", "confirmed_at"])
    if not taking(vote).update(closes_at=row.closes_at):
        raise Refused("too_late")
    log.info("vote_extended", vote=vote.slug, until=row.closes_at.isoformat())
    vote.refresh_from_db()
    return vote


def _extensible(vote: Vote, closes_at: datetime) -> Vote:
    row = Vote.objects.select_for_update(of=("self",)).get(pk=vote.pk)
    if row.state == Vote.State.PREPARING:
        raise Refused("not_open")
    if not taking_ballots(row):
        raise Refused("too_late")
    if row.closes_at is None or closes_at <= row.closes_at:
        raise Refused("not_later")
    if row.opened_at:
        _bound(row.opened_at, closes_at)
    return row
