"""The member's usage pages. No address holds an id: each shows the reader's own figures."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from inference.usage import page, table
from inference.usage.figures import Span, of_holder
from nan.access import member_required


@require_safe
@never_cache
@member_required
def usage(request: HttpRequest) -> HttpResponse:
    owner = _reader(request)
    context = {
        "page": page.UsagePage.of(owner, page.length(request.GET.get("days", ""))),
        "spans": page.SPANS,
        "live": page.live(request.user),
        "looks": page.looks(owner),
    }
    return render(request, "inference/usage.html", context)


@require_safe
@never_cache
def usage_live(request: HttpRequest) -> HttpResponse:
    """The part that moves; asked for every five seconds while the page is looked at."""
    user = request.user
    if request.htmx and not (user.is_authenticated and user.is_member):  # type: ignore[attr-defined]
        return HttpResponseClientRefresh()  # signed out meanwhile: the whole page says so
    return _live(request)


@member_required
def _live(request: HttpRequest) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("usage")
    return render(request, "inference/usage_live.html", {"live": page.live(request.user)})


@require_safe
@never_cache
@member_required
def usage_csv(request: HttpRequest) -> Any:
    """The days that the page shows, or with `days=all` everything there is."""
    asked = request.GET.get("days", "")
    rows = of_holder(_reader(request))
    if asked == "all":
        return table.download(rows, "usage")
    span = Span.of(page.length(asked))
    rows = rows.filter(day__gte=span.first, day__lte=span.last)
    return table.download(rows, f"usage-{span.first}-{span.last}")


def _reader(request: HttpRequest) -> Any:
    user: Any = request.user
    return user.public_id
