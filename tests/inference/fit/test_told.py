"""What an engine is told changes the estimate as it changes the engine (vLLM 0.32)."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference.fit import Fit, estimate, figures_from_config, from_flags
from inference.fit.told import Batch, batch, size_in_bytes

CONFIGS = json.loads((Path(__file__).parent / "configs.json").read_text())
RTX_3090, A100, H100, RTX_PRO_6000, B200 = 24_576, 81_920, 81_559, 97_887, 183_359
MIB = 2**20


def fit(model: str = "Qwen/Qwen3-14B", *, gpu: int = RTX_PRO_6000, **flags: Any) -> Fit:
    told = from_flags({name.replace("_", "-"): value for name, value in flags.items()})
    figures = figures_from_config(CONFIGS[model])
    return estimate(figures, gpus_mib=[gpu], context=32_768, told=told)


@pytest.mark.parametrize(
    ("gpu", "name", "flags", "expected"),
    [
        (RTX_3090, "NVIDIA GeForce RTX 3090", {}, (2048, 256)),
        (A100, "NVIDIA A100-SXM4-80GB", {}, (2048, 256)),
        (H100, "NVIDIA H100 80GB HBM3", {}, (8192, 1024)),
        (RTX_PRO_6000, "NVIDIA RTX PRO 6000", {}, (8192, 1024)),
        (B200, "NVIDIA B200", {}, (16_384, 1024)),
        (None, "", {}, (2048, 128)),
        (H100, "", {"performance-mode": "throughput"}, (16_384, 2048)),
        (H100, "", {"max-num-seqs": 16}, (8192, 16)),
        (H100, "", {"max-num-batched-tokens": 512}, (512, 512)),
        (H100, "", {"max-num-batched-tokens": 512, "max-num-seqs": 600}, (512, 600)),
        (RTX_3090, "", {"enable-chunked-prefill": False}, (32_768, 256)),
    ],
)
def test_the_largest_batch(
    gpu: int | None, name: str, flags: dict[str, Any], expected: tuple[int, int]
) -> None:
    found = batch(from_flags(flags), gpu_mib=gpu, gpu_name=name, context=32_768)
    assert found == Batch(tokens=expected[0], sequences=expected[1])


def test_no_batch_is_larger_than_all_contexts() -> None:
    found = batch(from_flags({"max-num-seqs": 4}), gpu_mib=H100, gpu_name="", context=512)
    assert found == Batch(tokens=2048, sequences=4)


@pytest.mark.parametrize(
    ("text", "size"),
    [(1024, 1024), ("1024", 1024), ("64M", 64 * MIB), ("1G", 2**30), ("1g", 10**9), ("1.5k", 1500)],
)
def test_sizes_are_read_as_the_engine_reads_them(text: object, size: int) -> None:
    assert size_in_bytes(text) == size


def test_92_per_cent_of_the_memory_where_nothing_else_is_said() -> None:
    more = fit().available_mib - fit(gpu_memory_utilization=0.9).available_mib
    assert more == pytest.approx(0.02 * (RTX_PRO_6000 - 450), abs=1)


def test_larger_batches_leave_less_for_the_cache() -> None:
    assert fit(max_num_batched_tokens=16_384).available_mib < fit().available_mib - 500
    saved = fit(max_num_seqs=256).available_mib - fit().available_mib
    assert saved == pytest.approx(2 * 4 * 768 * 151_936 / MIB, abs=1)


def test_a_cache_of_a_named_size() -> None:
    """Whatever the share of the memory; but what is not there can't be taken."""
    named = fit(kv_cache_memory_bytes="8G", gpu_memory_utilization=0.1)
    assert (named.available_mib, named.fits) == (8192, True)
    assert named.kv_tokens == 8192 * MIB // (16 * named.per_token_bytes) * 16
    assert not fit(kv_cache_memory_bytes="90G").fits
    assert fit(kv_cache_memory_bytes="90G").available_mib < 0


def test_numbers_of_another_type() -> None:
    wide, plain = fit(dtype="float32"), fit()
    assert wide.weights_mib == pytest.approx(2 * plain.weights_mib, abs=1)
    assert wide.per_token_bytes == 2 * plain.per_token_bytes
    assert fit(kv_cache_dtype="fp8").per_token_bytes == plain.per_token_bytes // 2
    quantised = "Qwen/Qwen3-235B-A22B-FP8"
    assert fit(quantised, dtype="float32").weights_mib == fit(quantised).weights_mib


HYBRID = "Qwen/Qwen3.6-35B-A3B"


def test_states_of_hybrid_models() -> None:
    plain = fit(HYBRID).blocks_per_request
    assert fit(HYBRID, enable_prefix_caching=False).blocks_per_request == plain - 3
    assert fit(HYBRID, mamba_cache_mode="none").blocks_per_request == plain - 3
    smaller = fit(HYBRID, mamba_ssm_cache_dtype="bfloat16")
    assert smaller.blocks_per_request > plain  # of smaller blocks
    assert smaller.concurrent > fit(HYBRID).concurrent


def test_tokens_that_are_guessed_ahead() -> None:
    """A state for each of them; and the model's own layer that guesses has keys and values."""
    ngram = {"method": "ngram", "num_speculative_tokens": 2}
    guessed, plain = fit(HYBRID, speculative_config=ngram), fit(HYBRID)
    assert guessed.blocks_per_request >= plain.blocks_per_request + 3 * 2 - 2
    assert (guessed.concurrent < plain.concurrent, guessed.left_out) == (True, ())
    mtp = {"method": "mtp", "num_speculative_tokens": 2}
    own = fit(HYBRID, speculative_config=mtp)
    assert own.per_token_bytes == plain.per_token_bytes * 11 // 10
    assert (own.concurrent < guessed.concurrent, own.left_out) == (True, ())


def test_windows_hold_the_batches_that_are_under_way() -> None:
    """With asynchronous scheduling, the default, two at once."""
    two = fit("google/gemma-3-27b-it")
    one = fit("google/gemma-3-27b-it", async_scheduling=False)
    assert one.blocks_per_request < two.blocks_per_request


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("speculative-config", {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}),
        ("kv-cache-dtype", "nvfp4"),
        ("mamba-cache-mode", "all"),
        ("quantization", "fp8"),
        ("data-parallel-size", 2),
        ("cpu-offload-gb", 8),
        ("hf-overrides", {"num_experts_per_tok": 4}),
    ],
)
def test_what_is_not_followed_is_named(flag: str, value: object) -> None:
    assert from_flags({flag: value, "max-num-seqs": 8}).left_out == (flag,)


def test_flags_that_change_nothing_are_not_named() -> None:
    told = from_flags({"data-parallel-size": 1, "language-model-only": False, "seed": 1})
    assert told.left_out == ()
