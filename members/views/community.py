"""Who reads the pages of votes: members, and admins who look after them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache

from members.models import User, Vote
from members.voting.refusals import Refused
from nan.access import View


def person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101  (login_required)
    return request.user


def may_read(user: Any) -> bool:
    return isinstance(user, User) and (user.is_member or (user.is_staff and user.is_active))


def community(view: View) -> View:
    """Signed in, and of the community; others are told what they are missing."""

    @never_cache
    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not may_read(request.user):
            return render(request, "members/not_a_member.html", status=403)
        return view(request, *args, **kwargs)

    return guarded


def round_of(slug: str) -> Vote:
    return get_object_or_404(Vote.objects.select_related("slot__model", "swap"), slug=slug)


def attempt(request: HttpRequest, action: Callable[[], Any], done: str) -> bool:
    """Says what came of it; False if it was refused."""
    try:
        action()
    except Refused as refusal:
        messages.error(request, str(refusal))
        return False
    messages.success(request, done)
    return True
