"""What was measured, what it may be, and how both are printed."""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HEAD = ("WHAT", "MEASURED", "BOUND", "RATIO", "")


@dataclass(frozen=True)
class Line:
    """`value` and `bound` have the same unit. Without a bound it only explains another line."""

    what: str
    measured: str
    value: float | None = None
    bound: float | None = None
    at_least: bool = False
    unit: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured to bound: above 1 is over it (where the bound is a least: below 1). None where
        nothing can be a ratio: without a bound, and where it is 0."""
        if self.value is None or not self.bound:
            return None
        return self.value / self.bound

    @property
    def ok(self) -> bool | None:
        if self.value is None or self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def cells(self) -> tuple[str, str, str, str, str]:
        if self.bound is None or self.ok is None:
            return (f"  {self.what}", self.measured, "", "", "")
        sign = "≥" if self.at_least else "≤"
        bound = f"{sign} {self.bound:g} {self.unit}".strip()
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return (self.what, self.measured, bound, ratio, "ok" if self.ok else "OVER")


@dataclass
class Report:
    lines: list[Line] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, lines: Iterable[Line], **details: Any) -> None:
        self.lines += lines
        self.details.update(details)

    @property
    def over(self) -> list[Line]:
        return [line for line in self.lines if line.ok is False]

    def table(self) -> str:
        rows = [HEAD, *(line.cells() for line in self.lines)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def save(self, file: Path) -> None:
        lines = [{**asdict(line), "ratio": line.ratio, "ok": line.ok} for line in self.lines]
        content = {"machine": machine(), "lines": lines, "details": self.details}
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def machine() -> str:
    """So that numbers of two runs can be told apart."""
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{len(os.sched_getaffinity(0))} cores ({names[0] if names else platform.machine()}), "
        f"{memory:.0f} GB, Python {platform.python_version()}, load {load:.1f} at this moment"
    )


def p50(seconds: Sequence[float]) -> float:
    return statistics.median(seconds)


def p95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[18]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
