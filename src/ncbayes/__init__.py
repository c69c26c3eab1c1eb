"""Bayesian inference for models whose normalizing constant nobody can compute."""

__version__ = "0.1.0"

from ncbayes import engines, models, noise, priors, spaces
from ncbayes.base import InputError
from ncbayes.diagnostics import FitWarning
from ncbayes.fit import fit
from ncbayes.posterior import Posterior, load

__all__ = [
    "FitWarning",
    "InputError",
    "Posterior",
    "engines",
    "fit",
    "load",
    "models",
    "noise",
    "priors",
    "spaces",
]
