"""Slots with their names and replicas, and what an admin may do to one replica."""

from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from inference.fleet import replicas
from inference.models import CatalogModel, PublicName, Replica, Slot, Swap
from inference.staff import live
from inference.staff.asking import attempt
from inference.staff.forms import PutInForm, SlotForm, TakeOutForm
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
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Saved. Add a replica to it on a server's page."))
        return redirect("staff_slots")
    status = 422 if request.method == "POST" else 200
    return render(request, "staff/fleet/slot_form.html", {"form": form}, status=status)


# -- One replica --------------------------------------------------------------------------------
def _replica(pk: int) -> Replica:
    return get_object_or_404(Replica.objects.whole(), pk=pk)


@require_safe
@never_cache
@staff_required
def replica(request: HttpRequest, pk: int) -> HttpResponse:
    row = _replica(pk)
    part = _replica_part(request, row)
    address = reverse("staff_replica_now", args=[pk])
    events = row.events.select_related("actor", "model", "swap").order_by("-at", "-pk")[:40]
    context = {
        "replica": row,
        "now": part,
        "asking": live.asking([part], address=address, moving=True),
        "events": events,
        "put_in_form": PutInForm(slot=row.slot),
    }
    return render(request, "staff/fleet/replica.html", context)


def _replica_part(request: HttpRequest, row: Replica) -> live.Part:
    return live.part(request, "replica-now", "staff/fleet/replica_now.html", replica=row)


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def replica_now(request: HttpRequest, pk: int) -> HttpResponse:
    parts = [_replica_part(request, _replica(pk))]
    address = reverse("staff_replica_now", args=[pk])
    return live.answer(request, parts, address=address, moving=True)


@require_POST
@staff_required
def put_in(request: HttpRequest, pk: int) -> HttpResponse:
    row = _replica(pk)
    form = PutInForm(request.POST, slot=row.slot)
    if not form.is_valid():
        messages.error(request, _("Choose the model that the slot begins with."))
        return redirect("staff_replica", pk)
    attempt(
        request,
        lambda: replicas.put_in_service(
            replica=row, actor=request.user, model=form.cleaned_data.get("model")
        ),
        _("It starts, is tested, and joins the pool when it has passed."),
    )
    return redirect("staff_replica", pk)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def take_out(request: HttpRequest, pk: int) -> HttpResponse:
    row, form = _replica(pk), TakeOutForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        context = {"replica": row, "form": form, "others": _others(row)}
        return render(request, "staff/fleet/replica_out.html", context, status=status)
    attempt(
        request,
        lambda: replicas.take_out(replica=row, actor=request.user, **form.choice),
        _("It finishes what it has and stops."),
    )
    return redirect("staff_replica", pk)


def _others(row: Replica) -> int:
    """How many of the slot go on serving without it."""
    return row.slot.replicas.serving().exclude(pk=row.pk).count()


@require_POST
@staff_required
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    row = _replica(pk)
    attempt(
        request,
        lambda: replicas.retry(replica=row, actor=request.user),
        _("It is started again."),
    )
    return redirect("staff_replica", pk)


@require_POST
@staff_required
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    row = _replica(pk)
    if attempt(
        request,
        lambda: replicas.remove(replica=row, actor=request.user),
        _("Removed. Its GPUs and its port are free."),
    ):
        return redirect("staff_server", row.server.name)
    return redirect("staff_replica", pk)
