"""What an alert says besides its sentence, and the page where something can be done about it: the
same on pages, in mails and for the webhook."""

from django.urls import reverse

from inference.fleet.words import WORDS
from inference.models import Alert
from inference.probes import told

PROBES = ("probe_failed", "probe_run_failed")


def remark(alert: Alert) -> str:
    """In the current language; what a server or an engine said stays as it was."""
    if alert.code == "probe_failed":
        return told.in_words(alert.detail)
    return str(WORDS.get(alert.detail, alert.detail))


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
