"""Bayesian inference for models whose normalizing constant nobody can compute."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ncbayes import (
        asymptotics,
        baselines,
        datasets,
        densities,
        energies,
        engines,
        estimators,
        graphs,
        metrics,
        models,
        noise,
        plots,
        predictive,
        priors,
        scores,
        spaces,
        testing,
        webreport,
    )
    from ncbayes.base import InputError
    from ncbayes.comparison import compare
    from ncbayes.diagnostics import FitWarning
    from ncbayes.energies import Energy
    from ncbayes.fitting import fit
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
    "estimators",
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
    "webreport",
]

# All of it is imported on first use, so that the command answers at once. Names that are not
# modules, with the module that holds them:
_HOLDERS = {
    "Energy": "energies",
    "FitWarning": "diagnostics",
    "InputError": "base",
    "Posterior": "posterior",
    "compare": "comparison",
    "fit": "fitting",
    "fit_density_over_time": "over_time",
    "load": "posterior",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ncbayes' has no attribute {name!r}")
    module = importlib.import_module(f"ncbayes.{_HOLDERS.get(name, name)}")
    return getattr(module, name) if name in _HOLDERS else module


def __dir__() -> list[str]:
    return [*globals(), *__all__]
