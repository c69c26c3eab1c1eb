"""Distributions that can serve as noise: draws of (size, dimension) and normalized densities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, i0e, i1e, xlog1py, xlogy

from ncbayes.base import FloatArray, InputError, Noise, Space, log_density_at_rows, shown
from ncbayes.noise.checks import (
    check_columns,
    check_df,
    check_location_scale,
    check_parts,
    check_space,
    check_varies,
    row,
)
from ncbayes.noise.graphs import BernoulliGraphs
from ncbayes.spaces import (
    Binary,
    Graphs,
    GraphSets,
    Orthant,
    Reals,
    Torus,
    as_points,
    check_numbers,
    column_count,
    wrapped,
)

LOG_TWO_PI = math.log(2 * math.pi)

# Above this NumPy draws a wrapped normal instead, which is no longer the density written here.
LARGEST_CONCENTRATION = 1e6

# Draws from a Gamma with a smaller shape underflow to 0 often enough to be met.
SMALLEST_SHAPE = 0.1


class Part(Noise, Protocol):
    """Noise that knows its number of columns, as all noise in this file does."""

    @property
    def dimension(self) -> int: ...


@dataclass(frozen=True)
class Uniform:
    """``log q(x) = -log volume`` on any space of finite volume."""

    space: Space

    def __post_init__(self) -> None:
        check_space(self.space)

    @property
    def dimension(self) -> int:
        return self.space.dimension

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self.space.uniform(size, rng)

    def log_density(self, x: FloatArray) -> FloatArray:
        return np.where(self.space.contains(x), -self.space.log_volume, -np.inf)


@dataclass(frozen=True, eq=False)
class Normal:
    """``log q(x) = -(x - mean)' covariance^-1 (x - mean) / 2 - log det(2 pi covariance) / 2``."""

    mean: ArrayLike
    covariance: ArrayLike

    def __post_init__(self) -> None:
        check_location_scale("Normal", "covariance", self.mean, self.covariance)

    @classmethod
    def match(cls, data: object) -> Normal:
        """The data's mean and covariance, the latter shrunk toward its diagonal."""
        mean, covariance = _moments(data, "Normal.match")
        return cls(mean, covariance)

    @property
    def dimension(self) -> int:
        return len(row(self.mean))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        z = rng.standard_normal((size, self.dimension))
        return row(self.mean) + z @ _factor(self.covariance).T

    def log_density(self, x: FloatArray) -> FloatArray:
        distance, log_det = _mahalanobis(x, self.mean, self.covariance)
        return -(distance + log_det + self.dimension * LOG_TWO_PI) / 2


@dataclass(frozen=True, eq=False)
class StudentT:
    """Heavy-tailed: ``log q(x) = -(df + d) / 2 * log(1 + distance / df) + constant``.

    ``distance = (x - mean)' shape_matrix^-1 (x - mean)``; where df > 2 the covariance is
    ``shape_matrix * df / (df - 2)``.
    """

    mean: ArrayLike
    shape_matrix: ArrayLike
    df: float = 5.0

    def __post_init__(self) -> None:
        check_location_scale("StudentT", "shape_matrix", self.mean, self.shape_matrix)
        check_df("StudentT", self.df, "positive, finite df", above=0)

    @classmethod
    def match(cls, data: object, df: float = 5.0) -> StudentT:
        """The data's mean and covariance, the latter shrunk toward its diagonal."""
        check_df("StudentT.match", df, "finite df above 2", above=2)
        mean, covariance = _moments(data, "StudentT.match")
        return cls(mean, covariance * (df - 2) / df, df)

    @property
    def dimension(self) -> int:
        return len(row(self.mean))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        z = rng.standard_normal((size, self.dimension))
        stretch = np.sqrt(self.df / rng.chisquare(self.df, (size, 1)))
        return row(self.mean) + stretch * (z @ _factor(self.shape_matrix).T)

    def log_density(self, x: FloatArray) -> FloatArray:
        distance, log_det = _mahalanobis(x, self.mean, self.shape_matrix)
        half = (self.df + self.dimension) / 2
        log_z = gammaln(self.df / 2) - gammaln(half) + log_det / 2
        log_z += self.dimension / 2 * math.log(self.df * math.pi)
        return np.asarray(-half * np.log1p(distance / self.df) - log_z, np.float64)


