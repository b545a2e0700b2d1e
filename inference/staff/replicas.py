"""One replica: what is seen of it, and what an admin may do to it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from inference.fleet import replicas
from inference.fleet.errors import FleetRefused
from inference.fleet.words import words
from inference.models import Measurement, Replica, ReplicaState
from inference.staff import live
from inference.staff.asking import attempt, warn_of_silence
from inference.staff.forms import PutInForm, TakeOutForm
from inference.swaps.capacity import Capacity, capacity
from nan.access import HtmxRequest, staff_required

EVENTS = 40


def _replica(pk: int) -> Replica:
    return get_object_or_404(Replica.objects.whole(), pk=pk)


@require_safe
@never_cache
@staff_required
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    row = _replica(pk)
    parts = _parts(request, row)
    address = reverse("staff_replica_now", args=[pk])
    context = {
        "replica": row,
        "part": {part.id: part for part in parts},
        "asking": live.asking(parts, address=address, moving=True),
    }
    return render(request, "staff/fleet/replica.html", context)


def _parts(request: HttpRequest, row: Replica) -> list[live.Part]:
    events = row.events.select_related("actor", "model", "swap", "replica__server")
    form = PutInForm(slot=row.slot)
    return [
        live.part(
            request,
            "replica-now",
            "staff/fleet/replica_now.html",
            replica=row,
            capacity=_capacity(row),
            silent=row.server.silent(timezone.now()),
        ),
        live.part(
            request,
            "replica-actions",
            "staff/fleet/replica_actions.html",
            replica=row,
            put_in_form=form,
        ),
        live.part(
            request,
            "replica-events",
            "staff/fleet/events.html",
            events=events.order_by("-at", "-pk")[:EVENTS],
        ),
    ]


def _capacity(row: Replica) -> Capacity | None:
    """Of what runs there."""
    if row.model is None:
        return None
    known = Measurement.objects.of([row.model])
    return capacity(row.model, row.server, row.gpus, known=known)


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def now(request: HtmxRequest, pk: int) -> HttpResponse:
    if request.htmx and not Replica.objects.filter(pk=pk).exists():
        return HttpResponseClientRedirect(reverse("staff_slots"))  # removed in another window
    row = _replica(pk)
    address = reverse("staff_replica_now", args=[pk])
    return live.answer(request, _parts(request, row), address=address, moving=True)


# -- Into service ---------------------------------------------------------------------------------
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
        _coming_in(row),
        already=_is_in(row),
    )
    warn_of_silence(request, row.server)
    return redirect("staff_replica", pk)


def _coming_in(row: Replica) -> str:
    """What follows, by what runs there now."""
    kept = row.model_id is not None and row.model_id == row.slot.model_id
    if row.state in (ReplicaState.DRAINING, ReplicaState.SERVING) and kept:
        return _("Its engine still runs, so it goes back into the pool with it.")
    if row.state in (ReplicaState.DRAINING, ReplicaState.SERVING, ReplicaState.STOPPING):
        return _("The engine that runs there ends first; then it starts anew and is tested.")
    return _("It starts, is tested, and joins the pool when it has passed.")


def _is_in(row: Replica) -> str:
    if row.state == ReplicaState.SERVING:
        return _("It serves already. Nothing was changed.")
    if row.state == ReplicaState.FAILED:
        return _("It is to serve already, but it is down. “Try again” starts it.")
    return _("It is on its way into service already. Nothing was changed.")


@require_POST
@staff_required
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    row = _replica(pk)
    attempt(
        request,
        lambda: replicas.retry(replica=row, actor=request.user),
        _("It is started again."),
        already=_("It is about to be started again already."),
    )
    return redirect("staff_replica", pk)


# -- Out of service -------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def take_out(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first. What the page said about the others comes back with the form (`last`); when the
    others have gone meanwhile, it asks again."""
    row, form = _replica(pk), TakeOutForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        last = request.POST.get("last") == "yes"
        try:
            changed = replicas.take_out(replica=row, actor=request.user, last=last, **form.choice)
        except FleetRefused as refusal:
            form.add_error(None, str(words(refusal.code)))
        else:
            _tell_out(request, row, changed=changed)
            return redirect("staff_replica", pk)
    context = {"replica": row, "form": form, "others": replicas.others_serving(row)}
    status = 422 if form.errors else 200
    return render(request, "staff/fleet/replica_out.html", context, status=status)


def _tell_out(request: HttpRequest, row: Replica, *, changed: bool) -> None:
    if not changed:
        messages.info(request, _("It is out of service already. Nothing was changed."))
    elif row.state == ReplicaState.SERVING:
        messages.success(request, _("It finishes what it has and stops."))
    else:
        messages.success(request, _("Taken out: what runs there is stopped, nothing is started."))


@require_POST
@staff_required
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    row = Replica.objects.whole().filter(pk=pk).first()
    if row is None:
        messages.info(request, _("This replica has been removed already."))
        return redirect("staff_slots")
    if attempt(
        request,
        lambda: replicas.remove(replica=row, actor=request.user),
        _("Removed. Its GPUs and its port are free."),
    ):
        return redirect("staff_server", row.server.name)
    return redirect("staff_replica", pk)
