"""Whether a model fits a server: weights, KV cache, and how many requests it holds.

    estimate(figures_from_config(config, weights_bytes), gpus_mib=[24576, 24576], context=32768)

Sources stand at each formula. tests/inference/fit compares with what engines said at start.
"""

from inference.fit.estimate import Fit, estimate
from inference.fit.figures import Attention, ModelFigures, State
from inference.fit.kinds import NOT_READ
from inference.fit.reading import figures_from_config

__all__ = [
    "NOT_READ",
    "Attention",
    "Fit",
    "ModelFigures",
    "State",
    "estimate",
    "figures_from_config",
]
