"""What the status page, its feed and the home page say alike."""

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

API_WORDS: "dict[str, StrPromise]" = {
    "up": pgettext_lazy("API", "answers"),
    "keys": pgettext_lazy("API", "keys can't be checked"),
    "gateway": pgettext_lazy("API", "down"),
    "edge": pgettext_lazy("API", "down"),
    "unknown": pgettext_lazy("model", "not measured"),
}
API_TROUBLES: "dict[str, StrPromise]" = {
    "gateway": gettext_lazy("Requests are not answered: the gateway is down."),
    "edge": gettext_lazy("Requests are not answered: the API can't be reached."),
    "keys": gettext_lazy("Requests are not answered: keys can't be checked."),
}


TROUBLED = ("down", "degraded", "rotation", "starting", "out")
"""States of slots that are said before everything else: requests to these are not answered now, or
more slowly."""


def incident_title(incident: dict[str, Any]) -> str:
    over = bool(incident["ended_at"])
    if incident["what"] == "api":
        return _("API: requests were not answered") if over else _("API: requests are not answered")
    title = _("%(slot)s: the model was down") if over else _("%(slot)s: the model is down")
    return title % incident


def out_title(slot: dict[str, Any]) -> str:
    """Of a slot whose engines admins have taken out."""
    names = {"slot": slot["name"], "model": slot["out"]["title"]}
    return _("%(slot)s: the admins have taken %(model)s out of service") % names
