"""Input that no page can use: answered once, before any page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.defaults import bad_request

BIGGEST_ID = 2**63 - 1


class NoNulMiddleware:
    """Postgres stores no NUL, so a query or a form with one is answered with 400."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _has_nul(request):
            return HttpResponse(bad_request(request, ValueError()).content, status=400)
        return self.get_response(request)


def _has_nul(request: HttpRequest) -> bool:
    if "\0" in request.path:
        return True
    sent = (request.GET, request.POST)
    return any(
        "\0" in name or "\0" in "".join(data.getlist(name)) for data in sent for name in data
    )


def number(text: str) -> int | None:
    """An id as somebody typed it; None for what can be no id."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        return None
    value = int(text)
    return value if value <= BIGGEST_ID else None
