"""Rounds as admins run them: prepare, set, open, extend. The clock closes; nobody else does."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from members.models import Proposal, Vote
from members.views.asking import attempt, person
from members.views.community import round_of
from members.vote_forms import ExtendForm, OpenForm, PrepareForm, RulesForm, ScheduleForm
from members.voting import ratify, results, rounds, seen, shortlist
from members.voting.refusals import Refused
from nan import stale
from nan.access import staff_required
from nan.unreadable import number

PAST = 40
DECIDED = 20
FIELD_OF = {
    **dict.fromkeys(rounds.BOUNDS, "closes_at"),
    "opens_too_late": "opens_at",
    "changed_meanwhile": None,
}
"""Where in its form a refusal is said that leaves something to do there; None: above it."""


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    """All rounds and open proposals; POST prepares a round."""
    form = PrepareForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            vote = rounds.prepare(actor=person(request), **form.cleaned_data)
        except Refused as refusal:
            mine = Vote.objects.filter(
                slug=form.cleaned_data["slug"], created_by=person(request), state="preparing"
            ).first()
            if mine:  # her own second click
                return redirect("staff_vote", mine.slug)
            form.add_error("slug" if refusal.code == "slug_taken" else None, str(refusal))
        except ValidationError as problem:
            form.add_error(None, problem.messages)
        else:
            messages.success(request, _("Prepared. Nobody can vote before it is opened."))
            return redirect("staff_vote", vote.slug)
    return render(request, "staff/votes/index.html", _index(form), status=status_of(form))


def _index(form: PrepareForm) -> dict[str, Any]:
    proposals = Proposal.objects.select_related("slot", "proposer")
    return {
        "form": form,
        "rounds": Vote.objects.select_related("slot")[:PAST],
        "open": _with_seconds(proposals),
        "decided": proposals.exclude(state__in=Proposal.OPEN).order_by("-decided_at", "-pk")[
            :DECIDED
        ],
    }


def status_of(*forms: Form) -> int:
    return 422 if any(form.errors for form in forms) else 200


# -- One round ----------------------------------------------------------------------------------
@require_safe
@never_cache
@staff_required
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    return page(request, round_of(slug))


def _with_seconds(proposals: "QuerySet[Proposal]") -> "QuerySet[Proposal]":
    """With how many second each."""
    open_now = proposals.filter(state=Proposal.State.OPEN)
    return open_now.annotate(second_count=Count("seconds")).order_by("pk")


def page(request: HttpRequest, vote: Vote, **forms: Any) -> HttpResponse:
    """`forms`: those that were refused, as they were typed."""
    over = vote.is_over
    set_now = {"quorum_percent": vote.quorum_percent, "public_result": vote.public_result}
    dates = {"opens_at": vote.opens_at, "closes_at": vote.closes_at}
    preparing = vote.state == Vote.State.PREPARING and not vote.waits
    context = {
        "vote": vote,
        "preparing": preparing,
        "seen": seen.mark(vote) if preparing else "",
        "candidates": vote.candidates.order_by("position"),
        "missing": _missing(vote),
        "proposals": _with_seconds(vote.slot.proposals.all()) if preparing else [],
        "rules_form": RulesForm(initial=set_now),
        "schedule_form": ScheduleForm(initial=dates),
        "open_form": OpenForm(initial=dates, auto_id="open_%s"),
        "extend_form": ExtendForm(),
        "extensions": vote.extensions.select_related("asked_by", "confirmed_by"),
        "taking": rounds.taking_ballots(vote),
        "verdict": results.verdict(vote) if over else "",
        "result": results.result(vote) if over else None,
        "choice": ratify.choice(vote) if over else None,
        **forms,
    }
    shown = [one for one in forms.values() if isinstance(one, Form)]
    return render(request, "staff/votes/vote.html", context, status=status_of(*shown))


def _missing(vote: Vote) -> list[str]:
    if vote.state != Vote.State.PREPARING:
        return []
    return [rounds.why(vote, code) for code in rounds.missing(vote)]


# -- What one can do with it ----------------------------------------------------------------------
@require_POST
@never_cache
@staff_required
def act(request: HttpRequest, slug: str, action: str) -> HttpResponse:
    if action not in ACTIONS:
        raise Http404
    vote = round_of(slug)
    return ACTIONS[action](request, vote) or redirect("staff_vote", slug)


def _rules(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    form = RulesForm(request.POST)
    if not form.is_valid():
        return page(request, vote, rules_form=form)
    actor, values = person(request), form.cleaned_data
    save = partial(rounds.set_rules, vote=vote, actor=actor, **values)
    if _done(request, form, _if_seen(request, vote, save, values), _("Saved.")):
        return None
    return page(request, vote, rules_form=form)


def _if_seen(
    request: HttpRequest,
    vote: Vote,
    action: Callable[[], object],
    wanted: dict[str, Any] | None = None,
) -> Callable[[], None]:
    """Nothing that another admin has just changed is set, or opened, over her head."""

    def run() -> None:
        with seen.as_seen(vote, request.POST.get(stale.FIELD), wanted):
            action()

    return run


def _schedule(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    form = ScheduleForm(request.POST)
    if not form.is_valid():
        return page(request, vote, schedule_form=form)
    actor, values = person(request), form.cleaned_data
    done = _("Scheduled. It opens by itself, if nothing stands in the way then.")
    save = partial(rounds.schedule, vote=vote, actor=actor, **values)
    if _done(request, form, _if_seen(request, vote, save, values), done):
        return None
    return page(request, vote, schedule_form=form)


def _done(request: HttpRequest, form: Form, action: Callable[[], object], done: str) -> bool:
    """What is wrong with a deadline is said beside it; False: show the form again."""
    try:
        action()
    except Refused as refusal:
        if refusal.code in FIELD_OF:
            form.add_error(FIELD_OF[refusal.code], str(refusal))
            return False
        messages.error(request, str(refusal))
    else:
        messages.success(request, done)
    return True


def _open(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    form = OpenForm(request.POST, auto_id="open_%s")
    if not form.is_valid():
        return page(request, vote, open_form=form)
    if vote.is_open and vote.opened_by_id == person(request).pk:
        return None  # her own second click
    closes_at = form.cleaned_data["closes_at"]
    start = partial(rounds.open_vote, vote=vote, actor=person(request), closes_at=closes_at)
    done = _("Open. The roll and the options are fixed, and members get their mail.")
    if _done(request, form, _if_seen(request, vote, start), done):
        return None
    return page(request, vote, open_form=form)


def _cancel(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    if vote.state != Vote.State.CANCELLED:
        done = _("Cancelled. Its proposals are open again.")
        attempt(request, lambda: rounds.cancel(vote=vote, actor=person(request)), done)
    return None


def _take_off(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    pk = number(request.POST.get("candidate", "")) or 0
    candidate = vote.candidates.filter(pk=pk).first()
    if candidate:
        attempt(
            request,
            lambda: shortlist.take_off(candidate=candidate, actor=person(request)),
            _("Taken off the ballot. Its proposal is open again."),
        )
    return None


def _add(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    pk = number(request.POST.get("proposal", "")) or 0
    proposal = get_object_or_404(Proposal, pk=pk, slot=vote.slot_id)
    put_on(request, proposal, vote)
    return None


def put_on(request: HttpRequest, proposal: Proposal, vote: Vote) -> None:
    if vote.candidates.filter(proposal=proposal).exists():
        return  # a second click
    attempt(
        request,
        lambda: shortlist.accept(proposal=proposal, vote=vote, actor=person(request)),
        _("On the ballot."),
    )


def _extend(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    form = ExtendForm(request.POST)
    if not form.is_valid():
        return page(request, vote, extend_form=form)
    actor, values = person(request), form.cleaned_data
    if vote.extensions.filter(asked_by=actor, confirmed_at=None, **values).exists():
        return None  # her own second click
    done = _("Asked. Another admin must confirm it before the deadline that stands.")
    if _done(request, form, lambda: rounds.ask_extension(vote=vote, actor=actor, **values), done):
        return None
    return page(request, vote, extend_form=form)


def _confirm(request: HttpRequest, vote: Vote) -> HttpResponse | None:
    pk = number(request.POST.get("extension", "")) or 0
    extension = get_object_or_404(vote.extensions, pk=pk)
    actor = person(request)
    if extension.confirmed_by_id == actor.pk:
        return None  # her own second click
    done = _("Extended. Members see the new deadline and who decided it.")
    attempt(request, lambda: rounds.confirm_extension(extension=extension, actor=actor), done)
    return None


Handler = Callable[[HttpRequest, Vote], HttpResponse | None]
ACTIONS: dict[str, Handler] = {
    "rules": _rules,
    "schedule": _schedule,
    "open": _open,
    "cancel": _cancel,
    "take-off": _take_off,
    "add": _add,
    "extend": _extend,
    "confirm": _confirm,
}
