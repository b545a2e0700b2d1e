"""Which kind of attention each layer of a model has, from its configuration."""

from typing import Any

ENCODERS = ("bert", "xlm-roberta", "roberta", "nomic_bert", "modernbert")


def layer_kinds(text: dict[str, Any]) -> list[str]:
    """`full_attention`, `sliding_attention` or `linear_attention` for each layer."""
    count = text["num_hidden_layers"]
    if text.get("layer_types"):
        return list(text["layer_types"])
    if linear := text.get("linear_attn_config"):  # Kimi Linear; its lists count from 1
        full = set(linear["full_attn_layers"])
        return [_kind(number + 1 in full, "linear_attention") for number in range(count)]
    if every := text.get("full_attention_interval"):  # Qwen3-Next, Qwen3.5
        return [_kind((number + 1) % every == 0, "linear_attention") for number in range(count)]
    if every := text.get("sliding_window_pattern"):  # Gemma 2 and 3
        return [_kind((number + 1) % every == 0, "sliding_attention") for number in range(count)]
    if str(text.get("model_type", "")).startswith("gemma3"):  # its default is not in every file
        return [_kind((number + 1) % 6 == 0, "sliding_attention") for number in range(count)]
    if pattern := text.get("hybrid_override_pattern"):  # Nemotron-H: M(amba), * attention, - / E
        named = {"M": "linear_attention", "*": "full_attention"}
        return [named[sign] for sign in pattern if sign in named]
    if text.get("model_type") in ENCODERS:
        return []  # encoders keep nothing
    windowed = text.get("sliding_window") and text.get("use_sliding_window", True)
    return [("sliding_attention" if windowed else "full_attention")] * count


def _kind(full: bool, other: str) -> str:
    return "full_attention" if full else other
