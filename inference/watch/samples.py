"""One look at a replica in service, small enough to keep a day of them."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from inference.engine_metrics import EngineMetrics, Histogram

Answered = Literal["ok", "slow", "failed"]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Totals since the engine started; only differences between samples mean something."""

    ttft: Histogram
    finished: float
    errors: float
    generated: float
    waiting: int
    read: float = 0.0
    """Prompt tokens that were not found in the prefix cache."""

    @classmethod
    def of(cls, metrics: EngineMetrics) -> Self:
        """Aborts are clients that left: they say nothing about the engine."""
        ended = sum(count for why, count in metrics.finished.items() if why != "abort")
        return cls(
            ttft=metrics.ttft,
            finished=ended,
            errors=metrics.errors,
            generated=metrics.generated_tokens,
            waiting=metrics.waiting,
            read=max(0.0, metrics.prompt_tokens - metrics.prefix_hits),
        )


@dataclass(frozen=True, kw_only=True)
class Sample:
    at: float
    """Seconds; any clock, as long as it is one."""
    answered: Answered
    """How the tiny completion went."""
    seconds: float
    code: str = ""
    """Of a failure: the client's, such as `timeout` or `server_error`."""
    counts: Counts | None = None
    """None where `/metrics` gave nothing."""

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        if self.counts is not None:
            bounds = [[str(bound), n] for bound, n in self.counts.ttft.buckets.items()]
            found["counts"]["ttft"]["buckets"] = bounds  # JSON has no infinity
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        counts = found["counts"]
        if counts is not None:
            ttft = counts["ttft"]
            buckets = {float(bound): n for bound, n in ttft["buckets"]}
            counts = Counts(**{**counts, "ttft": Histogram(**{**ttft, "buckets": buckets})})
        return cls(**{**found, "counts": counts})
