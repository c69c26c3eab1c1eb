"""Bayesian inference for models whose normalizing constant nobody can compute."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

from ncbayes import energies, engines, models, noise, priors, spaces
from ncbayes.base import InputError
from ncbayes.comparison import compare
from ncbayes.diagnostics import FitWarning
from ncbayes.energies import Energy
from ncbayes.fit import fit
from ncbayes.over_time import fit_density_over_time
from ncbayes.posterior import Posterior, load

__all__ = [
    "Energy",
    "FitWarning",
    "InputError",
    "Posterior",
    "asymptotics",
    "baselines",
    "compare",
    "datasets",
    "densities",
    "energies",
    "engines",
    "fit",
    "fit_density_over_time",
    "graphs",
    "load",
    "metrics",
    "models",
    "noise",
    "plots",
    "predictive",
    "priors",
    "scores",
    "spaces",
    "testing",
]

# Imported on first use: few fits need them.
_LATER = frozenset(
    {
        "asymptotics",
        "baselines",
        "datasets",
        "densities",
        "graphs",
        "metrics",
        "plots",
        "predictive",
        "scores",
        "testing",
    }
)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"ncbayes.{name}")
    raise AttributeError(f"module 'ncbayes' has no attribute {name!r}")
