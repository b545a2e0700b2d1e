"""What an admin asks of the fleet on a page."""

from functools import partial

from django.contrib import messages
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from inference.fleet.errors import FleetRefused
from inference.fleet.words import said
from inference.models import Server
from nan import asking

attempt = partial(asking.attempt, refusals=FleetRefused, words=said)


def warn_of_silence(request: HttpRequest, server: Server) -> None:
    """Where something is to start there; a server that never reported says so on its page."""
    if server.reported_at and server.silent(timezone.now()):
        told = {
            "server": server.name,
            "since": date_format(timezone.localtime(server.reported_at), "SHORT_DATETIME_FORMAT"),
        }
        messages.warning(
            request,
            _("%(server)s has not reported since %(since)s: nothing starts there before it does.")
            % told,
        )
