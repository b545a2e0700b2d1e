"""Language: the cookie decides, then the profile, then the browser."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views.i18n import set_language


class ProfileLanguageMiddleware:
    """LocaleMiddleware has looked at cookie and browser; the profile goes between the two."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
            language = getattr(request.user, "language", "")
            if language:
                translation.activate(language)
                request.LANGUAGE_CODE = translation.get_language()
        return self.get_response(request)


def choose(request: HttpRequest) -> HttpResponse:
    """The language button: Django's own view sets the cookie; a profile follows, for the mails."""
    response = set_language(request)
    language = request.POST.get("language")
    if request.user.is_authenticated and language in dict(settings.LANGUAGES):
        request.user.language = language
        request.user.save(update_fields=["language"])
    return response
