"""When the database can't be had, the site says *try again*, not *error*."""

from collections.abc import Callable

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

log = structlog.get_logger(__name__)


class OutageMiddleware:
    """Answers 503 with Retry-After for any request that failed for want of a database.

    Outermost, so that it also covers what the session and sign-in middleware read.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        failure = getattr(request, "database_failure", None)
        return unavailable(request, failure) if failure else response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, (OperationalError, InterfaceError)):
            return unavailable(request, error)
        return None


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("database_unavailable", error=type(error).__name__)
    if request.path.endswith(".json"):
        response: HttpResponse = JsonResponse({"error": "unavailable"}, status=503)
    else:
        response = render(request, "503.html", status=503)
    response["Retry-After"] = "10"
    response["Cache-Control"] = "no-store"
    return response
