"""Thirty days as bars: the geometry of the picture, whose template only draws it.

A day is a bar of full height; time that the model was down is cut out of its top, in another
colour, so that it shows by form as well. Time for which admins had taken it out is cut out of its
foot, and leaves a line there.
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
    out: int
    """Height of the part at the foot for which it was taken out."""
    share: float | None
    """Of what was seen that day, the part in which it was up; a rotation is not down."""
    down_minutes: int
    rotation_minutes: int
    out_minutes: int

    @property
    def rest(self) -> int:
        return HEIGHT - self.top - self.out

    @property
    def foot(self) -> int:
        """Where the part at the foot begins."""
        return HEIGHT - self.out


def bars(days: Sequence[dict[str, Any]]) -> list[Bar]:
    return [_bar(day, number * STEP) for number, day in enumerate(days)]


def width(days: Sequence[Any]) -> int:
    return max(0, len(days) * STEP - (STEP - WIDTH))


def _bar(day: dict[str, Any], x: int) -> Bar:
    seen, down, rotation = (day[f"{name}_seconds"] for name in ("seen", "down", "rotation"))
    taken_out = day.get("out_seconds", 0)  # what an older version has left on the disk has none
    whole = seen + taken_out
    out = min(_height(taken_out, whole), HEIGHT - LEAST) if seen else _height(taken_out, whole)
    tone = "bad" if down else "wait" if rotation else ""
    return Bar(
        day=day["day"],
        x=x,
        top=min(_height(down or rotation, whole), HEIGHT - out) if whole else HEIGHT,
        tone=tone if whole else "none",
        out=out,
        share=1 - down / seen if seen else None,
        down_minutes=_minutes(down),
        rotation_minutes=_minutes(rotation),
        out_minutes=_minutes(taken_out),
    )


def _height(seconds: float, whole: float) -> int:
    return max(LEAST, round(HEIGHT * seconds / whole)) if seconds else 0


def _minutes(seconds: float) -> int:
    """Never nothing for something."""
    return max(1, round(seconds / 60)) if seconds else 0
