"""What an alert says besides its sentence, and the page where something can be done about it: the
same on pages, in mails and for the webhook."""

import re

from django.urls import reverse

from inference.fleet.words import WORDS
from inference.models import Alert
from inference.probes.calls import BY_NAME
from inference.probes.words import for_members

PROBES = ("probe_failed", "probe_run_failed")
FAILED_CALL = re.compile(r"(\w+) \((\w+)\)")


def remark(alert: Alert) -> str:
    """In the current language; what a server or an engine said stays as it was."""
    if alert.code == "probe_failed":
        return _of_calls(alert.detail)
    return str(WORDS.get(alert.detail, alert.detail))


def _of_calls(detail: str) -> str:
    """Of `MODEL: CALL (CODE), …`; a call that the row's end has cut off is left out."""
    model, _colon, calls = detail.partition(": ")
    said = [
        f"{BY_NAME[name].title}: {for_members(code)}"
        for name, code in FAILED_CALL.findall(calls)
        if name in BY_NAME
    ]
    return " · ".join([model, *said])


def page(alert: Alert) -> str:
    """Its path."""
    if alert.code in PROBES:
        return reverse("staff_probes")
    if alert.swap:
        return reverse("staff_swap", args=[alert.swap.pk])
    if alert.replica:
        return reverse("staff_replica", args=[alert.replica.pk])
    if alert.server:
        return reverse("staff_server", args=[alert.server.name])
    return reverse("staff_slots") if alert.slot else reverse("staff_home")
