"""Whether a model fits a server: weights, KV cache, and how many requests it holds.

    estimate(figures_from_config(config, weights_bytes), gpus_mib=[24576, 24576], context=32768,
             told=from_flags({"max-num-seqs": 16}))

Sources stand at each formula. tests/inference/fit compares with what engines said at start.
"""

from inference.fit.estimate import Fit, estimate
from inference.fit.figures import Attention, ModelFigures, State
from inference.fit.kinds import NOT_READ
from inference.fit.reading import figures_from_config
from inference.fit.told import Told, batch, from_flags

__all__ = [
    "NOT_READ",
    "Attention",
    "Fit",
    "ModelFigures",
    "State",
    "Told",
    "batch",
    "estimate",
    "figures_from_config",
    "from_flags",
]
