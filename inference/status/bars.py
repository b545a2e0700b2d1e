"""Thirty days as bars: the geometry of the picture, whose template only draws it.

A day is a bar of full height; time that the model was down is cut out of its top, in another
colour, so that it shows by form as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

WIDTH, HEIGHT, STEP = 8, 32, 10
LEAST = 5
"""Height of the smallest outage that shows."""


@dataclass(frozen=True)
class Bar:
    day: date
    x: int
    top: int
    """Height of the part at the top that is not good."""
    tone: str
    """Of that part: bad, wait (a rotation) or none (nothing was seen that day)."""
    share: float | None
    """Of what was seen that day, the part in which it was up; a rotation is not down."""
    down_minutes: int
    rotation_minutes: int

    @property
    def rest(self) -> int:
        return HEIGHT - self.top


def bars(days: Sequence[dict[str, Any]]) -> list[Bar]:
    return [_bar(day, number * STEP) for number, day in enumerate(days)]


def width(days: Sequence[dict[str, Any]]) -> int:
    return max(0, len(days) * STEP - (STEP - WIDTH))


def _bar(day: dict[str, Any], x: int) -> Bar:
    seen, down, rotation = (day[f"{name}_seconds"] for name in ("seen", "down", "rotation"))
    tone = "bad" if down else "wait" if rotation else ""
    away = (down or rotation) / seen if seen else 0
    return Bar(
        day=day["day"],
        x=x,
        top=HEIGHT if not seen else max(LEAST, round(HEIGHT * away)) if away else 0,
        tone=tone if seen else "none",
        share=1 - down / seen if seen else None,
        down_minutes=_minutes(down),
        rotation_minutes=_minutes(rotation),
    )


def _minutes(seconds: float) -> int:
    """Never nothing for something."""
    return max(1, round(seconds / 60)) if seconds else 0
