"""What an engine is told that changes its memory, and what it takes where it is told nothing.

vLLM 0.32: vllm/config/cache.py CacheConfig; vllm/engine/arg_utils.py EngineArgs.get_batch_defaults
and _set_default_max_num_seqs_and_batched_tokens_args; vllm/config/vllm.py max_concurrent_batches;
vllm/utils/argparse_utils.py human_readable_int.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UTILISATION = 0.92
GIB_MIB = 1024
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_FREE_METHODS = ("ngram", "ngram_gpu", "suffix")
"""Speculative decoding that guesses without a model of its own."""
LEFT_OUT = (
    "pipeline-parallel-size", "data-parallel-size", "decode-context-parallel-size",
    "cpu-offload-gb", "quantization", "hf-overrides", "language-model-only",
    "disable-hybrid-kv-cache-manager", "swa-bounded-replay",
)  # fmt: skip
"""Flags that change an engine's memory, and that no formula here follows."""
_PACKED = ("nvfp4", "turboquant_k8v4", "fp8_ds_mla")
"""Types of cached numbers with scales or padding of their own."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """None: as the engine chooses by the GPU."""

    utilisation: float = UTILISATION
    kv_cache_bytes: int | None = None
    kv_dtype: str = "auto"
    dtype: str = "auto"
    state_dtype: str = "auto"
    recurrent_dtype: str = "auto"
    block: int = 16
    batched_tokens: int | None = None
    sequences: int | None = None
    chunked_prefill: bool = True
    throughput: bool = False
    batches: int = 2
    """That are under way at once: with asynchronous scheduling, the default, two."""
    prefix_caching: bool = True
    state_checkpoints: bool = True
    """`--mamba-cache-mode align`, which comes with prefix caching."""
    speculative_tokens: int = 0
    own_draft: bool = False
    """The model's own layers guess (MTP); they keep keys and values like its others."""
    left_out: tuple[str, ...] = ()
    """Flags by name that the estimate does not follow."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    tokens: int
    sequences: int


def from_flags(flags: Mapping[str, Any]) -> Told:
    """ValueError, TypeError or AttributeError: a value that no engine accepts either."""
    speculative = flags.get("speculative-config") or {}
    method = str(speculative.get("method") or "")
    size = flags.get("kv-cache-memory-bytes")
    return Told(
        utilisation=float(flags.get("gpu-memory-utilization", UTILISATION)),
        kv_cache_bytes=None if size is None else size_in_bytes(size),
        kv_dtype=str(flags.get("kv-cache-dtype", "auto")),
        dtype=str(flags.get("dtype", "auto")),
        state_dtype=str(flags.get("mamba-cache-dtype", "auto")),
        recurrent_dtype=str(flags.get("mamba-ssm-cache-dtype", "auto")),
        block=int(flags.get("block-size", 16)),
        batched_tokens=_whole(flags, "max-num-batched-tokens"),
        sequences=_whole(flags, "max-num-seqs"),
        chunked_prefill=flags.get("enable-chunked-prefill") is not False,
        throughput=flags.get("performance-mode") == "throughput",
        batches=1 if flags.get("async-scheduling") is False else 2,
        prefix_caching=flags.get("enable-prefix-caching") is not False,
        state_checkpoints=flags.get("mamba-cache-mode") != "none",
        speculative_tokens=int(speculative.get("num_speculative_tokens") or 0),
        own_draft="mtp" in method and not speculative.get("model"),
        left_out=_left_out(flags, speculative, method),
    )


def batch(told: Told, *, gpu_mib: float | None, gpu_name: str, context: int) -> Batch:
    """The largest batch: as told, else by the memory of a GPU; None: on a CPU."""
    tokens, sequences = _defaults(gpu_mib, gpu_name.lower())
    if told.throughput:
        tokens, sequences = 2 * tokens, 2 * sequences
    sequences = told.sequences or sequences
    if not told.chunked_prefill:
        tokens = max(tokens, context)
    tokens = told.batched_tokens or min(tokens, sequences * context)
    return Batch(tokens=tokens, sequences=told.sequences or min(sequences, tokens))


def _defaults(gpu_mib: float | None, name: str) -> tuple[int, int]:
    """Tokens and sequences, of a server on the API."""
    if gpu_mib is None:
        return 2048, 128
    if gpu_mib >= 160 * GIB_MIB:
        return 16_384, 1024
    return (8192, 1024) if gpu_mib >= 70 * GIB_MIB and "a100" not in name else (2048, 256)


def size_in_bytes(value: object) -> int:
    """`1073741824`, `1G` (of 1024³), `1g` (of 1000³)."""
    text = str(value).strip()
    if text[-1:] in _UNITS:
        return int(float(text[:-1]) * _UNITS[text[-1]])
    return int(text)


def _whole(flags: Mapping[str, Any], name: str) -> int | None:
    return int(flags[name]) if name in flags else None


def _left_out(
    flags: Mapping[str, Any], speculative: Mapping[str, Any], method: str
) -> tuple[str, ...]:
    found = [name for name in LEFT_OUT if flags.get(name) not in (None, False, 0, 1)]
    if flags.get("kv-cache-dtype") in _PACKED:
        found.append("kv-cache-dtype")
    if flags.get("mamba-cache-mode") == "all":
        found.append("mamba-cache-mode")
    if speculative and (speculative.get("model") or not _guesses_by_itself(method)):
        found.append("speculative-config")
    return tuple(found)


def _guesses_by_itself(method: str) -> bool:
    return "mtp" in method or method in _FREE_METHODS
