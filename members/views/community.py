"""Pages that members read, and admins who look after them."""

from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache

from members.membership import in_community
from members.models import Proposal, Vote
from nan.access import View, login_required


def community(view: View) -> View:
    """Signed in, and of the community; others are told what they are missing."""

    @never_cache
    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not in_community(request.user):
            return render(request, "members/not_a_member.html", status=403)
        return view(request, *args, **kwargs)

    return guarded


def round_of(slug: str) -> Vote:
    return get_object_or_404(Vote.objects.select_related("slot__model", "swap"), slug=slug)


def proposal_of(pk: int) -> Proposal:
    return get_object_or_404(Proposal.objects.select_related("slot__model", "proposer"), pk=pk)
