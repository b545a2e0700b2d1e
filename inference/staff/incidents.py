"""Incidents for admins: what the samples have found, and what is told everybody about it."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from inference.models import Incident, IncidentUpdate
from inference.status.shelf import shelf
from nan.access import staff_required
from nan.leaks import refuse_keys

SHOWN = 100
AREA = {"rows": 4}


class UpdateForm(forms.Form):
    text_es = forms.CharField(
        label=gettext_lazy("In Spanish"),
        max_length=1000,
        validators=[refuse_keys],
        widget=forms.Textarea(attrs={**AREA, "lang": "es"}),
    )
    text_en = forms.CharField(
        label=gettext_lazy("In English"),
        help_text=gettext_lazy("Everybody reads it, also without signing in. It can't be changed."),
        max_length=1000,
        validators=[refuse_keys],
        widget=forms.Textarea(attrs={**AREA, "lang": "en"}),
    )


@require_safe
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    found = Incident.objects.select_related("slot").prefetch_related("updates")[:SHOWN]
    return render(request, "staff/incidents.html", {"incidents": found})


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    incident = get_object_or_404(Incident.objects.select_related("slot"), pk=pk)
    form = UpdateForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if write(incident=incident, actor=request.user, **form.cleaned_data):
            messages.success(request, _("Written. It is on the status page."))
        return redirect("staff_incident", pk=incident.pk)
    updates = incident.updates.select_related("author")
    context = {"incident": incident, "updates": updates, "form": form}
    return render(request, "staff/incident.html", context)


def write(*, incident: Incident, actor: Any, text_es: str, text_en: str) -> IncidentUpdate | None:
    """None for the last words once more: a button pressed twice."""
    last = incident.updates.last()
    if last and (last.text_es, last.text_en) == (text_es, text_en):
        return None
    update = incident.updates.create(author=actor, text_es=text_es, text_en=text_en)
    shelf.forget()
    return update
