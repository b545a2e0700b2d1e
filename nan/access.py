"""Who may open a page. Anything else about a person is her feature's business."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

View = Callable[..., HttpResponse]


class HtmxRequest(HttpRequest):
    """As the middleware of django-htmx hands it on; for annotations."""

    htmx: HtmxDetails


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
