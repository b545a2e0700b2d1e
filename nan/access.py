"""Who may open a page. Anything else about a person is her feature's business."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from allauth.mfa.utils import is_mfa_enabled
from django.contrib import messages
from django.contrib.auth.decorators import login_required as django_login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

View = Callable[..., HttpResponse]


class HtmxRequest(HttpRequest):
    """As the middleware of django-htmx hands it on; for annotations."""

    htmx: HtmxDetails


def login_required(view: View) -> View:
    """As Django's, but after signing in nobody is led to an address that only takes a form: what
    she sent is lost, so it leads to the page that she sent it from."""
    guarded_by_django = django_login_required(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated or request.method in ("GET", "HEAD"):
            return guarded_by_django(request, *args, **kwargs)
        return redirect_to_login(_sent_from(request))

    return guarded


def _sent_from(request: HttpRequest) -> str:
    """The page of this site that the form stood on, or home."""
    said = request.headers.get("Referer", "")
    ours = url_has_allowed_host_and_scheme(
        said, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    if not ours:
        return reverse("home")
    parts = urlsplit(said)
    return urlunsplit(("", "", "/" + parts.path.lstrip("/"), parts.query, ""))


def has_member_access(request: HttpRequest) -> bool:
    user = request.user
    return bool(user.is_authenticated and user.is_member)


def member_required(view: View) -> View:
    """Signed in and an active member; others are told what they are missing."""

    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not has_member_access(request):
            return render(request, "members/not_a_member.html", status=403)
        return view(request, *args, **kwargs)

    return guarded


def has_staff_access(request: HttpRequest) -> bool:
    """Staff with a second factor set up; sign-in itself then asks for that factor."""
    user = request.user
    return bool(user.is_active and user.is_staff and is_mfa_enabled(user))


def staff_required(view: View) -> View:
    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if has_staff_access(request):
            return view(request, *args, **kwargs)
        if request.user.is_staff:
            messages.warning(request, _("Staff pages need a second factor. Add one here first."))
            return redirect("mfa_index")
        return HttpResponseForbidden(render(request, "403.html").content)

    return guarded


def loads_anew_without(may_see: Callable[[HttpRequest], bool]) -> Callable[[View], View]:
    """For a part that htmx asks for, above the decorator that guards it: a page whose reader may
    no longer see it loads anew, instead of having the sign-in page put into its middle."""

    def decorated(view: View) -> View:
        @wraps(view)
        def guarded(request: HtmxRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.htmx and not may_see(request):
                return HttpResponseClientRefresh()
            return view(request, *args, **kwargs)

        return guarded

    return decorated
