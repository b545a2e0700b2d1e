"""The member's usage pages. No address holds an id: each shows the reader's own figures."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from inference.usage import page, table
from inference.usage.figures import Span, of_holder
from nan.access import HtmxRequest, has_member_access, loads_anew_without, member_required


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
@loads_anew_without(has_member_access)
@member_required
def usage_live(request: HtmxRequest) -> HttpResponse:
    """The part that moves; asked for every five seconds while the page is looked at."""
    if not request.htmx:
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
    return table.download(span.within(rows), f"usage-{span.first}-{span.last}")


def _reader(request: HttpRequest) -> Any:
    user: Any = request.user
    return user.public_id
