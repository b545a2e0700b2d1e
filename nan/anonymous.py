"""Pages that are the same for everybody: whoever asks, no session is looked up for them.

So they answer while the database is away, also to somebody who is signed in.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

PREFIXES = ("/status/", "/status.")


def knows_nobody(request: HttpRequest) -> bool:
    return request.path_info.startswith(PREFIXES)


class AnonymousPagesMiddleware:
    """Before the session's middleware, which then finds no session and asks for none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if knows_nobody(request):
            request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
        return self.get_response(request)
