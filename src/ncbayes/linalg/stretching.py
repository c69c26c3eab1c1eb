"""A statistic's scale and what goes with it, stretched together. Compiled, imported where used."""

from __future__ import annotations

import math

from numba import njit

# Of the slice: how far apart its first ends are, in logarithms, and steps out to either side.
WIDTH, MOST_STEPS = 0.5, 10


@njit(cache=True)
def stretches(grams, score, coef, columns, part, log_variance, shape, rate, rng, out):
    """Factors exp(s) for the columns one after the other; coef changes in place.

    Given weights, the log likelihood of coef is ``score . coef - coef' gram coef / 2`` in each
    group. Column k becomes ``coef_k + (exp(s) - 1) part_k`` and its log variance v becomes v + 2 s,
    which leaves the density of the part given the variance as it is; the variance itself has
    log density ``-shape v - rate exp(-v)``. One slice-sampling step for each s, into ``out``.
    """
    groups = len(coef)
    for index in range(len(columns)):
        k = columns[index]
        linear, square = 0.0, 0.0
        for g in range(groups):
            pull = score[g, k]
            for j in range(coef.shape[1]):
                pull -= grams[g, k, j] * coef[g, j]
            # Without the part itself: what the rest of coef leaves for it.
            own = part[g, index]
            linear += own * (pull + grams[g, k, k] * own)
            square += own * own * grams[g, k, k]
        s = _slice(linear, square, log_variance[index], shape, rate, rng)
        out[index] = s
        for g in range(groups):
            coef[g, k] += (math.exp(s) - 1.0) * part[g, index]


@njit(cache=True)
def _log_density(s, linear, square, log_variance, shape, rate):
    factor, v = math.exp(s), log_variance + 2.0 * s
    return linear * factor - square * factor * factor / 2.0 - shape * v - rate * math.exp(-v)


@njit(cache=True)
def _slice(linear, square, log_variance, shape, rate, rng):
    given = (linear, square, log_variance, shape, rate)
    level = _log_density(0.0, *given) - rng.standard_exponential()
    low = -WIDTH * rng.random()
    high = low + WIDTH
    left = rng.integers(0, MOST_STEPS + 1)
    for _ in range(left):
        if not _log_density(low, *given) > level:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS - left):
        if not _log_density(high, *given) > level:
            break
        high += WIDTH
    while True:
        s = low + (high - low) * rng.random()
        if _log_density(s, *given) > level or high - low < 1e-12:
            return s if high - low >= 1e-12 else 0.0
        if s < 0.0:
            low = s
        else:
            high = s
