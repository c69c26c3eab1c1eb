"""What simulation shows of an estimate: is noise made there, or a fit, to be trusted?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ncbayes.base import BoolArray, FloatArray, InputError, Noise
from ncbayes.checks.verification import Nearness
from ncbayes.contrast import Contrast
from ncbayes.noise.model_part import Drawn, drawn
from ncbayes.normalizers import kernels
from ncbayes.problem import Problem

# A look passes with this share of simulated points near the rows, at most this share where there
# are neither rows nor noise, this share of them effective, and means of the statistics within so
# many standard errors (root mean square).
NEAR, ELSEWHERE, EFFECTIVE, MOMENTS = 0.9, 0.1, 0.3, 2.0
# Among few rows chance may leave fewer points near, but only in this share of cases; the distances
# of fewer than so many rows tell nothing.
RARELY, FEWEST_ROWS = 0.01, 30
# A first estimate may have means that are off by so many times as much.
START = 2.5
# How far log Z may be off: so much, beside p / 2n and two standard errors.
LOG_Z = 0.3
# Rows that are looked at.
MOST_ROWS = 5000
# Statistics up to which the posterior's spread counts in the errors of their means.
MOST_SPREAD = 2000
# Draws of a short fit that count as independent.
FEWEST_EFFECTIVE = 10.0


@dataclass(frozen=True)
class Look:
    """What simulation shows of one group at an estimate.

    ``near`` of points from the base, ``from_rows`` of those from rows, and the ``least`` that they
    may be. ``elsewhere``: the share of the model's mass at higher ratios to noise than any row or
    noise point has. ``log_z``: that of the contrast less that of annealing, in the mean over draws,
    NaN where there is no contrast yet; ``limit`` is what it may be.
    """

    near: float
    from_rows: float
    effective: float
    moments: float
    log_z: float = math.nan
    limit: float = math.nan
    elsewhere: float = 0.0
    least: float = NEAR

    @property
    def passes(self) -> bool:
        off = abs(self.log_z) > self.limit if not math.isnan(self.log_z) else False
        fine = min(self.near, self.from_rows) >= self.least and self.effective >= EFFECTIVE
        seen = self.elsewhere <= ELSEWHERE and not off
        return bool(fine and seen and self.moments <= MOMENTS)

    @property
    def is_start(self) -> bool:
        """Whether noise may be made there first: an estimate without noise is biased."""
        fine = min(self.near, self.from_rows) >= self.least and self.effective >= EFFECTIVE
        return bool(fine and self.moments <= START * MOMENTS)

    @property
    def strays(self) -> bool:
        """Whether the model's mass left the rows."""
        return self.near < self.least

    @property
    def is_plausible(self) -> bool:
        """Whether the estimate is one to make noise at, whatever noise it was found by."""
        return bool(not self.strays and self.moments <= MOMENTS)


def looked(
    problem: Problem,
    group: int,
    theta: FloatArray,
    near: Nearness,
    base: Noise | None,
    rng: np.random.Generator,
    coefs: FloatArray | None = None,
) -> tuple[Look, FloatArray | None]:
    """The model at theta simulated from its base and from the rows; its points, or None."""
    model: Any = problem.model
    rows = problem.data[group]
    try:
        found = drawn(model, theta, rows, base, rng)
        from_rows = np.array(rows[rng.permutation(min(1000, 4 * len(rows))) % len(rows)])
        for _ in range(10 if hasattr(model, "sweep") else 0):
            from_rows = model.sweep(theta, from_rows, rng)
    except InputError:
        return Look(0.0, 0.0, 0.0, math.inf), None
    if not math.isfinite(found.log_z):
        return Look(0.0, 0.0, 0.0, math.inf), None
    points = found.resampled(len(found.points), rng)
    moments = _moments(model, rows, found, theta, coefs)
    shares = near.share(points), near.share(from_rows)
    # The share of new rows within the largest distance of n rows is 1 - U^(1/n) or so from 1.
    least = NEAR * RARELY ** (1 / len(rows)) if len(rows) >= FEWEST_ROWS else 0.0
    look = Look(*shares, found.effective, moments, least=least)
    if coefs is None:
        return look, points
    log_z, error = _log_z(model, found, theta, coefs[:, :-1])
    off = problem.log_z(coefs) - log_z
    error = math.hypot(error, float(np.std(off)) / math.sqrt(FEWEST_EFFECTIVE))
    limit = LOG_Z + len(theta) / (2 * len(rows)) + 2 * error
    return replace(look, log_z=float(np.mean(off)), limit=limit), points


def some_of(rows: FloatArray) -> FloatArray:
    """The rows, or as many of them as are looked at."""
    return rows[:: max(1, -(-len(rows) // MOST_ROWS))]


def beyond(
    problem: Problem,
    each: Contrast,
    noise: Noise,
    ratio: float,
    coef: FloatArray,
    points: FloatArray,
) -> BoolArray:
    """Which points have a higher ratio of model to noise than any row or noise point.

    ``ratio`` of noise points to rows, those counted that have no row in the contrast.
    """
    log_ratio = kernels(problem.model, coef[None, :-1], points)[0] - noise.log_density(points)
    log_odds = log_ratio - float(problem.log_z(coef)) - math.log(ratio)
    return np.asarray(log_odds > each.log_odds(coef).max())


def _moments(
    model: Any, rows: FloatArray, found: Drawn, theta: FloatArray, coefs: FloatArray | None
) -> float:
    """How far means of statistics are off, in standard errors, root mean square."""
    weights = np.exp(found.log_weights - logsumexp(found.log_weights))
    rows = some_of(rows)
    data = np.asarray(model.statistics(rows), dtype=float)
    simulated = np.asarray(model.statistics(found.points), dtype=float)
    mean = weights @ simulated
    centred = simulated - mean
    variance = (weights @ centred**2 + data.var(axis=0)) / 2
    error = variance * (1 / len(rows) + 1 / (found.effective * len(weights)))
    if coefs is not None and len(theta) <= MOST_SPREAD:
        covariance = (weights[:, None] * centred).T @ centred
        error = error + ((coefs[:, :-1] - theta) @ covariance).var(axis=0)
    off = (data.mean(axis=0) - mean)[error > 0] / np.sqrt(error[error > 0])
    return float(np.sqrt(np.mean(off**2))) if len(off) else 0.0


def _log_z(
    model: Any, found: Drawn, theta: FloatArray, draws: FloatArray
) -> tuple[FloatArray, float]:
    """log Z at draws, from the points at theta, and its standard error."""
    log_weights = found.log_weights - math.log(len(found.log_weights))
    at = kernels(model, np.vstack([theta, draws]), found.points)
    if found.steps == 0:  # points of equal weight
        log_weights = np.full(len(found.points), found.log_z - math.log(len(found.points)))
    terms = at[1:] - at[0] + log_weights
    log_z = logsumexp(terms, axis=1)
    effective = np.exp(2 * log_z - logsumexp(2 * terms, axis=1))
    typical = max(float(np.median(effective)), 1.0)
    return log_z, math.sqrt(found.error**2 + 1 / typical)
