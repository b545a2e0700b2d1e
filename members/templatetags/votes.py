"""How votes are written: moments in Madrid's time and the reader's, sizes, what is open now."""

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.core.cache import cache
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from members.models import Vote
from members.voting import refusals
from members.voting.compare import capability_words

register = template.Library()
GIB = 2**30
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


@register.filter
def gib(size: int | None) -> str:
    """Bytes → 14.2 GiB."""
    if not size:
        return "–"
    value = size / GIB
    return f"{formats.number_format(value, 0 if value >= 100 else 1)} GiB"


@register.filter
def billions(number: int | None) -> str:
    """Parameters, as people write them: 7.6 B."""
    if not number:
        return "–"
    value = number / 1e9
    return f"{formats.number_format(value, 0 if value >= 100 else 1)} B"


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
    return _("none: too long") if number == 0 else formats.number_format(number, 0)


@register.filter
def fit_words(fits: bool | None) -> str:
    if fits is None:
        return _("not known")
    return _("fits") if fits else _("does not fit")


@register.filter
def fit_tone(fits: bool | None) -> str:
    return "" if fits is None else "good" if fits else "bad"


@register.filter
def why(code: str) -> str:
    """The sentence of a refusal."""
    return refusals.words(code)


@register.filter
def titled(codes: list[str], titles: dict[str, str]) -> str:
    """Codes of one group in the words of the ballot."""
    return " = ".join(titles.get(code, code) for code in codes)
