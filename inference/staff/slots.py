"""Slots with their names, replicas and open swaps."""

from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from inference.models import CatalogModel, PublicName, Replica, Slot, Swap
from inference.staff import live
from inference.staff.forms import SlotForm, saved_alone
from nan.access import staff_required


@require_safe
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    parts = _parts(request)
    context = {"parts": parts, "asking": _asking(parts), "has_models": _has_models()}
    return render(request, "staff/fleet/slots.html", context)


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def now(request: HttpRequest) -> HttpResponse:
    return live.answer(request, _parts(request), address=reverse("staff_slots_now"), moving=True)


def _asking(parts: list[live.Part]) -> Any:
    return live.asking(parts, address=reverse("staff_slots_now"), moving=True)


def _parts(request: HttpRequest) -> list[live.Part]:
    """One for each slot; the queries are the same for one and for eight."""
    names = PublicName.objects.live().select_related("model")
    found = Slot.objects.select_related("model").prefetch_related(
        Prefetch("replicas", Replica.objects.whole().order_by("number")),
        Prefetch("public_names", names, to_attr="live_names"),
        Prefetch("swaps", Swap.objects.open().select_related("to_model"), to_attr="open_swaps"),
    )
    template = "staff/fleet/slot.html"
    return [live.part(request, f"slot-{slot.name}", template, slot=slot) for slot in found]


def _has_models() -> bool:
    return CatalogModel.objects.offered().exists()


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def add(request: HttpRequest) -> HttpResponse:
    form = SlotForm(request.POST or None)
    if request.method == "POST" and (saved_alone(form) or form.is_there):
        messages.success(request, _("Saved. Add a replica to it on a server's page."))
        return redirect("staff_slots")
    status = 422 if request.method == "POST" else 200
    return render(request, "staff/fleet/slot_form.html", {"form": form}, status=status)
