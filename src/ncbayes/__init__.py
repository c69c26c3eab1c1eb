"""Bayesian inference for models whose normalizing constant nobody can compute."""

from __future__ import annotations

import importlib
from typing import Any

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
    "asymptotics",
    "datasets",
    "engines",
    "fit",
    "graphs",
    "load",
    "models",
    "noise",
    "plots",
    "predictive",
    "priors",
    "spaces",
    "testing",
]


def __getattr__(name: str) -> Any:
    """These namespaces are imported on first use: few fits need them."""
    if name in {"asymptotics", "datasets", "graphs", "plots", "predictive", "testing"}:
        return importlib.import_module(f"ncbayes.{name}")
    raise AttributeError(f"module 'ncbayes' has no attribute {name!r}")
