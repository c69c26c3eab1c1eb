"""Noise fitted to data by kernels: one at each row, of the kind that suits the space."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, i0e, ndtr, ndtri

from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.noise.checks import check_columns, check_location_scale, check_varies, row
from ncbayes.noise.distributions import LARGEST_CONCENTRATION, LOG_TWO_PI, Normal
from ncbayes.spaces import (
    Binary,
    Box,
    Orthant,
    Reals,
    Region,
    Torus,
    as_points,
    check_numbers,
    column_count,
    is_whole,
    wrapped,
)

# Entries of the table of points by kernels that is held at a time: 16 MB.
CHUNK = 2_000_000
# Share of the kernels at rows of the fit from which on they were matched to these rows. Points of
# another sample are rows by accident at most, where data are rounded or discrete.
SAME_SAMPLE = 0.5


class Kernels(Protocol):
    """The kernels of a space: the rule for their widths, their logs, and draws from them."""

    @property
    def least(self) -> float:
        """The smallest bandwidth allowed; 0 itself never is."""
        ...

    @property
    def most(self) -> float: ...

    @property
    def correlated(self) -> bool:
        """Whether the bandwidth may also be a covariance matrix."""
        ...

    def widths(self, points: FloatArray, kernels: int) -> FloatArray:
        """Rule of thumb for the bandwidth of that many kernels."""
        ...

    def logs(self, x: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        """Normalized log kernel of each row of x around each center, (row, center)."""
        ...

    def draws(
        self, centers: FloatArray, widths: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """One draw around each center."""
        ...


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """``q(x) = mean over the points p of K(x | p)``, K the kernel of the space.

    Reals: normal around p, ``bandwidth`` its standard deviation for each column or its covariance
    (d, d). Torus: ``prod_j VonMises(x_j | p_j, 1 / bandwidth_j^2)``. Orthant: normals folded at 0,
    ``k(x - p) + k(x + p)``. Box: normals cut to the box and normalized there, which is up to 31 %
    too low right at an end where the data do not thin out. Binary: Aitchison and Aitken (1976),
    ``bandwidth_j`` the probability of a flip, at most 1/2. A single number serves all columns.

    ``log_density`` counts every kernel, also a point's own where x is one of the points. Where a
    fit sets the noise against the very rows that its kernels lie at, each row's own kernel is left
    out of the density there (``log_density_at_rows``): the row says nothing about the others'
    density, and counting it would make the noise seem likelier at the data than it is.
    """

    points: ArrayLike
    bandwidth: ArrayLike
    space: Space

    def __post_init__(self) -> None:
        kernels = _kernels(self.space)
        as_points(self.points, self.space, f"KernelDensity on {shown(self.space)}", minimum=1)
        check_numbers("KernelDensity", bandwidth=self.bandwidth)
        if kernels.correlated and np.ndim(self.bandwidth) == 2:
            zeros = np.zeros(self.dimension)
            check_location_scale("KernelDensity", "bandwidth", zeros, self.bandwidth)
            return
        widths, least, most = row(self.bandwidth), kernels.least, kernels.most
        fine = bool(np.all((widths > 0) & (widths >= least) & (widths <= most)))
        where = f"from {least:g} up" if least else "above 0"
        where += f" to {most:g}" if math.isfinite(most) else ""
        check_columns("KernelDensity", where, fine, bandwidth=widths)
        if len(widths) not in (1, self.dimension):
            raise InputError(
                f"KernelDensity needs one bandwidth, or one for each of the {self.dimension} "
                f"columns, got {len(widths)}"
            )

    @classmethod
    def match(
        cls,
        data: object,
        space: Space | None = None,
        bandwidth: ArrayLike | None = None,
        most: int = 2000,
    ) -> KernelDensity:
        """Kernels at the data; at ``most`` rows, evenly spread over them, if there are more.

        The bandwidth follows Scott (1992): the spread times ``kernels^(-1 / (d + 4))``. The
        spread is the standard deviation of each column; for reals the whole covariance, shrunk as
        in ``Normal.match``; for angles ``sqrt(-2 log R)``, R the resultant length, at most that of
        uniform angles, pi / sqrt(3), and the product at least 0.001. Zeros and ones:
        ``kernels^(-2 / (d + 4)) / 2``.
        """
        space = Reals(column_count(data)) if space is None else space
        kernels = _kernels(space)
        points = as_points(data, space, f"KernelDensity.match on {shown(space)}")
        if not is_whole(most) or most < 1:
            raise InputError(
                f"KernelDensity.match(most=...) must be a whole number of at least 1, the most "
                f"kernels, got {shown(most)}"
            )
        count = min(most, len(points))
        if bandwidth is None:
            bandwidth = kernels.widths(points, count)
        chosen = np.linspace(0, len(points) - 1, count).astype(int)
        return cls(points[chosen], bandwidth, space)

    @property
    def dimension(self) -> int:
        return self.space.dimension

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        centers, widths = self._centers_widths()
        chosen = rng.integers(len(centers), size=size)
        return _kernels(self.space).draws(centers[chosen], widths, rng)

    def log_density(self, x: FloatArray) -> FloatArray:
        return self._log_density(x, np.full(len(x), -1))

    def log_density_at_rows(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        """The log density at the data x without their own kernels, if kernels lie at ``rows``.

        The mean over the other points, ``sum over j != i of K(x_i | x_j) / (kernels - 1)``; of
        several equal points one is left out. ``rows`` are all data of the fit, among which x are:
        unless at least half of the points are rows, the kernels are those of another sample, and
        nothing is left out.
        """
        points = _keys(as_points(self.points, self.space, "KernelDensity", minimum=1))
        shared = Counter(points) & Counter(_keys(rows))
        if shared.total() < SAME_SAMPLE * len(points):
            return self.log_density(x)
        place = {key: k for k, key in enumerate(points) if key in shared}
        return self._log_density(x, np.array([place.get(key, -1) for key in _keys(x)], dtype=int))

    def _log_density(self, x: FloatArray, own: NDArray[np.int_]) -> FloatArray:
        """The log density at x, leaving out the kernel ``own`` of each row; -1: none."""
        kernels, (centers, widths) = _kernels(self.space), self._centers_widths()
        inside = np.flatnonzero(self.space.contains(x))
        density = np.full(len(x), -np.inf)
        rows = max(1, CHUNK // len(centers))
        for start in range(0, len(inside), rows):
            chunk = inside[start : start + rows]
            logs = kernels.logs(x[chunk], centers, widths)
            left_out = np.flatnonzero(own[chunk] >= 0)
            logs[left_out, own[chunk[left_out]]] = -np.inf
            count = len(centers) - (own[chunk] >= 0)
            with np.errstate(divide="ignore"):
                density[chunk] = _log_sum_exp(logs) - np.log(count)
        return density

    def _centers_widths(self) -> tuple[FloatArray, FloatArray]:
        widths = np.asarray(self.bandwidth, np.float64)
        if widths.ndim < 2:
            widths = np.broadcast_to(row(widths), (self.dimension,))
        return np.asarray(self.points, np.float64).reshape(-1, self.dimension), widths


@singledispatch
def _kernels(space: Space) -> Kernels:
    raise InputError(
        "KernelDensity knows the spaces Reals, Torus, Orthant, Box and Binary of ncbayes.spaces, "
        f"such as ncbayes.spaces.Torus(2), got {shown(space)}"
    )


@_kernels.register
def _(space: Region) -> Kernels:
    raise InputError(
        f"KernelDensity has no kernels that end at the border of {shown(space)}: pass "
        "ncbayes.noise.Restricted.to(ncbayes.noise.KernelDensity.match(data), region)"
    )


_kernels.register(Reals, lambda _: _Normals())
_kernels.register(Torus, lambda _: _Turns())
_kernels.register(Orthant, lambda _: _Folded())
_kernels.register(Box, lambda box: _Cut(*box.bounds))
_kernels.register(Binary, lambda space: _Flips(space.lower))


@dataclass(frozen=True)
class _Normals:
    least: float = 0.0
    most: float = math.inf
    correlated: bool = True

    def widths(self, points: FloatArray, kernels: int) -> FloatArray:
        covariance = np.asarray(Normal.match(points).covariance, np.float64)
        scaled = covariance * _scott(points, kernels) ** 2
        return np.sqrt(scaled[0]) if len(scaled) == 1 else scaled

    def logs(self, x: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        factor = self._factor(widths)
        a, b = np.linalg.solve(factor, x.T), np.linalg.solve(factor, centers.T)
        log_z = len(a) * LOG_TWO_PI / 2 + np.log(np.diag(factor)).sum()
        found = np.full((len(x), len(centers)), -log_z)
        # A point far enough out has density 0 to all digits.
        with np.errstate(over="ignore"):
            for each, center in zip(a, b, strict=True):
                found -= (each[:, None] - center) ** 2 / 2
        return found

    def draws(
        self, centers: FloatArray, widths: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        return centers + rng.standard_normal(centers.shape) @ self._factor(widths).T

    def _factor(self, widths: FloatArray) -> FloatArray:
        factor = np.diag(widths) if widths.ndim == 1 else np.linalg.cholesky(widths)
        return np.asarray(factor, np.float64)


@dataclass(frozen=True)
class _Turns:
    # Narrower kernels are beyond the concentrations that NumPy draws from exactly.
    least: float = 1e-3
    most: float = math.inf
    correlated: bool = False

    def widths(self, points: FloatArray, kernels: int) -> FloatArray:
        resultant = np.abs(np.exp(1j * points).mean(axis=0))
        # Uniform angles have R near 0 and would ask for any width; constant ones R above 1.
        squared = -2 * np.log(np.clip(resultant, 1e-12, 1.0))
        spread = np.minimum(np.sqrt(squared), math.pi / math.sqrt(3))
        return np.asarray(np.maximum(spread * _scott(points, kernels), self.least), np.float64)

    def logs(self, x: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        k = self._concentration(widths)
        parts = np.hstack([np.cos(x) * k, np.sin(x) * k])
        cosines = parts @ np.hstack([np.cos(centers), np.sin(centers)]).T
        return np.asarray(cosines - (k + LOG_TWO_PI + np.log(i0e(k))).sum(), np.float64)

    def draws(
        self, centers: FloatArray, widths: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        return wrapped(rng.vonmises(centers, self._concentration(widths)))

    def _concentration(self, widths: FloatArray) -> FloatArray:
        return np.minimum(1 / widths**2, LARGEST_CONCENTRATION)


@dataclass(frozen=True)
class _Folded:
    least: float = 0.0
    most: float = math.inf
    correlated: bool = False

    def widths(self, points: FloatArray, kernels: int) -> FloatArray:
        return _deviations(points) * _scott(points, kernels)

    def logs(self, x: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        found = np.full((len(x), len(centers)), -(LOG_TWO_PI / 2 + np.log(widths)).sum())
        with np.errstate(over="ignore"):
            for each, center in zip((x / widths).T, (centers / widths).T, strict=True):
                # k(x - p) + k(x + p) = k(x - p) (1 + exp(-2 x p)) in units of the bandwidth.
                found -= (each[:, None] - center) ** 2 / 2
                found += np.log1p(np.exp(-2 * np.multiply.outer(each, center)))
        return found

    def draws(
        self, centers: FloatArray, widths: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        return np.abs(centers + widths * rng.standard_normal(centers.shape))


@dataclass(frozen=True, eq=False)
class _Cut:
    low: FloatArray
    high: FloatArray
    least: float = 0.0
    most: float = math.inf
    correlated: bool = False

    def widths(self, points: FloatArray, kernels: int) -> FloatArray:
        return _deviations(points) * _scott(points, kernels)

    def logs(self, x: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        # The center lies between the ends, so this difference of erf never cancels.
        ends = (self._end(end, centers, widths) / math.sqrt(2) for end in (self.high, self.low))
        upper, lower = (erf(end) for end in ends)
        log_z = np.log((upper - lower) / 2 * widths).sum(axis=1) + len(widths) * LOG_TWO_PI / 2
        found = np.tile(-log_z, (len(x), 1))
        for each, center in zip((x / widths).T, (centers / widths).T, strict=True):
            found -= (each[:, None] - center) ** 2 / 2
        return found

    def draws(
        self, centers: FloatArray, widths: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        lower, upper = (ndtr(self._end(end, centers, widths)) for end in (self.low, self.high))
        steps = ndtri(lower + (upper - lower) * rng.random(centers.shape))
        return np.asarray(np.clip(centers + widths * steps, self.low, self.high), np.float64)

    def _end(self, end: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        return (end - centers) / widths


@dataclass(frozen=True)
class _Flips:
    lower: float
    least: float = 0.0
    most: float = 0.5
    correlated: bool = False

    def widths(self, points: FloatArray, kernels: int) -> FloatArray:
        return np.full(points.shape[1], _scott(points, kernels) ** 2 / 2)

    def logs(self, x: FloatArray, centers: FloatArray, widths: FloatArray) -> FloatArray:
        flip = np.log(widths) - np.log1p(-widths)
        # |x - p| = x + p - 2 x p for zeros and ones.
        x, centers = (x == 1).astype(np.float64), (centers == 1).astype(np.float64)
        flips = (x @ flip)[:, None] + centers @ flip - 2 * (x * flip) @ centers.T
        return np.asarray(flips + np.log1p(-widths).sum(), np.float64)

    def draws(
        self, centers: FloatArray, widths: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        return np.where(rng.random(centers.shape) < widths, self.lower + 1 - centers, centers)


def _scott(points: FloatArray, kernels: int) -> float:
    return float(kernels ** (-1 / (points.shape[1] + 4)))


def _deviations(points: FloatArray) -> FloatArray:
    check_varies(points)
    return np.asarray(points.std(axis=0, ddof=1), np.float64)


def _keys(points: FloatArray) -> list[bytes]:
    """What equal points share; adding 0 makes -0.0 and 0.0 equal."""
    return [point.tobytes() for point in points + 0.0]


def _log_sum_exp(logs: FloatArray) -> FloatArray:
    """Log of the sum of ``exp(logs)`` along rows; -inf where all are."""
    top = logs.max(axis=1)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(logs - shift[:, None]).sum(axis=1))
    return np.asarray(shift + total, np.float64)
