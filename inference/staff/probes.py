"""The calls that examples depend on, for admins: when they were made, what came of it, a button."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from inference.fleet.words import words
from inference.models import ProbeResult, ProbeRun, Slot
from inference.probes import runs
from inference.probes.calls import BY_NAME
from inference.staff import live
from nan.access import staff_required


@require_safe
@never_cache
@staff_required
def index(request: HttpRequest) -> HttpResponse:
    rows = _rows()
    part = _part(request, rows)
    asking = live.asking([part], address=reverse("staff_probes_now"), moving=_moving(rows))
    context = {
        "part": part,
        "asking": asking,
        "by_themselves": settings.PROBES,
        "hour": settings.PROBES_HOUR,
    }
    return render(request, "staff/probes.html", context)


@require_safe
@never_cache
@live.signed_out_refreshes
@staff_required
def now(request: HttpRequest) -> HttpResponse:
    rows = _rows()
    parts, address = [_part(request, rows)], reverse("staff_probes_now")
    return live.answer(request, parts, address=address, moving=_moving(rows))


@require_POST
@staff_required
def run(request: HttpRequest) -> HttpResponse:
    """A second click, or another admin's, finds the run that is under way."""
    try:
        made = runs.ask_for_all()
    except runs.NotAsked as refusal:
        messages.error(request, str(words(refusal.code)))
    else:
        told = ngettext(
            "Asked for %(count)d slot. The default worker makes the calls; this page follows.",
            "Asked for %(count)d slots. The default worker makes the calls; this page follows.",
            len(made),
        )
        messages.success(request, told % {"count": len(made)})
    return redirect("staff_probes")


def _part(request: HttpRequest, rows: list[dict[str, Any]]) -> live.Part:
    return live.part(request, "probes", "staff/probe_runs.html", rows=rows)


def _moving(rows: list[dict[str, Any]]) -> bool:
    return any(row["open"] for row in rows)


def _rows() -> list[dict[str, Any]]:
    """Four queries, however many slots."""
    slots = list(Slot.objects.exclude(model=None).select_related("model").order_by("number"))
    found = ProbeRun.objects.filter(slot__in=slots).select_related("model")
    newest = {run.slot_id: run for run in found.order_by("slot_id", "-pk").distinct("slot_id")}
    answers = set(runs.answering().values_list("pk", flat=True))
    results = list(ProbeResult.objects.filter(slot__in=slots, model=F("slot__model")))
    return [_row(slot, newest.get(slot.pk), slot.pk in answers, results) for slot in slots]


def _row(
    slot: Slot, run: ProbeRun | None, answers: bool, results: list[ProbeResult]
) -> dict[str, Any]:
    ours = [result for result in results if result.slot_id == slot.pk]
    failed = [result for result in ours if not result.ok]
    return {
        "slot": slot,
        "answers": answers,
        "run": run,
        "open": bool(run and run.state in ProbeRun.OPEN),
        "left": len(run.left) if run else 0,
        "why": words(run.error_code) if run and run.error_code else "",
        "works": len(ours) - len(failed),
        "failed": [(_title(result), words(result.code), result) for result in failed],
    }


def _title(result: ProbeResult) -> object:
    call = BY_NAME.get(result.call)
    return call.title if call else result.call
