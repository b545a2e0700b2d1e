"""What the fleet's events are called on pages. Their details are a code, a number or a name."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from inference.fleet.words import WORDS, words
from inference.models import FleetEvent, ReplicaState

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

HAPPENED: "dict[str, StrPromise]" = {
    # A swap
    "planned": pgettext_lazy("event", "planned"),
    "approved": pgettext_lazy("event", "approved"),
    "start_now": pgettext_lazy("event", "told to start now"),
    "cancelled": pgettext_lazy("event", "cancelled"),
    "started": pgettext_lazy("event", "started"),
    "paused": pgettext_lazy("event", "paused"),
    "resumed": pgettext_lazy("event", "resumed"),
    "abort_asked": pgettext_lazy("event", "told to abort"),
    "preflight_failed": pgettext_lazy("event", "refused before anything was touched"),
    "returning": pgettext_lazy("event", "going back to the old model"),
    "restored": pgettext_lazy("event", "old model restored"),
    "not_restored": pgettext_lazy("event", "left on the new model"),
    "down": pgettext_lazy("event", "left down"),
    "done": pgettext_lazy("event", "done"),
    "aborted": pgettext_lazy("event", "aborted"),
    "failed": pgettext_lazy("event", "failed"),
    # A replica, besides its states
    "added": pgettext_lazy("event", "added"),
    "put_in": pgettext_lazy("event", "put in service"),
    "taken_out": pgettext_lazy("event", "taken out"),
    "retried": pgettext_lazy("event", "told to try again"),
    "removed": pgettext_lazy("event", "removed"),
    "cut": pgettext_lazy("event", "requests cut off"),
    "drain_deadline": pgettext_lazy("event", "time to drain over, requests still running"),
    "alert_dismissed": pgettext_lazy("event", "alert dismissed"),
    "name_taken": pgettext_lazy("event", "name not published: another slot has it"),
    # A server
    "invited": pgettext_lazy("event", "token made"),
    "token_used": pgettext_lazy("event", "token used"),
    "joined": pgettext_lazy("event", "reported for the first time"),
    "server_out": pgettext_lazy("event", "server out of service"),
    "server_back": pgettext_lazy("event", "server back in service"),
    "server_deleted": pgettext_lazy("event", "server deleted"),
    # A model of the catalogue
    "model_added": pgettext_lazy("event", "added"),
    "model_changed": pgettext_lazy("event", "changed"),
    "fetch": pgettext_lazy("event", "asked for weights"),
}


def happened(event: FleetEvent) -> str:
    """A replica's states go by their own names, also when the replica has been removed since."""
    if (event.replica_id or event.server_id) and event.what in ReplicaState:
        return str(ReplicaState(event.what).label)
    if event.what in HAPPENED:
        return str(HAPPENED[event.what])
    return str(WORDS.get(event.what, event.what))


def remark(event: FleetEvent) -> str:
    """The detail, in words where it is a code."""
    if event.what in ("cut", "drain_deadline"):
        return _("Requests: %(count)s") % {"count": event.detail}
    if event.replica_id and event.detail == str(event.replica):
        return ""  # its link stands before it
    return str(words(event.detail)) if event.detail in WORDS else event.detail
