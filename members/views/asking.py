"""Who asks for something on a page, and what she is told came of it."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from members import membership, recipes, waitlist
from members.models import User
from members.voting import refusals

REFUSALS = (membership.NotPossible, recipes.Refused, refusals.Refused, waitlist.Refused)
"""Nothing was done; the text of each is a sentence for whoever asked."""


def person(request: HttpRequest) -> User:
    """Who is signed in: of a page whose guard lets nobody else through."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def attempt(request: HttpRequest, action: Callable[[], Any], done: str) -> bool:
    """Says what came of it; False if it was refused."""
    try:
        action()
    except REFUSALS as refusal:
        messages.error(request, str(refusal))
        return False
    messages.success(request, done)
    return True
