"""Noise fitted to data more closely than by its moments: tabulated margins, normal mixtures."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.noise.checks import check_columns, check_varies, row
from ncbayes.noise.counts import Frequencies, NegativeBinomial
from ncbayes.noise.distributions import (
    Bernoulli,
    Gamma,
    Mixture,
    Normal,
    Part,
    Product,
    StudentT,
    Uniform,
)
from ncbayes.noise.kernels import KernelDensity
from ncbayes.spaces import (
    TWO_PI,
    Binary,
    Box,
    Counts,
    Orthant,
    Reals,
    Region,
    Torus,
    as_points,
    check_numbers,
    column_count,
    is_whole,
)

# Share of the broad part in each margin: nowhere does the log density fall more than log 20
# below that of the broad part.
BROAD = 0.05

# A table reaches so many bandwidths beyond the data, where kernels have lost all weight.
REACH = 4.0

# Steps of a table for each bandwidth, and their limits. The most are 1.5 of the narrowest
# bandwidth of angles; elsewhere 2000 kernels never ask for more than about 1300.
STEPS_A_BANDWIDTH, LEAST_STEPS, MOST_STEPS = 4, 128, 4096

# Added to the variances of standardized data, so that a component on one point keeps a width.
SMALLEST_VARIANCE = 1e-3

# The last number below 2 pi: a table of angles that ends here holds exactly those of the torus.
LAST_ANGLE = float(np.nextafter(TWO_PI, 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class Tabulated:
    """One column with density linear between the knots, proportional to the heights there.

    ``q(x) = ((1 - t) heights_i + t heights_(i+1)) / Z`` for ``x = knots_i + t (knots_(i+1) -
    knots_i)``, with Z the sum of the trapezoids; 0 outside the knots, both ends included.
    """

    knots: ArrayLike
    heights: ArrayLike

    def __repr__(self) -> str:
        knots = row(self.knots)
        return f"Tabulated({len(knots)} knots from {knots[0]:.3g} to {knots[-1]:.3g})"

    def __post_init__(self) -> None:
        check_numbers("Tabulated", knots=self.knots, heights=self.heights)
        knots, heights = row(self.knots), row(self.heights)
        rising = len(knots) > 1 and bool(np.all(np.diff(knots, axis=0) > 0))
        fine = rising and bool(np.all(heights >= 0) and np.any(heights > 0))
        where = "at two or more rising knots, with heights from 0 up and not all 0"
        check_columns("Tabulated", where, fine, knots=knots, heights=heights)

    @property
    def dimension(self) -> int:
        return 1

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        knots, heights, areas = self._table()
        total = np.cumsum(areas)
        i = np.searchsorted(total, rng.random(size) * total[-1], side="right")
        left, right = heights[i], heights[i + 1]
        # Solves left t + (right - left) t^2 / 2 = u (left + right) / 2; above 0, so never 0 / 0.
        u = 1 - rng.random(size)
        t = u * (left + right) / (left + np.sqrt(left**2 + u * (right**2 - left**2)))
        x = knots[i] + np.minimum(t, 1.0) * (knots[i + 1] - knots[i])
        return np.asarray(np.minimum(x, knots[i + 1])[:, None], np.float64)

    def log_density(self, x: FloatArray) -> FloatArray:
        knots, heights, areas = self._table()
        height = np.interp(x[:, 0], knots, heights, left=0.0, right=0.0)
        with np.errstate(divide="ignore"):
            # A missing x is nowhere, as in the other noise.
            logs = np.log(np.nan_to_num(height)) - math.log(areas.sum())
        return np.asarray(logs, np.float64)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of the mass up to x (n, 1)."""
        knots, heights, areas = self._table()
        total = np.cumsum(areas)
        i = np.clip(np.searchsorted(knots, x[:, 0], side="right") - 1, 0, len(areas) - 1)
        step = knots[i + 1] - knots[i]
        t = np.clip((x[:, 0] - knots[i]) / step, 0.0, 1.0)
        part = step * t * (heights[i] + (heights[i + 1] - heights[i]) * t / 2)
        return np.asarray((total[i] - areas[i] + part) / total[-1])

    def quantile(self, u: FloatArray) -> FloatArray:
        """The inverse of ``cdf``, (n, 1)."""
        knots, heights, areas = self._table()
        total = np.cumsum(areas)
        wanted = u * total[-1]
        i = np.minimum(np.searchsorted(total, wanted, side="right"), len(areas) - 1)
        left, right = heights[i], heights[i + 1]
        # Above 0, so never 0 / 0, as in ``sample``.
        share = np.clip((wanted - total[i] + areas[i]) / areas[i], 1e-300, 1.0)
        t = share * (left + right) / (left + np.sqrt(left**2 + share * (right**2 - left**2)))
        x = knots[i] + np.minimum(t, 1.0) * (knots[i + 1] - knots[i])
        return np.asarray(np.minimum(x, knots[i + 1])[:, None], np.float64)

    def _table(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Knots, heights and areas between the knots; the highest is 1, so squares are safe."""
        knots, heights = row(self.knots), row(self.heights)
        heights = heights / heights.max()
        return knots, heights, np.diff(knots) * (heights[1:] + heights[:-1]) / 2


def margins(data: object, space: Space) -> Product:
    """Independent columns, each fitted by kernels: ``q(x) = prod_j q_j(x_j)``.

    ``q_j = 0.95 kernels + 0.05 broad``: the one-column ``KernelDensity`` of the space as a table,
    quick at any number of rows, and for what lies beside all kernels StudentT.match (reals),
    Gamma.match (positive numbers), or Uniform (angles, boxes). Zeros and ones: Bernoulli.match.
    Counts: how often each occurs, and NegativeBinomial.match for the broad part.

    >>> margins([[0.0, 1.0], [2.0, 1.5], [1.0, 0.5]], Reals(2)).dimension
    2
    """
    return Product(_margins(space, data))


@singledispatch
def _margins(space: Space, data: object) -> list[Part]:
    raise InputError(
        "margins(data, space) knows the spaces Reals, Torus, Orthant, Box, Binary and Counts of "
        f"ncbayes.spaces, such as ncbayes.spaces.Torus(2), got {shown(space)}"
    )


@_margins.register
def _(space: Region, data: object) -> list[Part]:
    raise InputError(
        f"margins(data, space) can't make independent columns in {shown(space)}: pass "
        "ncbayes.noise.Restricted.to(ncbayes.noise.KernelDensity.match(data), region)"
    )


@_margins.register
def _(space: Torus, data: object) -> list[Part]:
    turn, uniform = (0.0, LAST_ANGLE), Uniform(Torus(1))
    # Kernels go around the turn, so the table covers all of it.
    return [
        _blend(column, Torus(1), turn, uniform, reach=math.inf) for column in _columns(data, space)
    ]


@_margins.register
def _(space: Reals, data: object) -> list[Part]:
    line = (-math.inf, math.inf)
    columns = _varying_columns(data, space)
    return [_blend(column, Reals(1), line, StudentT.match(column)) for column in columns]


@_margins.register
def _(space: Orthant, data: object) -> list[Part]:
    half = (0.0, math.inf)
    columns = _varying_columns(data, space)
    return [_blend(column, Orthant(1), half, Gamma.match(column)) for column in columns]


@_margins.register
def _(space: Box, data: object) -> list[Part]:
    ends = np.transpose(space.bounds).tolist()
    columns = _varying_columns(data, space)
    return [
        _blend(column, Box(low, high), (low, high), Uniform(Box(low, high)))
        for column, (low, high) in zip(columns, ends, strict=True)
    ]


@_margins.register
def _(space: Binary, data: object) -> list[Part]:
    return [Bernoulli.match(column, space.spins) for column in _columns(data, space)]


@_margins.register
def _(space: Counts, data: object) -> list[Part]:
    return [
        Mixture(
            [
                Frequencies(np.bincount(column[:, 0].astype(np.intp))),
                NegativeBinomial.match(column, space.most),
            ],
            (1 - BROAD, BROAD),
        )
        for column in _columns(data, space)
    ]


def _columns(data: object, space: Space) -> list[FloatArray]:
    points = as_points(data, space, f"margins on {shown(space)}")
    return np.hsplit(points, points.shape[1])


def _varying_columns(data: object, space: Space) -> list[FloatArray]:
    columns = _columns(data, space)
    # Here, where a column at fault still has its number.
    check_varies(np.hstack(columns))
    return columns


def _blend(
    column: FloatArray,
    space: Space,
    ends: tuple[float, float],
    broad: Part,
    reach: float = REACH,
) -> Mixture:
    """A table of the column's kernel density, no wider than the ends, and the broad part."""
    return Mixture([kernel_table(column, space, ends, reach), broad], (1 - BROAD, BROAD))


def kernel_table(
    column: FloatArray, space: Space, ends: tuple[float, float], reach: float = REACH
) -> Tabulated:
    """The kernel density of one column as a table, no wider than the ends."""
    kernels = KernelDensity.match(column, space)
    width = row(kernels.bandwidth)[0]
    low = max(ends[0], column.min() - reach * width)
    high = min(ends[1], column.max() + reach * width)
    steps = int(np.clip((high - low) / width * STEPS_A_BANDWIDTH, LEAST_STEPS, MOST_STEPS))
    knots = np.linspace(low, high, steps + 1)
    return Tabulated(knots, np.exp(kernels.log_density(knots[:, None])))


def gaussian_mixture(data: object, components: int | None = None, most: int = 5) -> Mixture:
    """A ``Mixture`` of ``Normal`` distributions with full covariances, by maximum likelihood.

    The number of components is given, or the one from 1 to ``most`` (and to n / (d + 1)) with the
    lowest BIC. Columns are standardized first, and 0.001 is added to the variances there, so that
    no component collapses to a point. The result depends on the data alone.
    """
    points = as_points(data, Reals(column_count(data)), "gaussian_mixture")
    check_varies(points)
    _check_count("most", most, len(points))
    if components is None:
        counts = range(1, min(most, max(1, len(points) // (points.shape[1] + 1))) + 1)
    else:
        _check_count("components", components, len(points), limited=True)
        counts = range(components, components + 1)
    center, scale = points.mean(axis=0), points.std(axis=0)
    weights, means, covariances = _expectation_maximization((points - center) / scale, counts)
    outer = np.multiply.outer(scale, scale)
    parts = [
        Normal(center + scale * mean, outer * covariance)
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    return Mixture(parts, weights / weights.sum())


def _expectation_maximization(
    points: FloatArray, counts: range
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and covariances of the fit with the lowest BIC."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    fits = [
        # Starts by k-means itself would add up in the order in which threads finish.
        GaussianMixture(
            count, reg_covar=SMALLEST_VARIANCE, init_params="k-means++", n_init=3, random_state=0
        )
        for count in counts
    ]
    # Threads slow down products as small as these, and would change the last digits.
    with threadpool_limits(1), warnings.catch_warnings():
        # A fit that is not quite the best is still normalized noise.
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = min((fit.fit(points) for fit in fits), key=lambda fit: fit.bic(points))
    return best.weights_, best.means_, best.covariances_


def _check_count(field: str, value: object, rows: int, limited: bool = False) -> None:
    if not is_whole(value) or value < 1 or (limited and value > rows):
        at_most = f" and at most {rows}, the rows of the data" if limited else ""
        raise InputError(
            f"gaussian_mixture({field}=...) must be a whole number of at least 1{at_most}, got "
            f"{shown(value)}"
        )
