"""Priors of theta that are Gaussian given their scales."""

from ncbayes.priors.hierarchical import Hierarchical
from ncbayes.priors.horseshoe import Horseshoe, global_scale
from ncbayes.priors.multivariate import MultivariateNormal
from ncbayes.priors.normal import HalfCauchyNormal, Normal
from ncbayes.priors.random_walk import RandomWalk

__all__ = [
    "HalfCauchyNormal",
    "Hierarchical",
    "Horseshoe",
    "MultivariateNormal",
    "Normal",
    "RandomWalk",
    "global_scale",
]
