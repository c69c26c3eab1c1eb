"""The waist of an energy: log odds that are not linear in coef.

    log odds(u) = f(u) - mean f(data) + last + offset(u),    f = log_density(params, .)

``coef`` is (params, last), with params flat and free of constraints. The last entry is the mean
normalized log density of the data, ``last = mean f(data) - log Z``: data determine it well whatever
the params are, where log Z may change by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ncbayes.autodiff import ONE_THREAD, double_precision, jax_module
from ncbayes.base import BoolArray, Design, FloatArray
from ncbayes.linalg.designs import Dense, with_intercept

# How far from the starting values, in spreads, log odds are compared with their tangent, and the
# largest difference by round-off, as a share of the largest log odds.
WIDTHS, LINEAR = (0.3, 1.0, 1.0, 3.0, 3.0, 10.0, 10.0), 1e-9


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
            values = _compiled(slopes=False)(self.function, coef, self.points, self.anchor)
            return np.asarray(values, dtype=float) + self.offset

    def tangent(self, coef: FloatArray) -> tuple[Design, FloatArray, BoolArray]:
        """Design, offset and labels that are linear in coef, with these log odds and slopes."""
        with double_precision():
            slopes = _compiled(slopes=True)(self.function, coef, self.points, self.anchor)
            jacobian = np.array(slopes, dtype=float)
        design = with_intercept(Dense(jacobian[:, :-1]))
        return design, self.log_odds(coef) - design.matvec(coef), self.is_data

    def is_linear(self) -> bool:
        """Whether the log odds are those of the tangent, near the starting values and far away."""
        design, offset, _ = self.tangent(self.start)
        rng = np.random.default_rng(0)
        for width in WIDTHS:
            coef = self.start + width * self.spread * rng.standard_normal(len(self.start))
            found, straight = self.log_odds(coef), design.matvec(coef) + offset
            if not np.abs(found - straight).max() < LINEAR * (1 + np.abs(straight).max()):
                return False
        return True


@cache
def _compiled(slopes: bool) -> Callable[..., Any]:
    """``curved_log_odds`` or its derivatives by coef, compiled once for each function."""
    jax = jax_module("Energy")
    made = jax.jacfwd(curved_log_odds, argnums=1) if slopes else curved_log_odds
    compiled: Callable[..., Any] = jax.jit(made, static_argnums=0, compiler_options=ONE_THREAD)
    return compiled


def curved_log_odds(function: Callable[..., Any], coef: Any, points: Any, anchor: Any) -> Any:
    """``f(u) - mean f(data) + last``: log odds but for the offset."""
    values = function(coef[:-1], points)
    return values - anchor @ values + coef[-1]
