"""vLLM's metrics, by its names and labels. Every figure is counted, none is made up."""

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
         10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_ITL = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
        20.0, 40.0, 80.0)  # fmt: skip
_LATENCY = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
            120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
_LABELS = ("model_name", "engine")
FINISHED = ("stop", "length", "abort", "error", "repetition")
REJECTED = ("max_num_queued_reqs", "max_num_queued_tokens")


class Metrics:
    def __init__(
        self, *, model_name: str, kv_cache_tokens: int, block_size: int, drafts: int = 0
    ) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._labels = {"model_name": model_name, "engine": "0"}
        self.prompt_tokens = self._counter("prompt_tokens", "Number of prefill tokens processed.")
        self.cached_tokens = self._counter("prompt_tokens_cached", "Prompt tokens from a cache.")
        self.generation_tokens = self._counter("generation_tokens", "Tokens generated.")
        self.prefix_queries = self._counter("prefix_cache_queries", "Prefix cache, tokens asked.")
        self.prefix_hits = self._counter("prefix_cache_hits", "Prefix cache, tokens found.")
        self.preemptions = self._counter("num_preemptions", "Preemptions by the engine.")
        self.ttft = self._histogram("time_to_first_token_seconds", _TTFT)
        self.itl = self._histogram("inter_token_latency_seconds", _ITL)
        self.e2e = self._histogram("e2e_request_latency_seconds", _LATENCY)
        self.queue_time = self._histogram("request_queue_time_seconds", _LATENCY)
        self.request_prompt = self._histogram("request_prompt_tokens", _TOKENS)
        self.request_generation = self._histogram("request_generation_tokens", _TOKENS)
        self._finished = self._by_reason()
        self._rejected = self._rejections(model_name)
        self._drafts, self._speculation = drafts, self._speculating() if drafts else ()
        self._constants(kv_cache_tokens=kv_cache_tokens, block_size=block_size)

    def watch(self, *, running: Callable[[], float], waiting: Callable[[], float],
              kv_used: Callable[[], float]) -> None:  # fmt: skip
        """Gauges are read from the engine at scrape time, so they can't lag behind it."""
        for name, text, read in (
            ("num_requests_running", "Requests in model execution batches.", running),
            ("num_requests_waiting", "Requests waiting to be processed.", waiting),
            ("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", kv_used),
        ):
            self._gauge(name, text).set_function(read)

    def finished(self, reason: str) -> None:
        self._finished.labels(finished_reason=reason, **self._labels).inc()

    def guessed(self) -> None:
        """One draft, of which the first token was right; nothing where none is configured."""
        for counter, tokens in zip(self._speculation, (1, self._drafts, 1), strict=False):
            counter.inc(tokens)

    def rejected(self, reason: str) -> None:
        self._rejected.labels(model_name=self._labels["model_name"], reason=reason).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str) -> Counter:
        metric = Counter(f"vllm:{name}", text, _LABELS, registry=self.registry)
        return metric.labels(**self._labels)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, _LABELS, registry=self.registry).labels(**self._labels)

    def _histogram(self, name: str, buckets: Sequence[float]) -> Histogram:
        text = f"Histogram of {name.replace('_', ' ')}."
        metric = Histogram(f"vllm:{name}", text, _LABELS, registry=self.registry, buckets=buckets)
        return metric.labels(**self._labels)

    def _speculating(self) -> tuple[Counter, ...]:
        """vLLM has these only where speculative decoding is configured."""
        return (
            self._counter("spec_decode_num_drafts", "Drafts."),
            self._counter("spec_decode_num_draft_tokens", "Tokens proposed."),
            self._counter("spec_decode_num_accepted_tokens", "Tokens accepted."),
        )

    def _by_reason(self) -> Counter:
        labels = (*_LABELS, "finished_reason")
        metric = Counter(
            "vllm:request_success", "Finished requests.", labels, registry=self.registry
        )
        for reason in FINISHED:
            metric.labels(finished_reason=reason, **self._labels)
        return metric

    def _rejections(self, model_name: str) -> Counter:
        labels = ("model_name", "reason")
        text = "Requests refused at admission."
        metric = Counter("vllm:admission_rejections", text, labels, registry=self.registry)
        for reason in REJECTED:
            metric.labels(model_name=model_name, reason=reason)
        return metric

    def _constants(self, *, kv_cache_tokens: int, block_size: int) -> None:
        text = "Engine sleep state."
        labels = (*_LABELS, "sleep_state")
        sleep = Gauge("vllm:engine_sleep_state", text, labels, registry=self.registry)
        for state in ("awake", "weights_offloaded", "discard_all"):
            sleep.labels(sleep_state=state, **self._labels).set(state == "awake")
        config = {
            "block_size": str(block_size),
            "kv_cache_size_tokens": str(kv_cache_tokens),
            "num_gpu_blocks": str(kv_cache_tokens // block_size),
        }
        text = "Information of the LLMEngine CacheConfig"
        info = Gauge("vllm:cache_config_info", text, ("engine", *config), registry=self.registry)
        info.labels(engine="0", **config).set(1)
