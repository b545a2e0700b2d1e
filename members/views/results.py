"""After the close: the result, all ballots as files, and a count in the reader's own browser."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from members.membership import in_community
from members.models import Vote
from members.views.community import round_of
from members.voting import ratify, receipts, results, source

LONGEST_RECEIPT = 200


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def result(request: HttpRequest, slug: str) -> HttpResponseBase:
    """POST looks for a receipt: its words are in no address, and in no log."""
    vote = round_of(slug)
    access = results.access(vote=vote, user=request.user)
    if access == "nothing":
        return _nothing(request, vote)
    context = {**_shown(vote), "all": access == "all"}
    if request.method == "POST" and access == "all":
        context |= _found(vote, request.POST.get("receipt", "")[:LONGEST_RECEIPT])
    return render(request, "vote/result.html", context)


def _nothing(request: HttpRequest, vote: Vote) -> HttpResponseBase:
    """The same for a round that is open and one whose result is not for her."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if in_community(request.user):
        return redirect("vote_ballot", vote.slug)
    return render(request, "members/not_a_member.html", status=403)


def _shown(vote: Vote) -> dict[str, Any]:
    found, named, letters = results.result(vote), results.titles(vote), results.marks(vote)
    options = [(letters[code], named[code]) for code in found.options]
    return {
        "vote": vote,
        "result": found,
        "titles": results.marked(vote),
        "winner": named[found.winner],
        "verdict": results.verdict(vote),
        "pairs": results.pairs(vote),
        "options": options,
        "pairwise": _table(options, found.pairwise),
        "paths": _table(options, found.paths),
        "levels": [
            [
                (letters[code], named[code], found.first[number])
                for number, code in enumerate(found.options)
                if code in level
            ]
            for level in found.levels
        ],
        "announcement": ratify.announcement(vote) if vote.swap_id else "",
        "in_vain": vote.swap is not None and vote.swap.state in ratify.IN_VAIN,
    }


def _table(options: list[tuple[str, str]], matrix: list[list[int]]) -> list[Any]:
    """Rows of a table: letter, title, cells; None on the diagonal. Options have long names, so
    columns carry their letters."""
    return [
        (letter, title, [None if i == j else n for j, n in enumerate(matrix[i])])
        for i, (letter, title) in enumerate(options)
    ]


def _found(vote: Vote, text: str) -> dict[str, Any]:
    ballot = receipts.find(vote=vote, text=text)
    return {"asked": True, "ballot": ballot.ranking if ballot else None}


# -- Counting it again --------------------------------------------------------------------------
def _with_ballots(
    view: Callable[[HttpRequest, Vote], HttpResponseBase],
) -> Callable[[HttpRequest, str], HttpResponseBase]:
    """Ballots are for members only, also of rounds whose result is public."""

    @require_safe
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, slug: str) -> HttpResponseBase:
        vote = round_of(slug)
        access = results.access(vote=vote, user=request.user)
        if access == "all":
            return view(request, vote)
        return redirect("vote_result", slug) if access == "result" else _nothing(request, vote)

    return guarded


@_with_ballots
def check(request: HttpRequest, vote: Vote) -> HttpResponseBase:
    return render(request, "vote/check.html", _shown(vote))


@_with_ballots
def csv(_request: HttpRequest, vote: Vote) -> HttpResponseBase:
    response = StreamingHttpResponse(results.as_csv(vote), content_type="text/csv; charset=utf-8")
    return _as_file(response, vote, "csv")


@_with_ballots
def json(_request: HttpRequest, vote: Vote) -> HttpResponseBase:
    return _as_file(JsonResponse(results.as_json(vote)), vote, "json")


def _as_file(response: HttpResponseBase, vote: Vote, kind: str) -> HttpResponseBase:
    response["Content-Disposition"] = f'attachment; filename="nan-{vote.slug}-ballots.{kind}"'
    return response


@require_safe
def program(_request: HttpRequest) -> HttpResponse:
    """For everybody: it knows nothing of any vote."""
    response = HttpResponse(source.archive(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{source.NAME}"'
    return response
