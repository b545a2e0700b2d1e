"""The figures of a model that decide what it needs, apart from any server."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Layers that keep something for every token: keys and values, or a latent instead of them."""

    layers: int
    kv_heads: int
    width: int
    """Numbers per head and token: key and value together, or the latent with its rotary part."""
    window: int | None = None
    """Tokens that the layer looks back; None: all."""
    latent: bool = False

    def token_bytes(self, *, tensor_parallel: int, element: int) -> int:
        """On one GPU, of one layer.

        Heads are split over the GPUs, and copied where there are fewer heads than GPUs; a latent
        belongs to all heads and is on every GPU whole.
        vllm/config/model.py ModelConfig.get_num_kv_heads; vllm/v1/kv_cache_interface.py
        FullAttentionSpec.real_page_size_bytes (heads x (head_size + head_size_v) x bytes) and
        MLAAttentionSpec.real_page_size_bytes (one head of kv_lora_rank + qk_rope_head_dim).
        """
        heads = 1 if self.latent else max(1, self.kv_heads // tensor_parallel)
        return heads * self.width * element


@dataclass(frozen=True, kw_only=True)
class State:
    """Layers with a state of constant size per request, whatever its length."""

    layers: int
    channels: int
    """Of the convolution."""
    kernel: int
    recurrent: int
    """Numbers of the recurrent state."""
    recurrent_bytes: int
    """Per number; often 4 where everything else has 2."""

    def size(self, *, tensor_parallel: int, element: int, speculative: int) -> int:
        """Bytes on one GPU, of one layer and one request.

        vllm/model_executor/layers/mamba/mamba_utils.py MambaStateShapeCalculator
        (gated_delta_net_state_shape, kda_state_shape, mamba2_state_shape);
        vllm/v1/kv_cache_interface.py MambaSpec.page_size_bytes.
        """
        convolution = self.channels * (self.kernel - 1 + speculative) * element
        return (convolution + self.recurrent * self.recurrent_bytes) // tensor_parallel


@dataclass(frozen=True, kw_only=True)
class ModelFigures:
    architecture: str
    attention: tuple[Attention, ...]
    states: tuple[State, ...]
    weights_bytes: int
    weights_measured: bool
    """From the files; False: counted from the configuration."""
    hidden: int
    active: int
    """Width of the feed-forward part that one token passes through (all its experts together)."""
    vocabulary: int
    context: int
    """The model's own, in tokens."""
    element: int
    """Bytes of a number where nothing is quantised."""
    quantised: bool = False
    """Its weights keep their size whatever type of numbers the engine is told."""
    draft_layers: int = 0
    """Of its own, that guess tokens ahead (multi-token prediction)."""
    unknown: tuple[str, ...] = ()
    """Parts of the configuration that are not understood here, by name."""

    @property
    def hybrid(self) -> bool:
        kinds = {(layers.width, layers.window, layers.kv_heads) for layers in self.attention}
        return bool(self.states) or len(kinds) > 1
