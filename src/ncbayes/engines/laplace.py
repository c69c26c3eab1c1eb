"""The mode of a log posterior of one group's coef, and the Gaussian around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from ncbayes.base import FloatArray
from ncbayes.contrast import Contrast, label_probability

# Newton's method on a concave function with halved steps; more means that it does not converge.
NEWTON_STEPS = 60
# Half the squared Newton decrement that no draw can notice.
CONVERGED = 1e-8


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """The posterior of one group's coef given its prior ``N(precision^-1 shift, precision^-1)``."""

    contrast: Contrast
    precision: FloatArray
    shift: FloatArray

    def log_density(self, coef: FloatArray, log_odds: FloatArray | None = None) -> float:
        """Up to a constant."""
        log_odds = self.contrast.log_odds(coef) if log_odds is None else log_odds
        prior = float(self.shift @ coef - coef @ self.precision @ coef / 2)
        return self.contrast.log_likelihood(log_odds) + prior

    def gradient(self, coef: FloatArray, log_odds: FloatArray | None = None) -> FloatArray:
        log_odds = self.contrast.log_odds(coef) if log_odds is None else log_odds
        residual = self.contrast.is_data - label_probability(log_odds)
        score = self.contrast.design.rmatvec(residual)
        return np.asarray(score + self.shift - self.precision @ coef)

    def curvature(self, coef: FloatArray) -> FloatArray:
        chance = label_probability(self.contrast.log_odds(coef))
        return self.contrast.design.gram(chance * (1 - chance)) + self.precision


@dataclass(frozen=True, eq=False)
class Laplace:
    """A posterior with its mode and the Cholesky factor of its curvature there."""

    posterior: LogPosterior
    mode: FloatArray
    factor: FloatArray

    def coef(self, whitened: FloatArray) -> FloatArray:
        """``mode + L'^-1 y``: a standard normal y gives the Laplace approximation."""
        moved, _ = dtrtrs(self.factor, whitened, lower=1, trans=1)
        return np.asarray(self.mode + moved)


def laplace(posterior: LogPosterior, start: FloatArray | None = None) -> Laplace | None:
    """The Laplace approximation by Newton's method, from zero or a start; None if it fails."""
    coef = np.zeros_like(posterior.shift) if start is None else np.array(start)
    value = posterior.log_density(coef)
    for _ in range(NEWTON_STEPS):
        factor, failed = dpotrf(posterior.curvature(coef), lower=1, clean=0)
        if failed or not np.isfinite(value):
            return None
        gradient = posterior.gradient(coef)
        step, _ = dpotrs(factor, gradient, lower=1)
        decrement = float(gradient @ step) / 2
        if decrement < CONVERGED:
            return Laplace(posterior, coef, factor)
        for _ in range(40):
            proposed = posterior.log_density(coef + step)
            if proposed > value:
                break
            step = step / 2
        else:
            return None
        coef, value = coef + step, proposed
    return None
