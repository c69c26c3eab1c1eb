"""Are means over the data those of the model? Scores that errors of the fitted theta do not move.

Theta was estimated from the same rows, so a plain comparison of means of a statistic t is blunt for
what the model was fitted to, and too sharp for what hangs together with it. What is compared is
the part of t that the model's own statistics s do not explain,

    r = t - B s,   B = Cov(t, s) Cov(s)^-1 under the model,

whose mean under the model does not change with theta to first order: d E[r] / d theta =
Cov(r, s) = 0. So, for any estimate that is not far off,

    z = (mean r over data - mean r over simulated rows) / sqrt(Var(r) (1 / n + 1 / m))

is standard normal if the model is right (Neyman's C(alpha), the efficient score). How large the
largest of many z, or their sum of squares, is by chance is found by drawing n rows from data and
simulated rows together, so that skewed statistics, rare events and few rows are counted in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import chdtrc, chdtri, ndtr, ndtri

from ncbayes.base import BoolArray, FloatArray

# Data sets that are drawn from all rows, and the quantile at which a normal tail takes over.
RESAMPLED, TAIL = 500, 0.98
# Rows from which on fewer are drawn, data sets that are counted at once, and entries of statistics.
MANY_ROWS, SETS_AT_ONCE, CHUNK = 500, 50, 500_000
# A ridge on the model's statistics, in units of their variances.
RIDGE = 1e-6
# Simulated rows for each of the model's statistics; with fewer, nothing is taken out.
ROWS_A_STATISTIC = 4
# What is left of a statistic that the model's own explain, as a share of its variance, and the
# least share by which a difference is judged.
EXPLAINED, LEAST_LEFT = 1e-6, 1e-3
# The least share of a row that others leave to it.
LEAST_ALONE = 0.1


@dataclass(frozen=True, eq=False)
class Compared:
    """One kind of statistics: ``z`` (k,) by label, means of data and model, and one p-value."""

    z: FloatArray
    observed: FloatArray
    expected: FloatArray
    p_value: float

    @property
    def worst(self) -> int:
        """The label that tells most: of those whose means differ in the direction of z, if any."""
        size = np.abs(self.z)
        alike = size * (np.sign(self.z) == np.sign(self.observed - self.expected))
        return int(np.argmax(alike if alike.any() else size)) if len(size) else 0


@dataclass(frozen=True, eq=False)
class Own:
    """The model's statistics, centred at their simulated mean, of data and of simulated rows."""

    data: FloatArray
    simulated: FloatArray
    factor: tuple[FloatArray, bool] | None
    alone: FloatArray | None = None
    """Of each simulated row, the share of it that the regression does not owe to the row itself."""
    change: FloatArray | None = None
    """Log densities of simulated rows at draws less those at their mean, (row, draw): where
    nothing is taken out, the spread of means between draws counts instead."""

    @classmethod
    def spread(cls, change: FloatArray) -> Own:
        nothing = np.zeros((0, 0))
        return cls(nothing, nothing, None, None, change - change.mean(axis=0))

    @classmethod
    def of(cls, data: FloatArray, simulated: FloatArray) -> Own:
        middle, scale = simulated.mean(axis=0), simulated.std(axis=0)
        varies = scale > 1e-12 * (1e-300 + np.abs(middle))
        ours, theirs = (
            (each[:, varies] - middle[varies]) / scale[varies] for each in (data, simulated)
        )
        if len(simulated) < ROWS_A_STATISTIC * varies.sum() or not varies.any():
            return cls(ours, theirs, None)
        gram = theirs.T @ theirs / len(simulated)
        gram[np.diag_indices_from(gram)] += RIDGE
        factor = cho_factor(gram, lower=True)
        halves = solve_triangular(factor[0], theirs.T, lower=True)
        leverage = np.einsum("km,km->m", halves, halves) / len(simulated)
        alone = np.maximum(1 - leverage - 1 / len(simulated), LEAST_ALONE)
        return cls(ours, theirs, factor, alone[:, None])

    def without(self, data: FloatArray, simulated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What these statistics do not explain of others, of data and of simulated rows.

        Of a simulated row, what the regression on all the others leaves: as of a row of the data,
        which had no part in it.
        """
        if self.factor is None:
            return data, simulated
        middle = simulated.mean(axis=0)
        centred = simulated - middle
        slopes = cho_solve(self.factor, self.simulated.T @ centred / len(simulated))
        left = (centred - self.simulated @ slopes) / self.alone
        return data - self.data @ slopes, middle + left

    def between_draws(self, simulated: FloatArray) -> FloatArray:
        """Variances of the model's means of statistics over the posterior, (k,)."""
        if self.change is None:
            return np.zeros(simulated.shape[1])
        centred = simulated - simulated.mean(axis=0)
        return np.asarray((self.change.T @ centred / len(simulated)).var(axis=0))


@dataclass(frozen=True, eq=False)
class Resampled:
    """Data sets drawn from ``pooled`` rows, as the numbers of their rows, (data set, n)."""

    rows: NDArray[np.int32]
    pooled: int

    @classmethod
    def drawn(cls, n: int, pooled: int, rng: np.random.Generator) -> Resampled:
        """So many data sets of n rows; fewer where n is large and means are nearly normal."""
        size = RESAMPLED if n <= MANY_ROWS else RESAMPLED // 3
        return cls(rng.integers(0, pooled, (size, n), dtype=np.int32), pooled)

    def means(self, values: FloatArray) -> FloatArray:
        """Means of values (pooled row, k) over each data set, (data set, k)."""
        found = np.empty((len(self.rows), values.shape[1]))
        for start in range(0, len(found), SETS_AT_ONCE):
            part = self.rows[start : start + SETS_AT_ONCE]
            counts = np.stack([np.bincount(each, minlength=self.pooled) for each in part])
            found[start : start + SETS_AT_ONCE] = counts.astype(float) @ values
        return np.asarray(found / self.rows.shape[1])


def compared(
    own: Own, data: FloatArray, simulated: FloatArray, sets: Resampled, worth: float
) -> Compared:
    """Statistics of data (n, k) and of simulated rows (m, k), by what the model's own leave.

    Simulated rows are worth so many independent ones. ``sets`` are drawn from all n + m rows: if
    the model is right, these are alike. So an event that the data have twice and the simulated
    rows never is no wonder, and one that they have twenty times is.
    """
    width = max(1, CHUNK // (len(data) + len(simulated)))
    largest, squares = (np.zeros(len(sets.rows)) for _ in range(2))
    scores, count = [], 0
    for start in range(0, data.shape[1], width):
        part = slice(start, start + width)
        z, told, by_chance = _scored(own, data[:, part], simulated[:, part], sets, worth)
        scores.append(z)
        count += int(told.sum())
        largest = np.maximum(largest, np.abs(by_chance).max(axis=1, initial=0.0))
        squares += (by_chance**2).sum(axis=1)
    z = np.concatenate(scores)
    p_value = _p_value(z, count, largest, squares)
    return Compared(z, data.mean(axis=0), simulated.mean(axis=0), p_value)


def _scored(
    own: Own, data: FloatArray, simulated: FloatArray, sets: Resampled, worth: float
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Scores (k,), which of them tell anything, and what those are by chance, (data set, ...)."""
    n = len(data)
    left, reference = own.without(data, simulated)
    pool = np.vstack([left, reference])
    variance = pool.var(axis=0)
    total = np.vstack([data, simulated]).var(axis=0)
    gap = left.mean(axis=0) - reference.mean(axis=0)
    # A statistic that is one of the model's own has no part left, in data or simulated rows; and
    # of one that they explain nearly, a rest that differs is not known to more than this.
    told = (variance > EXPLAINED * total) | (np.abs(gap) > 1e-3 * np.sqrt(total))
    told &= total > 0
    variance = np.maximum(variance, LEAST_LEFT * total)
    by_rows = np.where(told, variance, 1.0) * (1 / n + 1 / worth)
    scale = np.sqrt(by_rows + own.between_draws(simulated))
    z = np.where(told, gap / scale, 0.0)
    residual = (pool - pool.mean(axis=0))[:, told] / np.sqrt(by_rows[told])
    return z, told, sets.means(residual) * np.sqrt(1 + n / worth)


def _p_value(z: FloatArray, count: int, largest: FloatArray, squares: FloatArray) -> float:
    """Of the largest and of the sum of squares of ``count`` scores: twice the smaller."""
    if not count:
        return 1.0
    by_largest = _tail(float(np.abs(z).max()), largest, count)
    return min(1.0, 2 * min(by_largest, _square_tail(float(z @ z), squares, count)))


def _tail(observed: float, drawn: FloatArray, count: int) -> float:
    """How often the largest of ``count`` scores is that large."""
    share = float(np.mean(drawn >= observed))
    if share > 2 * (1 - TAIL):
        return share
    edge = float(np.quantile(drawn, TAIL))
    # The normal tail of ``count`` scores, stretched so that it meets what was drawn at the edge.
    stretch = max(1.0, edge / -float(ndtri((1 - TAIL) / (2 * count))))
    return float(min(1.0, 2 * count * ndtr(-observed / stretch)))


def _square_tail(observed: float, drawn: FloatArray, count: int) -> float:
    """How often the sum of squares is that large: by a scaled chi-square with the same moments."""
    share = float(np.mean(drawn >= observed))
    if share > 2 * (1 - TAIL):
        return share
    mean, variance = float(drawn.mean()), float(drawn.var())
    if variance == 0:  # nothing of this kind was ever simulated
        return float(chdtrc(count, observed))
    scale, degrees = variance / (2 * mean), 2 * mean**2 / variance
    edge = float(np.quantile(drawn, TAIL))
    stretch = max(1.0, edge / float(scale * chdtri(degrees, 1 - TAIL)))
    return float(chdtrc(degrees, observed / stretch / scale))
