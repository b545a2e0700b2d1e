"""The estimate against what engines said at their start, in public reports (logs.json).

The bound of each is the error that it has, rounded up to the next tenth of a percent; a wider one
would hide a mistake. Run with `-s` for the table.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from inference.fit import cache, estimate, figures_from_config

HERE = Path(__file__).parent
GIB, MIB = 2**30, 2**20
CONFIGS = json.loads((HERE / "configs.json").read_text())
LOGS = json.loads((HERE / "logs.json").read_text())
BOUNDS = {
    ("Qwen3-14B, GQA", "tokens"): 0.0,
    ("Qwen3-14B, GQA", "requests"): 0.2,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090", "tokens"): 0.0,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090", "requests"): 0.1,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090 (2)", "tokens"): 0.0,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090 (2)", "requests"): 0.1,
    ("Qwen3-235B-A22B-FP8, 4 x H100", "tokens"): 1.2,
    ("Qwen3.8-27B-FP8, fp8 KV, 2 x RTX 3090", "tokens"): 0.0,
    ("Qwen3.8-27B-FP8, fp8 KV, 2 x RTX 3090", "requests"): 0.1,
    ("Llama-3.1-8B, RTX 3090", "tokens"): 0.2,
    ("Llama-3.1-8B, RTX 3090", "requests"): 0.0,
    ("Llama-3.1-8B, RTX 3090", "available"): 1.7,
    ("gpt-oss-120b, sliding windows", "tokens"): 0.1,
    ("Gemma-3-4b, sliding windows, A100", "requests"): 0.1,
    ("Qwen3.5-27B, H20", "requests"): 0.2,
    ("DeepSeek-V2-Lite, MLA", "needed"): 0.1,
    ("gpt-oss-20b, A100 80 GB", "available"): 1.6,
    ("SmolLM2-135M, on a CPU", "tokens"): 0.0,
    ("SmolLM2-135M, on a CPU", "requests"): 0.1,
    ("tiny random Qwen3, on a CPU", "tokens"): 0.0,
    ("tiny random Qwen3, on a CPU", "requests"): 0.0,
}


def errors(log: dict[str, Any]) -> dict[str, float]:
    """What of a log can be foretold, and by how many percent that is off."""
    found = {}
    layout = cache.layout(figures_from_config(CONFIGS[log["model"]]), settings(log))
    assert layout is not None
    available = int(log.get("available_gib", 0) * GIB)
    if available and "kv_tokens" in log:
        found["tokens"] = off(tokens(log, layout, available), log["kv_tokens"])
    if available and "concurrency" in log:
        found["requests"] = off(layout.concurrent(available), log["concurrency"])
    if not available and "concurrency" in log:
        blocks = log["kv_tokens"] // layout.block * layout.groups
        found["requests"] = off(blocks / layout.blocks_per_request, log["concurrency"])
    if "needed_gib" in log:
        needed = layout.blocks_per_request * layout.bytes_per_block / GIB
        found["needed"] = off(needed, log["needed_gib"])
    if "start" in log:
        found["available"] = off(from_the_start(log), log["available_gib"])
    return found


def settings(log: dict[str, Any]) -> cache.Settings:
    return cache.Settings(
        context=log["context"],
        tensor_parallel=log["gpus"],
        element=1 if log.get("kv_dtype", "").startswith("fp8") else log.get("element", 2),
        block=log.get("block", cache.BLOCK),
        batched_tokens=log.get("batched_tokens", 8192),
        prefix_caching=log.get("prefix_caching", True),
    )


def tokens(log: dict[str, Any], layout: cache.Layout, available: int) -> float:
    """Until 0.20 or so vLLM shared the blocks out among the groups and counted those of one."""
    if log.get("counting") == "blocks":
        return layout.blocks(available) // layout.groups * layout.block
    return int(layout.concurrent(available) * log["context"])


def from_the_start(log: dict[str, Any]) -> float:
    """GiB for the cache, from the GPU, the flags and the loaded weights alone."""
    start = log["start"]
    weights = int(start["weights_gib"] * GIB)
    fit = estimate(
        figures_from_config(CONFIGS[log["model"]], weights),
        gpus_mib=[start["gpu_mib"]] * log["gpus"],
        context=log["context"],
        utilisation=start["utilisation"],
        batched_tokens=start["batched_tokens"],
    )
    return fit.available_mib * MIB / GIB


def off(estimated: float, reported: float) -> float:
    return 100 * (estimated / reported - 1)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_error_against_a_published_log(log: dict[str, Any]) -> None:
    found = errors(log)
    table = ", ".join(f"{what} {by:+.2f} %" for what, by in found.items())
    sys.stdout.write(f"{log['name']:45} {table}\n")
    assert found, "a log that nothing is compared with"
    for what, by in found.items():
        assert abs(by) <= BOUNDS[log["name"], what], what
