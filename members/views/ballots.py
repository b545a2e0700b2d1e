"""The ballot: what the options mean, her ranking, and the receipt.

Her ranking and the receipt stand in `no-store` answers only: never in a session, a message, an
address or a log line.
"""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from members.membership import in_community
from members.models import User, Vote
from members.tally import quorum_of, spell
from members.views.asking import person
from members.views.community import round_of
from members.voting import ballots, compare, receipts, results, rounds
from members.voting.refusals import Refused
from nan.access import login_required

LONGEST_RANK = 9
RANK = "rank:"
NOT_NOW = ("over", "not_open")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def ballot(request: HttpRequest, slug: str) -> HttpResponse:
    vote, user = round_of(slug), person(request)
    if request.method == "POST":
        return _cast(request, vote, user)
    if not in_community(user):
        return _refused(request, vote, user)
    if vote.is_over:
        return redirect("vote_result", slug)
    if vote.state == Vote.State.CANCELLED and vote.kind == Vote.Kind.RECALL:
        return render(request, "vote/moot.html", {"vote": vote})
    if vote.state == Vote.State.CANCELLED or not (vote.is_open or vote.opens_at):
        raise Http404
    return _page(request, vote, user)


def _refused(request: HttpRequest, vote: Vote, user: User) -> HttpResponse:
    """Who is no member is told why, and nothing of the ballot."""
    standing = ballots.standing(vote=vote, user=user)
    context = {"vote": vote, "why": standing.words}
    return render(request, "vote/refused.html", context, status=403)


def _cast(request: HttpRequest, vote: Vote, user: User) -> HttpResponse:
    typed = {
        code: request.POST.get(f"{RANK}{code}", "").strip()[:LONGEST_RANK] for code in vote.codes
    }
    try:
        ranking = ballots.from_ranks(typed)
        _only_what_the_page_offers(request, typed)
        ballots.cast(vote=vote, user=user, ranking=ranking)
    except Refused as refusal:
        if not in_community(user):
            return _refused(request, vote, user)
        who = ballots.standing(vote=vote, user=user).code
        status = 409 if refusal.code in NOT_NOW else 403 if who == refusal.code else 422
        return _page(request, vote, user, typed=typed, refusal=refusal, status=status)
    return redirect("vote_receipt", vote.slug)


def _only_what_the_page_offers(request: HttpRequest, typed: dict[str, str]) -> None:
    """A page of another day, or of another round, must not lose what she chose."""
    for name in request.POST:
        if name.startswith(RANK) and name.removeprefix(RANK) not in typed:
            raise Refused("option_unknown")
        if name.startswith(RANK) and len(request.POST.getlist(name)) > 1:
            raise Refused("option_twice")
    if any(rank and int(rank) > len(typed) for rank in typed.values()):
        raise Refused("rank_too_big")


def _page(
    request: HttpRequest,
    vote: Vote,
    user: User,
    *,
    typed: dict[str, str] | None = None,
    refusal: Refused | None = None,
    status: int = 200,
) -> HttpResponse:
    cards = compare.cards(vote)
    current = next(card for card in cards if card.is_current)
    stored = ballots.mine(vote=vote, user=user)
    codes = [card.code for card in cards]
    ranks = typed or dict(zip(codes, spell(codes, stored or []), strict=True))
    context = {
        "vote": vote,
        "current": current,
        "others": [card for card in cards if not card.is_current],
        "rows": [(card, ranks.get(card.code, "")) for card in cards],
        "places": [str(number) for number in range(1, len(cards) + 1)],
        "stored": stored,
        "standing": ballots.standing(vote=vote, user=user),
        "taking": rounds.taking_ballots(vote),
        "extensions": vote.extensions.select_related("asked_by", "confirmed_by"),
        "needed": quorum_of(roll=vote.roll_size or 0, percent=vote.quorum_percent),
        "refusal": refusal,
    }
    return render(request, "vote/ballot.html", context, status=status)


# -- The receipt --------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def receipt(request: HttpRequest, slug: str) -> HttpResponse:
    """GET: what is stored. POST: the four words, once after each cast; reloading finds none."""
    vote, user = round_of(slug), person(request)
    if request.method != "POST":
        return _receipt_page(request, vote, user)
    number = ballots.show_receipt(vote=vote, user=user)
    if number is None:
        return _receipt_page(request, vote, user, gone=True)
    language = translation.get_language() or "es"
    return _receipt_page(request, vote, user, words=receipts.words(number, language))


@require_POST
@never_cache
@login_required
def mail_receipt(request: HttpRequest, slug: str) -> HttpResponse:
    vote, user = round_of(slug), person(request)
    try:
        ballots.mail_receipt(vote=vote, user=user)
    except Refused:
        return redirect("vote_ballot", slug)
    return _receipt_page(request, vote, user, mailed=True)


def _receipt_page(request: HttpRequest, vote: Vote, user: User, **more: Any) -> HttpResponse:
    """Without a ballot that is hers there is nothing to show: never cast, or not hers any more."""
    stored = ballots.mine(vote=vote, user=user)
    if stored is None:
        return redirect("vote_ballot", vote.slug)
    titles = results.marked(vote)
    ranked = {code for group in stored for code in group}
    context = {
        "vote": vote,
        "stored": stored,
        "unranked": [title for code, title in titles.items() if code not in ranked],
        "titles": titles,
        "taking": rounds.taking_ballots(vote),
        "waits": ballots.receipt_waits(vote=vote, user=user),
        **more,
    }
    return render(request, "vote/receipt.html", context)
