"""How the fleet's figures are written: memory, durations, percentages, states."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import template
from django.utils import formats, timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext, pgettext_lazy

from inference.fleet import words as catalogue
from inference.models import ReplicaState, Swap, SwapReplica, SwapState
from inference.staff import alert_words, engine_words, events, model_form
from inference.staff.live import Part

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

register = template.Library()
register.filter(events.happened)
register.filter(events.remark)
register.filter(engine_words.phase)
register.filter(engine_words.check)
register.filter(engine_words.error_said)
register.filter("remark_on_alert", alert_words.remark)
register.filter("page_of_alert", alert_words.page)
MIB_PER_GIB = 1024
STEPS: "dict[str, StrPromise]" = {
    "preflight": pgettext_lazy("step", "Checks before the start"),
    "drain": pgettext_lazy("step", "Drain"),
    "stop": pgettext_lazy("step", "Stop"),
    "start": pgettext_lazy("step", "Start"),
    "smoke": pgettext_lazy("step", "Smoke test"),
    "serve": pgettext_lazy("step", "Joining the pool"),
    "watch": pgettext_lazy("step", "Watching"),
}
CAPABILITIES = dict(model_form.CAPABILITIES)
TONES: Mapping[str, str] = {
    ReplicaState.SERVING: "good",
    ReplicaState.FAILED: "bad",
    ReplicaState.STARTING: "wait",
    ReplicaState.CHECKING: "wait",
    ReplicaState.JOINING: "wait",
    ReplicaState.DRAINING: "wait",
    ReplicaState.STOPPING: "wait",
}
SWAP_TONES: Mapping[str, str] = {
    SwapState.PLANNED: "wait",
    SwapState.RUNNING: "wait",
    SwapState.RETURNING: "wait",
    SwapState.DONE: "good",
    SwapState.FAILED: "bad",
    SwapState.ABORTED: "bad",
    SwapReplica.State.CHANGING: "wait",
    SwapReplica.State.WATCHED: "wait",
    SwapReplica.State.RESTORED: "good",
    SwapReplica.State.DOWN: "bad",
    SwapReplica.State.KEPT: "bad",
}


@register.filter
def gib(mib: float | None) -> str:
    """1536 → 1.5 GiB; whole numbers from 100 on."""
    if mib is None:
        return "–"
    value = mib / MIB_PER_GIB
    return f"{formats.number_format(value, 0 if value >= 100 or value == int(value) else 1)} GiB"


@register.filter
def duration(seconds: float | None) -> str:
    """0:07, 12:30 or 1:02:05: the same width while it runs, so that nothing jumps."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@register.filter
def span(seconds: int) -> str:
    """A length that somebody has set: 15 min, 90 s."""
    if seconds and seconds % 60 == 0:
        return _("%d min") % (seconds // 60)
    return _("%d s") % seconds


@register.filter
def ago(then: datetime | None) -> str:
    """How long ago."""
    if then is None:
        return _("never")
    return _since(then, _("%d d ago"), _("%d h ago"), _("%d min ago"), _("%d s ago"))


@register.filter
def lasting(since: datetime) -> str:
    """How long it has been so."""
    return _since(since, _("for %d d"), _("for %d h"), _("for %d min"), _("for %d s"))


def _since(then: datetime, *texts: str) -> str:
    """In the largest unit that fits: the text for days, hours, minutes or seconds."""
    seconds = max(0, int((timezone.now() - then) / timedelta(seconds=1)))
    size, text = next(
        (size, text)
        for size, text in zip((86_400, 3600, 60, 1), texts, strict=True)
        if seconds >= size or size == 1
    )
    return text % (seconds // size)


@register.filter
def words(code: str) -> str:
    """The sentence of a code, for admins."""
    return str(catalogue.words(code)) if code else ""


@register.filter
def tone(state: str) -> str:
    return TONES.get(state, "")


@register.filter
def swap_tone(state: str) -> str:
    return SWAP_TONES.get(state, "")


@register.filter
def swap_word(swap: Swap) -> str:
    """A pause is no state of its own: the replica under way is finished."""
    if swap.state == SwapState.RUNNING and swap.paused_at:
        return pgettext("swap", "paused")
    return str(swap.get_state_display())


@register.filter
def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


@register.filter
def lines(log: list[str]) -> str:
    return "\n".join(log)


@register.filter
def step(name: str) -> str:
    return str(STEPS.get(name, name))


@register.filter
def capability(name: str) -> str:
    return str(CAPABILITIES.get(name, name))


@register.filter
def item(parts: dict[str, Part], name: str) -> SafeString:
    """What a part of a page says."""
    return parts[name].html
