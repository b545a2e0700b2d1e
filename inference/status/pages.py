"""/status/, /status.json and /status.atom: the same for everybody, with or without a database."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import linebreaks
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from inference.models import SwapState
from inference.status.bars import HEIGHT, bars, width
from inference.status.facts import Facts
from inference.status.shelf import Kept, NothingKnown, as_json, shelf
from inference.status.words import API_TROUBLES, TROUBLED, incident_title, out_title
from inference.status.written import Written
from nan.access import View
from nan.outage import unavailable

SECONDS = 10
"""For how long a browser or a proxy may show the same."""
_written = Written()


def from_shelf(view: Callable[[HttpRequest, Kept], HttpResponse]) -> View:
    """Hands on what is known, if anything is."""

    @require_safe
    @wraps(view)
    def answered(request: HttpRequest) -> HttpResponse:
        try:
            kept = shelf.look()
        except NothingKnown as error:
            return unavailable(request, error)
        return view(request, kept)

    return answered


def _public(content: bytes, content_type: str, kept: Kept) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    response["Cache-Control"] = f"public, max-age={SECONDS}" if kept.current else "no-store"
    return response


@from_shelf
def page(request: HttpRequest, kept: Kept) -> HttpResponse:
    language = _language(request)
    response = _public(_page(kept, language), "text/html; charset=utf-8", kept)
    patch_vary_headers(response, ["Accept-Language", "Cookie"])
    return response


def _language(request: HttpRequest) -> str:
    """By a link of the page, or as everywhere; a profile is not looked up here."""
    asked = request.GET.get("language", "")
    return asked if asked in dict(settings.LANGUAGES) else translation.get_language() or ""


def _page(kept: Kept, language: str) -> bytes:
    age = None if kept.current else int((timezone.now() - kept.made_at).total_seconds() / 60)

    def write() -> bytes:
        with translation.override(language):
            return render_to_string("status/page.html", _context(kept, age)).encode()

    return _written.get(f"page {language}", (kept.made_at, age), write)


def _context(kept: Kept, age: int | None) -> dict[str, Any]:
    facts = kept.facts
    api = facts["api"]
    rotations = facts["rotations"]
    slots = [
        {**slot, "bars": drawn, "width": width(drawn), "any_out": any(bar.out for bar in drawn)}
        for slot in facts["slots"]
        for drawn in [bars(slot["days"])]
    ]
    return {
        "SITE_URL": settings.SITE_URL,
        "API_URL": settings.API_URL,
        "MEMBER_RPM": settings.MEMBER_RPM,
        "MEMBER_PARALLEL": settings.MEMBER_PARALLEL,
        "made_at": kept.made_at,
        "unmeasured_since": kept.facts.get("unmeasured_since_at"),
        "old": not kept.current,
        "age": age,
        "api": {
            **api,
            "trouble": API_TROUBLES.get(api["state"]),
            "bars": bars(api["days"]),
            "width": width(api["days"]),
        },
        "slots": slots,
        "unmeasured": any(slot["state"] == "unknown" for slot in slots),
        "height": HEIGHT,
        "troubled": [slot for slot in slots if slot["state"] in TROUBLED],
        "incidents": facts["incidents"],
        "taken_out": facts.get("taken_out", ()),
        "planned": [one for one in rotations if one["state"] != SwapState.DONE],
        "done": [one for one in reversed(rotations) if one["state"] == SwapState.DONE],
    }


@from_shelf
def data(request: HttpRequest, kept: Kept) -> HttpResponse:
    known = {"current": kept.current, **kept.facts}
    state = (kept.made_at, kept.current)
    content = _written.get("data", state, lambda: as_json(known, indent=1).encode())
    response = _public(content, "application/json", kept)
    response["Access-Control-Allow-Origin"] = "*"
    return response


@from_shelf
def feed(request: HttpRequest, kept: Kept) -> HttpResponse:
    language = _language(request)

    def write() -> bytes:
        with translation.override(language):
            return _atom(kept.facts, language)

    content = _written.get(f"feed {language}", kept.made_at, write)
    response = _public(content, "application/atom+xml; charset=utf-8", kept)
    patch_vary_headers(response, ["Accept-Language", "Cookie"])
    return response


def _atom(facts: Facts, language: str) -> bytes:
    address = settings.SITE_URL + reverse("status")
    found = Atom1Feed(
        title=_("NaN: status"),
        link=address,
        description="",
        language=language,
        feed_url=settings.SITE_URL + reverse("status_feed"),
        feed_guid=address,
    )
    rotations = [one for one in facts["rotations"] if one["state"] != SwapState.PLANNED]
    out = [slot for slot in facts["slots"] if slot.get("out")]
    entries = [
        *map(_incident_entry, facts["incidents"]),
        *map(_rotation_entry, rotations),
        *map(_out_entry, out),
        *map(_was_out_entry, facts.get("taken_out", ())),
    ]
    for entry in sorted(entries, key=lambda one: one["updateddate"], reverse=True):
        words = linebreaks(entry.pop("words")[language], autoescape=True)  # a feed's text is HTML
        found.add_item(link=f"{address}#{entry['unique_id']}", description=words, **{
            **entry, "unique_id": f"{address}#{entry['unique_id']}",
        })  # fmt: skip
    return found.writeString("utf-8").encode()


def _incident_entry(incident: Facts) -> dict[str, Any]:
    """Later words and the end make it newer, under the same id. It says when it was, also before
    anybody has written about it."""
    updates = incident["updates"]
    times = [incident["began_at"], incident["ended_at"], *(one["written_at"] for one in updates)]
    span = {"began": _moment(incident["began_at"]), "ended": _moment(incident["ended_at"])}
    when = _("From %(began)s to %(ended)s.") if span["ended"] else _("Since %(began)s.")
    return {
        "unique_id": f"incident-{incident['id']}",
        "title": incident_title(incident),
        "pubdate": incident["began_at"],
        "updateddate": max(time for time in times if time),
        "words": {
            code: "\n\n".join([when % span, *(one[code] for one in updates)])
            for code in ("es", "en")
        },
    }


def _out_entry(slot: Facts) -> dict[str, Any]:
    at = slot["out"]["since_at"]
    words = _("Since %(began)s. This is planned, and no fault.") % {"began": _moment(at)}
    return {
        "unique_id": f"out-{slot['name']}-{at:%Y%m%d%H%M%S}",
        "title": out_title(slot),
        "pubdate": at,
        "updateddate": at,
        "words": {"es": words, "en": words},
    }


def _was_out_entry(period: Facts) -> dict[str, Any]:
    """The end of what `_out_entry` told, under the same id."""
    began, ended = period["began_at"], period["ended_at"]
    words = _("From %(began)s to %(ended)s. This was planned, and no fault.") % {
        "began": _moment(began),
        "ended": _moment(ended),
    }
    return {
        "unique_id": f"out-{period['slot']}-{began:%Y%m%d%H%M%S}",
        "title": _("%(slot)s: the admins had taken it out of service") % period,
        "pubdate": began,
        "updateddate": ended,
        "words": {"es": words, "en": words},
    }


def _rotation_entry(rotation: Facts) -> dict[str, Any]:
    title = {
        SwapState.APPROVED: _("%(slot)s: %(to)s takes the place of %(from)s"),
        SwapState.DONE: _("%(slot)s: %(to)s has taken the place of %(from)s"),
    }.get(rotation["state"], _("%(slot)s: %(to)s is taking the place of %(from)s"))
    at = rotation["finished_at"] or rotation["start_at"] or rotation["known_at"]
    when = _moment(at)
    return {
        "unique_id": f"rotation-{rotation['id']}",
        "title": title % rotation,
        "pubdate": rotation["start_at"] or at,
        "updateddate": at,
        "words": {"es": when, "en": when},
    }


def _moment(at: datetime | None) -> str:
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M %Z") if at else ""