@dataclass(frozen=True, eq=False)
class VonMises:
    """Independent angles: ``log q(x) = sum_j k_j cos(x_j - mean_j) - log(2 pi I_0(k_j))``.

    Normalized over ``0 <= x_j < 2 pi``, where its draws lie; the density is 0 elsewhere.
    """

    mean: ArrayLike
    concentration: ArrayLike

    def __post_init__(self) -> None:
        check_numbers("VonMises", mean=self.mean, concentration=self.concentration)
        mean, concentration = row(self.mean), row(self.concentration)
        fine = bool(np.all(concentration >= 0))
        where = "with a concentration from 0 up"
        check_columns("VonMises", where, fine, mean=mean, concentration=concentration)

    @classmethod
    def match(cls, data: object) -> VonMises:
        """The data's mean directions, and k with ``I_1(k) / I_0(k)`` their resultant length."""
        angles = as_points(data, Torus(column_count(data)), "VonMises.match")
        resultant = np.exp(1j * angles).mean(axis=0)
        return cls(np.angle(resultant), _concentration(np.abs(resultant)))

    @property
    def dimension(self) -> int:
        return len(row(self.mean))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        mean, concentration = row(self.mean), row(self.concentration)
        return wrapped(rng.vonmises(mean, concentration, (size, len(mean))))

    def log_density(self, x: FloatArray) -> FloatArray:
        mean, concentration = row(self.mean), row(self.concentration)
        inside = Torus(len(mean)).contains(x)
        # cos - 1 written so that it keeps its digits near the mean, with I_0 scaled to match.
        angles = np.where(inside[:, None], x - mean, 0.0)
        exponent = -2 * np.sin(angles / 2) ** 2 @ concentration
        log_z = (LOG_TWO_PI + np.log(i0e(concentration))).sum()
        return np.where(inside, exponent - log_z, -np.inf)


@dataclass(frozen=True, eq=False)
class Gamma:
    """Numbers x >= 0: ``log q(x) = sum_j (shape_j - 1) log x_j - rate_j x_j - log Z_j``."""

    shape: ArrayLike
    rate: ArrayLike

    def __post_init__(self) -> None:
        check_numbers("Gamma", shape=self.shape, rate=self.rate)
        shape, rate = row(self.shape), row(self.rate)
        fine = bool(np.all(shape > 0) and np.all(rate > 0))
        check_columns("Gamma", "above 0", fine, shape=shape, rate=rate)

    @classmethod
    def match(cls, data: object) -> Gamma:
        """The data's means and variances, ``shape = mean^2 / variance``, ``rate = shape / mean``.

        Shapes below 0.1 are raised to it, keeping the mean. A column with zeros gets shape 1, the
        only one whose density at 0 is neither 0 nor infinite.
        """
        points = as_points(data, Orthant(column_count(data)), "Gamma.match")
        check_varies(points)
        mean = points.mean(axis=0)
        shape = np.maximum(mean**2 / points.var(axis=0, ddof=1), SMALLEST_SHAPE)
        shape = np.where((points == 0).any(axis=0), 1.0, shape)
        return cls(shape, shape / mean)

    @property
    def dimension(self) -> int:
        return len(row(self.shape))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.gamma(row(self.shape), 1 / row(self.rate), (size, self.dimension))

    def log_density(self, x: FloatArray) -> FloatArray:
        shape, rate = row(self.shape), row(self.rate)
        inside = np.asarray((x >= 0).all(axis=1))
        kernel = (xlogy(shape - 1, np.where(inside[:, None], x, 1.0)) - rate * x).sum(axis=1)
        constant = (xlogy(shape, rate) - gammaln(shape)).sum()
        return np.where(inside, kernel + constant, -np.inf)


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """Independent zeros and ones: ``log q(x) = sum_j x_j log p_j + (1 - x_j) log(1 - p_j)``.

    With ``spins``, -1 stands in the place of 0.
    """

    probability: ArrayLike
    spins: bool = False

    def __post_init__(self) -> None:
        Binary(1, self.spins)
        check_numbers("Bernoulli", probability=self.probability)
        p = row(self.probability)
        fine = bool(np.all((p > 0) & (p < 1)))
        check_columns("Bernoulli", "above 0 and below 1", fine, probability=p)

    @classmethod
    def match(cls, data: object, spins: bool = False) -> Bernoulli:
        """``p = (ones + 1) / (rows + 2)``, away from 0 and 1 even where a column is constant."""
        points = as_points(data, Binary(column_count(data), spins), "Bernoulli.match")
        return cls(((points == 1).sum(axis=0) + 1) / (len(points) + 2), spins)

    @property
    def dimension(self) -> int:
        return len(row(self.probability))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        ones = rng.random((size, self.dimension)) < row(self.probability)
        return np.where(ones, 1.0, -1.0 if self.spins else 0.0)

    def log_density(self, x: FloatArray) -> FloatArray:
        p = row(self.probability)
        inside = Binary(len(p), self.spins).contains(x)
        ones = (x == 1).astype(np.float64)
        return np.where(inside, (xlogy(ones, p) + xlog1py(1 - ones, -p)).sum(axis=1), -np.inf)


