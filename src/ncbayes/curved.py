"""The waist of an energy: log odds that are not linear in coef.

    log odds(u) = f(u) - mean f(data) + last + offset(u),    f = log_density(params, .)

``coef`` is (params, last), with params flat and free of constraints. The last entry is the mean
normalized log density of the data, ``last = mean f(data) - log Z``: data determine it well whatever
the params are, where log Z may change by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncbayes.autodiff import double_precision, jax_module
from ncbayes.base import BoolArray, Design, FloatArray
from ncbayes.linalg.designs import Dense, with_intercept


@dataclass(frozen=True, eq=False)
class Curved:
    """The pooled points of one group, and what an energy makes of them.

    ``function(params, points)`` is f in JAX. ``anchor`` (N,) weighs the points whose mean of f is
    taken out, ``start`` (coefficient,) is where params may begin and ``spread`` how far from it.
    """

    function: Callable[[Any, Any], Any]
    points: FloatArray
    anchor: FloatArray
    offset: FloatArray
    is_data: BoolArray
    start: FloatArray
    spread: FloatArray

    def log_odds(self, coef: FloatArray) -> FloatArray:
        """Log odds that each pooled point is data, for coef (coefficient,)."""
        with double_precision():
            values = curved_log_odds(self.function, coef, self.points, self.anchor)
            return np.asarray(values, dtype=float) + self.offset

    def tangent(self, coef: FloatArray) -> tuple[Design, FloatArray, BoolArray]:
        """Design, offset and labels that are linear in coef, with these log odds and slopes."""
        jax = jax_module("Energy")

        def log_odds(params: Any) -> Any:
            return curved_log_odds(self.function, params, self.points, self.anchor)

        with double_precision():
            jacobian = np.asarray(jax.jacfwd(log_odds)(np.asarray(coef)), dtype=float)
        design = with_intercept(Dense(jacobian[:, :-1]))
        return design, self.log_odds(coef) - design.matvec(coef), self.is_data


def curved_log_odds(function: Callable[..., Any], coef: Any, points: Any, anchor: Any) -> Any:
    """``f(u) - mean f(data) + last``: log odds but for the offset."""
    values = function(coef[:-1], points)
    return values - anchor @ values + coef[-1]
