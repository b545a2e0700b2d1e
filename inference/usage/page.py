"""What the usage pages say, decided here so that the templates only say it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from inference.limits import NOTHING, Limits
from inference.models import Key, KeyState, UsageDay, UsageLook
from inference.usage.chart import Chart, chart
from inference.usage.counters import CountersUnavailable, GatewayCounters, Now, counters
from inference.usage.figures import Figures, Line, Span, grouped, lines, of_holder

SPANS = (7, 30, 90)
USUAL = 30
LOOKS = 5


@dataclass(frozen=True)
class Days:
    """A chart and the table of the same figures. Days without use are in the chart only."""

    span: Span
    total: Figures
    rows: list[tuple[date, Figures]]
    chart: Chart

    @classmethod
    def of(cls, span: Span, by_day: dict[date, Figures]) -> "Days":
        every = [(day, by_day.get(day, Figures())) for day in span.days]
        used = [(day, figures) for day, figures in reversed(every) if figures]
        whole = sum((figures for _day, figures in every), Figures())
        return cls(span, whole, used, chart(every))


@dataclass(frozen=True)
class UsagePage:
    """One member's figures: her own page's, and what an admin with a reason sees."""

    length: int
    days: Days
    models: list[tuple[str, Figures]]
    keys: list[tuple[Key, Figures]]
    read_at: datetime | None

    @classmethod
    def of(cls, owner_ref: Any, length: int) -> "UsagePage":
        """Three queries, however many days, models and keys."""
        span = Span.of(length)
        found = lines(span.within(of_holder(owner_ref)))
        return cls(
            length=length,
            days=Days.of(span, grouped(found, lambda line: line.day)),
            models=most_first(grouped(found, lambda line: line.model)),
            keys=_keys(found),
            read_at=read_at(),
        )

    @property
    def total(self) -> Figures:
        return self.days.total


def length(asked: str) -> int:
    """Days to show, as an address asks for them; anything else is the usual."""
    return int(asked) if asked in {str(days) for days in SPANS} else USUAL


def read_at() -> datetime | None:
    """When the gateway was last read; None: never yet."""
    return UsageDay.objects.values_list("read_at", flat=True).first()


def looks(owner_ref: Any) -> list[UsageLook]:
    return list(UsageLook.objects.filter(holder_id=owner_ref)[:LOOKS])


def most_first(groups: dict[str, Figures]) -> list[tuple[str, Figures]]:
    return sorted(groups.items(), key=lambda item: (-item[1].tokens, -item[1].requests, item[0]))


def _keys(found: Sequence[Line]) -> list[tuple[Key, Figures]]:
    """Newest first; old ones that were used in these days too."""
    by_key = grouped(found, lambda line: line.key)
    rows = Key.objects.filter(pk__in=by_key).only("hint", "state", "requested_at", "deleted_at")
    return [(key, by_key[key.pk]) for key in rows.order_by("-requested_at")]


@dataclass(frozen=True)
class Live:
    """All of a member's working keys together; not `known` while the counters can't be read."""

    limits: Limits
    running: int = 0
    asked: int = 0
    resets_in: int = 0
    known: bool = True

    @property
    def left(self) -> int:
        return max(0, self.limits.rpm - self.asked)

    @property
    def has_key(self) -> bool:
        return self.limits != NOTHING


def live(user: Any, counts: GatewayCounters | None = None) -> Live:
    """During a rotation both keys have a share of the limits; what is left is what is left of
    both. Refused requests use up the minute too."""
    keys = list(
        Key.objects.of(user)
        .filter(state=KeyState.ACTIVE)
        .exclude(token="")
        .only("token", "rpm", "parallel")
    )
    if not keys:
        return Live(NOTHING)
    limits = sum((key.limits for key in keys), NOTHING)
    try:
        found = (counts or counters()).now([key.token for key in keys])
    except CountersUnavailable:
        return Live(limits, known=False)
    return Live(
        limits=limits,
        running=sum(now.running for now in found),
        asked=sum(_used(now, key.rpm) for now, key in zip(found, keys, strict=True)),
        resets_in=max(now.resets_in for now in found),
    )


def _used(now: Now, rpm: int) -> int:
    """Of this key's own share: what it was refused takes nothing from the other's."""
    return min(now.asked, rpm)
