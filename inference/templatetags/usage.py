"""How usage is written: shares, and long numbers where there is little room."""

from django import template
from django.utils import formats
from django.utils.translation import pgettext

register = template.Library()


@register.filter
def share(part: float | None) -> str:
    """0.256 → 26 %, as the reader's language writes it; a dash for nothing."""
    if part is None:
        return "–"
    return pgettext("percentage", "%(number)s%%") % {"number": round(part * 100)}


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
