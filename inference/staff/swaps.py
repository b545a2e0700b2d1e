"""Swaps: planned by one admin, approved by another, watched by anyone."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from inference.fleet.words import words
from inference.models import Swap
from inference.staff import live
from inference.staff.swap_acts import ACTS, do, refused
from inference.staff.swap_forms import ChoiceForm, PlanForm
from inference.staff.swap_page import SwapPage, whole
from inference.staff.swap_preview import Preview
from inference.swaps import plan as swaps
from inference.swaps.plan import SwapRefused
from nan import stale
from nan.access import staff_required
from nan.unreadable import number

PAGE = 30


@require_safe
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    found = Swap.objects.select_related("slot", "from_model", "to_model", "proposed_by")
    before = number(request.GET.get("before", ""))
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found.order_by("-pk")[: PAGE + 1])
    following = rows[PAGE - 1].pk if len(rows) > PAGE else None
    context = {"rows": rows[:PAGE], "following": following}
    return render(request, "staff/fleet/swaps.html", context)


# -- A new one ----------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def new(request: HttpRequest) -> HttpResponse:
    """Without a choice: the choice. With one: what would happen. By POST: proposed."""
    if "choosing" in request.GET:  # the slot alone, to see its models
        context = {"form": ChoiceForm(initial={"slot": request.GET.get("slot")})}
        return render(request, "staff/fleet/swap_new.html", context)
    chosen = ChoiceForm(request.GET or None)
    if not (request.GET and chosen.is_valid()):
        status = 422 if request.GET else 200
        return render(request, "staff/fleet/swap_new.html", {"form": chosen}, status=status)
    slot, model = chosen.cleaned_data["slot"], chosen.cleaned_data["model"]
    preview = Preview.of(slot, model)
    form = PlanForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _propose(request, preview, form)
    return _preview(request, preview, form)


def _preview(request: HttpRequest, preview: Preview, form: PlanForm) -> HttpResponse:
    context = {"preview": preview, "slot": preview.slot, "model": preview.model, "form": form}
    status = 422 if form.errors else 200
    return render(request, "staff/fleet/swap_preview.html", context, status=status)


def _propose(request: HttpRequest, preview: Preview, form: PlanForm) -> HttpResponse:
    """A second click finds what the first has planned. What has changed since the page was read is
    read again before it is proposed."""
    slot, model = preview.slot, preview.model
    mine = slot.swaps.open().filter(to_model=model, proposed_by_id=request.user.pk).first()
    if mine:
        messages.info(request, _("You have proposed it already: this is that swap."))
        return redirect("staff_swap", mine.pk)
    if request.POST.get(stale.FIELD, preview.seen) != preview.seen:
        form.add_error(
            None,
            _("This has changed while you were reading it. Look at it again, then propose it."),
        )
        return _preview(request, preview, form)
    try:
        swap = swaps.plan(slot=slot, model=model, actor=request.user, **form.choice)
    except SwapRefused as refusal:
        form.add_error(None, str(words(refusal.code)))
        return _preview(request, Preview.of(slot, model), form)
    messages.success(request, _("Proposed."))
    return redirect("staff_swap", swap.pk)


# -- One ----------------------------------------------------------------------------------------
@require_safe
@never_cache
@staff_required
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    page = SwapPage.of(get_object_or_404(whole(), pk=pk))
    parts = _parts(request, page)
    context = {
        "page": page,
        "swap": page.swap,
        "part": {part.id: part for part in parts},
        "cards": _cards(page, parts),
        "asking": live.asking(parts, address=_address(pk), moving=page.moving),
    }
    return render(request, "staff/fleet/swap.html", context)


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def swap_now(request: HttpRequest, pk: int) -> HttpResponse:
    page = SwapPage.of(get_object_or_404(whole(), pk=pk))
    parts = _parts(request, page)
    return live.answer(request, parts, address=_address(pk), moving=page.moving)


def _address(pk: int) -> str:
    return reverse("staff_swap_now", args=[pk])


def _parts(request: HttpRequest, page: SwapPage) -> list[live.Part]:
    """The frame around them stays, so that what is open stays open and the focus where it is."""
    context = {"page": page, "swap": page.swap, "offers": page.offers(request.user)}
    drawn = [
        live.part(request, f"swap-{name}", f"staff/fleet/swap_parts.html#{name}", **context)
        for name in ("said", "head", "actions", "events")
    ]
    for view in page.parts:
        pk = view.replica.pk
        for name in ("replica", "log", "checks"):
            template = f"staff/fleet/swap_replica.html#{name}"
            drawn.append(live.part(request, f"{name}-{pk}", template, **context, view=view))
    return drawn


def _cards(page: SwapPage, parts: list[live.Part]) -> list[dict[str, Any]]:
    found = {part.id: part for part in parts}
    return [
        {
            "view": view,
            **{name: found[f"{name}-{view.replica.pk}"] for name in ("replica", "log", "checks")},
        }
        for view in page.parts
    ]


# -- What one can do with it ----------------------------------------------------------------------
@require_POST
@staff_required
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    if action not in ACTS:
        raise Http404
    do(request, ACTS[action], get_object_or_404(Swap, pk=pk))
    return redirect("staff_swap", pk)


@require_POST
@staff_required
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Another swap with the same choice; leads to its page, also on a second click."""
    swap = get_object_or_404(Swap, pk=pk)
    try:
        again = swaps.retry(swap=swap, actor=request.user)
    except SwapRefused as refusal:
        there = swap.slot.swaps.open().first()
        if there and (there.retry_of_id, there.proposed_by_id) == (swap.pk, request.user.pk):
            messages.info(request, _("You have planned it again already: this is that swap."))
            return redirect("staff_swap", there.pk)
        messages.error(request, refused(refusal, swap))
        return redirect("staff_swap", pk)
    messages.success(request, _("Planned again: this is the new swap."))
    return redirect("staff_swap", again.pk)
