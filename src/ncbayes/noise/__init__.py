"""Noise: distributions that can be drawn from and evaluated, and when a chain changes them."""

from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.auto import Auto
from ncbayes.noise.carried import Carried
from ncbayes.noise.copula import Copula
from ncbayes.noise.counts import Frequencies, NegativeBinomial
from ncbayes.noise.crossfit import CrossFitted
from ncbayes.noise.distributions import (
    Bernoulli,
    Gamma,
    Mixture,
    Normal,
    Product,
    StudentT,
    Uniform,
    VonMises,
    matched,
)
from ncbayes.noise.fitted import Tabulated, gaussian_mixture, margins
from ncbayes.noise.graphs import BernoulliGraphs
from ncbayes.noise.kernels import KernelDensity
from ncbayes.noise.restricted import Restricted
from ncbayes.noise.schedules import Fixed, Fresh, Pooled
from ncbayes.noise.tempered import Annealed, Resampled, Tempering
from ncbayes.noise.tree import Tree

__all__ = [
    "Adaptive",
    "Annealed",
    "Auto",
    "Bernoulli",
    "BernoulliGraphs",
    "Carried",
    "Copula",
    "CrossFitted",
    "Fixed",
    "Frequencies",
    "Fresh",
    "Gamma",
    "KernelDensity",
    "Mixture",
    "NegativeBinomial",
    "Normal",
    "Pooled",
    "Product",
    "Resampled",
    "Restricted",
    "StudentT",
    "Tabulated",
    "Tempering",
    "Tree",
    "Uniform",
    "VonMises",
    "gaussian_mixture",
    "margins",
    "matched",
]
