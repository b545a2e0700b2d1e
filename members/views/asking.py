"""Who asks for something on a page, and what she is told came of it."""

from functools import partial

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from members import membership, news, recipes, waitlist
from members.models import User
from members.voting import refusals
from nan import asking

REFUSALS = (
    membership.NotPossible,
    news.Refused,
    recipes.Refused,
    refusals.Refused,
    waitlist.Refused,
)
"""Nothing was done; the text of each is a sentence for whoever asked."""
attempt = partial(asking.attempt, refusals=REFUSALS)


def person(request: HttpRequest) -> User:
    """Who is signed in: of a page whose guard lets nobody else through."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user
