"""How votes are written: moments in Madrid's time and the reader's, sizes, what is open now."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.conf import settings
from django.core.cache import cache
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from members import tally
from members.models import Vote
from members.voting import refusals
from members.voting.compare import Card, capability_words

register = template.Library()
MIB, GIB = 2**20, 2**30
RUNNING = "votes:running"
RUNNING_SECONDS = 30
SOME = 14


@register.simple_tag
def moment(when: datetime | None) -> SafeString | str:
    """In Madrid's time, with its distance from UTC; zone.js adds the reader's own time."""
    if when is None:
        return "–"
    local = timezone.localtime(when)
    return format_html(
        '<span class="moment"><time datetime="{}">{}</time> <span>(Madrid, {})</span>'
        '<span class="own-zone" hidden data-words="{}"></span></span>',
        local.isoformat(timespec="seconds"),
        formats.date_format(local, "DATETIME_FORMAT"),
        _offset(local),
        _("where you are: {time} ({zone})"),
    )


def _offset(local: datetime) -> str:
    minutes = int((local.utcoffset() or timedelta()).total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


@register.simple_tag
def running_votes() -> list[dict[str, Any]]:
    """Open rounds, for the header of each page: known half a minute late at most, and never shown
    after their deadline."""
    found: list[dict[str, Any]] | None = cache.get(RUNNING)
    if found is None:
        rows = Vote.objects.open().order_by("closes_at").values_list("slug", "closes_at")
        found = [{"slug": slug, "closes_at": until} for slug, until in rows]
        cache.set(RUNNING, found, RUNNING_SECONDS)
    return [vote for vote in found if vote["closes_at"] > timezone.now()]


@register.simple_tag
def two_admins() -> bool:
    """Whether a swap needs another admin than the one who planned it."""
    return settings.SWAP_SECOND_ADMIN


@register.filter
def gib(size: int | None) -> str:
    """Bytes → 14.2 GiB, 270 MiB."""
    if not size:
        return "–"
    unit, value = ("GiB", size / GIB) if size >= GIB else ("MiB", size / MIB)
    return f"{formats.number_format(value, 0 if value >= 100 else 1)} {unit}"


@register.filter
def billions(number: int | None) -> str:
    """Parameters, as people write them: 7.6 B, 135 M."""
    if not number:
        return "–"
    unit, value = ("B", number / 1e9) if number >= 1e9 else ("M", number / 1e6)
    return f"{formats.number_format(value, 0 if value >= 100 else 1)} {unit}"


@register.filter
def capabilities(facts: dict[str, Any]) -> str:
    return ", ".join(capability_words(facts.get("capabilities", [])))


@register.filter
def some(words: list[str], most: int = SOME) -> str:
    """A list that does not fill the page: models that speak a hundred languages say all of them."""
    shown, more = words[:most], len(words) - most
    if more > 0:
        rest = ngettext("%(number)d more", "%(number)d more", more) % {"number": more}
        shown = [*shown, rest]
    return ", ".join(shown)


@register.filter
def at_once(number: int | None) -> str:
    """Members at once: none is a word, and so is what nobody can say."""
    if number is None:
        return _("not known")
    return _("none: too long") if number == 0 else _count(number)


@register.filter
def fit_words(fits: bool | None) -> str:
    if fits is None:
        return _("not known")
    return _("fits") if fits else _("does not fit")


@register.filter
def fit_tone(fits: bool | None) -> str:
    return "" if fits is None else "good" if fits else "bad"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fact of an option and of what it is compared with."""

    name: str
    mine: str
    theirs: str
    tones: tuple[str, str] | None = None
    """Of badges, where the fact is one of states."""
    number: bool = False

    @property
    def differs(self) -> bool:
        return self.mine.lower() != self.theirs.lower()


@register.simple_tag
def beside(card: Card, current: Card) -> dict[str, Any]:
    """Figures in which both differ, and the others; beside them what takes words, which columns are
    too narrow for on a phone."""
    rows = [_fit(card, current), *_figures(card, current)]
    return {
        "differing": [row for row in rows if row.differs],
        "same": [row for row in rows if not row.differs],
        "licence": Row(name=_("Licence"), mine=_licence(card), theirs=_licence(current)),
        "skills": _skills(card, current),
    }


def _fit(card: Card, current: Card) -> Row:
    return Row(
        name=_("On our servers"),
        mine=fit_words(card.fits),
        theirs=fit_words(current.fits),
        tones=(fit_tone(card.fits), fit_tone(current.fits)),
    )


def _figures(card: Card, current: Card) -> list[Row]:
    def row(name: str, said: Callable[[Card], str]) -> Row:
        return Row(name=name, mine=said(card), theirs=said(current), number=True)

    return [
        row(_("Members at once, 32k tokens each"), lambda one: at_once(one.at_32k)),
        row(_("Members at once, 128k tokens each"), lambda one: at_once(one.at_128k)),
        row(_("Context (tokens)"), lambda one: _count(one.facts.get("context"))),
        row(_("Size of the weights"), lambda one: gib(one.facts.get("weights_bytes"))),
    ]


def _skills(card: Card, current: Card) -> list[Row]:
    """How they differ is said as gained and lost."""
    return [
        Row(name=_("Can do"), mine=_can(card), theirs=_can(current)),
        Row(name=_("Languages"), mine=_speaks(card), theirs=_speaks(current)),
    ]


def _can(card: Card) -> str:
    return (capabilities(card.facts) or "–") if card.can_be_told else _("not known")


def _speaks(card: Card) -> str:
    return some(card.speaks) or _("not known")


def _licence(card: Card) -> str:
    named = card.facts.get("licence")
    return f"{card.licence_words} ({named})" if named else card.licence_words


def _count(number: int | None) -> str:
    return formats.number_format(number, 0, force_grouping=True) if number else "–"


@register.filter
def why(code: str) -> str:
    """The sentence of a refusal."""
    return refusals.words(code)


@register.filter
def titled(codes: list[str], titles: dict[str, str]) -> str:
    """Codes of one group in the words of the ballot."""
    return " = ".join(titles.get(code, code) for code in codes)


@register.filter
def mark(number: int) -> str:
    """The letter of an option, by its place on the ballot from 0 on."""
    return tally.mark(number)
