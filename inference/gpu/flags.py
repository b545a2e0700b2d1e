"""The engine flags that a specification may carry, each with its check.

Left out on purpose: whatever binds an address, names a file or a module, runs code from the
weights' repository, or prints prompts. `vllm serve --help=all` describes each flag.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

FlagValue = bool | int | float | str | Mapping[str, Any]
Check = Callable[[Any], bool]

JSON_BYTES = 4096
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}", re.ASCII)
REVISION = re.compile(r"[0-9a-f]{40}", re.ASCII)
TEMPLATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.jinja", re.ASCII)
_SIZE = re.compile(r"[0-9]{1,15}|[0-9]{1,6}(\.[0-9]{1,3})?[kKmMgG]", re.ASCII)


def is_whole(value: object) -> TypeGuard[int]:
    """JSON's true is not a number, though Python's is."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole(low: int, high: int) -> Check:
    return lambda value: is_whole(value) and low <= value <= high


def real(low: float, high: float) -> Check:
    return lambda value: (is_whole(value) or isinstance(value, float)) and low <= value <= high


def one_of(*choices: str) -> Check:
    return lambda value: isinstance(value, str) and value in choices


def like(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def either(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def switch(value: object) -> bool:
    return isinstance(value, bool)


def plain(value: object) -> bool:
    """A value that names nothing on the host and cannot be read as code or path."""
    if isinstance(value, list):
        return len(value) <= 256 and all(whole(0, 2**31)(item) for item in value)
    word = isinstance(value, str) and NAME.fullmatch(value) and ".." not in value
    return switch(value) or bool(word) or real(-1e12, 1e12)(value) or value is None


def record(**checks: Check) -> Check:
    """An object with these keys and no others."""
    return lambda found: (
        isinstance(found, Mapping)
        and all(key in checks and checks[key](value) for key, value in found.items())
    )


def scalars(found: object) -> bool:
    return isinstance(found, Mapping) and all(
        isinstance(key, str) and NAME.fullmatch(key) and plain(value)
        for key, value in found.items()
    )


def nested(found: object) -> bool:
    """Scalars, one level deeper too: rope parameters have a table for each layer type."""
    return isinstance(found, Mapping) and all(
        isinstance(key, str) and NAME.fullmatch(key) and (plain(value) or scalars(value))
        for key, value in found.items()
    )


_count = whole(0, 4096)
_name = like(NAME)
_SPECULATIVE = record(
    method=_name, num_speculative_tokens=whole(1, 64),  # no `model`: nobody would fetch its weights
    draft_tensor_parallel_size=whole(1, 16), quantization=_name, prompt_lookup_min=whole(1, 64),
    prompt_lookup_max=whole(1, 64), max_model_len=whole(1, 10_000_000),
    disable_padded_drafter_batch=switch, draft_sample_method=_name, attention_backend=_name,
)  # fmt: skip
_OVERRIDES = record(
    rope_parameters=nested, rope_scaling=nested, rope_theta=real(1, 1e12),
    max_position_embeddings=whole(1, 10_000_000), num_experts_per_tok=whole(1, 1024),
    text_config=nested, is_matryoshka=switch,
)  # fmt: skip
_COMPILATION = record(
    mode=either(whole(0, 3), _name), level=whole(0, 3), cudagraph_mode=_name,
    cudagraph_capture_sizes=plain, max_cudagraph_capture_size=whole(0, 65536),
    use_inductor=switch, pass_config=scalars,
)  # fmt: skip

ALLOWED: Mapping[str, Check] = {
    # Size and memory
    "max-model-len": either(whole(1, 10_000_000), one_of("auto")),
    "max-num-seqs": whole(1, 65_536),
    "max-num-batched-tokens": whole(1, 4_194_304),
    "max-num-queued-reqs": whole(1, 1_000_000),
    "gpu-memory-utilization": real(0.05, 0.99),
    "kv-cache-memory-bytes": either(whole(1, 2**50), like(_SIZE)),
    "kv-cache-dtype": one_of("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2",
                             "fp8_inc", "fp8_ds_mla", "nvfp4", "turboquant_k8v4"),
    "block-size": whole(1, 1024),
    "cpu-offload-gb": real(0, 4096),
    "swa-bounded-replay": switch,
    "enable-prefix-caching": switch,
    "enable-chunked-prefill": switch,
    "mm-processor-cache-gb": real(0, 1024),
    # Parallelism
    "tensor-parallel-size": whole(1, 16),
    "pipeline-parallel-size": whole(1, 16),
    "data-parallel-size": whole(1, 16),
    "decode-context-parallel-size": whole(1, 16),
    "enable-expert-parallel": switch,
    "distributed-executor-backend": one_of("mp", "uni"),
    "disable-custom-all-reduce": switch,
    "all2all-backend": _name,
    # Weights and kernels
    "dtype": one_of("auto", "half", "float16", "bfloat16", "float", "float32"),
    "quantization": _name,
    "load-format": one_of("auto", "safetensors", "pt", "mistral", "gguf", "dummy"),
    "config-format": one_of("auto", "hf", "mistral"),
    "tokenizer-mode": one_of("auto", "hf", "slow", "mistral", "deepseek_v32"),
    "runner": one_of("auto", "generate", "pooling"),
    "convert": one_of("auto", "none", "embed", "classify"),
    "attention-backend": _name,
    "moe-backend": _name,
    "mamba-cache-dtype": one_of("auto", "float16", "float32", "bfloat16"),
    "mamba-cache-mode": one_of("all", "align", "none"),
    "mamba-ssm-cache-dtype": one_of("auto", "float16", "float32", "bfloat16"),
    "gdn-prefill-backend": _name,
    "mm-encoder-attn-backend": _name,
    "mm-encoder-tp-mode": one_of("weights", "data"),
    "enforce-eager": switch,
    "optimization-level": whole(0, 3),
    "performance-mode": _name,
    "max-cudagraph-capture-size": whole(0, 65_536),
    "compilation-config": _COMPILATION,
    "async-scheduling": switch,
    "scheduling-policy": one_of("fcfs", "priority"),
    "stream-interval": whole(1, 100),
    "disable-hybrid-kv-cache-manager": switch,
    "disable-cascade-attn": switch,
    "language-model-only": switch,
    "skip-mm-profiling": switch,
    "seed": whole(0, 2**31 - 1),
    # What clients get
    "enable-auto-tool-choice": switch,
    "tool-call-parser": _name,
    "reasoning-parser": _name,
    "chat-template": like(TEMPLATE),
    "chat-template-content-format": one_of("auto", "string", "openai"),
    "default-chat-template-kwargs": scalars,
    "override-generation-config": scalars,
    "generation-config": one_of("auto", "vllm"),
    "limit-mm-per-prompt": record(image=_count, video=_count, audio=_count),
    "mm-processor-kwargs": scalars,
    "structured-outputs-config": record(
        backend=_name, disable_any_whitespace=switch, disable_additional_properties=switch
    ),
    "enable-prompt-tokens-details": switch,
    "enable-force-include-usage": switch,
    "exclude-tools-when-tool-choice-none": switch,
    "max-logprobs": whole(0, 1000),
    "hf-overrides": _OVERRIDES,
    "speculative-config": _SPECULATIVE,
}  # fmt: skip


def accepted(name: str, value: object) -> bool:
    check = ALLOWED.get(name)
    return check is not None and check(value) and _short(value)


def words(name: str, value: FlagValue) -> list[str]:
    """One word of argv, so that no value can be read as a flag of its own."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, Mapping):
        return [f"--{name}={json.dumps(value, separators=(',', ':'), sort_keys=True)}"]
    return [f"--{name}={value}"]


def _short(value: object) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False)) <= JSON_BYTES
    except (TypeError, ValueError, RecursionError):
        return False
