"""Counts of HTTP requests, for tests. Names of headers are kept, never values, never bodies."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Count:
    started: int = 0
    finished: int = 0
    """Answered to the end, with whatever status."""
    aborted: int = 0
    """The client left first."""
    cut: int = 0
    """We broke the connection."""
    running: int = 0
    peak: int = 0


class Traffic:
    """Model routes count towards the total; health checks and lists only for themselves."""

    def __init__(self, *, model_routes: Iterable[str]) -> None:
        self._model_routes = frozenset(model_routes)
        self._routes: defaultdict[str, Count] = defaultdict(Count)
        self._total = Count()
        self._header_names: list[str] = []

    def begin(self, route: str, header_names: Iterable[str]) -> None:
        for count in self._counts(route):
            count.started += 1
            count.running += 1
            count.peak = max(count.peak, count.running)
        if route in self._model_routes:
            self._header_names = sorted(set(header_names))

    def end(self, route: str, how: str) -> None:
        """`how` is `finished`, `aborted` or `cut`."""
        for count in self._counts(route):
            count.running -= 1
            setattr(count, how, getattr(count, how) + 1)

    @property
    def running(self) -> int:
        return self._total.running

    def snapshot(self) -> dict[str, Any]:
        routes = {route: asdict(count) for route, count in sorted(self._routes.items())}
        return {
            "routes": routes,
            **asdict(self._total),
            "last_header_names": self._header_names,
        }

    def _counts(self, route: str) -> list[Count]:
        return [self._routes[route], *([self._total] if route in self._model_routes else [])]
