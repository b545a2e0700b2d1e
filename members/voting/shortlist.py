"""What admins decide about proposals: on the ballot, or declined with a reason."""

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from inference.models import CatalogModel
from members import mails
from members.models import Candidate, Proposal, User, Vote
from members.voting.proposals import catalogued
from members.voting.refusals import Refused


@transaction.atomic
def accept(*, proposal: Proposal, vote: Vote, actor: User | None) -> Candidate:
    """Puts it on the ballot of a vote that is being prepared."""
    vote = changeable(vote)
    if proposal.slot_id != vote.slot_id:
        raise Refused("other_slot")
    _decide(proposal, Proposal.State.OPEN, Proposal.State.SHORTLISTED, actor)
    model = catalogued(proposal.repo)
    last = vote.candidates.aggregate(last=Max("position"))["last"] or 0
    try:
        with transaction.atomic():
            return Candidate.objects.create(
                vote=vote,
                position=last + 1,
                code=proposal.repo,
                proposal=proposal,
                model=model,
                title=title_of(proposal.repo, model),
                repo=proposal.repo,
            )
    except IntegrityError:
        raise Refused("duplicate") from None


def title_of(repo: str, model: CatalogModel | None) -> str:
    """As the calendar and the mails call it, where the catalogue has it."""
    return str(model) if model else repo.rpartition("/")[2]


def preparing(vote: Vote) -> Vote:
    """The row, locked; raises Refused when it is open or over."""
    row = Vote.objects.select_for_update(of=("self",)).select_related("slot__model").get(pk=vote.pk)
    if row.state != Vote.State.PREPARING:
        raise Refused("fixed")
    return row


def changeable(vote: Vote) -> Vote:
    """As `preparing`, of a round that admins prepare: what a recall asks, the members have said."""
    row = preparing(vote)
    if row.kind == Vote.Kind.RECALL:
        raise Refused("recall_fixed")
    return row


@transaction.atomic
def decline(*, proposal: Proposal, actor: User | None, reason: str) -> Proposal:
    """The proposer gets the reason by mail."""
    if not reason.strip():
        raise Refused("no_reason")
    _decide(proposal, Proposal.State.OPEN, Proposal.State.DECLINED, actor, reason.strip()[:1000])
    mails.proposal_declined(proposal)
    return proposal


@transaction.atomic
def take_off(*, candidate: Candidate, actor: User | None) -> None:
    """Before the vote opens; its proposal is open again. The current model stays."""
    changeable(candidate.vote)
    if candidate.is_current:
        raise Refused("fixed")
    proposal = candidate.proposal
    if not Candidate.objects.filter(pk=candidate.pk).delete()[0]:
        return
    if proposal:
        _decide(proposal, Proposal.State.SHORTLISTED, Proposal.State.OPEN, actor)


def _decide(
    proposal: Proposal, origin: str, target: str, actor: User | None, reason: str = ""
) -> None:
    moved = Proposal.objects.filter(pk=proposal.pk, state=origin).update(
        state=target, decided_by=actor, decided_at=timezone.now(), decision_reason=reason
    )
    if not moved:
        raise Refused("decided")
    proposal.refresh_from_db()
