"""Moves of a population together with its groups, for priors that have one (``base.Pooling``).

Where groups tell little each, theta and its population hold each other in place: mu is the mean of
thetas that stay near mu, and a small Sigma keeps them near it. Given Polya-Gamma weights the log
likelihood of a group is ``shift . coef - coef' gram coef / 2``, and then

- Sigma and the deviations from mu can be moved together, to B Sigma B' and B times the deviations:
  the density of the deviations stays, up to the volume, what it was (Yu and Meng 2011). B stretches
  one column, or adds a multiple of one column to another;
- mu can be drawn with the coefficients integrated out, which are drawn given it next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ncbayes.base import Draw, FloatArray, Population, Precision
from ncbayes.contrast import Target

# gram and shift of every group: (group, P, P) and (group, P).
Terms: TypeAlias = tuple[FloatArray, FloatArray]
# These moves form and solve with the Gram matrix of every group; beyond so many columns that is
# what conjugate gradients are there to avoid.
MOST_COLUMNS = 300
# Pairs of columns that are added to one another in a sweep: all of up to 8 columns.
MOST_PAIRS = 56
# Of a log factor: most posteriors of a standard deviation are as wide as one or two of these.
WIDTH, MOST_STEPS = 0.5, 8


def moved(target: Target, draw: Draw, terms: Callable[[], Terms], rng: np.random.Generator) -> Draw:
    """The draw after both moves; coef is to be drawn anew, given the scales and the same terms."""
    prior: Any = target.prior
    found = prior.population(draw.scales, target.shape) if hasattr(prior, "population") else None
    if found is None or target.shape[1] > MOST_COLUMNS:
        return draw
    grams, shifts = terms()
    spread = Spread.of(found, draw.coef, grams, shifts)
    for k in range(len(found.columns)):
        spread.stretch(k, rng)
    pairs = np.argwhere(found.linked)
    for k, other in rng.permutation(pairs)[:MOST_PAIRS]:
        spread.shear(int(k), int(other), rng)
    coef = np.array(draw.coef)
    coef[:, found.columns] = found.mean + spread.off
    scales = prior.repopulated(draw.scales, found.mean, spread.linear)
    precision, outer = prior.gaussian(scales, target.shape)
    mean = _mean(found, precision, outer, grams, shifts, rng)
    scales = prior.repopulated(scales, mean, np.eye(len(mean)))
    return replace(draw, coef=coef, scales=scales)


def label_terms(target: Target, weights: Sequence[FloatArray]) -> Terms:
    """Of the labels, given Polya-Gamma weights."""
    pairs = list(zip(target.contrasts, weights, strict=True))
    grams = [each.design.gram(own) for each, own in pairs]
    halves = [each.is_data - 0.5 - own * each.offset for each, own in pairs]
    shifts = [each.design.rmatvec(h) for (each, _), h in zip(pairs, halves, strict=True)]
    return np.array(grams), np.array(shifts)


@dataclass(eq=False)
class Spread:
    """Deviations from mu and the inverse of Sigma, which change in place.

    ``score`` is the gradient of the log likelihood by the deviations, (group, column), ``linear``
    the product of all maps so far.
    """

    found: Population
    grams: FloatArray
    off: FloatArray
    score: FloatArray
    inverse: FloatArray
    linear: FloatArray

    @classmethod
    def of(
        cls, found: Population, coef: FloatArray, grams: FloatArray, shifts: FloatArray
    ) -> Spread:
        columns = found.columns
        score = (shifts - np.einsum("gij,gj->gi", grams, coef))[:, columns]
        inside = grams[:, columns[:, None], columns]
        off, inverse = coef[:, columns] - found.mean, np.array(found.inverse)
        return cls(found, inside, off, score, inverse, np.eye(len(columns)))

    def stretch(self, k: int, rng: np.random.Generator) -> None:
        """Column k times f; log f by slice sampling."""
        inner = self.found.scale[k] * self.inverse[k]
        own = float(inner[k])
        gain, loss = self._terms(k, self.off[:, k])
        power, others = float(self.found.power[k]), float(inner.sum()) - own

        def log_density(t: float) -> float:
            f = math.exp(t)
            fit = gain * (f - 1) - loss * (f - 1) ** 2 / 2
            return fit - power * t - others / f - own / (2 * f * f)

        f = math.exp(sliced(log_density, rng))
        self._add(k, (f - 1) * self.off[:, k])
        self.inverse[k] /= f
        self.inverse[:, k] /= f
        self.linear[k] *= f

    def shear(self, k: int, other: int, rng: np.random.Generator) -> None:
        """s times the other column added to column k; s is normal."""
        scale, inverse = self.found.scale, self.inverse
        gain, loss = self._terms(k, self.off[:, other])
        gain += float(inverse[k] @ scale[:, other])
        loss += float(inverse[k, k] * scale[other, other])
        s = gain / loss + rng.standard_normal() / math.sqrt(loss)
        self._add(k, s * self.off[:, other])
        inverse[other] -= s * inverse[k]
        inverse[:, other] -= s * inverse[:, k]
        self.linear[k] += s * self.linear[other]

    def _terms(self, k: int, step: FloatArray) -> tuple[float, float]:
        """Slope and curvature of the log likelihood when steps are added to column k."""
        return float(self.score[:, k] @ step), float(self.grams[:, k, k] @ step**2)

    def _add(self, k: int, step: FloatArray) -> None:
        self.off[:, k] += step
        self.score -= self.grams[:, :, k] * step[:, None]


def sliced(log_density: Callable[[float], float], rng: np.random.Generator) -> float:
    """A step from 0: stepping out with a limited number of steps, then shrinking (Neal 2003)."""
    level = log_density(0.0) - rng.standard_exponential()
    low = -WIDTH * rng.random()
    high, left = low + WIDTH, int(rng.integers(0, MOST_STEPS + 1))
    for _ in range(left):
        if log_density(low) <= level:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS - left):
        if log_density(high) <= level:
            break
        high += WIDTH
    while high - low > 1e-12:
        t = low + (high - low) * rng.random()
        if log_density(t) > level:
            return t
        low, high = (t, high) if t < 0 else (low, t)
    return 0.0


def _mean(
    found: Population,
    prior: Precision,
    outer: FloatArray,
    grams: FloatArray,
    shifts: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """mu given the weights and Sigma, the coefficients integrated out.

    With Q the prior precision of the columns and A that of all coefficients given the weights, mu
    has the precision ``precision + sum_g Q (A^-1 gram)_g``, which is ``Q - Q A^-1 Q`` without its
    cancellation, and the shift ``shift + sum_g Q (A^-1 shifts)_g``, of the columns. A couples the
    groups where the prior of other columns does.
    """
    columns, within = found.columns, prior.within
    full = within if within.ndim == 3 else within[:, :, None] * np.eye(within.shape[1])
    right = shifts + outer
    right[:, columns] = shifts[:, columns]
    both = np.concatenate([grams[:, :, columns], right[:, :, None]], axis=2)
    solved = _solve(grams + full, prior.between, both)[:, columns]
    seen = np.sum(full[:, columns[:, None], columns] @ solved, axis=0)
    precision = np.diag(found.precision) + (seen[:, :-1] + seen[:, :-1].T) / 2
    try:
        factor = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        # Depends on weights and Sigma alone, which stand still: mu may, too.
        return found.mean
    half = np.linalg.solve(factor, found.shift + seen[:, -1])
    return np.asarray(np.linalg.solve(factor.T, half + rng.standard_normal(len(columns))))


def _solve(blocks: FloatArray, between: FloatArray | None, right: FloatArray) -> FloatArray:
    """Solution (group, P, k) for k right-hand sides of all groups, which ``between`` couples."""
    if between is None:
        return np.asarray(np.linalg.solve(blocks, right))
    from ncbayes.linalg import tridiagonal

    side, coupling = np.empty_like(blocks[1:]), np.ascontiguousarray(between)
    if math.isnan(tridiagonal.factorized(blocks, side, coupling)):
        raise np.linalg.LinAlgError("the precision of coef is not positive definite")
    columns = np.ascontiguousarray(np.moveaxis(right, 2, 0))
    for each in columns:
        tridiagonal.forward(blocks, side, each)
        tridiagonal.backward(blocks, side, each)
    return np.moveaxis(columns, 0, 2)
