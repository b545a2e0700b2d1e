"""Figures from a Hugging Face `config.json`."""

from typing import Any

from inference.fit.figures import Attention, ModelFigures, State
from inference.fit.kinds import EXPERTS_PER_TOKEN, first_of, head_dim, layer_kinds, text_part
from inference.fit.weights import count_bytes

DRAFT_LAYERS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_NOT_UNDERSTOOD = ("index_head_dim", "compress_ratios", "num_kv_shared_layers", "attn_module_list")
"""Keys of attention kinds that are not counted here (sparse indexers, compressed or shared KV)."""


def figures_from_config(config: dict[str, Any], weights_bytes: int | None = None) -> ModelFigures:
    """`weights_bytes`: size of the weight files, which beats any count made from the config."""
    text = text_part(config)
    kinds = layer_kinds(text)
    return ModelFigures(
        architecture=str((config.get("architectures") or [text.get("model_type", "")])[0]),
        attention=_attention(text, kinds),
        states=_states(text, kinds),
        weights_bytes=weights_bytes or count_bytes(config),
        weights_measured=bool(weights_bytes),
        hidden=text["hidden_size"],
        active=_active(text),
        vocabulary=text["vocab_size"],
        context=int(text.get("max_position_embeddings") or 0),
        element=_BYTES.get(str(text.get("dtype") or text.get("torch_dtype") or "bfloat16"), 2),
        quantised=bool(config.get("quantization_config") or text.get("quantization_config")),
        draft_layers=first_of(text, DRAFT_LAYERS),
        unknown=tuple(key for key in _NOT_UNDERSTOOD if text.get(key)),
    )


def _attention(text: dict[str, Any], kinds: list[str]) -> tuple[Attention, ...]:
    full, sliding = kinds.count("full_attention"), kinds.count("sliding_attention")
    heads = text.get("num_key_value_heads") or text.get("num_attention_heads") or 1
    if rank := text.get("kv_lora_rank"):
        latent = rank + text["qk_rope_head_dim"]
        return (Attention(layers=full, kv_heads=1, width=latent, latent=True),)
    found = []
    if full:  # Gemma 4 has other heads in its full layers
        wide = text.get("global_head_dim") or head_dim(text)
        few = text.get("num_global_key_value_heads") or heads
        found.append(Attention(layers=full, kv_heads=few, width=2 * wide))
    if sliding:
        window = int(text["sliding_window"])
        width = 2 * head_dim(text)
        found.append(Attention(layers=sliding, kv_heads=heads, width=width, window=window))
    return tuple(found)


def _states(text: dict[str, Any], kinds: list[str]) -> tuple[State, ...]:
    layers = kinds.count("linear_attention")
    if not layers:
        return ()
    if "linear_num_value_heads" in text:  # gated delta net
        keys = text["linear_num_key_heads"] * text["linear_key_head_dim"]
        values = text["linear_num_value_heads"] * text["linear_value_head_dim"]
        sizes = (2 * keys + values, text["linear_conv_kernel_dim"])
        recurrent = values * text["linear_key_head_dim"]
    elif linear := text.get("linear_attn_config"):  # Kimi delta attention
        inner = linear["num_heads"] * linear["head_dim"]
        sizes = (3 * inner, linear["short_conv_kernel_size"])
        recurrent = inner * linear["head_dim"]
    else:  # Mamba 2
        inner = text["mamba_num_heads"] * text["mamba_head_dim"]
        groups = 2 * text["n_groups"] * text["ssm_state_size"]
        sizes = (inner + groups, text["conv_kernel"])
        recurrent = inner * text["ssm_state_size"]
    channels, kernel = sizes
    precise = str(text.get("mamba_ssm_dtype") or text.get("mamba_ssm_cache_dtype") or "")
    return (
        State(
            layers=layers,
            channels=channels,
            kernel=kernel,
            recurrent=recurrent,
            recurrent_bytes=_recurrent_bytes(text, precise),
        ),
    )


def _recurrent_bytes(text: dict[str, Any], precise: str) -> int:
    """vllm/model_executor/layers/mamba/mamba_utils.py MambaStateDtypeCalculator: KDA keeps float32,
    the others what the configuration says, else the model's own type."""
    if text.get("linear_attn_config"):
        return 4
    return _BYTES.get(precise, 2)


def _active(text: dict[str, Any]) -> int:
    experts = first_of(text, EXPERTS_PER_TOKEN)
    if not experts:
        return int(text["intermediate_size"])
    each = text.get("moe_intermediate_size") or text["intermediate_size"]
    return int(experts * each + (text.get("shared_expert_intermediate_size") or 0))
