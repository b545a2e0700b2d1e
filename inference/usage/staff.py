"""Usage as admins see it: totals, and members by opaque id. One member's figures open only for
whoever writes down why; she can read it."""

from datetime import timedelta
from functools import reduce
from operator import add
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from inference.models import KeyHolder, UsageLook
from inference.usage import figures
from inference.usage.figures import Figures, Span
from inference.usage.page import SPANS, Days, UsagePage, length, most_first, read_at
from nan.access import staff_required
from nan.leaks import refuse_keys
from nan.unreadable import number

PAGE = 50
OPEN_FOR = timedelta(hours=1)


class LookForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        min_length=10,
        max_length=200,
        validators=[refuse_keys],
        help_text=_("A sentence. It is recorded with your name, and the member can read it."),
    )


@require_safe
@staff_required
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    days = length(request.GET.get("days", ""))
    number_of_page = number(request.GET.get("page", "")) or 1
    span = Span.of(days)
    holders = _holders(span, number_of_page)
    context = {
        "length": days,
        "spans": SPANS,
        "days": Days.of(span, _by_day(span)),
        "models": _by_model(span),
        "holders": holders[:PAGE],
        "number": number_of_page,
        "following": len(holders) > PAGE,
        "read_at": read_at(),
    }
    return render(request, "staff/usage.html", context)


def _by_day(span: Span) -> dict[Any, Figures]:
    return {row["day"]: figures.read(row) for row in figures.summed(span.rows(), "day")}


def _by_model(span: Span) -> list[tuple[str, Figures]]:
    rows = figures.summed(span.rows(), "model")
    return most_first({row["model"]: figures.read(row) for row in rows})


def _holders(span: Span, page: int) -> list[tuple[UUID, Figures]]:
    """Those who asked for most first, whatever became of it."""
    counted = ("requests", "refused_rpm", "refused_parallel", "failed", "left_early")
    asked = reduce(add, (F(f"n_{name}") for name in counted))
    rows = figures.summed(span.rows(), "holder_id").order_by(asked.desc(), "holder_id")
    found = rows[(page - 1) * PAGE : page * PAGE + 1]
    return [(row["holder_id"], figures.read(row)) for row in found]


@require_http_methods(["GET", "HEAD", "POST"])
@staff_required
@never_cache
def ask(request: HttpRequest, owner_ref: UUID) -> HttpResponse:
    """Asks why; the answer is recorded before anything is shown."""
    holder = get_object_or_404(KeyHolder, pk=owner_ref)
    form = LookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        actor: Any = request.user
        look = UsageLook.objects.create(holder=holder, actor=actor, **form.cleaned_data)
        return redirect("staff_usage_look", pk=look.pk)
    status = 422 if form.is_bound else 200
    context = {"holder": holder, "form": form}
    return render(request, "staff/usage_ask.html", context, status=status)


@require_safe
@staff_required
@never_cache
def look(request: HttpRequest, pk: int) -> HttpResponse:
    """For an hour, and only for the admin who asked; then she asks again."""
    found = get_object_or_404(UsageLook, pk=pk, actor=request.user)
    if found.at < timezone.now() - OPEN_FOR:
        return redirect("staff_usage_ask", owner_ref=found.holder_id)
    context = {
        "look": found,
        "page": UsagePage.of(found.holder_id, length(request.GET.get("days", ""))),
        "spans": SPANS,
    }
    return render(request, "staff/usage_look.html", context)
