"""Noise for counts: negative binomials, and tables of how often each count occurs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, xlog1py

from ncbayes.base import FloatArray
from ncbayes.noise.checks import check_columns, row
from ncbayes.noise.distributions import matched
from ncbayes.spaces import Counts, as_points, check_numbers, column_count

# Matched noise has at least so many times its mean for a variance: counts that vary less than
# that are covered by noise that is a little wider.
LEAST_DISPERSION = 1.5
# Of smaller sizes nearly all draws are 0.
SMALLEST_SIZE = 0.1


@dataclass(frozen=True, eq=False)
class NegativeBinomial:
    """Independent counts of mean m and variance ``m + m^2 / size``,

    ``q(x) = Gamma(x + size) / (Gamma(size) x!) (size / (size + m))^size (m / (size + m))^x``;
    with ``most``, given that no count is larger.
    """

    mean: ArrayLike
    size: ArrayLike
    most: int | None = None

    def __post_init__(self) -> None:
        check_numbers("NegativeBinomial", mean=self.mean, size=self.size)
        mean, size = row(self.mean), row(self.size)
        fine = bool(np.all(mean > 0) and np.all(size > 0))
        check_columns("NegativeBinomial", "above 0", fine, mean=mean, size=size)
        Counts(len(mean), self.most)

    @classmethod
    def match(cls, data: object, most: int | None = None) -> NegativeBinomial:
        """The data's means, and their variances where these exceed 1.5 times the mean."""
        points = as_points(data, Counts(column_count(data), most), "NegativeBinomial.match")
        # Half a count more, so that a column of zeros has a mean.
        mean = (points.sum(axis=0) + 0.5) / (len(points) + 1)
        variance = np.maximum(points.var(axis=0, ddof=1), LEAST_DISPERSION * mean)
        return cls(mean, np.maximum(mean**2 / (variance - mean), SMALLEST_SIZE), most)

    @property
    def dimension(self) -> int:
        return len(row(self.mean))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        if self.most is None:
            own = row(self.size)
            chance = own / (own + row(self.mean))
            return rng.negative_binomial(own, chance, (size, len(own))).astype(np.float64)
        logs = self._logs(np.arange(self.most + 1.0)[:, None])
        sums = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
        uniforms = rng.random((size, self.dimension)) * sums[-1]
        columns = [
            np.searchsorted(one, u, side="right") for one, u in zip(sums.T, uniforms.T, strict=True)
        ]
        return np.asarray(np.minimum(np.column_stack(columns), self.most), dtype=np.float64)

    def log_density(self, x: FloatArray) -> FloatArray:
        inside = Counts(self.dimension, self.most).contains(x)
        values = self._logs(np.where(inside[:, None], x, 0.0)).sum(axis=1)
        if self.most is not None:
            values -= logsumexp(self._logs(np.arange(self.most + 1.0)[:, None]), axis=0).sum()
        return np.where(inside, values, -np.inf)

    def _logs(self, x: FloatArray) -> FloatArray:
        """Log of q by column, without a limit."""
        mean, size = row(self.mean), row(self.size)
        orders = gammaln(x + size) - gammaln(size) - gammaln(x + 1)
        return np.asarray(orders - xlog1py(size, mean / size) - x * np.log1p(size / mean))


@dataclass(frozen=True, eq=False)
class Frequencies:
    """One column of counts with ``q(k)`` proportional to ``weights[k]``, from 0 up."""

    weights: ArrayLike

    def __post_init__(self) -> None:
        check_numbers("Frequencies", weights=self.weights)
        weights = row(self.weights)
        fine = bool(np.all(weights >= 0) and np.any(weights > 0))
        check_columns("Frequencies", "from 0 up and not all 0", fine, weights=weights)

    @property
    def dimension(self) -> int:
        return 1

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        weights = row(self.weights)
        draws = rng.choice(len(weights), size, p=weights / weights.sum())
        return draws.astype(np.float64)[:, None]

    def log_density(self, x: FloatArray) -> FloatArray:
        weights = row(self.weights)
        inside = Counts(1, max(1, len(weights) - 1)).contains(x) & (x[:, 0] < len(weights))
        found = weights[np.where(inside, x[:, 0], 0.0).astype(np.intp)]
        with np.errstate(divide="ignore"):
            logs = np.log(found) - math.log(weights.sum())
        return np.where(inside, logs, -np.inf)


matched.register(Counts, lambda space, data: NegativeBinomial.match(data, space.most))
