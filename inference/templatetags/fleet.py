"""How the fleet's figures are written: memory, durations, percentages, states."""

import json
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from inference.fleet import words as catalogue
from inference.models import ReplicaState, SwapReplica, SwapState

register = template.Library()
MIB_PER_GIB = 1024
TONES = {
    ReplicaState.SERVING: "good",
    ReplicaState.FAILED: "bad",
    ReplicaState.STARTING: "wait",
    ReplicaState.CHECKING: "wait",
    ReplicaState.JOINING: "wait",
    ReplicaState.DRAINING: "wait",
    ReplicaState.STOPPING: "wait",
}
SWAP_TONES = {
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
def ago(then: datetime | None) -> str:
    """How long ago, in the largest unit that fits."""
    if then is None:
        return _("never")
    seconds = max(0, int((timezone.now() - then) / timedelta(seconds=1)))
    for size, text in ((86_400, _("%d d ago")), (3600, _("%d h ago")), (60, _("%d min ago"))):
        if seconds >= size:
            return text % (seconds // size)
    return _("%d s ago") % seconds


@register.filter
def words(code: str) -> str:
    """The sentence of a code, for admins."""
    return str(catalogue.words(code)) if code else ""


@register.filter
def tone(state: str) -> str:
    return str(TONES.get(ReplicaState(state), "")) if state in ReplicaState else ""


@register.filter
def swap_tone(state: str) -> str:
    return str(SWAP_TONES.get(state, ""))  # type: ignore[call-overload]


@register.filter
def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
