"""Slice sampling of many numbers at once, each of a density of its own (Neal 2003)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray

# Steps out of the first interval, to either side; more would only be taken in far tails.
MOST_STEPS = 10


def slice_sample(
    log_density: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    width: float,
    rng: np.random.Generator,
) -> FloatArray:
    """One step for every entry of x; ``log_density`` returns one value an entry.

    Stepping out with a fixed number of steps on each side, split at random, then shrinking.
    """
    level = log_density(x) - rng.standard_exponential(x.shape)
    low = x - width * rng.random(x.shape)
    high = low + width
    left = rng.integers(0, MOST_STEPS + 1, x.shape)
    low = _stepped_out(log_density, low, -width, level, left)
    high = _stepped_out(log_density, high, width, level, MOST_STEPS - left)
    proposal = low + (high - low) * rng.random(x.shape)
    outside = ~(log_density(proposal) > level)
    while outside.any():
        low = np.where(outside & (proposal < x), proposal, low)
        high = np.where(outside & (proposal >= x), proposal, high)
        again = low + (high - low) * rng.random(x.shape)
        proposal = np.where(outside, again, proposal)
        outside &= ~(log_density(proposal) > level)
        # An interval that has shrunk to nothing, by round-off, holds nothing but x.
        stuck = outside & (high - low <= 1e-12 * np.maximum(1.0, np.abs(x)))
        proposal, outside = np.where(stuck, x, proposal), outside & ~stuck
    return proposal


def _stepped_out(
    log_density: Callable[[FloatArray], FloatArray],
    end: FloatArray,
    step: float,
    level: FloatArray,
    steps: NDArray[np.int64],
) -> FloatArray:
    inside = (log_density(end) > level) & (steps > 0)
    taken = 0
    while inside.any():
        end = np.where(inside, end + step, end)
        taken += 1
        inside &= (log_density(end) > level) & (taken < steps)
    return end
