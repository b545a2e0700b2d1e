"""The waitlist as admins work through it: read, choose, decide, undo."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from allauth.account.models import EmailAddress
from django.contrib import messages
from django.core.cache import cache
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from members import seats, waitlist
from members.forms import RejectForm
from members.models import Application, Decision, User
from members.views.asking import person
from nan.access import staff_required
from nan.unreadable import number

PAGE = 50
COUNTS_SECONDS = 60
FILTERS = ("waiting", *Application.State.values)


@staff_required
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    return render(request, "staff/waitlist.html", _list(request))


def _list(request: HttpRequest) -> dict[str, Any]:
    state = request.GET.get("state", "waiting")
    state = state if state in FILTERS else "waiting"
    search = request.GET.get("q", "").strip()
    rows, previous, following = _page(_found(state, search), request)
    counts = _counts()
    return {
        "rows": rows,
        "state": state,
        "search": search,
        "filters": [(name, _label(name), counts.get(name, 0)) for name in FILTERS],
        "previous": previous,
        "following": following,
        "seats": seats.shown(),
        "reject_form": RejectForm(),
        "undoable": _undoable(),
    }


def _found(state: str, search: str) -> QuerySet[Application]:
    found = Application.objects.all()
    found = found.waiting() if state == "waiting" else found.filter(state=state)
    if search:
        found = found.filter(user__in=User.objects.beginning(search))
    return found.select_related("user")


def _page(
    found: QuerySet[Application], request: HttpRequest
) -> tuple[list[Application], int | None, int | None]:
    """Fifty rows after or before a key, and the keys of the pages around; no counting."""
    after, before = _number(request, "after"), _number(request, "before")
    if before is not None:
        rows = list(found.filter(pk__lt=before).order_by("-pk")[: PAGE + 1])
        more_before, more_after = len(rows) > PAGE, True
        rows = rows[:PAGE][::-1]
    else:
        rows = list(found.filter(pk__gt=after or 0).order_by("pk")[: PAGE + 1])
        more_before, more_after = after is not None, len(rows) > PAGE
        rows = rows[:PAGE]
    _add_history(rows)
    previous = rows[0].pk if rows and more_before else None
    following = rows[-1].pk if rows and more_after else None
    return rows, previous, following


def _number(request: HttpRequest, name: str) -> int | None:
    return number(request.GET.get(name, ""))


def _add_history(rows: Sequence[Application]) -> None:
    """What to know before deciding: earlier decisions about the same people, and who confirmed.

    Two queries for the page. (As a subquery of the list, Postgres hashes all addresses there are.)
    """
    users = [row.user_id for row in rows]
    addresses = EmailAddress.objects.filter(user__in=users, verified=True)
    confirmed = set(addresses.values_list("user_id", flat=True))
    decisions = (
        Decision.objects.filter(application__user__in=users)
        .select_related("actor", "undone_by", "application")
        .order_by("pk")
    )
    by_user: dict[int, list[Decision]] = {}
    for decision in decisions:
        by_user.setdefault(decision.application.user_id, []).append(decision)
    for row in rows:
        row.history = by_user.get(row.user_id, [])  # type: ignore[attr-defined]
        row.confirmed = row.user_id in confirmed  # type: ignore[attr-defined]


def _label(name: str) -> str:
    return _("waiting, with questions") if name == "waiting" else str(Application.State(name).label)


def _counts() -> dict[str, int]:
    """How many in each state, at most a minute old."""
    counts: dict[str, int] | None = cache.get("members:states")
    if counts is None:
        rows = Application.objects.values_list("state").annotate(Count("pk")).order_by()
        counts = dict(rows)
        counts["waiting"] = sum(counts.get(state, 0) for state in Application.OPEN)
        cache.set("members:states", counts, COUNTS_SECONDS)
    return counts


def _undoable() -> list[dict[str, Any]]:
    """The latest batches that can still be undone, newest first."""
    decisions = (
        Decision.objects.undoable().select_related("actor", "application__user").order_by("-pk")
    )[: waitlist.BATCH_LIMIT * 2]
    batches: dict[UUID, dict[str, Any]] = {}
    for decision in decisions:
        batch = batches.setdefault(decision.batch, {"first": decision, "people": []})
        batch["people"].append(decision.application.user)
    return list(batches.values())[:10]


@staff_required
@never_cache
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    application = get_object_or_404(Application.objects.select_related("user"), pk=pk)
    _add_history([application])
    earlier = application.user.applications.exclude(pk=pk).order_by("-pk")[:20]
    context = {
        "application": application,
        "history": application.history,  # type: ignore[attr-defined]
        "confirmed": application.confirmed,  # type: ignore[attr-defined]
        "earlier": earlier,
        "reject_form": RejectForm(),
        "following": Application.objects.waiting().filter(pk__gt=pk).order_by("pk").first(),
    }
    return render(request, "staff/application.html", context)


# -- Deciding ---------------------------------------------------------------------------------
@staff_required
@require_POST
def decide(request: HttpRequest) -> HttpResponse:
    """Approve, reject or ask, for one or for all that are ticked."""
    ticked = request.POST.getlist("application")
    chosen = [pk for text in ticked if (pk := number(text)) is not None]
    action = request.POST.get("action", "")
    if not chosen:
        messages.error(request, _("Nobody is ticked. Choose at least one person."))
        return _back(request)
    try:
        outcome = _decide(request, action, chosen)
    except waitlist.Refused as refusal:
        messages.error(request, str(refusal))
    except waitlist.NoSeats as full:
        context = {"full": full, "chosen": chosen, "next": _next(request)}
        return render(request, "staff/no_seats.html", context, status=409)
    else:
        _report(request, action, outcome)
    return _back(request)


def _decide(request: HttpRequest, action: str, chosen: list[int]) -> waitlist.Outcome:
    actor = person(request)
    if action == "approve":
        beyond = request.POST.get("beyond_capacity") == "yes"
        return waitlist.approve(applications=chosen, actor=actor, beyond_capacity=beyond)
    if action == "reject":
        form = RejectForm(request.POST)
        if not form.is_valid():
            raise waitlist.Refused(_("Choose a reason: she will read it."))
        return waitlist.reject(applications=chosen, actor=actor, **form.cleaned_data)
    if action == "ask" and len(chosen) == 1:
        question = request.POST.get("question", "")[:1000]
        return waitlist.ask(application=chosen[0], actor=actor, question=question)
    raise waitlist.Refused(_("Choose what to do with the people who are ticked."))


def _report(request: HttpRequest, action: str, outcome: waitlist.Outcome) -> None:
    count = len(outcome.decisions)
    texts = {
        "approve": ngettext("%(count)d person approved.", "%(count)d people approved.", count),
        "reject": ngettext("%(count)d person rejected.", "%(count)d people rejected.", count),
        "ask": _("Asked. The mail is on its way."),
    }
    if count:
        messages.success(request, texts[action] % {"count": count})
    standing = waitlist.who_decided(outcome.already)
    for application in outcome.already[:10]:
        messages.warning(request, _already(application, standing.get(application.pk)))


def _already(application: Application, decision: Decision | None) -> str:
    who = application.user.call_name
    if decision is None or decision.actor is None:
        return _("%(who)s is not waiting any more: %(state)s.") % {
            "who": who,
            "state": application.get_state_display(),
        }
    return _("%(who)s: %(admin)s was first (%(action)s).") % {
        "who": who,
        "admin": decision.actor.call_name,
        "action": decision.get_action_display(),
    }


@staff_required
@require_POST
def undo(request: HttpRequest) -> HttpResponse:
    actor = person(request)
    try:
        batch = UUID(request.POST.get("batch", ""))
    except ValueError:
        return _back(request)
    decisions = Decision.objects.filter(batch=batch).values_list("pk", flat=True)
    try:
        undone = waitlist.undo(decisions=decisions, actor=actor)
    except waitlist.Refused as refusal:
        messages.error(request, str(refusal))
        return _back(request)
    if undone:
        text = ngettext("%(count)d decision undone.", "%(count)d decisions undone.", len(undone))
        messages.success(request, text % {"count": len(undone)})
    else:
        messages.error(request, _("Too late: the decision is final and the mail is on its way."))
    return _back(request)


def _next(request: HttpRequest) -> str:
    """Where she was, if it is a page of the waitlist."""
    asked = request.POST.get("next", "")
    return asked if asked.startswith("/staff/waitlist/") and "\\" not in asked else ""


def _back(request: HttpRequest) -> HttpResponse:
    return redirect(_next(request) or "staff_waitlist")
