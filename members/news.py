"""News on a member's home: what admins write, and what happened to models and votes.

Only the first is a row of its own; the rest is read from where it happened.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from inference.models import SwapState
from inference.status.facts import Facts
from inference.status.shelf import NothingKnown, shelf
from inference.status.words import incident_title
from members.models import News, User, Vote
from members.voting import ratify, results

SHOWN = 6
DAYS = 30


class Refused(Exception):
    """Not possible, for a reason that the admin should read."""


@dataclass(frozen=True, kw_only=True)
class Item:
    at: datetime
    title: str = ""
    text: str = ""
    link: str = ""


# -- Writing ------------------------------------------------------------------------------------
def write(*, actor: User | None, text_es: str, text_en: str) -> News:
    text_es, text_en = text_es.strip(), text_en.strip()
    if not (text_es and text_en):
        raise Refused(_("Write it in Spanish and in English."))
    last = News.objects.filter(withdrawn_at=None).first()
    if last and (last.text_es, last.text_en) == (text_es, text_en):
        raise Refused(_("This is the latest news already."))  # a button pressed twice
    return News.objects.create(author=actor, text_es=text_es, text_en=text_en)


def withdraw(*, news: int, actor: User | None) -> None:
    standing = News.objects.filter(pk=news, withdrawn_at=None)
    if not standing.update(withdrawn_at=timezone.now(), withdrawn_by=actor):
        raise Refused(_("It was withdrawn already."))


# -- Reading ------------------------------------------------------------------------------------
def latest() -> list[Item]:
    """Of the last weeks, newest first, in the reader's language. The number of queries is fixed."""
    since = timezone.now() - timedelta(days=DAYS)
    found = [*_written(since), *_votes(since), *_of_models(since)]
    return sorted(found, key=lambda item: item.at, reverse=True)[:SHOWN]


def _written(since: datetime) -> Iterator[Item]:
    for row in News.objects.filter(withdrawn_at=None, at__gte=since)[:SHOWN]:
        yield Item(at=row.at, text=row.text_en if _english() else row.text_es)


def _votes(since: datetime) -> Iterator[Item]:
    """Counted; and, once a plan has its second admin, what is announced of it, unless it came to
    nothing."""
    over = Vote.objects.over().select_related("slot", "swap").prefetch_related("candidates")
    for vote in over.filter(closed_at__gte=since).order_by("-closed_at")[:SHOWN]:
        title = _("The vote %(name)s is counted") % {"name": vote.slug}
        link = reverse("vote_result", args=[vote.slug])
        if vote.closed_at:
            yield Item(at=vote.closed_at, title=title, text=results.verdict(vote), link=link)
    planned = Vote.objects.filter(announced_at__gte=since)
    standing = planned.exclude(swap__state__in=ratify.IN_VAIN)
    swaps = standing.select_related("swap__slot", "swap__from_model", "swap__to_model")
    for vote in swaps.order_by("-announced_at")[:SHOWN]:
        if vote.announced_at and vote.swap:
            swap = vote.swap
            names = {
                "slot": swap.slot.name,
                "to": swap.to_model.title,
                "from": swap.from_model.title,
            }
            yield Item(
                at=vote.announced_at,
                title=_("%(slot)s: %(to)s takes the place of %(from)s") % names,
                text=ratify.announcement(vote),
                link=reverse("vote_index") + "#calendar",
            )


def _of_models(since: datetime) -> Iterator[Item]:
    """As the status page tells it: rotations that are done, and incidents."""
    for rotation in _facts("rotations"):
        if rotation["state"] == SwapState.DONE:
            title = _("%(slot)s: %(to)s has taken the place of %(from)s") % rotation
            yield Item(at=rotation["finished_at"], title=title, link=reverse("status"))
    for incident in _facts("incidents"):
        if incident["began_at"] >= since:
            yield Item(
                at=incident["began_at"],
                title=incident_title(incident),
                text=_last_words(incident["updates"]),
                link=f"{reverse('status')}#incident-{incident['id']}",
            )


def _facts(name: str) -> list[Facts]:
    try:
        found: list[Facts] = shelf.look().facts[name]
    except NothingKnown:
        return []
    return found


def _last_words(updates: list[dict[str, Any]]) -> str:
    return str(updates[-1]["en" if _english() else "es"]) if updates else ""


def _english() -> bool:
    return (translation.get_language() or "es").startswith("en")
