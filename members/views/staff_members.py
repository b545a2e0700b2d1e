"""Members, mails and figures as admins see them."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from inference import keys
from inference.models import Swap
from inference.staff.server_page import open_alerts
from members import membership, outbox, seats
from members.forms import LimitsForm, ReasonForm
from members.models import Mail, Membership, User
from members.views.asking import attempt, person
from nan.access import staff_required
from nan.unreadable import number

PAGE = 50


@staff_required
@never_cache
def home(request: HttpRequest) -> HttpResponse:
    context = {
        "seats": seats.shown(),
        "mails": _mails(),
        "late": _late(),
        "alerts": open_alerts(),
        "swaps": Swap.objects.open().select_related("slot", "from_model", "to_model"),
    }
    return render(request, "staff/home.html", context)


def _mails() -> dict[str, int]:
    """Mails that are not done; sent ones are not counted, so this stays small."""
    unfinished = [Mail.State.DUE, Mail.State.SENDING, Mail.State.FAILED, Mail.State.UNSURE]
    rows = Mail.objects.filter(state__in=unfinished).values_list("state").annotate(Count("pk"))
    return dict(rows.order_by())


def _late() -> list[Mail]:
    """What an admin should look at: delayed, refused, or perhaps sent."""
    trouble = Q(state__in=[Mail.State.FAILED, Mail.State.UNSURE]) | Q(
        state=Mail.State.DUE, attempts__gt=0
    )
    return list(Mail.objects.filter(trouble).order_by("-pk")[:20])


@staff_required
@require_POST
def retry_mails(request: HttpRequest) -> HttpResponse:
    chosen = [pk for text in request.POST.getlist("mail") if (pk := number(text)) is not None]
    count = outbox.retry(Mail.objects.filter(pk__in=chosen))
    messages.success(request, _("%(count)d to be sent again.") % {"count": count})
    return redirect("staff_home")


# -- Members ----------------------------------------------------------------------------------
@staff_required
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state", "")
    search = request.GET.get("q", "").strip()
    found = Membership.objects.filter(user__isnull=False).select_related("user")
    if state in Membership.State.values:
        found = found.filter(state=state)
    if search:
        found = found.filter(user__in=User.objects.beginning(search))
    after = number(request.GET.get("after", ""))
    if after is not None:
        found = found.filter(pk__gt=after)
    rows = list(found.order_by("pk")[: PAGE + 1])
    context = {
        "rows": rows[:PAGE],
        "following": rows[PAGE - 1].pk if len(rows) > PAGE else None,
        "state": state,
        "search": search,
        "states": Membership.State.choices,
        "seats": seats.shown(),
    }
    return render(request, "staff/members.html", context)


@staff_required
@never_cache
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "staff/member.html", _member(_get(pk)))


def _get(pk: int) -> Membership:
    return get_object_or_404(Membership.objects.select_related("user"), pk=pk, user__isnull=False)


def _member(row: Membership, **forms: Any) -> dict[str, Any]:
    assert row.user  # noqa: S101  (_get)
    return {
        "membership": row,
        "person": row.user,
        "events": row.user.membership_events.select_related("actor").order_by("-pk")[:50],
        "applications": row.user.applications.order_by("-pk")[:20],
        "pending": membership.is_pending(row),
        "key": keys.summary(row.user),
        "reason_form": ReasonForm(),
        "limits_form": LimitsForm(auto_id="limits_%s"),
        **forms,
    }


@staff_required
@require_POST
def suspend(request: HttpRequest, pk: int) -> HttpResponse:
    row, form = _get(pk), ReasonForm(request.POST)
    if row.user == request.user:
        messages.error(request, _("You can't suspend yourself."))
    elif not form.is_valid():
        return render(request, "staff/member.html", _member(row, reason_form=form), status=422)
    else:
        attempt(
            request,
            lambda: membership.suspend(membership=row, actor=person(request), **form.cleaned_data),
            _("Suspended: her sessions are over, and her key is being held at the gateway."),
        )
    return redirect("staff_member", pk=pk)


@staff_required
@require_POST
def reinstate(request: HttpRequest, pk: int) -> HttpResponse:
    row = _get(pk)
    attempt(
        request,
        lambda: membership.reinstate(membership=row, actor=person(request)),
        _("Reinstated: her key is being released at the gateway."),
    )
    return redirect("staff_member", pk=pk)


@staff_required
@require_POST
def limits(request: HttpRequest, pk: int) -> HttpResponse:
    row, form = _get(pk), LimitsForm(request.POST, auto_id="limits_%s")
    if not form.is_valid():
        return render(request, "staff/member.html", _member(row, limits_form=form), status=422)
    attempt(
        request,
        lambda: membership.set_limits(membership=row, actor=person(request), **form.cleaned_data),
        _("Saved. The gateway follows within a minute."),
    )
    return redirect("staff_member", pk=pk)
