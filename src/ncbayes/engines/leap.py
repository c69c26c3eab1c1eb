"""A step on the likelihood itself, without Polya-Gamma weights, for where those mix slowly.

Polya-Gamma weights tie coef down wherever labels are nearly certain: with many more noise points
than data, or noise with heavier tails. Hamiltonian Monte Carlo in the coordinates of the Laplace
approximation does not see such points. The approximation depends on contrast and prior
alone, never on the chain, so the step leaves the posterior invariant without any adaptation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from ncbayes.base import FloatArray
from ncbayes.contrast import Contrast, label_probability

# Newton's method on a concave function with halved steps; more means that it does not converge.
NEWTON_STEPS = 60
# Half the squared Newton decrement that no draw can notice.
CONVERGED = 1e-8
# A trajectory of about a quarter turn in a standard normal, in steps that keep most proposals:
# their energy error grows with the number of coefficients to the 1/4.
QUARTER_TURN = 1.6
LARGEST_STEP = 0.7


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

    @cached_property
    def _upper(self) -> FloatArray:
        """L', without what LAPACK has left beside it."""
        return np.tril(self.factor).T

    def whitened(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self._upper @ (coef - self.mode))

    def gradient(self, coef: FloatArray, log_odds: FloatArray | None = None) -> FloatArray:
        """Of the log density, with respect to the whitened coordinates."""
        solved, _ = dtrtrs(self.factor, self.posterior.gradient(coef, log_odds), lower=1)
        return np.asarray(solved)


def laplace(posterior: LogPosterior) -> Laplace | None:
    """The Laplace approximation by Newton's method from zero; None if it does not converge."""
    coef = np.zeros_like(posterior.shift)
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


def leap(
    approximation: Laplace,
    coef: FloatArray,
    rng: np.random.Generator,
    turn: float = QUARTER_TURN,
) -> tuple[FloatArray, float]:
    """One Hamiltonian trajectory from coef; the next coef and whether it moved (1 or 0)."""
    size = min(LARGEST_STEP, 1.3 * len(coef) ** -0.25)
    # A random step breaks the cycles that a trajectory of a fixed length can fall into.
    step, count = size * rng.uniform(0.7, 1.0), int(np.ceil(turn / size))
    momentum, threshold = rng.standard_normal(len(coef)), -rng.standard_exponential()
    posterior = approximation.posterior
    place, there = approximation.whitened(coef), coef
    log_odds = posterior.contrast.log_odds(coef)
    energy = momentum @ momentum / 2 - posterior.log_density(coef, log_odds)
    momentum = momentum + step / 2 * approximation.gradient(coef, log_odds)
    for k in range(count):
        place = place + step * momentum
        there = approximation.coef(place)
        log_odds = posterior.contrast.log_odds(there)
        half = 0.5 if k == count - 1 else 1.0
        momentum = momentum + half * step * approximation.gradient(there, log_odds)
    after = momentum @ momentum / 2 - posterior.log_density(there, log_odds)
    accepted = bool(energy - after > threshold)
    return (there, 1.0) if accepted else (coef, 0.0)
