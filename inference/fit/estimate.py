"""Does a model fit a server, and for how many requests? An estimate, until the engine has said.

Not in it: memory of CUDA graphs (0.3 to 2 GiB, of which vLLM keeps an estimate free), a vision
tower's trial run, workspaces of kernels, a draft model of its own, and the flags in `LEFT_OUT`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inference.fit.cache import Layout, Settings, layout
from inference.fit.figures import ModelFigures
from inference.fit.told import Batch, Told, batch

MIB = 2**20
DRIVER_MIB = 450
"""Of the memory that `nvidia-smi` names, what CUDA never offers: 340 to 500 MiB on RTX 3090, RTX
5090, A100 and H100 (their totals in vLLM's logs)."""
CONTEXT_MIB, COMMUNICATION_MIB = 350, 600
"""CUDA context and libraries (`non_torch_memory` in vLLM's logs); NCCL with several GPUs."""
BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


@dataclass(frozen=True, kw_only=True)
class Fit:
    fits: bool
    """At least one request of the full context; vLLM refuses to start otherwise."""
    kv_tokens: int
    """As vLLM counts: concurrent requests of the full context, times its length."""
    concurrent: float
    """Requests of the full context at the same time."""
    weights_mib: int
    """On each GPU."""
    overhead_mib: int
    available_mib: int
    """For the KV cache, on each GPU; negative: what is missing."""
    per_token_bytes: int
    """On each GPU, by which a long request grows with every token."""
    notes: tuple[str | Promise, ...]
    left_out: tuple[str, ...] = ()
    """Flags that change the memory and that the estimate does not follow."""
    blocks_per_request: int = 1
    """Of the full context; the number of blocks does not depend on it."""


def estimate(
    figures: ModelFigures,
    *,
    gpus_mib: Sequence[int],
    context: int,
    gpu_name: str = "",
    told: Told | None = None,
) -> Fit:
    """`gpus_mib`: total memory of each GPU that one replica spans (tensor parallel), as
    `nvidia-smi` names it; for a CPU, the memory given to it as one."""
    told = told or Told()
    parallel, usable = len(gpus_mib), min(gpus_mib) - DRIVER_MIB
    figures = as_told(figures, told)
    widest = batch(told, gpu_mib=usable, gpu_name=gpu_name, context=context)
    weights = figures.weights_bytes / parallel / MIB
    overhead = overhead_mib(figures, parallel=parallel, widest=widest)
    available = _available(told, usable=usable, taken=weights + overhead)
    settings = cache_settings(figures, told, parallel=parallel, widest=widest, context=context)
    found = layout(figures, settings)
    concurrent = _concurrent(found, int(available * MIB), widest.sequences)
    return Fit(
        fits=available >= 0 and concurrent >= 1 and 0 < context <= (figures.context or context),
        kv_tokens=int(concurrent * context) if figures.attention or figures.states else 0,
        concurrent=concurrent,
        weights_mib=round(weights),
        overhead_mib=round(overhead),
        available_mib=round(available),
        per_token_bytes=per_token_bytes(figures, settings),
        notes=tuple(_notes(figures, parallel)),
        left_out=told.left_out,
        blocks_per_request=found.blocks_per_request if found else 1,
    )


def as_told(figures: ModelFigures, told: Told) -> ModelFigures:
    """With another type of numbers than its own, and with its own layers that guess ahead."""
    element = BYTES.get(told.dtype, figures.element)
    weights = figures.weights_bytes
    if not figures.quantised:
        weights = weights * element // figures.element
    attention = figures.attention
    whole = next((layers for layers in attention if layers.window is None), None)
    if told.own_draft and whole:
        deeper = replace(whole, layers=whole.layers + max(1, figures.draft_layers))
        attention = tuple(deeper if layers is whole else layers for layers in attention)
    states = figures.states
    if told.recurrent_dtype in BYTES:
        states = tuple(replace(s, recurrent_bytes=BYTES[told.recurrent_dtype]) for s in states)
    return replace(
        figures, element=element, weights_bytes=weights, attention=attention, states=states
    )


def cache_settings(
    figures: ModelFigures, told: Told, *, parallel: int, widest: Batch, context: int
) -> Settings:
    return Settings(
        context=context,
        tensor_parallel=parallel,
        element=element_bytes(told.kv_dtype, figures),
        state_element=BYTES.get(told.state_dtype, figures.element),
        tokens_under_way=widest.tokens * told.batches,
        prefix_caching=told.prefix_caching and told.state_checkpoints,
        speculative_tokens=told.speculative_tokens,
        block=told.block,
    )


def _available(told: Told, *, usable: float, taken: float) -> float:
    """For the KV cache. A size that was named is taken whatever the share, and must be there."""
    if told.kv_cache_bytes is None:
        return usable * told.utilisation - taken
    named, left = told.kv_cache_bytes / MIB, usable - taken
    return named if named <= left else left - named


def overhead_mib(figures: ModelFigures, *, parallel: int, widest: Batch) -> float:
    """What the engine measures by a trial run before it sizes the cache.

    Activations of the widest moment (gate, up and their product, and the residual, 2 bytes each)
    for all tokens of a batch, split over the GPUs but for the residual; and logits of all
    sequences in float32, twice (sampling copies them).
    vllm/v1/worker/gpu_worker.py determine_available_memory; gpu_model_runner.py profile_run.
    """
    activations = 2 * widest.tokens * (3 * figures.active / parallel + figures.hidden)
    logits = 2 * 4 * widest.sequences * figures.vocabulary
    fixed = CONTEXT_MIB + (COMMUNICATION_MIB if parallel > 1 else 0)
    return fixed + (activations + logits) / MIB


def element_bytes(kv_dtype: str, figures: ModelFigures) -> int:
    """`fp8`, `fp8_e4m3`, `fp8_e5m2`, `int8`: one byte; `auto`: the model's own type.

    vllm/utils/torch_utils.py STR_DTYPE_TO_TORCH_DTYPE
    """
    return 1 if kv_dtype.startswith(("fp8", "int8")) else figures.element


def per_token_bytes(figures: ModelFigures, settings: Settings) -> int:
    return sum(
        layers.layers
        * layers.token_bytes(tensor_parallel=settings.tensor_parallel, element=settings.element)
        for layers in figures.attention
        if layers.window is None
    )


def _concurrent(found: Layout | None, available: int, sequences: int) -> float:
    if found is None:
        return float(sequences) if available >= 0 else 0.0
    return found.concurrent(available)


def _notes(figures: ModelFigures, parallel: int) -> list[str | Promise]:
    notes: list[str | Promise] = [_("This is an estimate; the engine's own figure replaces it.")]
    if not figures.weights_measured:
        notes.append(_("The size of the weights is counted from the configuration, not measured."))
    if figures.hybrid:
        notes.append(
            _("Hybrid attention: this is where such formulas go wrong, and where engine versions "
              "differ most.")
        )  # fmt: skip
    if any(layers.latent for layers in figures.attention):
        notes.append(
            _("Latent attention (MLA): its cache is not split over GPUs, and some kernels pad it.")
        )
    if any(0 < layers.kv_heads < parallel and not layers.latent for layers in figures.attention):
        notes.append(_("Fewer key-value heads than GPUs: each GPU keeps a copy."))
    if figures.unknown:
        notes.append(
            _("The configuration has attention that is not understood here; do not rely on this.")
        )
    return notes
