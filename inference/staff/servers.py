"""Servers: what they are and say, who carries how many members, and how a new one joins."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from inference.fleet import alerts, fetch, replicas
from inference.fleet import servers as fleet
from inference.fleet.errors import FleetRefused
from inference.fleet.words import words
from inference.models import Alert, FleetEvent, Server
from inference.staff import live
from inference.staff.asking import attempt, warn_of_silence
from inference.staff.forms import FetchForm, InviteForm, ReplicaForm, SeatsForm, TakeOutForm
from inference.staff.server_page import (
    ServerView,
    fetchable,
    open_alerts,
    views,
    with_rows,
)
from nan.access import HtmxRequest, staff_required

EVENTS = 30
DELETED = 10
ADDRESS = "10.8.0.7"
ENGINE_HOME = "/opt/nan/engine"
COMMAND = (
    ".nan/venv/bin/python -m inference.gpu join {site} --address {address} --engine-home {engine}"
)
"""To be run on the new host, in a checkout; the first two stand for what is right there."""


@require_safe
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    deleted = FleetEvent.objects.filter(what="server_deleted").select_related("actor")
    context = {
        "servers": views(with_rows()),
        "alerts": open_alerts(),
        "deleted": deleted.order_by("-at", "-pk")[:DELETED],
    }
    return render(request, "staff/fleet/servers.html", context)


@require_POST
@staff_required
def dismiss(request: HttpRequest, pk: int) -> HttpResponse:
    """Seen; it opens again if the trouble is noticed again. A second click finds it closed."""
    alerts.dismiss(get_object_or_404(Alert, pk=pk), actor=request.user)
    return redirect("staff_servers")


# -- A new one --------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def add(request: HttpRequest) -> HttpResponse:
    """The answer to the POST shows the token, and nothing shows it again."""
    form = InviteForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        return render(request, "staff/fleet/server_add.html", {"form": form}, status=status)
    try:
        server, token = fleet.invite(**form.cleaned_data, actor=request.user)
    except FleetRefused as refusal:
        form.add_error("name", str(words(refusal.code)))
        return render(request, "staff/fleet/server_add.html", {"form": form}, status=422)
    return _invited(request, server, token)


def _invited(request: HttpRequest, server: Server, token: str) -> HttpResponse:
    context = {
        "server": server,
        "token": token,
        "command": COMMAND.format(site=settings.SITE_URL, address=ADDRESS, engine=ENGINE_HOME),
        "address": ADDRESS,
        "engine": ENGINE_HOME,
    }
    return render(request, "staff/fleet/server_invited.html", context)


@require_POST
@never_cache
@staff_required
def token(request: HttpRequest, name: str) -> HttpResponse:
    """Another one, shown as the first was; whatever else is known of the server stays."""
    server = get_object_or_404(Server, name=name)
    try:
        return _invited(request, server, fleet.renew_token(server=server, actor=request.user))
    except FleetRefused as refusal:
        messages.error(request, str(words(refusal.code)))
        return redirect("staff_server", name)


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def waiting(request: HtmxRequest, name: str) -> HttpResponse:
    """Asked by the page with the token; leads to the server as soon as it has reported."""
    if request.htmx and not Server.objects.filter(name=name).exists():
        return HttpResponseClientRedirect(reverse("staff_servers"))  # deleted in another window
    server = get_object_or_404(Server, name=name)
    if server.reported_at is None:
        return HttpResponse(status=204)
    return HttpResponseClientRedirect(reverse("staff_server", args=[name]))


# -- One --------------------------------------------------------------------------------------
@require_safe
@never_cache
@staff_required
def detail(request: HttpRequest, name: str) -> HttpResponse:
    return _page(request, _view(name))


def _view(name: str) -> ServerView:
    return views([get_object_or_404(with_rows(), name=name)])[0]


def _page(request: HttpRequest, view: ServerView, status: int = 200, **forms: Any) -> HttpResponse:
    parts = _parts(request, view)
    context = {
        "view": view,
        "part": {part.id: part for part in parts},
        "asking": live.asking(parts, address=_address(view), moving=True),
        "models": fetchable(view),
        "seats_form": SeatsForm(instance=view.server),
        "replica_form": ReplicaForm(server=view.server, gpus=view.gpus),
        **forms,
    }
    return render(request, "staff/fleet/server.html", context, status=status)


def _parts(request: HttpRequest, view: ServerView) -> list[live.Part]:
    events = "staff/fleet/events.html"
    return [
        live.part(request, "server-now", "staff/fleet/server_now.html", view=view),
        live.part(request, "server-actions", "staff/fleet/server_actions.html", view=view),
        live.part(request, "server-events", events, events=_events(view.server)),
    ]


def _address(view: ServerView) -> str:
    return reverse("staff_server_now", args=[view.server.name])


def _events(server: Server) -> Any:
    newest = FleetEvent.objects.filter(server=server).order_by("-at", "-pk")
    return newest.select_related("actor", "replica__server", "model", "swap")[:EVENTS]


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def now(request: HtmxRequest, name: str) -> HttpResponse:
    if request.htmx and not Server.objects.filter(name=name).exists():
        return HttpResponseClientRedirect(reverse("staff_servers"))  # deleted in another window
    view = _view(name)
    return live.answer(request, _parts(request, view), address=_address(view), moving=True)


@require_POST
@staff_required
def seats(request: HttpRequest, name: str) -> HttpResponse:
    """The row stays locked until it is saved: of two saves, the second sees the first."""
    with transaction.atomic():
        locked = get_object_or_404(Server.objects.select_for_update(), name=name)
        form = SeatsForm(request.POST, instance=locked)
        if form.is_valid():
            form.save()
            said = _("Saved. The waitlist counts with it.")
            if not locked.active:
                said = _("Saved. The waitlist counts with it once the server is back in service.")
            messages.success(request, said)
            return redirect("staff_server", name)
    return _page(request, _view(name), status=422, seats_form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def take_out(request: HttpRequest, name: str) -> HttpResponse:
    """Asks first: every replica on it is emptied and stopped. What the page said about slots that
    end comes back with the form; if it is no longer so, it asks again."""
    view, form = _view(name), TakeOutForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        told = request.POST.getlist("emptied")
        try:
            changed = replicas.take_server_out(
                server=view.server, actor=request.user, may_empty=told, **form.choice
            )
        except FleetRefused as refusal:
            form.add_error(None, str(words(refusal.code)))
        else:
            _tell_out(request, changed=changed)
            return redirect("staff_server", name)
    context = {"view": view, "form": form, "emptied": replicas.left_empty(view.server)}
    status = 422 if form.errors else 200
    return render(request, "staff/fleet/server_out.html", context, status=status)


def _tell_out(request: HttpRequest, *, changed: bool) -> None:
    if changed:
        messages.success(
            request, _("Going out of service: its replicas finish what they have and stop.")
        )
    else:
        messages.info(request, _("It is out of service already. Nothing was changed."))


@require_POST
@staff_required
def put_back(request: HttpRequest, name: str) -> HttpResponse:
    server = get_object_or_404(Server, name=name)
    attempt(
        request,
        lambda: replicas.put_server_back(server=server, actor=request.user),
        _(
            "Back in service: the replicas that went out with it start, and join the pool when they"
            " are proven."
        ),
        already=_("It is in service already. Nothing was changed."),
    )
    warn_of_silence(request, server)
    return redirect("staff_server", name)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Asks first. A second click, and another admin, find it gone."""
    server = Server.objects.filter(name=name).first()
    if server and request.method != "POST":
        return render(request, "staff/fleet/server_delete.html", {"view": _view(name)})
    done = _("%(name)s is deleted. Its token works no more.")
    if server and server.reported_at:
        done = _("%(name)s is deleted.")
    if server and attempt(
        request, lambda: fleet.delete(server=server, actor=request.user), done % {"name": name}
    ):
        return redirect("staff_servers")
    if Server.objects.filter(name=name).exists():
        return redirect("staff_server", name)
    if server is None:
        messages.info(request, _("There is no server %(name)s.") % {"name": name})
    return redirect("staff_servers")


@require_POST
@staff_required
def add_replica(request: HttpRequest, name: str) -> HttpResponse:
    view = _view(name)
    form = ReplicaForm(request.POST, server=view.server, gpus=view.gpus)
    if form.is_valid():
        chosen = {"gpus": [], **form.cleaned_data}
        try:
            replicas.add(server=view.server, actor=request.user, **chosen)
        except FleetRefused as refusal:
            if not form.is_there:
                form.add_refusal(refusal)
        else:
            messages.success(
                request,
                _("Added. Nothing runs there until you put it in service, on its own page."),
            )
            return redirect("staff_server", name)
    if form.is_there:
        messages.info(request, _("This replica is there already. Nothing was changed."))
        return redirect("staff_server", name)
    return _page(request, view, status=422, replica_form=form)


@require_POST
@staff_required
def fetch_weights(request: HttpRequest, name: str) -> HttpResponse:
    server, form = get_object_or_404(Server, name=name), FetchForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose a model of the catalogue."))
        return redirect("staff_server", name)
    model = form.cleaned_data["model"]
    attempt(
        request,
        lambda: fetch.fetch_weights(server=server, model=model, actor=request.user),
        _("Asked for the weights. The server says here how far it is."),
    )
    return redirect("staff_server", name)
