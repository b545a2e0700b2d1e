"""The catalogue: which models can be served, and what an engine must be told for each."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from inference.models import CatalogModel, FleetEvent, Server
from inference.staff import in_use
from inference.staff.forms import saved_alone
from inference.staff.model_form import FLAGS, VARIABLES, ModelForm, added_already
from inference.staff.model_page import rows
from inference.staff.pasted_config import read_config
from nan.access import staff_required


@require_safe
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    models = list(CatalogModel.objects.prefetch_related("slots"))
    context = {"rows": rows(models, list(Server.objects.filter(active=True)))}
    return render(request, "staff/fleet/models.html", context)


@require_safe
@never_cache
@staff_required
def detail(request: HttpRequest, name: str) -> HttpResponse:
    model = get_object_or_404(CatalogModel, name=name)
    context = {
        "model": model,
        "row": rows([model], list(Server.objects.all()))[0],
        "replicas": model.replicas.select_related("server", "slot"),
        "slots": model.slots.all(),
        "events": _events(model),
    }
    return render(request, "staff/fleet/model.html", context)


def _events(model: CatalogModel) -> Any:
    """What people did to the entry; what its replicas do stands with them."""
    ours = FleetEvent.objects.filter(model=model, what__in=("model_added", "model_changed"))
    return ours.select_related("actor").order_by("-at", "-pk")[:20]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def add(request: HttpRequest) -> HttpResponse:
    return form_page(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """The row stays locked until it is saved: of two saves, the second sees the first."""
    if request.method != "POST":
        return form_page(request, get_object_or_404(CatalogModel, name=name))
    with transaction.atomic():
        locked = CatalogModel.objects.select_for_update()
        return form_page(request, get_object_or_404(locked, name=name))


def form_page(
    request: HttpRequest,
    model: CatalogModel | None,
    *,
    initial: dict[str, Any] | None = None,
    then: str = "",
    back: str = "",
    **address: Any,
) -> HttpResponse:
    """Refused, it comes back as it was typed. `read` fills in what the pasted file says.

    `then` and `back`, names of addresses: where to go on once saved, and where to without it.
    """
    leave = reverse(back, kwargs=address) if back else ""
    if request.POST.get("action") == "read":
        form = ModelForm(_with_config(request, model), instance=model)
        return _show(request, form, model, back=leave, read=True)
    form = ModelForm(request.POST or None, instance=model, initial=initial)
    if request.method != "POST":
        return _show(request, form, model, back=leave)
    if saved_alone(form):
        saved = form.instance
        in_use.note_change(saved, form.changes, added=model is None, actor=request.user)
    elif model is None and (there := added_already(form)):
        saved = there
    else:
        return _show(request, form, model, back=leave, status=422)
    messages.success(request, _("Saved."))
    return redirect(then, **address) if then else redirect("staff_model", saved.name)


def _with_config(request: HttpRequest, model: CatalogModel | None) -> Any:
    found = read_config(request.POST.get("config", ""))
    if not found:
        messages.error(request, _("Nothing could be read from it: paste the whole config.json."))
        return request.POST
    messages.success(request, _("Filled in from config.json. Look at it, then save."))
    filled = request.POST.copy()
    fixed = in_use.FIXED if model and in_use.users(model) else ()
    for name, value in found.items():
        if name in fixed:
            continue
        if isinstance(value, list):
            filled.setlist(name, [*dict.fromkeys([*filled.getlist(name), *value])])
        else:
            filled[name] = str(value)
    return filled


def _show(
    request: HttpRequest,
    form: ModelForm,
    model: CatalogModel | None,
    *,
    back: str = "",
    read: bool = False,
    status: int = 200,
) -> HttpResponse:
    if read:  # not asked to be saved yet: what is still missing is no fault
        form.errors.clear()
    context = {"form": form, "model": model, "flags": FLAGS, "variables": VARIABLES, "back": back}
    return render(request, "staff/fleet/model_form.html", context, status=status)


@require_POST
@staff_required
def offer(request: HttpRequest, name: str) -> HttpResponse:
    """On or off the list to choose from; what runs goes on running."""
    model = get_object_or_404(CatalogModel, name=name)
    CatalogModel.objects.filter(pk=model.pk).update(offered=request.POST.get("offered") == "yes")
    messages.success(request, _("Saved."))
    return redirect("staff_model", name)
