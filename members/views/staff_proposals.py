"""Proposals as admins vet them: the facts, on a ballot, or declined with a reason."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from members.fact_forms import FactsForm
from members.models import Proposal, Vote
from members.views.asking import attempt, person
from members.views.community import proposal_of, round_of
from members.views.staff_votes import put_on, status_of
from members.vote_forms import DeclineForm
from members.voting import compare, facts, known, shortlist
from members.voting.refusals import Refused
from nan import stale
from nan.access import staff_required


@require_safe
@never_cache
@staff_required
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    return _page(request, proposal_of(pk))


def _page(request: HttpRequest, proposal: Proposal, **forms: Any) -> HttpResponse:
    context = {
        "proposal": proposal,
        "card": compare.of_proposal(proposal),
        "current": compare.beside(proposal),
        "problem": facts.words(proposal.facts_error) if proposal.facts_error else "",
        "seconds": proposal.seconds.count(),
        "seen": facts.mark(proposal),
        "facts_form": FactsForm.of(proposal.facts, **_around(proposal)),
        "decline_form": DeclineForm(auto_id="decline_%s"),
        "rounds": Vote.objects.filter(
            slot=proposal.slot_id, state=Vote.State.PREPARING, kind=Vote.Kind.REGULAR
        ),
        **forms,
    }
    status = status_of(*forms.values())
    return render(request, "staff/votes/proposal.html", context, status=status)


def _around(proposal: Proposal) -> dict[str, Any]:
    return {"looked_up": proposal.looked_up, "settled": known.settled(proposal)}


@require_POST
@never_cache
@staff_required
def type_facts(request: HttpRequest, pk: int) -> HttpResponse:
    proposal = proposal_of(pk)
    form = FactsForm(request.POST, **_around(proposal))
    if not form.is_valid():
        return _page(request, proposal, facts_form=form)
    actor, seen = person(request), request.POST.get(stale.FIELD)
    try:
        facts.type_in(proposal=proposal, actor=actor, seen=seen, **form.changed())
    except Refused as refusal:
        if refusal.code == "facts_changed":
            form.add_error(None, str(refusal))
            return _page(request, proposal_of(pk), facts_form=form)
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("Saved. What you typed stands over what was looked up."))
    return redirect("staff_proposal", pk)


@require_POST
@never_cache
@staff_required
def ask_again(request: HttpRequest, pk: int) -> HttpResponse:
    facts.ask_again(proposal=proposal_of(pk), actor=person(request))
    messages.success(request, _("The hub is asked again within a minute."))
    return redirect("staff_proposal", pk)


@require_POST
@never_cache
@staff_required
def accept(request: HttpRequest, pk: int) -> HttpResponse:
    vote = round_of(request.POST.get("vote", ""))
    put_on(request, proposal_of(pk), vote)
    return redirect("staff_vote", vote.slug)


@require_POST
@never_cache
@staff_required
def decline(request: HttpRequest, pk: int) -> HttpResponse:
    proposal, form = proposal_of(pk), DeclineForm(request.POST, auto_id="decline_%s")
    if not form.is_valid():
        return _page(request, proposal, decline_form=form)
    reason = form.cleaned_data["reason"]
    actor = person(request)
    if proposal.state == Proposal.State.DECLINED and proposal.decided_by_id == actor.pk:
        return redirect("staff_votes")  # her own second click
    attempt(
        request,
        lambda: shortlist.decline(proposal=proposal, actor=actor, reason=reason),
        _("Declined. The member who proposed it gets your reason."),
    )
    return redirect("staff_votes")
