"""What samples of engines come to: speed and load over a time. Pure arithmetic on rows."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from inference.engine_metrics import Histogram
from inference.models import ReplicaSample

Figures = dict[str, float | None]


def figures(rows: Iterable[ReplicaSample]) -> Figures:
    """Of one slot. None where there is nothing to tell it from: no request, no speculation."""
    rows = list(rows)
    seconds: dict[int | None, float] = defaultdict(float)
    for row in rows:
        seconds[row.replica_id] += row.seconds
    whole = max(seconds.values(), default=0.0)
    waits = waits_of(rows)
    return {
        "first_token_seconds": _rounded(waits.mean()),
        "first_token_p95_seconds": _finite(waits.quantile(0.95)),
        "tokens_per_second": _rounded(_sum(rows, "generated") / whole) if whole else None,
        "running": _rounded(_over_time(rows, "running") / whole) if whole else None,
        "waiting": _rounded(_over_time(rows, "waiting") / whole) if whole else None,
        "kv_usage": _rounded(_over_time(rows, "kv_usage") / sum(seconds.values()))
        if whole
        else None,
        "acceptance": _acceptance(rows),
    }


def waits_of(rows: Iterable[ReplicaSample]) -> Histogram:
    """Times to first token, of all together."""
    single: dict[float, int] = defaultdict(int)
    total, count = 0.0, 0
    for row in rows:
        total += row.first_token_seconds
        count += row.first_tokens
        for bound, number in row.first_token_buckets.items():
            single[float(bound)] += number
    below, buckets = 0, {}
    for bound in sorted(single):
        below += single[bound]
        buckets[bound] = float(below)
    return Histogram(sum=total, count=count, buckets=buckets)


def _acceptance(rows: list[ReplicaSample]) -> float | None:
    counted = [row for row in rows if row.drafted and row.accepted is not None]
    drafted = sum(row.drafted or 0 for row in counted)
    return _rounded(sum(row.accepted or 0 for row in counted) / drafted) if drafted else None


def _sum(rows: list[ReplicaSample], name: str) -> float:
    return float(sum(getattr(row, name) for row in rows))


def _over_time(rows: list[ReplicaSample], name: str) -> float:
    return float(sum(getattr(row, name) * row.seconds for row in rows))


def _rounded(value: Any) -> float | None:
    return None if value is None else round(value, 3)


def _finite(value: float | None) -> float | None:
    """The last bucket has no upper bound, and JSON no infinity."""
    return None if value is None or value == float("inf") else value
