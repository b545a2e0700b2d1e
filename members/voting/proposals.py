"""Proposing a model, and seconding what others proposed."""

import re

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, Prefetch, QuerySet
from django.utils import timezone

from inference.models import CatalogModel, Slot
from inference.models.catalog import REPOSITORY
from members.models import Candidate, Membership, Proposal, Second, User
from members.voting.refusals import Refused
from nan.celery import enqueue

AT_MOST = 3
ADDRESS = re.compile(r"^(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/", re.I)
TABS = ("tree", "blob", "resolve", "raw", "blame", "commit", "commits", "discussions")
"""What follows a repository in addresses of its own pages."""
OTHERS = ("datasets", "spaces", "collections", "papers", "docs", "blog", "organizations")
"""No owners: what the hub has besides models."""
VARIANT = re.compile(
    r"[-_.](fp8|fp4|nvfp4|mxfp4|awq|gptq|gguf|int4|int8|w4a16|w8a8|bf16|4bit|8bit|mlx|unsloth"
    r"|dynamic|instruct|chat|it|base|hf|bnb|quantized|\d{4})(?=[-_.]|$)",
    re.I,
)


class Duplicate(Refused):
    """Somebody has proposed it already."""

    def __init__(self, proposal: Proposal) -> None:
        super().__init__("duplicate")
        self.proposal = proposal


def parse_repo(text: str) -> str:
    """`owner/name` from that or from an address on the hub."""
    path = ADDRESS.sub("", text.strip()).split("?")[0].split("#")[0].strip("/")
    owner, *rest = path.split("/")
    if owner.lower() in OTHERS:
        raise Refused("not_a_model")
    repo = "/".join([owner, *rest[:1]])
    if not re.match(REPOSITORY.regex, repo) or (rest[1:] and rest[1] not in TABS):
        raise Refused("bad_repo")
    return repo


def propose(*, user: User, slot: Slot, repo: str, reason: str) -> Proposal:
    """One member has at most three open proposals, also when she sends ten at once."""
    repo = parse_repo(repo)
    if not reason.strip():
        raise Refused("no_reason")
    if runs(slot, repo):
        raise Refused("runs_now")
    try:
        with transaction.atomic():
            _one_at_a_time(user)
            if Proposal.objects.open().filter(proposer=user).count() >= AT_MOST:
                raise Refused("too_many")
            proposal = Proposal.objects.create(
                slot=slot, repo=repo, reason=reason.strip()[:1000], proposer=user
            )
            enqueue("members.tasks.look_up_facts")
    except IntegrityError:
        raise Duplicate(_same(slot, repo).get()) from None
    return proposal


def _one_at_a_time(user: User) -> None:
    """Locks her membership until the transaction ends. Raises Refused for anybody else."""
    if not user.is_active or not (
        Membership.objects.active().filter(user=user).select_for_update().first()
    ):
        raise Refused("not_member")


def runs(slot: Slot, repo: str) -> bool:
    return slot.model is not None and slot.model.repo.lower() == repo.lower()


def resembles_current(slot: Slot, repo: str) -> bool:
    """Another owner's copy or another quantisation of what runs now."""
    return slot.model is not None and _stem(slot.model.repo) == _stem(repo)


def _same(slot: Slot, repo: str) -> "QuerySet[Proposal]":
    return Proposal.objects.open().filter(slot=slot, repo__iexact=repo)


def alike(*, slot: Slot, repo: str) -> list[Proposal]:
    """Open proposals of what is nearly the same: another owner's copy, another quantisation."""
    wanted = _stem(repo)
    rows = Proposal.objects.open().filter(slot=slot).order_by("pk")
    return [row for row in rows if _stem(row.repo) == wanted]


def catalogued(repo: str) -> CatalogModel | None:
    """The newest entry of the catalogue that is this repository."""
    return CatalogModel.objects.filter(repo__iexact=repo).order_by("-offered", "-pk").first()


def _stem(repo: str) -> str:
    name = repo.lower().rpartition("/")[2]
    while (shorter := VARIANT.sub("", name)) != name:
        name = shorter
    return re.sub(r"[-_.]+", "-", name).strip("-")


@transaction.atomic
def second(*, proposal: Proposal, user: User) -> None:
    """Repeating it changes nothing."""
    if not user.is_member:
        raise Refused("not_member")
    if proposal.proposer_id == user.pk:
        raise Refused("own_proposal")
    row = _undecided(proposal)
    if runs(row.slot, row.repo):
        raise Refused("runs_now")
    Second.objects.get_or_create(proposal=row, user=user)


@transaction.atomic
def unsecond(*, proposal: Proposal, user: User) -> None:
    """On a ballot the seconds stand as they brought it there."""
    Second.objects.filter(proposal=_undecided(proposal), user=user).delete()


def _undecided(proposal: Proposal) -> Proposal:
    """The row, locked; raises Refused when an admin has decided."""
    rows = Proposal.objects.select_for_update(of=("self",)).select_related("slot__model")
    row = rows.get(pk=proposal.pk)
    if row.state == Proposal.State.SHORTLISTED:
        raise Refused("on_ballot")
    if not row.is_open:
        raise Refused("decided")
    return row


def withdraw(*, proposal: Proposal, user: User) -> Proposal:
    """Before an admin has decided."""
    if proposal.proposer_id != user.pk:
        raise Refused("not_yours")
    mine = Proposal.objects.filter(pk=proposal.pk, state=Proposal.State.OPEN)
    if not mine.update(state=Proposal.State.WITHDRAWN, decided_at=timezone.now()):
        raise Refused("decided")
    proposal.refresh_from_db()
    return proposal


def listing(*, slot: Slot, viewer: User) -> "QuerySet[Proposal]":
    """Open ones, most seconded first; each with `seconds_count` and `seconded`, hers or not."""
    hers = Second.objects.filter(proposal=OuterRef("pk"), user=viewer)
    rows = Proposal.objects.open().filter(slot=slot).select_related("proposer", "slot__model")
    placed = Candidate.objects.select_related("vote__slot", "model")
    rows = rows.prefetch_related(Prefetch("candidates", placed))
    return rows.annotate(seconds_count=Count("seconds"), seconded=Exists(hers)).order_by(
        "-seconds_count", "pk"
    )
