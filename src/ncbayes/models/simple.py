"""Families whose normalizer is known: for teaching, and as exact answers to test against."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, i0e

from ncbayes.base import FloatArray, InputError
from ncbayes.notebooks import model_html
from ncbayes.spaces import Orthant, Reals, Torus, wrapped


@dataclass(frozen=True)
class VonMises:
    """One angle: ``log p(x) = theta_1 cos x + theta_2 sin x - log(2 pi I_0(|theta|))``."""

    @property
    def space(self) -> Torus:
        return Torus(1)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return {"mean": ("cos", "sin")}

    def statistics(self, x: FloatArray) -> FloatArray:
        return np.hstack([np.cos(x), np.sin(x)])

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def score_statistics(self, x: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        cos, sin, none = np.cos(x), np.sin(x), np.zeros_like(x)
        return np.hstack([-sin, cos, none]), np.hstack([-cos, -sin, none])

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        direction, concentration = math.atan2(theta[1], theta[0]), math.hypot(theta[0], theta[1])
        return wrapped(rng.vonmises(direction, concentration, (size, 1)))

    def log_partition(self, theta: FloatArray) -> float:
        concentration = math.hypot(theta[0], theta[1])
        return math.log(2 * math.pi * i0e(concentration)) + concentration

    _repr_html_ = model_html


@dataclass(frozen=True)
class Gaussian:
    """Real vectors: ``log p(x) = h . x - x' K x / 2 - log Z``.

    ``theta`` is h, the diagonal of K, then K above the diagonal row by row, and
    ``log Z = h' K^-1 h / 2 - log det(K / 2 pi) / 2``, infinite unless K is positive definite.
    """

    dimension: int

    def __post_init__(self) -> None:
        Reals(self.dimension)

    @property
    def space(self) -> Reals:
        return Reals(self.dimension)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        names = [f"x{i + 1}" for i in range(self.dimension)]
        rows, columns = np.triu_indices(self.dimension, 1)
        squares = [f"-{name}^2/2" for name in names]
        pairs = [f"-{names[i]}*{names[j]}" for i, j in zip(rows, columns, strict=True)]
        return {"linear": tuple(names), "precision": (*squares, *pairs)}

    def statistics(self, x: FloatArray) -> FloatArray:
        rows, columns = np.triu_indices(self.dimension, 1)
        return np.hstack([x, -(x**2) / 2, -x[:, rows] * x[:, columns]])

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def score_statistics(self, x: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        d = self.dimension
        rows, columns = np.triu_indices(d, 1)
        first, second = np.zeros((2, len(x), 2 * d + len(rows) + 1))
        first[:, j], first[:, d + j], second[:, d + j] = 1.0, -x[:, j], -1.0
        for one, other in ((rows, columns), (columns, rows)):
            pairs = np.flatnonzero(one == j)
            first[:, 2 * d + pairs] = -x[:, other[pairs]]
        return first, second

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        linear, precision = self.linear_and_precision(theta)
        try:
            factor = np.linalg.cholesky(precision)
        except np.linalg.LinAlgError as wrong:
            raise InputError(
                "theta must hold a positive definite precision matrix, "
                f"got one with smallest eigenvalue {np.linalg.eigvalsh(precision)[0]:.6g}"
            ) from wrong
        # With K = L L', the covariance of L'^-1 z is K^-1.
        z = rng.standard_normal((self.dimension, size))
        mean = np.linalg.solve(precision, linear)
        return np.asarray(mean + np.linalg.solve(factor.T, z).T, np.float64)

    def log_partition(self, theta: FloatArray) -> float:
        linear, precision = self.linear_and_precision(theta)
        try:
            factor = np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:
            return math.inf
        whitened = np.linalg.solve(factor, linear)
        log_det = 2 * np.log(np.diag(factor)).sum()
        return float(whitened @ whitened - log_det + self.dimension * math.log(2 * math.pi)) / 2

    def linear_and_precision(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The vector h and the matrix K in theta."""
        linear, diagonal, pairs = np.split(theta, [self.dimension, 2 * self.dimension])
        precision = np.diag(diagonal)
        rows, columns = np.triu_indices(self.dimension, 1)
        precision[rows, columns] = precision[columns, rows] = pairs
        return linear, precision

    _repr_html_ = model_html


@dataclass(frozen=True)
class Exponential:
    """One number x >= 0: ``log p(x) = -theta x + log theta``, theta the rate."""

    @property
    def space(self) -> Orthant:
        return Orthant(1)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return {"rate": ("-x",)}

    def statistics(self, x: FloatArray) -> FloatArray:
        return -x

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def score_statistics(self, x: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        none = np.zeros_like(x)
        return np.hstack([none - 1, none]), np.hstack([none, none])

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        _check_positive("rate", theta[0])
        return rng.exponential(1 / theta[0], (size, 1))

    def log_partition(self, theta: FloatArray) -> float:
        return -math.log(theta[0]) if theta[0] > 0 else math.inf

    _repr_html_ = model_html


@dataclass(frozen=True)
class Gamma:
    """One number x > 0: ``log p(x) = shape log x - rate x - log x - log Z``, theta = (shape, rate).

    ``log Z = log Gamma(shape) - shape log rate``. At x = 0 the statistic log x is minus infinity.
    """

    @property
    def space(self) -> Orthant:
        return Orthant(1)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return {"shape": ("log(x)",), "rate": ("-x",)}

    def statistics(self, x: FloatArray) -> FloatArray:
        return np.hstack([_log(x), -x])

    def log_base(self, x: FloatArray) -> FloatArray:
        return -_log(x[:, 0])

    def score_statistics(self, x: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1 / x
            squared = inverse**2
        none = np.zeros_like(x)
        return np.hstack([inverse, none - 1, -inverse]), np.hstack([-squared, none, squared])

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        shape, rate = theta
        _check_positive("shape", shape)
        _check_positive("rate", rate)
        # Below a shape of 0.1 or so some draws are smaller than any number but zero.
        return np.maximum(rng.gamma(shape, 1 / rate, (size, 1)), np.finfo(float).tiny)

    def log_partition(self, theta: FloatArray) -> float:
        shape, rate = theta
        if not (shape > 0 and rate > 0):
            return math.inf
        return float(gammaln(shape) - shape * math.log(rate))

    _repr_html_ = model_html


def _log(x: FloatArray) -> FloatArray:
    # Zeros and negatives are for the front door to name, not for a NumPy warning.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x)


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise InputError(f"theta must hold a positive {name}, got {value:.6g}")
