"""Figures, weights and estimates of known models, and of the catalogue's."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from inference.fit import Told, estimate, figures_from_config, from_flags
from inference.fit.cache import Settings, layout
from inference.fit.figures import Attention, State
from inference.fit.weights import bits_per_weight, count_bytes

CONFIGS = json.loads((Path(__file__).parent / "configs.json").read_text())
ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = json.loads((ROOT / "inference" / "catalogue" / "local.json").read_text())
MIB = 2**20
RTX_3090, RTX_PRO_6000 = 24_576, 98_304


@pytest.mark.parametrize(
    ("model", "published"),
    [  # sizes of the files in their repositories
        ("Qwen/Qwen3-30B-A3B", 61_064_216_576),
        ("meta-llama/Llama-3.1-8B-Instruct", 16_060_522_496),
        ("openai/gpt-oss-20b", 13_761_264_768),
        ("google/gemma-3-27b-it", 54_864_663_264),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 269_060_552),
        ("Qwen/Qwen3-Embedding-0.6B", 1_191_586_416),
    ],
)
def test_weights_counted_from_the_configuration(model: str, published: int) -> None:
    assert count_bytes(CONFIGS[model]) == pytest.approx(published, rel=0.0015)


@pytest.mark.parametrize(
    ("scheme", "bits"),
    [
        ({}, 16),
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4.15625),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, 8),
        ({"quant_method": "mxfp4"}, 4.25),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}},
            },
            4.15625,
        ),
    ],
)
def test_bits_of_a_quantised_weight(scheme: dict[str, Any], bits: float) -> None:
    assert bits_per_weight(scheme) == bits


def test_a_latent_is_on_every_gpu_and_heads_are_split_or_copied() -> None:
    latent = Attention(layers=1, kv_heads=1, width=576, latent=True)
    assert [latent.token_bytes(tensor_parallel=n, element=2) for n in (1, 8)] == [1152, 1152]
    heads = Attention(layers=1, kv_heads=4, width=256)
    found = [heads.token_bytes(tensor_parallel=n, element=2) for n in (1, 2, 4, 8)]
    assert found == [2048, 1024, 512, 512]
    assert heads.token_bytes(tensor_parallel=1, element=1) == 1024


def test_kinds_of_attention_are_read() -> None:
    qwen = figures_from_config(CONFIGS["Qwen/Qwen3.6-35B-A3B"])
    assert qwen.attention == (Attention(layers=10, kv_heads=2, width=512),)
    state = State(layers=30, channels=8192, kernel=4, recurrent=524_288, recurrent_bytes=4)
    assert qwen.states == (state,)
    assert state.size(tensor_parallel=1, element=2, speculative=0) == 2_146_304
    kimi = figures_from_config(CONFIGS["moonshotai/Kimi-Linear-48B-A3B-Instruct"])
    assert [layers.layers for layers in kimi.attention] == [7]
    assert (kimi.attention[0].latent, kimi.states[0].layers) == (True, 20)
    gemma = figures_from_config(CONFIGS["google/gemma-3-27b-it"])
    assert [(a.layers, a.window) for a in gemma.attention] == [(10, None), (52, 1024)]
    oss = figures_from_config(CONFIGS["openai/gpt-oss-20b"])
    assert [(a.layers, a.window) for a in oss.attention] == [(12, None), (12, 128)]
    plain = figures_from_config(CONFIGS["Qwen/Qwen3-14B"])
    assert (len(plain.attention), plain.hybrid, gemma.hybrid, kimi.hybrid) == (1, False, True, True)


def test_bytes_of_a_token() -> None:
    """Well-known figures: 128 KiB for Llama 3.1 8B, 160 KiB for Qwen3 14B, 96 for 30B A3B."""
    found = {
        name: estimate(
            figures_from_config(CONFIGS[name]), gpus_mib=[RTX_PRO_6000], context=8192
        ).per_token_bytes
        for name in ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-14B", "Qwen/Qwen3-30B-A3B")
    }
    assert list(found.values()) == [128 * 1024, 160 * 1024, 96 * 1024]


def test_a_state_costs_blocks_of_many_tokens() -> None:
    """What vLLM logs: blocks of 2096 tokens, 63 for 128k and 2 for each of 3 groups of states."""
    figures = figures_from_config(CONFIGS["Qwen/Qwen3.6-35B-A3B"])
    found = layout(figures, Settings(context=131_072, element=1))
    assert found is not None
    assert (found.block, found.groups, found.blocks_per_request) == (2096, 4, 69)
    bare = layout(figures, Settings(context=131_072, element=1, prefix_caching=False))
    assert bare is not None
    assert bare.blocks_per_request == 66


def test_fp8_cache_and_more_gpus_hold_more() -> None:
    figures = figures_from_config(CONFIGS["Qwen/Qwen3-14B"])

    def tokens(gpus: int, dtype: str) -> int:
        asked = {"gpus_mib": [RTX_3090] * gpus, "context": 8192}
        return estimate(figures, told=Told(kv_dtype=dtype), **asked).kv_tokens

    assert tokens(2, "fp8") == pytest.approx(2 * tokens(2, "auto"), rel=0.001)
    assert tokens(4, "auto") > 2.5 * tokens(2, "auto")


def test_too_large_is_said_with_what_is_missing() -> None:
    figures = figures_from_config(CONFIGS["Qwen/Qwen3-30B-A3B"])
    found = estimate(figures, gpus_mib=[RTX_3090], context=8192)
    assert (found.fits, found.kv_tokens, found.concurrent) == (False, 0, 0.0)
    assert found.available_mib < -35_000
    assert not estimate(figures, gpus_mib=[RTX_PRO_6000], context=50_000).fits  # beyond the model's
    assert estimate(figures, gpus_mib=[RTX_PRO_6000], context=40_960).fits


def test_an_encoder_keeps_nothing() -> None:
    figures = figures_from_config(CONFIGS["sentence-transformers/all-MiniLM-L6-v2"])
    found = estimate(figures, gpus_mib=[4096], context=512)
    assert (found.fits, found.kv_tokens, found.per_token_bytes) == (True, 0, 0)


def test_notes_say_where_it_goes_wrong() -> None:
    def notes(name: str, gpus: int = 1, **more: Any) -> str:
        figures = figures_from_config({**CONFIGS[name], **more})
        found = estimate(figures, gpus_mib=[RTX_PRO_6000] * gpus, context=4096)
        with translation.override("en"):
            return " ".join(map(str, found.notes))

    assert "estimate" in notes("Qwen/Qwen3-14B")
    assert "Hybrid" not in notes("Qwen/Qwen3-14B")
    assert "Hybrid" in notes("google/gemma-3-27b-it")
    assert "MLA" in notes("deepseek-ai/DeepSeek-V2-Lite-Chat")
    assert "copy" in notes("Qwen/Qwen3-30B-A3B", gpus=8)
    assert "not understood" in notes("deepseek-ai/DeepSeek-V2-Lite-Chat", index_head_dim=128)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry["slug"])
def test_every_model_of_the_catalogue_fits_one_gpu_of_96_gib(entry: dict[str, Any]) -> None:
    figures = figures_from_config(entry["config"], entry["weights_mib"] * MIB)
    told = from_flags(entry["flags"])
    found = estimate(figures, gpus_mib=[RTX_PRO_6000], context=entry["context"], told=told)
    assert found.fits
    assert found.concurrent > 1
    assert entry["context"] <= figures.context
    assert entry["weights_mib"] * MIB == pytest.approx(count_bytes(entry["config"]), rel=0.005)


def test_the_catalogue_is_pinned_and_its_flags_are_allowed() -> None:
    from inference.gpu.flags import ALLOWED

    for entry in CATALOGUE:
        assert len(entry["revision"]) == 40
        assert {flag for flag, value in entry["flags"].items() if not ALLOWED[flag](value)} == set()
    assert len({entry["slug"] for entry in CATALOGUE}) == len(CATALOGUE) == 6
