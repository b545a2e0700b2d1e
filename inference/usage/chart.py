"""Geometry of the chart of days, so that its template only draws it.

Stacked bars in a box of 720 × 240 units. Numbers go out as text: templates would write them in the
reader's language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, log10

from inference.usage.figures import Figures

WIDTH, HEIGHT = 720, 240
LEFT, TOP, BOTTOM = 64, 10, 22
STEPS = 4
PARTS = ("cached", "fresh", "written")


@dataclass(frozen=True)
class Box:
    """`kind`: what the colour says (a class of usage.css)."""

    kind: str
    y: str
    height: str


@dataclass(frozen=True)
class Bar:
    day: date
    figures: Figures
    x: str
    width: str
    boxes: list[Box]


@dataclass(frozen=True)
class Mark:
    """A line across with its value, or a day below."""

    at: str
    value: int | date


@dataclass(frozen=True)
class Chart:
    bars: list[Bar]
    lines: list[Mark]
    days: list[Mark]


def chart(days: Sequence[tuple[date, Figures]]) -> Chart:
    top = nice(max((_height(figures) for _day, figures in days), default=0))
    wide = (WIDTH - LEFT) / max(1, len(days))
    gap = min(4.0, wide / 4)
    return Chart(
        bars=[
            Bar(
                day,
                counted,
                _text(LEFT + n * wide + gap / 2),
                _text(wide - gap),
                _boxes(counted, top),
            )
            for n, (day, counted) in enumerate(days)
        ],
        lines=[Mark(_text(_y(top * n // STEPS, top)), top * n // STEPS) for n in range(STEPS + 1)],
        days=[
            Mark(_text(LEFT + (n + 0.5) * wide), days[n][0])
            for n in range(0, len(days), max(1, ceil(len(days) / 7)))
        ],
    )


def nice(value: int) -> int:
    """At least `value`, and its quarters are whole and easy to read."""
    power: int = 10 ** max(0, int(log10(max(1, value))))
    steps = (tenths * power // 10 for tenths in (8, 12, 16, 20, 40, 60, 80, 120))
    return next(step for step in steps if step >= max(STEPS, value) and step % STEPS == 0)


def _parts(figures: Figures) -> tuple[int, int, int]:
    cached = figures.prompt_tokens - figures.fresh_tokens
    return cached, figures.fresh_tokens, figures.completion_tokens


def _height(figures: Figures) -> int:
    return sum(_parts(figures))


def _y(value: float, top: int) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP)


def _boxes(figures: Figures, top: int) -> list[Box]:
    boxes, below = [], 0
    for kind, value in zip(PARTS, _parts(figures), strict=True):
        if value:
            y = _y(below + value, top)
            boxes.append(Box(kind, _text(y), _text(_y(below, top) - y)))
            below += value
    return boxes


def _text(value: float) -> str:
    return f"{value:.1f}"
