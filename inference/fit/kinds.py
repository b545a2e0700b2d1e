"""What a configuration says outright, whatever its family calls it; first of all, which kind of
attention each layer has."""

from typing import Any

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "experts_per_token")
"""Two numbers, each under the name that the family of models has for it."""
NOT_READ = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a configuration ends in that is not as any known one."""
ENCODERS = ("bert", "xlm-roberta", "roberta", "nomic_bert", "modernbert")


def text_part(config: dict[str, Any]) -> dict[str, Any]:
    """Of a multimodal model; a text model's configuration is all text."""
    found: dict[str, Any] = config.get("text_config") or config
    return found


def first_of(text: dict[str, Any], names: tuple[str, ...]) -> int:
    """0 where it has none of them."""
    return next((int(text[name]) for name in names if text.get(name)), 0)


def head_dim(text: dict[str, Any]) -> int:
    return int(text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"])


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
