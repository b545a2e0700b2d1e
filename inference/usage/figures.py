"""Sums of usage rows. Every table and every chart of a page adds up the same rows."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, date, timedelta
from typing import Any, TypeVar

from django.core.cache import cache
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from inference.models import Usage

WEEK_SECONDS = 60
By = TypeVar("By", bound=Hashable)


@dataclass(frozen=True)
class Figures:
    """`cached_tokens` are part of `prompt_tokens`. Calls that were refused, failed or left before
    the first word are in no other."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    refused_rpm: int = 0
    refused_parallel: int = 0
    failed: int = 0
    left_early: int = 0

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(*(getattr(self, n) + getattr(other, n) for n in NAMES))

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in NAMES)

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def fresh_tokens(self) -> int:
        """Input that had to be read; an engine may report more cached than it was sent."""
        return max(0, self.prompt_tokens - self.cached_tokens)

    @property
    def cached_share(self) -> float | None:
        """Of the input, 0 to 1; None without input."""
        if not self.prompt_tokens:
            return None
        return min(1.0, self.cached_tokens / self.prompt_tokens)


NAMES = tuple(field.name for field in fields(Figures))


@dataclass(frozen=True)
class Span:
    """Days in UTC, both included."""

    first: date
    last: date

    @classmethod
    def of(cls, days: int) -> "Span":
        last = today()
        return cls(last - timedelta(days=days - 1), last)

    @property
    def days(self) -> Iterator[date]:
        for number in range((self.last - self.first).days + 1):
            yield self.first + timedelta(days=number)

    def within(self, rows: "QuerySet[Usage]") -> "QuerySet[Usage]":
        return rows.filter(day__gte=self.first, day__lte=self.last)

    def rows(self) -> "QuerySet[Usage]":
        return self.within(Usage.objects.all())


@dataclass(frozen=True)
class Line:
    """One row with what it belongs to; `key` is its id."""

    day: date
    model: str
    key: Any
    figures: Figures


def today() -> date:
    return timezone.now().astimezone(UTC).date()


def lines(rows: "QuerySet[Usage]") -> list[Line]:
    """One query, whatever is made of it afterwards."""
    found = rows.order_by("day", "model").values_list("day", "model", "key_id", *NAMES)
    return [Line(day, model, key, Figures(*counts)) for day, model, key, *counts in found]


def summed(rows: "QuerySet[Usage]", *by: str) -> "QuerySet[Usage, dict[str, Any]]":
    """Added up by Postgres, for the figures of many members together."""
    sums: Any = {f"n_{name}": Sum(name, default=0) for name in NAMES}
    found: QuerySet[Usage, dict[str, Any]] = rows.order_by(*by).values(*by).annotate(**sums)
    return found


def read(row: dict[str, Any]) -> Figures:
    """Of a row of `summed`."""
    return Figures(*(int(row[f"n_{name}"]) for name in NAMES))


def total(found: Iterable[Line]) -> Figures:
    return sum((line.figures for line in found), Figures())


def grouped(found: Iterable[Line], by: Callable[[Line], By]) -> dict[By, Figures]:
    groups: dict[By, Figures] = {}
    for line in found:
        place = by(line)
        groups[place] = groups.get(place, Figures()) + line.figures
    return groups


def of_holder(owner_ref: Any) -> "QuerySet[Usage]":
    return Usage.objects.filter(holder_id=owner_ref)


def her_day(user: Any) -> Figures:
    """What a member used today (UTC): one query of a few rows."""
    return total(lines(of_holder(user.public_id).filter(day=today())))


def tokens_this_week() -> int:
    """Of all members, today and the six days before: for the landing page, kept for a minute."""
    tokens: int | None = cache.get("usage:week")
    if tokens is None:
        span = Q(day__gt=today() - timedelta(days=7))
        sums = Usage.objects.filter(span).aggregate(
            read=Sum("prompt_tokens", default=0), written=Sum("completion_tokens", default=0)
        )
        tokens = int(sums["read"] + sums["written"])
        cache.set("usage:week", tokens, WEEK_SECONDS)
    return tokens
