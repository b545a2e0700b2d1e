"""Parts of a page that the browser asks for again while something moves.

The frame of a page stays: headings, `<details>` and whatever has the focus. A part is what stands
inside an element with an id. The browser says by a mark which version of each part it shows, and
gets only those that look different now; when nothing moves any more, it is not told to ask again.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django_htmx.http import HttpResponseClientRefresh

from nan.access import HtmxRequest, has_staff_access

SECONDS = 2
ELEMENT = (
    '<div id="live" hidden hx-get="{}?seen={}" hx-trigger="every {}s" hx-swap="outerHTML"></div>'
)
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')
View = Callable[..., HttpResponse]


@dataclass(frozen=True, kw_only=True)
class Part:
    id: str
    html: SafeString

    @property
    def mark(self) -> str:
        """Changes with what the part says; the token against forged requests differs each time."""
        said = TOKEN.sub("", self.html)
        return f"{self.id}.{hashlib.sha256(said.encode()).hexdigest()[:8]}"


def part(request: HttpRequest, name: str, template: str, **context: Any) -> Part:
    return Part(id=name, html=render_to_string(template, context, request))


def asking(parts: Sequence[Part], *, address: str, moving: bool) -> SafeString:
    """The element that asks again; empty when nothing moves."""
    seen = ",".join(part.mark for part in parts)
    return format_html(ELEMENT, address, seen, SECONDS) if moving else SafeString("")


def answer(
    request: HttpRequest, parts: Sequence[Part], *, address: str, moving: bool
) -> HttpResponse:
    """What has changed since the browser last asked, and whether it asks again."""
    seen = set(request.GET.get("seen", "").split(","))
    changed = [part for part in parts if part.mark not in seen]
    if moving and not changed:
        return HttpResponse(status=204)
    swapped = format_html_join(
        "\n",
        '<div hx-swap-oob="innerHTML:#{}">{}</div>',
        ((part.id, part.html) for part in changed),
    )
    return HttpResponse(swapped + asking(parts, address=address, moving=moving))


def signed_out_refreshes(view: View) -> View:
    """Outermost, above `staff_required`: a page whose reader may no longer see it loads anew,
    instead of having the sign-in page put into its middle."""

    @wraps(view)
    def guarded(request: HtmxRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        user = request.user
        if request.htmx and not (user.is_authenticated and has_staff_access(request)):
            return HttpResponseClientRefresh()
        return view(request, *args, **kwargs)

    return guarded
