"""A model's config.json as somebody pastes it: what it says, and which figures can't be meant."""

from typing import Any

from django.utils.translation import gettext as _

from nan.unreadable import read_json

PARTS = ("text_config", "vision_config", "linear_attn_config", "quantization_config")
MOST = 10**7
MOST_LAYERS = 10_000
"""The estimate goes through them one by one."""
MOST_OF = {
    "vocab_size": 10**8,
    "num_hidden_layers": MOST_LAYERS,
    "depth": MOST_LAYERS,
}
FIGURES = frozenset((
    "bits", "conv_kernel", "depth", "experts_per_token", "first_k_dense_replace",
    "full_attention_interval", "global_head_dim", "head_dim", "hidden_size", "intermediate_size",
    "kv_lora_rank", "linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads",
    "linear_num_value_heads", "linear_value_head_dim", "mamba_head_dim", "mamba_num_heads",
    "max_position_embeddings", "moe_intermediate_size", "n_groups", "n_routed_experts",
    "n_shared_experts", "num_attention_heads", "num_bits", "num_experts", "num_experts_per_tok",
    "num_global_key_value_heads", "num_heads", "num_hidden_layers", "num_key_value_heads",
    "num_local_experts", "num_shared_experts", "q_lora_rank", "qk_nope_head_dim",
    "qk_rope_head_dim", "shared_expert_intermediate_size", "short_conv_kernel_size",
    "sliding_window", "sliding_window_pattern", "ssm_state_size", "v_head_dim", "vocab_size",
))  # fmt: skip
"""What `inference.fit` reckons with."""


def read_config(text: str) -> dict[str, Any]:
    """What a pasted config.json says that other fields ask for; empty if it says nothing."""
    try:
        config = read_json(text)
    except ValueError:
        return {}
    if not isinstance(config, dict):
        return {}
    inner = config.get("text_config")
    inner = inner if isinstance(inner, dict) else config
    found: dict[str, Any] = {}
    context = inner.get("max_position_embeddings")
    if _possible("max_position_embeddings", context) and context:
        found["context_length"] = context
    if "vision_config" in config:
        found["capabilities"] = ["vision"]
    return found


def wrong_figures(config: dict[str, Any], within: str = "") -> list[str]:
    """A sentence for each, with the name of its field."""
    wrong = []
    for name, value in config.items():
        said = {"name": f"{within}{name}", "most": MOST_OF.get(name, MOST)}
        if name in PARTS and value is not None:
            if isinstance(value, dict):
                wrong += wrong_figures(value, f"{within}{name}.")
            else:
                wrong.append(_("%(name)s must be an object: {…}.") % said)
        elif name in FIGURES and not _possible(name, value):
            wrong.append(_("%(name)s must be a whole number from 0 to %(most)s.") % said)
    return wrong


def _possible(name: str, value: Any) -> bool:
    if value is None:
        return True
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 0 <= value <= MOST_OF.get(name, MOST)
