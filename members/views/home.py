"""The first page: what the service is, for who comes by; her own day, for a member."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from inference.key_page import KeyPage
from inference.names.shown import shown
from inference.status import glance
from inference.usage.figures import her_day, tokens_this_week
from members import news, seats
from members.models import User, Vote
from members.voting import ratify


def home(request: HttpRequest) -> HttpResponse:
    user = request.user
    if not isinstance(user, User):
        return _landing(request)
    if user.is_member:
        return _members_home(request)
    return redirect("staff_home" if user.is_staff else "waitlist")


def _landing(request: HttpRequest) -> HttpResponse:
    context = {
        **seats.shown(),
        "tokens_week": tokens_this_week(),
        "slots": glance.slots(),
        "api_trouble": glance.api_trouble(),
    }
    return render(request, "landing.html", context)


@never_cache
def _members_home(request: HttpRequest) -> HttpResponse:
    """Who has no working key yet has one thing to do, and goes there."""
    page = KeyPage.of(request.user)
    if not page.has_actions:
        return redirect("key")
    context = {
        "page": page,
        "model": shown(),
        "today": her_day(request.user),
        "rounds": Vote.objects.ahead().select_related("slot"),
        "rotation": next(iter(ratify.calendar()), None),
        "news": news.latest(),
        "silent": glance.silent(),
    }
    return render(request, "members/home.html", context)
