"""The calls of a run that failed, as the alert about them keeps them, and in words."""

import re
from collections.abc import Iterable

from inference.probes.calls import BY_NAME
from inference.probes.words import for_members

_FAILED = re.compile(r"(\w+) \((\w+)\)")


def noted(model: str, failed: Iterable[tuple[str, str]]) -> str:
    """`MODEL: CALL (CODE), …`; the alert keeps as much of it as it has room for."""
    return f"{model}: " + ", ".join(f"{call} ({code})" for call, code in failed)


def in_words(detail: str) -> str:
    """Of what `noted` wrote; a call that was cut off is left out."""
    model, _colon, calls = detail.partition(": ")
    said = [
        f"{BY_NAME[name].title}: {for_members(code)}"
        for name, code in _FAILED.findall(calls)
        if name in BY_NAME
    ]
    return " · ".join([model, *said])
