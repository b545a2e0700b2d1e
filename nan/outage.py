"""When the database can't be had, the site says *try again*, not *error*."""

import sys

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseServerError, JsonResponse
from django.template.loader import render_to_string

log = structlog.get_logger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """The project's handler500, called while the exception is being handled.

    A handler sees failures of views and of middleware alike, so a session that can't be read
    answers 503 just as a page whose rows can't be. Neither page reads a row or the person.
    """
    error = sys.exc_info()[1]
    if isinstance(error, OperationalError | InterfaceError):
        return unavailable(request, error)
    return HttpResponseServerError(render_to_string("500.html"))


def unavailable(request: HttpRequest, error: BaseException) -> HttpResponse:
    log.error("database_unavailable", error=type(error).__name__)
    response: HttpResponse
    if request.path.endswith(".json"):
        response = JsonResponse({"error": "unavailable"}, status=503)
    else:
        response = HttpResponse(render_to_string("503.html"), status=503)
    response["Retry-After"] = "10"
    response["Cache-Control"] = "no-store"
    return response
