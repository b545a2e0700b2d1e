"""/docs/: guides, examples of clients, and what works now. Read without signing in; what members
wrote, and the table of calls, by members."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from inference.docs import markup, pages, shell, verified
from inference.docs.pages import APIS, GUIDE, KINDS, Page
from inference.docs.values import reading, values
from inference.examples import PLACEHOLDER
from inference.probes import results
from members import recipes
from members.membership import in_community
from members.views.community import community


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    context = {"guides": pages.guides(), "examples": pages.listing()}
    return render(request, "docs/index.html", context)


@require_safe
def examples(request: HttpRequest) -> HttpResponse:
    """A search and two filters, as a plain form."""
    text = request.GET.get("q", "").strip()[:100]
    kind, api = request.GET.get("kind", ""), request.GET.get("api", "")
    found = pages.listing(text=text, kind=kind, api=api)
    context = {
        "found": found,
        "guides": [page for page in pages.guides() if page.says(text)] if text else [],
        "text": text,
        "kind": kind,
        "api": api,
        "kinds": [(name, title) for name, title in KINDS.items() if name != GUIDE],
        "apis": APIS.items(),
    }
    return render(request, "docs/examples.html", context)


@require_safe
@never_cache
def example(request: HttpRequest, name: str) -> HttpResponse:
    return _page(request, _found(name, guide=False))


@require_safe
@never_cache
def guide(request: HttpRequest, name: str) -> HttpResponse:
    return _page(request, _found(name, guide=True))


def _found(name: str, *, guide: bool) -> Page:
    page = pages.find(name, guide=guide)
    if page is None:
        raise Http404
    return page


def _page(request: HttpRequest, page: Page) -> HttpResponse:
    now = reading()
    filled = values(now)
    html = markup.fill(markup.page(page), filled)
    reader = in_community(request.user)
    context: dict[str, Any] = {
        "page": page,
        "html": html,
        "runs": now.runs,
        "badge": results.badge(page.needs, (now.chat, now.embedding)),
        "verified": verified.of(page.name),
        "placeholder": PLACEHOLDER,
        "reader": reader,
        "texts": recipes.published(page.name) if reader and not page.is_guide else [],
        **_file(page, filled),
    }
    context["takes_key"] = "data-key" in html or "data-key" in context["line"]
    return render(request, "docs/page.html", context)


def _file(page: Page, filled: dict[str, str]) -> dict[str, Any]:
    if not page.file:
        return {"files": [], "line": ""}
    url = settings.SITE_URL + reverse("docs_file", args=[page.name, page.file])
    return {"files": page.files, "line": markup.fill_line(shell.one_line(page, url), filled)}


@require_safe
@never_cache
def file(request: HttpRequest, name: str, file: str) -> HttpResponse:
    """A client's configuration as it is shown, with a placeholder where the key goes."""
    page = _found(name, guide=False)
    if file not in page.files:
        raise Http404
    text = markup.fill_text(markup.read_code(name, file), values(reading()))
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    return response


@require_safe
@community
def works(request: HttpRequest) -> HttpResponse:
    return render(request, "docs/works.html", {"table": results.table()})
