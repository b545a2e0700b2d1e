"""Does a model fit a server, and for how many requests? An estimate, until the engine has said."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inference.fit.cache import Settings, layout
from inference.fit.figures import ModelFigures

MIB = 2**20
DRIVER_MIB = 450
"""Of the memory that `nvidia-smi` names, what CUDA never offers: 340 to 500 MiB on RTX 3090, RTX
5090, A100 and H100 (their totals in vLLM's logs)."""
CONTEXT_MIB, COMMUNICATION_MIB = 350, 600
"""CUDA context and libraries (`non_torch_memory` in vLLM's logs); NCCL with several GPUs."""
UTILISATION = 0.9


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


def estimate(
    figures: ModelFigures,
    *,
    gpus_mib: Sequence[int],
    context: int,
    kv_dtype: str = "auto",
    utilisation: float = UTILISATION,
    batched_tokens: int = 8192,
    sequences: int = 256,
    prefix_caching: bool = True,
    speculative_tokens: int = 0,
    kv_cache_mib: int | None = None,
) -> Fit:
    """`gpus_mib`: total memory of each GPU that one replica spans (tensor parallel), as
    `nvidia-smi` names it; for a CPU, the memory given to it as one. `kv_cache_mib`: given by
    `--kv-cache-memory-bytes`, else what is left."""
    parallel = len(gpus_mib)
    weights = figures.weights_bytes / parallel / MIB
    overhead = overhead_mib(
        figures, parallel=parallel, batched_tokens=batched_tokens, sequences=sequences
    )
    left = (min(gpus_mib) - DRIVER_MIB) * utilisation - weights - overhead
    available = left if kv_cache_mib is None else min(left, kv_cache_mib)
    settings = Settings(
        context=context,
        tensor_parallel=parallel,
        element=element_bytes(kv_dtype, figures),
        state_element=figures.element,
        batched_tokens=batched_tokens,
        prefix_caching=prefix_caching,
        speculative_tokens=speculative_tokens,
    )
    concurrent = _concurrent(figures, settings, int(available * MIB), sequences)
    return Fit(
        fits=available >= 0 and concurrent >= 1 and 0 < context <= (figures.context or context),
        kv_tokens=int(concurrent * context) if figures.attention or figures.states else 0,
        concurrent=concurrent,
        weights_mib=round(weights),
        overhead_mib=round(overhead),
        available_mib=round(available),
        per_token_bytes=per_token_bytes(figures, settings),
        notes=tuple(_notes(figures, parallel)),
    )


def overhead_mib(
    figures: ModelFigures, *, parallel: int, batched_tokens: int, sequences: int
) -> float:
    """What the engine measures by a trial run before it sizes the cache.

    Activations of the widest moment (gate, up and their product, and the residual, 2 bytes each)
    for all tokens of a batch, split over the GPUs but for the residual; and logits of all
    sequences in float32, twice (sampling copies them).
    vllm/v1/worker/gpu_worker.py determine_available_memory; gpu_model_runner.py profile_run.
    """
    activations = 2 * batched_tokens * (3 * figures.active / parallel + figures.hidden)
    logits = 2 * 4 * sequences * figures.vocabulary
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


def _concurrent(figures: ModelFigures, settings: Settings, available: int, sequences: int) -> float:
    found = layout(figures, settings)
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
