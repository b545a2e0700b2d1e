"""How the status page writes its figures; a dash where there is nothing to tell."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import template
from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from inference.status import glance
from inference.status.bars import Bar
from inference.status.words import API_WORDS

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

register = template.Library()
NOTHING = "–"
STATES: "dict[str, StrPromise]" = {
    "up": pgettext_lazy("model", "up"),
    "degraded": pgettext_lazy("model", "up, with fewer engines"),
    "down": pgettext_lazy("model", "model down"),
    "starting": pgettext_lazy("model", "starting"),
    "rotation": pgettext_lazy("model", "rotation under way"),
    "unknown": pgettext_lazy("model", "not measured"),
    "out": pgettext_lazy("model", "taken out by the admins"),
    "off": pgettext_lazy("model", "not in service"),
}
TONES = {
    "up": "good",
    "down": "bad",
    **dict.fromkeys(("degraded", "rotation", "starting", "out"), "wait"),
}
API_TONES = {"up": "good", "keys": "bad", "gateway": "bad", "edge": "bad"}


@register.simple_tag
def api_trouble() -> object:
    """Whichever page asks; None while requests are answered."""
    return glance.api_trouble()


@register.filter
def state_words(state: str) -> "StrPromise | str":
    return STATES.get(state, state)


@register.filter
def state_tone(state: str) -> str:
    return TONES.get(state, "")


@register.filter
def api_words(state: str) -> "StrPromise | str":
    return API_WORDS.get(state, state)


@register.filter
def api_tone(state: str) -> str:
    return API_TONES.get(state, "")


@register.filter
def get(found: dict[str, Any], name: str) -> Any:
    """For keys that a template can't write, such as `from`."""
    return found.get(name, "")


@register.filter
def seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value < 1:
        return f"{round(value * 1000)} ms"
    return f"{formats.number_format(value, 1)} s"


@register.filter
def figure(value: float | None) -> str:
    """One place after the point below ten."""
    return NOTHING if value is None else formats.number_format(value, 0 if value >= 10 else 1)


@register.filter
def percent(value: float | None, places: int = 0) -> str:
    """Never rounded up to a whole that it is not."""
    if value is None:
        return NOTHING
    scale = 10**places
    whole = int(value * 100 * scale + 1e-9) / scale
    return f"{formats.number_format(whole, places)}\N{NO-BREAK SPACE}%"


@register.filter
def flag(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@register.filter
def lasted(incident: dict[str, Any]) -> str:
    return _length(incident["ended_at"] - incident["began_at"])


def _length(span: timedelta) -> str:
    minutes = max(1, round(span / timedelta(minutes=1)))
    if minutes < 60:
        return _("%d min") % minutes
    return _("%(hours)d h %(minutes)d min") % {"hours": minutes // 60, "minutes": minutes % 60}


@register.filter
def bar_words(bar: Bar) -> str:
    """A day in one sentence."""
    if bar.share is None:
        return _("taken out of service") if bar.out_minutes else _("not measured")
    parts = [_("up %s") % percent(bar.share, 2)]
    if bar.down_minutes:
        parts.append(_("down %s") % _length(timedelta(minutes=bar.down_minutes)))
    if bar.rotation_minutes:
        parts.append(_("rotation %s") % _length(timedelta(minutes=bar.rotation_minutes)))
    if bar.out_minutes:
        parts.append(_("taken out of service %s") % _length(timedelta(minutes=bar.out_minutes)))
    return ", ".join(parts)
