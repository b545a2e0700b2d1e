"""How many requests a KV cache holds, as vLLM divides it into blocks.

All layers draw blocks of one size in bytes from one pool. Layers of unlike kinds are put into
groups of equally many layers, and a request needs blocks from every group: so in a hybrid model a
constant state costs whole blocks, each as large as hundreds of tokens.
vllm/v1/core/kv_cache_utils.py (get_kv_cache_groups, unify_kv_cache_spec_page_size,
_get_kv_cache_groups_uniform_page_size, get_max_concurrency_for_kv_cache_config,
get_kv_cache_capacity), vllm/platforms/interface.py (block size of hybrid models).
"""

from dataclasses import dataclass

from inference.fit.figures import Attention, ModelFigures, State

BLOCK = 16
"""Tokens; vLLM's own for NVIDIA GPUs."""
SIMILAR = 1.5
"""Kinds of layers whose numbers differ by less are put into groups of the larger number, padded."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Flags that shape the cache."""

    context: int
    tensor_parallel: int = 1
    element: int = 2
    """Bytes of a cached number: 2, or 1 with `--kv-cache-dtype fp8`."""
    state_element: int = 2
    tokens_under_way: int = 8192
    """Of a request, in all batches that are computed at once."""
    prefix_caching: bool = True
    speculative_tokens: int = 0
    block: int = BLOCK


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Layers of one kind. `request`: blocks that one request of the full context needs of it."""

    layers: int
    page: int
    request: int
    block: int
    """Tokens in a block; 0 for a state."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    bytes_per_block: int
    groups: int
    blocks_per_request: int
    block: int

    def blocks(self, available: int) -> int:
        return max(0, available) // self.bytes_per_block

    def concurrent(self, available: int) -> float:
        return self.blocks(available) / self.blocks_per_request


def layout(figures: ModelFigures, settings: Settings) -> Layout | None:
    """None for a model that keeps nothing (an encoder)."""
    kinds = _kinds(figures, settings)
    if not kinds:
        return None
    counts = [kind.layers for kind in kinds]
    size = max(counts) if max(counts) < SIMILAR * min(counts) else min(counts)
    groups = [(_up(kind.layers, size), kind) for kind in kinds]
    return Layout(
        bytes_per_block=max(kind.page for kind in kinds) * size,
        groups=sum(number for number, _ in groups),
        blocks_per_request=sum(number * kind.request for number, kind in groups),
        block=min((kind.block for kind in kinds if kind.block), default=0),
    )


def _kinds(figures: ModelFigures, settings: Settings) -> list[Kind]:
    states = [(state, _state_size(state, settings)) for state in figures.states]
    sizes = [_token_bytes(layers, settings) for layers in figures.attention]
    page = max((size * settings.block for size in sizes), default=0)
    if states and sizes:
        # attention blocks grow until one holds a state; that one is then padded to the block
        block = _up(_up(max(size for _, size in states), min(sizes)), settings.block)
        page = block * settings.block * max(sizes)
    page = max([page, *(size for _, size in states)])
    kinds = [
        Kind(
            layers=layers.layers,
            page=page,
            block=page // size,
            request=_attention_blocks(layers, page // size, settings),
        )
        for layers, size in zip(figures.attention, sizes, strict=True)
    ]
    blocks = _state_blocks(settings)
    return kinds + [Kind(layers=s.layers, page=page, request=blocks, block=0) for s, _ in states]


def _token_bytes(layers: Attention, settings: Settings) -> int:
    return layers.token_bytes(tensor_parallel=settings.tensor_parallel, element=settings.element)


def _state_size(state: State, settings: Settings) -> int:
    return state.size(
        tensor_parallel=settings.tensor_parallel,
        element=settings.state_element,
        speculative=settings.speculative_tokens,
    )


def _attention_blocks(layers: Attention, block: int, settings: Settings) -> int:
    """vllm/v1/kv_cache_interface.py FullAttentionSpec and SlidingWindowSpec
    .max_memory_usage_bytes: a window holds what it sees and what is being read in, and one more
    block, since it need not begin at a block's beginning."""
    if layers.window is None:
        return _up(settings.context, block)
    held = min(layers.window - 1 + settings.tokens_under_way, settings.context)
    return _up(held, block) + 1


def _state_blocks(settings: Settings) -> int:
    """MambaSpec.max_memory_usage_bytes: the state, with prefix caching (mode `align`) one more to
    be kept for others, and one for each speculative token."""
    return (2 if settings.prefix_caching else 1) + settings.speculative_tokens


def _up(value: int, by: int) -> int:
    return -(-value // by)
