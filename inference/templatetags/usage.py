"""How usage is written: shares, and long numbers where there is little room."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django import template
from django.utils import dateformat, formats
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

from inference.usage.figures import Figures

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

register = template.Library()
COLUMNS: "dict[str, StrPromise]" = {
    "requests": _("Requests"),
    "prompt_tokens": _("Input tokens"),
    "cached_tokens": _("From the cache"),
    "completion_tokens": _("Output tokens"),
    "refused_rpm": _("Refused: a minute"),
    "refused_parallel": _("Refused: in parallel"),
    "failed": _("Failed"),
    "left_early": _("Left early"),
}


@dataclass(frozen=True)
class Cell:
    label: str
    value: str
    share: str = ""


@register.simple_tag
def columns() -> "list[StrPromise]":
    return list(COLUMNS.values())


@register.filter
def cells(figures: Figures) -> Iterator[Cell]:
    """Written out here: a template takes ten times as long, and a table has hundreds."""
    for name, label in COLUMNS.items():
        value = formats.number_format(getattr(figures, name))
        cached = name == "cached_tokens" and figures.prompt_tokens
        yield Cell(str(label), value, share(figures.cached_share) if cached else "")


@register.filter
def share(part: float | None) -> str:
    """0.256 → 26 %, as the reader's language writes it; a dash for nothing."""
    if part is None:
        return "–"
    return pgettext("percentage", "%(number)s%%") % {"number": round(part * 100)}


@register.filter
def axis_day(day: date) -> str:
    """As short as the reader's language has it: 1 Nov, 1 nov."""
    # Translators: a day below a chart, in Django's date format. Spanish: "j b".
    return dateformat.format(day, pgettext("day on an axis", "j M"))


@register.filter
def brief(value: int) -> str:
    """1234567 → 1.2 M: for axes and cards. Tables have the whole number."""
    for size, sign in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            scaled = value / size
            digits = 0 if scaled >= 100 or value % size == 0 else 1
            # Rounded here: Django cuts digits off.
            number = formats.number_format(round(scaled, digits), digits)
            return f"{number}\N{NO-BREAK SPACE}{sign}"
    return formats.number_format(value)
