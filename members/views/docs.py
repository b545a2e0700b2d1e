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
from inference.models import Kind
from inference.probes import results
from inference.status import glance
from inference.status.facts import Facts
from members import recipe_votes
from members.membership import in_community
from members.views.asking import person
from members.views.community import community
from nan.access import has_staff_access


@require_safe
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    context = {"guides": pages.guides(), "examples": pages.listing()}
    return render(request, "docs/index.html", context)


@require_safe
@never_cache
def examples(request: HttpRequest) -> HttpResponse:
    """A search and two filters, as a plain form."""
    text = request.GET.get("q", "").strip()[:100]
    client, api = request.GET.get("client", ""), request.GET.get("api", "")
    found = pages.listing(text=text, client=client, api=api)
    now = reading()
    badges = results.badges({page.name: page.needs for page in found}, (now.chat, now.embedding))
    asked = (text or api) and not client
    context = {
        "found": [(page, badges[page.name], verified.of(page.name)) for page in found],
        "guides": pages.guides(text=text, api=api) if asked else [],
        "text": text,
        "client": client,
        "api": api,
        "clients": [
            (kind, title, pages.listing(client=kind))
            for kind, title in KINDS.items()
            if kind != GUIDE
        ],
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
        "silent": glance.silent(kinds=_kinds(page)) if page.needs else [],
        "badge": results.badge(page.needs, (now.chat, now.embedding)),
        "verified": verified.of(page.name),
        "placeholder": PLACEHOLDER,
        "reader": reader,
        "texts": _texts(request, page) if reader else [],
        **_file(page, filled),
    }
    context["takes_key"] = "data-key" in html or "data-key" in context["line"]
    return render(request, "docs/page.html", context)


def _kinds(page: Page) -> set[str]:
    """Of the models that its calls go to."""
    return {Kind.EMBEDDING if api == "embeddings" else Kind.CHAT for api in page.apis}


def _texts(request: HttpRequest, page: Page) -> list[recipe_votes.Shown]:
    return [] if page.is_guide else recipe_votes.published(page.name, person(request))


def _file(page: Page, filled: dict[str, str]) -> dict[str, Any]:
    if not page.file:
        return {"files": [], "line": ""}
    url = settings.SITE_URL + reverse("docs_file", args=[page.name, page.file])
    line = shell.one_line(page, url.removesuffix(page.file))
    return {
        "files": page.files,
        "line": markup.fill_line(line, filled),
        "line_has_key": shell.needs_key(page),
    }


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


def _state(slot: Facts) -> str:
    """Before the first measurement, what the rows say."""
    return "up" if slot["state"] == "unknown" and slot["serving"] else str(slot["state"])


@require_safe
@community
def works(request: HttpRequest) -> HttpResponse:
    states = {slot["name"]: _state(slot) for slot in glance.slots()}
    context = {
        "table": results.table(),
        "states": states,
        "by_themselves": settings.PROBES,
        "may_ask": has_staff_access(request),
    }
    return render(request, "docs/works.html", context)
