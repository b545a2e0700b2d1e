"""What members see between the ballots: what is open and planned, proposals, history, recall."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from inference.models import Replica, Slot, Swap
from members.models import Proposal, User, Vote
from members.views.asking import attempt, person
from members.views.community import community, proposal_of
from members.vote_forms import ProposeForm
from members.voting import compare, known, proposals, ratify, recall, results
from members.voting.refusals import Refused

PAST = 40
DECIDED_DAYS = 90
OF_REPO = ("bad_repo", "not_a_model", "runs_now")


@dataclass(frozen=True, kw_only=True)
class Board:
    """One slot: what runs there, what members want instead, and whether to vote again."""

    slot: Slot
    cards: list[compare.Card]
    """Of the proposals."""
    petition: recall.Petition | None


# -- Overview -----------------------------------------------------------------------------------
@require_safe
@community
def index(request: HttpRequest) -> HttpResponse:
    user = person(request)
    since = timezone.now() - timedelta(days=DECIDED_DAYS)
    context = {
        "rounds": Vote.objects.ahead().select_related("slot"),
        "calendar": ratify.calendar(),
        "boards": [_board(slot, user) for slot in slots()],
        "declined": user.proposals.filter(
            state=Proposal.State.DECLINED, decided_at__gt=since
        ).order_by("-pk"),
        "history": _history(),
    }
    return render(request, "vote/index.html", context)


def slots() -> list[Slot]:
    """Those that serve something, with their replicas: what fits is computed from these."""
    servers = Prefetch("replicas", Replica.objects.select_related("server"))
    found = Slot.objects.exclude(model=None).select_related("model").order_by("number")
    return list(found.prefetch_related(servers))


def _board(slot: Slot, user: User) -> Board:
    cards, before = [], known.of_current(slot)
    rows = list(proposals.listing(slot=slot, viewer=user))
    entries = known.entries_of(row.repo for row in rows)
    for proposal in rows:
        proposal.slot = slot  # which has its replicas with it
        cards.append(compare.of_proposal(proposal, before, entries))
    return Board(slot=slot, cards=cards, petition=recall.petition(slot, user))


def _history() -> list[dict[str, object]]:
    rows = Vote.objects.history().select_related("slot", "swap").prefetch_related("candidates")
    return [
        {"vote": vote, "verdict": results.verdict(vote), "result": results.result(vote)}
        for vote in rows[:PAST]
    ]


# -- Proposals ----------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@community
def propose(request: HttpRequest) -> HttpResponse:
    form = ProposeForm(request.POST or None, initial={"slot": request.GET.get("slot", "")})
    if request.method != "POST":
        return render(request, "vote/propose.html", {"form": form})
    if not form.is_valid():
        return _propose_page(request, form)
    try:
        repo = proposals.parse_repo(form.cleaned_data["repo"])
        alike = _alike(form.chosen, repo)
        if alike and request.POST.get("anyway") != "yes":
            return _propose_page(request, form, **alike, status=200)
        proposal = proposals.propose(
            user=person(request), slot=form.chosen, repo=repo, reason=form.cleaned_data["reason"]
        )
    except proposals.Duplicate as duplicate:
        if duplicate.proposal.proposer_id == person(request).pk:
            return _to(duplicate.proposal)  # her own second click
        return _propose_page(request, form, same=duplicate.proposal, status=409)
    except Refused as refusal:
        form.add_error("repo" if refusal.code in OF_REPO else None, str(refusal))
        return _propose_page(request, form)
    messages.success(request, _("Proposed. Its facts are being looked up; others can second it."))
    return _to(proposal)


def _alike(slot: Slot, repo: str) -> dict[str, object]:
    """What there is already that is nearly the same. The very same one is no question: proposing
    it is refused."""
    found = proposals.alike(slot=slot, repo=repo)
    if proposals.runs(slot, repo) or any(one.repo.lower() == repo.lower() for one in found):
        return {}
    current = slot.model if proposals.resembles_current(slot, repo) else None
    return {"alike": found, "alike_runs": current} if found or current else {}


def _propose_page(
    request: HttpRequest, form: ProposeForm, *, status: int = 422, **more: object
) -> HttpResponse:
    return render(request, "vote/propose.html", {"form": form, **more}, status=status)


def _to(proposal: Proposal) -> HttpResponse:
    return redirect("vote_proposal", proposal.pk)


@require_safe
@community
def proposal(request: HttpRequest, pk: int) -> HttpResponse:
    user = person(request)
    found = proposal_of(pk)
    settled = found.is_open or found.state == Proposal.State.VOTED
    if not (settled or found.proposer_id == user.pk):
        raise Http404
    context = {
        "proposal": found,
        "card": compare.of_proposal(found),
        "current": compare.beside(found),
        "seconds": found.seconds.count(),
        "seconded": found.seconds.filter(user=user).exists(),
    }
    return render(request, "vote/proposal.html", context)


@require_POST
@community
def second(request: HttpRequest, pk: int) -> HttpResponse:
    """`want`: yes or no. Repeating it changes nothing."""
    found, user = get_object_or_404(Proposal, pk=pk), person(request)
    if request.POST.get("want") == "no":
        done = _("You second it no longer.")
        attempt(request, lambda: proposals.unsecond(proposal=found, user=user), done)
    else:
        attempt(request, lambda: proposals.second(proposal=found, user=user), _("Seconded."))
    return redirect(f"{reverse('vote_index')}#proposal-{found.pk}")


@require_POST
@community
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Of somebody else's she learns only that it is not hers."""
    found = get_object_or_404(Proposal, pk=pk, proposer=person(request))
    if found.state != Proposal.State.WITHDRAWN:
        done = _("Withdrawn. You can propose another.")
        attempt(request, lambda: proposals.withdraw(proposal=found, user=person(request)), done)
    return redirect("vote_index")


# -- Recall -------------------------------------------------------------------------------------
@require_POST
@community
def sign_recall(request: HttpRequest, pk: int) -> HttpResponse:
    swap, user = get_object_or_404(Swap, pk=pk), person(request)
    if request.POST.get("want") == "no":
        recall.unsign(swap=swap, user=user)
        messages.success(request, _("Your signature is taken back."))
    else:
        attempt(
            request,
            lambda: recall.sign(swap=swap, user=user),
            _("Signed. A fifth of the members are needed for another vote."),
        )
    return redirect(f"{reverse('vote_index')}#recall")
