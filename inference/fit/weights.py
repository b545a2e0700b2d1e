"""How large the weights are, counted from the configuration, where no file has been measured.

Counts matrices and leaves out norms and biases (under 0.1 %). Bits per weight of a quantised
matrix, scales included: fp8 8; int4 in groups of 128 with 16-bit scale and 4-bit zero point 4.16
(AWQ, GPTQ); mxfp4 4.25 (32 weights share 8 bits); nvfp4 4.5 (16 share 8).
https://docs.vllm.ai/en/latest/features/quantization/ and
https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
"""

from typing import Any

from inference.fit.kinds import (
    ENCODERS,
    EXPERTS,
    EXPERTS_PER_TOKEN,
    NOT_READ,
    first_of,
    head_dim,
    layer_kinds,
    text_part,
)

_BITS = {"fp8": 8.0, "fbgemm_fp8": 8.0, "mxfp4": 4.25}


def count_bytes(config: dict[str, Any]) -> int:
    text = text_part(config)
    experts = _experts(text)
    attention, feed_forward = _layers(text)
    embeddings = text["vocab_size"] * text["hidden_size"] * (1 if _tied(config, text) else 2)
    scheme = config.get("quantization_config") or text.get("quantization_config") or {}
    bits = bits_per_weight(scheme)
    experts_only = scheme.get("quant_method") == "mxfp4"  # as gpt-oss is published
    others = attention + feed_forward
    plain = 16.0 * (embeddings + _vision(config.get("vision_config") or {}))
    return int((plain + bits * experts + (16.0 if experts_only else bits) * others) / 8)


def active_bytes(config: dict[str, Any], weights_bytes: int | None = None) -> int | None:
    """What must be read for each token: all weights, of experts only those that a token passes.

    The speed of decoding follows it, on the same GPUs. None where the configuration does not say.
    """
    try:
        total = count_bytes(config)
        share = count_bytes(_one_token(config)) / total
    except NOT_READ:
        return None
    return int((weights_bytes or total) * share)


def _one_token(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with as many experts as one token uses."""
    text = dict(text_part(config))
    if used := first_of(text, EXPERTS_PER_TOKEN):
        text.update({name: used for name in EXPERTS if text.get(name)})
    return {**config, "text_config": text} if config.get("text_config") else text


def bits_per_weight(scheme: dict[str, Any]) -> float:
    """Of `quantization_config`; 16 where there is none."""
    method = str(scheme.get("quant_method", ""))
    if method in _BITS:
        return _BITS[method]
    if "nvfp4" in str(scheme.get("quant_algo", "")).lower():
        return 4.5
    groups = list((scheme.get("config_groups") or {}).values())
    weights = groups[0].get("weights", {}) if groups else scheme
    bits = weights.get("num_bits") or weights.get("bits")
    if not bits:
        return 16.0
    size = weights.get("group_size") or 128
    return float(bits) + (20 / size if bits == 4 and size > 0 else 0)


def _tied(config: dict[str, Any], text: dict[str, Any]) -> bool:
    default = str(text.get("model_type", "")).startswith(("gemma", "bert"))
    return bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", default)))


def _sparse_layers(text: dict[str, Any]) -> int:
    if not first_of(text, EXPERTS):
        return 0
    dense = text.get("first_k_dense_replace") or len(text.get("mlp_only_layers") or ())
    return int(text["num_hidden_layers"] - dense)


def _experts(text: dict[str, Any]) -> int:
    each = text.get("moe_intermediate_size") or text.get("intermediate_size") or 0
    return _sparse_layers(text) * first_of(text, EXPERTS) * 3 * int(text["hidden_size"] * each)


def _layers(text: dict[str, Any]) -> tuple[int, int]:
    """Attention of all layers, and what is dense in their feed-forward parts."""
    hidden, count, sparse = text["hidden_size"], text["num_hidden_layers"], _sparse_layers(text)
    matrices = 2 if text.get("model_type") in ENCODERS else 3
    dense = (count - sparse) * matrices * hidden * (text.get("intermediate_size") or 0)
    shared = (text.get("shared_expert_intermediate_size") or 0) + (
        text.get("n_shared_experts") or text.get("num_shared_experts") or 0
    ) * (text.get("moe_intermediate_size") or 0)
    router = first_of(text, EXPERTS)
    return _attention(text), dense + sparse * hidden * (3 * shared + router)


def _attention(text: dict[str, Any]) -> int:
    kinds = layer_kinds(text) or ["full_attention"] * text["num_hidden_layers"]
    linear = kinds.count("linear_attention")
    of_states = linear * _one_linear(text) if linear else 0
    return (len(kinds) - linear) * _one_attention(text) + of_states


def _one_attention(text: dict[str, Any]) -> int:
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    if rank := text.get("kv_lora_rank"):
        rope, nope = text["qk_rope_head_dim"], text["qk_nope_head_dim"]
        query, value = heads * (rope + nope), heads * text["v_head_dim"]
        low = text.get("q_lora_rank")
        queries = low * (hidden + query) if low else hidden * query
        return int(
            queries + hidden * (rank + rope) + rank * (heads * nope + value) + value * hidden
        )
    size = head_dim(text)
    query = heads * size
    keys = (text.get("num_key_value_heads") or heads) * size
    gate = query if text.get("attn_output_gate") else 0
    return int(hidden * (2 * query + 2 * keys + gate))


def _one_linear(text: dict[str, Any]) -> int:
    hidden = text["hidden_size"]
    if "linear_num_value_heads" in text:
        keys = text["linear_num_key_heads"] * text["linear_key_head_dim"]
        values = text["linear_num_value_heads"] * text["linear_value_head_dim"]
        return int(hidden * (2 * keys + 3 * values + 2 * text["linear_num_value_heads"]))
    if linear := text.get("linear_attn_config"):
        return int(hidden * linear["num_heads"] * linear["head_dim"] * 4)
    inner = text["mamba_num_heads"] * text["mamba_head_dim"]
    return int(hidden * (3 * inner + 2 * text["n_groups"] * text["ssm_state_size"]))


def _vision(vision: dict[str, Any]) -> int:
    """The tower; the projector is small."""
    depth = vision.get("depth") or vision.get("num_hidden_layers") or 0
    hidden = vision.get("hidden_size") or 0
    return int(depth * (4 * hidden**2 + 2 * hidden * (vision.get("intermediate_size") or 0)))
