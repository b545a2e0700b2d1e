"""What only a simulator has to be told, from `SIM_*` variables, so that argv stays vLLM's own."""

from collections.abc import Mapping
from dataclasses import dataclass

from inference.simulator.faults import ProcessFault


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Speed, size and whole-process faults of one simulated engine."""

    ttft_seconds: float = 0.020
    tokens_per_second: float = 400.0
    load_seconds: float = 0.0
    stop_seconds: float = 0.0
    """Pause between the last stream and the exit of a drained shutdown; vLLM takes 3 to 5 s."""
    model_max_len: int = 131_072
    """Context length of the model itself, the bound and default of `--max-model-len`."""
    kv_cache_tokens: int = 1_048_576
    embedding_size: int = 384
    faults: frozenset[ProcessFault] = frozenset()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Raises ValueError that names the variable when a value can't be read."""

        def number(name: str, default: float) -> float:
            try:
                return float(environ.get(name) or default)
            except ValueError as error:
                raise ValueError(f"{name} must be a number, got {environ[name]!r}") from error

        return cls(
            ttft_seconds=number("SIM_TTFT_MS", 20) / 1000,
            tokens_per_second=number("SIM_TOKENS_PER_SECOND", 400),
            load_seconds=number("SIM_LOAD_SECONDS", 0),
            stop_seconds=number("SIM_STOP_SECONDS", 0),
            model_max_len=int(number("SIM_MODEL_MAX_LEN", 131_072)),
            kv_cache_tokens=int(number("SIM_KV_CACHE_TOKENS", 1_048_576)),
            embedding_size=int(number("SIM_EMBEDDING_SIZE", 384)),
            faults=ProcessFault.parse(environ.get("SIM_FAULTS", "")),
        )
