"""From a result to a planned swap: the entry of the catalogue, the date, words for members."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from inference.staff import catalogue
from members.models import Vote
from members.views.asking import person
from members.views.community import round_of
from members.views.staff_votes import status_of
from members.vote_forms import RatifyForm
from members.voting import ratify as use_case
from members.voting import results
from members.voting.refusals import Refused, words
from nan.access import staff_required

OF_DATE = ("starts_too_late",)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def ratify(request: HttpRequest, slug: str) -> HttpResponse:
    vote = round_of(slug)
    choice = use_case.choice(vote)
    if choice.code == "model_missing":
        return redirect("staff_vote_model", slug)
    if choice.candidate is None:
        return _not_now(request, vote, choice.code)
    data = request.POST or None
    tie = choice.code == "tie"
    form = RatifyForm(data, repo=choice.candidate.repo, tie=tie, initial={"model": choice.model})
    if request.method == "POST" and form.is_valid() and _done(request, vote, form):
        return redirect("staff_vote", slug)
    context = {"vote": vote, "choice": choice, "form": form, "verdict": results.verdict(vote)}
    return render(request, "staff/votes/ratify.html", context, status=status_of(form))


def _not_now(request: HttpRequest, vote: Vote, code: str) -> HttpResponse:
    """A second click on what is ratified finds the plan."""
    if not (code == "done" and vote.ratified_by_id == person(request).pk):
        messages.error(request, words(code))
    return redirect("staff_vote", vote.slug)


def _done(request: HttpRequest, vote: Vote, form: RatifyForm) -> bool:
    values: dict[str, Any] = form.cleaned_data
    try:
        use_case.ratify(vote=vote, actor=person(request), **values)
    except Refused as refusal:
        form.add_error("start_at" if refusal.code in OF_DATE else None, str(refusal))
        return False
    if settings.SWAP_SECOND_ADMIN:
        said = _("Planned. Another admin must approve the swap; then members get one mail.")
    else:
        said = _("Planned. An admin, also you, must approve the swap; then members get one mail.")
    messages.success(request, said)
    return True


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@staff_required
def model(request: HttpRequest, slug: str) -> HttpResponse:
    """The catalogue's own form, filled in with what is known of the model that was chosen."""
    vote = round_of(slug)
    choice = use_case.choice(vote)
    if choice.code != "model_missing":
        return redirect("staff_vote_ratify", slug)
    return catalogue.form_page(
        request, None, initial=choice.draft, then="staff_vote_ratify", back="staff_vote", slug=slug
    )
