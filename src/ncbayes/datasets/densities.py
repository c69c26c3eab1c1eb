"""The paper's two simulated densities over time (its section 4.2), with their truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.datasets.arguments import Seed, check_count, generator
from ncbayes.spaces import TWO_PI, Reals, as_points, is_whole

SHARES = (0.4, 0.6)
VARIANCES = ((0.7, 0.2), (0.5, 0.5))


class Truth(Protocol):
    """A law of points in the plane for each of the times 1, 2, ..., ``last``."""

    @property
    def last(self) -> int: ...

    def sample(self, t: int, size: int, rng: np.random.Generator) -> FloatArray: ...

    def density(self, t: int, x: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class SimulatedDensity:
    """Simulated points and the densities that they were simulated from.

    ``points`` (N, 2); ``times`` (N,), whole numbers from 1 to ``truth.last``, in order; a time
    without points does not occur among them.
    """

    points: FloatArray
    times: NDArray[np.int64]
    truth: Truth

    def density(self, t: int, x: Any) -> FloatArray:
        """The true normalized density at time t, at the rows of x."""
        if not is_whole(t) or not 1 <= t <= self.truth.last:
            raise InputError(
                f"t must be a whole number from 1 to {self.truth.last}, one of the times, got "
                f"{shown(t)}"
            )
        rows = as_points(x, Reals(2), "density(t, x)", minimum=1)
        return self.truth.density(int(t), rows)


@dataclass(frozen=True)
class MovingMixture:
    """``0.4 N(m1, diag(0.7, 0.2)) + 0.6 N(m2, 0.5 I)``.

    ``m1 = (-2, 0) + 4 t (1, 0) / T`` and ``m2 = (-2, -2) + 4 t (1, 1) / T``.
    """

    last: int

    def sample(self, t: int, size: int, rng: np.random.Generator) -> FloatArray:
        part = (rng.random(size) >= SHARES[0]).astype(np.intp)
        sd = np.sqrt(VARIANCES)
        return np.asarray(self._means(t)[part] + sd[part] * rng.standard_normal((size, 2)))

    def density(self, t: int, x: FloatArray) -> FloatArray:
        total = np.zeros(len(x))
        for share, mean, variances in zip(SHARES, self._means(t), VARIANCES, strict=True):
            squares = ((x - mean) ** 2 / variances).sum(axis=1)
            total += share * np.exp(-squares / 2) / (TWO_PI * math.sqrt(math.prod(variances)))
        return total

    def _means(self, t: int) -> FloatArray:
        moved = 4 * t / self.last
        return np.array([(-2 + moved, 0.0), (-2 + moved, -2 + moved)])


@dataclass(frozen=True)
class GrowingRing:
    """``x = r (cos a, sin a)`` with ``r ~ N(m, s^2)`` and a uniform on the circle.

    ``m = 1 + 2 (t - 1) / (T - 1)``, ``s = 0.5 - 0.2 (t - 1) / (T - 1)``. A negative r puts the
    point on the other side, so its density at distance d from the origin is
    ``{N(d; m, s^2) + N(-d; m, s^2)} / (2 pi d)``, infinite at the origin itself.
    """

    last: int

    def sample(self, t: int, size: int, rng: np.random.Generator) -> FloatArray:
        mean, sd = self._radius(t)
        r, a = rng.normal(mean, sd, size), rng.uniform(0.0, TWO_PI, size)
        return np.column_stack([r * np.cos(a), r * np.sin(a)])

    def density(self, t: int, x: FloatArray) -> FloatArray:
        mean, sd = self._radius(t)
        d = np.hypot(x[:, 0], x[:, 1])
        near, far = (np.exp(-(((side * d - mean) / sd) ** 2) / 2) for side in (1, -1))
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray((near + far) / (sd * math.sqrt(TWO_PI)) / (TWO_PI * d))

    def _radius(self, t: int) -> tuple[float, float]:
        progress = (t - 1) / max(self.last - 1, 1)
        return 1 + 2 * progress, 0.5 - 0.2 * progress


def moving_mixture(
    times: int = 10, n: int | Sequence[int] = 100, *, seed: Seed = None
) -> SimulatedDensity:
    """Two normals that move, and meet halfway (section 4.2, scenario 1); see ``MovingMixture``.

    ``n`` is the number of points at each time, or a list of them, one for each time; 0 is allowed.

    >>> found = moving_mixture(times=3, n=[2, 0, 1], seed=1)
    >>> found.points.shape, found.times.tolist()
    ((3, 2), [1, 1, 3])
    """
    check_count("times", times, 1)
    return _simulated(MovingMixture(int(times)), n, seed)


def growing_ring(
    times: int = 10, n: int | Sequence[int] = 100, *, seed: Seed = None
) -> SimulatedDensity:
    """A ring that grows and becomes thinner (section 4.2, scenario 2); see ``GrowingRing``.

    ``n`` is the number of points at each time, or a list of them, one for each time; 0 is allowed.

    >>> growing_ring(seed=1).density(10, [[3.0, 0.0]]).round(4)
    array([0.0705])
    """
    check_count("times", times, 1)
    return _simulated(GrowingRing(int(times)), n, seed)


def _simulated(truth: Truth, n: Any, seed: Seed) -> SimulatedDensity:
    rng, counts = generator("seed", seed), _counts(n, truth.last)
    points = [truth.sample(t, count, rng) for t, count in enumerate(counts, 1)]
    times = np.repeat(np.arange(1, truth.last + 1, dtype=np.int64), counts)
    return SimulatedDensity(np.concatenate(points), times, truth)


def _counts(n: Any, times: int) -> list[int]:
    """How many points there are at each time."""
    try:
        counts = [n] * times if is_whole(n) else list(n)
    except TypeError:
        counts = []
    if len(counts) != times or not all(is_whole(each) and each >= 0 for each in counts):
        raise InputError(
            f"n must be a whole number, 0 or more, or a list of {times} of them, one for each "
            f"time, got {shown(n)}"
        )
    return [int(each) for each in counts]