@dataclass(frozen=True)
class Product:
    """Independent blocks of columns, in order: ``log q(x) = sum_b log q_b(x_b)``."""

    parts: Sequence[Part]

    def __post_init__(self) -> None:
        check_parts("Product", self.parts)

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return np.hstack([part.sample(size, rng) for part in self.parts])

    def log_density(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.parts, self._blocks(x), strict=True)
        return np.asarray(np.sum([part.log_density(block) for part, block in pairs], axis=0))

    def log_density_at_rows(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        triples = zip(self.parts, self._blocks(x), self._blocks(rows), strict=True)
        return np.asarray(np.sum([log_density_at_rows(*each) for each in triples], axis=0))

    def _blocks(self, x: FloatArray) -> list[FloatArray]:
        """The columns of each part."""
        ends = np.cumsum([part.dimension for part in self.parts])
        return np.split(x, ends[:-1], axis=1)


@dataclass(frozen=True, eq=False)
class Mixture:
    """``q(x) = sum_k weights_k q_k(x)``, weights positive with sum 1."""

    parts: Sequence[Part]
    weights: ArrayLike

    def __post_init__(self) -> None:
        check_parts("Mixture", self.parts)
        check_numbers("Mixture", weights=self.weights)
        weights = row(self.weights)
        dimensions = [part.dimension for part in self.parts]
        if len(set(dimensions)) > 1:
            raise InputError(f"Mixture needs parts of one dimension, got dimensions {dimensions}")
        fine = np.all(weights > 0) and math.isclose(weights.sum(), 1)
        if weights.shape != (len(self.parts),) or not fine:
            raise InputError(
                f"Mixture needs a positive weight for each of its {len(self.parts)} parts, with "
                f"sum 1, got {shown(weights.tolist())}: pass weights / weights.sum()"
            )

    @property
    def dimension(self) -> int:
        return self.parts[0].dimension

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        chosen = rng.choice(len(self.parts), size, p=row(self.weights))
        draws = np.empty((size, self.dimension))
        for k, part in enumerate(self.parts):
            draws[chosen == k] = part.sample(int((chosen == k).sum()), rng)
        return draws

    def log_density(self, x: FloatArray) -> FloatArray:
        return self._mixed([part.log_density(x) for part in self.parts])

    def log_density_at_rows(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        return self._mixed([log_density_at_rows(part, x, rows) for part in self.parts])

    def _mixed(self, terms: Sequence[FloatArray]) -> FloatArray:
        """The log density of the mixture, of those of its parts."""
        log_weights = np.log(row(self.weights))[:, None]
        return np.asarray(np.logaddexp.reduce(np.stack(terms) + log_weights, axis=0), np.float64)


@singledispatch
def matched(space: Space, data: FloatArray) -> Noise:
    """The plain noise of a space, its moments matched to the data (n, dimension).

    Angles: VonMises; reals: StudentT; positive numbers: Gamma; zeros and ones: Bernoulli; counts:
    NegativeBinomial; graphs: BernoulliGraphs; any other space of finite volume, such as a Box or a
    Region: Uniform.
    """
    if not math.isfinite(space.log_volume):
        raise InputError(
            f"there is no default noise for {space}: pass noise=..., a distribution with "
            "sample and log_density that covers the data"
        )
    return Uniform(space)


matched.register(Torus, lambda _, data: VonMises.match(data))
matched.register(Reals, lambda _, data: StudentT.match(data))
matched.register(Orthant, lambda _, data: Gamma.match(data))
matched.register(Binary, lambda space, data: Bernoulli.match(data, space.spins))
matched.register(Graphs, lambda space, data: BernoulliGraphs.match(space, data))
matched.register(GraphSets, lambda space, data: BernoulliGraphs.match(space, data))


def _factor(matrix: ArrayLike) -> FloatArray:
    return np.linalg.cholesky(np.atleast_2d(np.asarray(matrix, dtype=np.float64)))


def _mahalanobis(x: FloatArray, mean: ArrayLike, matrix: ArrayLike) -> tuple[FloatArray, float]:
    """``(x - mean)' matrix^-1 (x - mean)`` for each row, and ``log det matrix``."""
    factor = _factor(matrix)
    whitened = np.linalg.solve(factor, (x - row(mean)).T)
    return (whitened**2).sum(axis=0), 2 * float(np.log(np.diag(factor)).sum())


def _moments(data: object, owner: str) -> tuple[FloatArray, FloatArray]:
    """Mean and positive definite ``(1 - w) S + w diag(S)``, S the covariance, w = d / (n + d)."""
    points = as_points(data, Reals(column_count(data)), owner)
    check_varies(points)
    n, d = points.shape
    covariance = np.atleast_2d(np.cov(points, rowvar=False))
    w, diagonal = d / (n + d), np.diag(np.diag(covariance))
    return points.mean(axis=0), (1 - w) * covariance + w * diagonal


def _concentration(resultant: FloatArray) -> FloatArray:
    """k with ``A(k) = I_1(k) / I_0(k) = resultant``, by Newton; ``A' = 1 - A / k - A^2``."""
    highest = i1e(LARGEST_CONCENTRATION) / i0e(LARGEST_CONCENTRATION)
    # A(k) / k has no value at 0; k = 2e-8 is uniform to all digits.
    r = np.clip(resultant, 1e-8, highest)
    # Banerjee et al. (2005) start within a few percent, so a few steps reach rounding error.
    k = r * (2 - r**2) / (1 - r**2)
    for _ in range(8):
        ratio = i1e(k) / i0e(k)
        k = k - (ratio - r) / (1 - ratio / k - ratio**2)
    return np.minimum(k, LARGEST_CONCENTRATION)
