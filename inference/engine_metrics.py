"""What an engine counts, read from its `/metrics`.

All engines behind one server (data parallel) are added up. Counters start at zero with the
process: a value below an earlier one means that it was started again.
https://docs.vllm.ai/en/latest/usage/metrics.html
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_PREFIX = "vllm:"


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Cumulative, as Prometheus has it: `buckets` maps an upper bound in seconds to a count."""

    sum: float = 0.0
    count: float = 0.0
    buckets: Mapping[float, float] = field(default_factory=dict)

    def since(self, earlier: "Histogram") -> "Histogram":
        """What was added; all of it after a restart."""
        if self.count < earlier.count:
            return self
        return Histogram(
            sum=self.sum - earlier.sum,
            count=self.count - earlier.count,
            buckets={
                bound: count - earlier.buckets.get(bound, 0.0)
                for bound, count in self.buckets.items()
            },
        )

    def mean(self) -> float | None:
        return self.sum / self.count if self.count > 0 else None

    def quantile(self, share: float) -> float | None:
        """The upper bound of the bucket that holds it: never too small, at most one bucket off."""
        if self.count <= 0:
            return None
        for bound in sorted(self.buckets):
            if self.buckets[bound] >= share * self.count:
                return bound
        return None


@dataclass(frozen=True, kw_only=True)
class EngineMetrics:
    running: int
    waiting: int
    ttft: Histogram
    """Time to first token, seconds."""
    finished: Mapping[str, float]
    """Requests by `finished_reason`: stop, length, error, repetition. Clients that left are not
    among them: vLLM 0.32 counts them nowhere, whatever its label `abort` suggests."""
    prompt_tokens: float
    generated_tokens: float
    prefix_queries: float
    """Prompt tokens looked up in the prefix cache, and those found there."""
    prefix_hits: float
    kv_usage: float
    """Share of the KV cache in use, 0 to 1."""
    kv_tokens: int | None
    """Size of the KV cache as the engine reports it; None where it doesn't (before 0.22 or so)."""
    drafted: float | None
    """Tokens proposed and accepted by speculative decoding; None where it is not configured."""
    accepted: float | None

    @property
    def errors(self) -> float:
        return self.finished.get("error", 0.0)

    @property
    def in_flight(self) -> int:
        return self.running + self.waiting


def read_metrics(text: str) -> EngineMetrics:
    """Raises ValueError where the text is no Prometheus exposition, KeyError where no engine's."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith(_PREFIX):
                samples[sample.name.removeprefix(_PREFIX)].append(sample)

    def total(name: str) -> float:
        return sum(sample.value for sample in samples.get(name, ()))

    def maybe(name: str) -> float | None:
        return total(name) if name in samples else None

    if "num_requests_running" not in samples:
        raise KeyError("num_requests_running")
    usage = samples.get("kv_cache_usage_perc") or samples.get("gpu_cache_usage_perc") or []
    return EngineMetrics(
        running=int(total("num_requests_running")),
        waiting=int(total("num_requests_waiting")),
        ttft=_histogram(samples, "time_to_first_token_seconds"),
        finished=_by_label(samples.get("request_success_total", ()), "finished_reason"),
        prompt_tokens=total("prompt_tokens_total"),
        generated_tokens=total("generation_tokens_total"),
        prefix_queries=total("prefix_cache_queries_total"),
        prefix_hits=total("prefix_cache_hits_total"),
        kv_usage=max((sample.value for sample in usage), default=0.0),
        kv_tokens=_kv_tokens(samples.get("cache_config_info", ())),
        drafted=maybe("spec_decode_num_draft_tokens_total"),
        accepted=maybe("spec_decode_num_accepted_tokens_total"),
    )


def _histogram(samples: Mapping[str, list[Sample]], name: str) -> Histogram:
    buckets = _by_label(samples.get(f"{name}_bucket", ()), "le")
    return Histogram(
        sum=sum(sample.value for sample in samples.get(f"{name}_sum", ())),
        count=sum(sample.value for sample in samples.get(f"{name}_count", ())),
        buckets={float(bound): count for bound, count in buckets.items()},
    )


def _by_label(samples: Iterable[Sample], label: str) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for sample in samples:
        found[sample.labels.get(label, "")] += sample.value
    return dict(found)


def _kv_tokens(samples: Iterable[Sample]) -> int | None:
    """`kv_cache_size_tokens`; not blocks times block size, which is wrong for hybrid models."""
    sizes = [sample.labels.get("kv_cache_size_tokens", "") for sample in samples]
    known = [int(size) for size in sizes if size.isdigit()]
    return sum(known) if known else None
