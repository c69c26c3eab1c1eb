"""Noise with dependence: any margins, tied together like a normal distribution's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.noise.checks import check_location_scale, check_varies
from ncbayes.noise.distributions import Mixture, Part, matched
from ncbayes.noise.fitted import Tabulated, kernel_table
from ncbayes.spaces import Box, Orthant, Reals, as_points

# Share of the noise matched to the data, without dependence, for what lies beside all tables.
BROAD = 0.1
# Shares of mass closer to 0 or 1 than this have no normal score in double precision.
LEAST, MOST = 1e-300, float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True, eq=False)
class Copula:
    """``q(x) = prod_j q_j(x_j) N(z; 0, R) / N(z; 0, I)``, ``z_j = Phi^-1(F_j(x_j))``.

    Each part is a ``Tabulated`` margin q_j with distribution function F_j; R is a correlation
    matrix, with ones on its diagonal.
    """

    parts: Sequence[Tabulated]
    correlation: ArrayLike

    def __post_init__(self) -> None:
        tables = isinstance(self.parts, list | tuple) and len(self.parts) > 0
        if not tables or not all(isinstance(part, Tabulated) for part in self.parts):
            raise InputError(
                "Copula(parts, correlation) needs a list of ncbayes.noise.Tabulated margins, got "
                f"{shown(self.parts)}"
            )
        check_location_scale("Copula", "correlation", np.zeros(len(self.parts)), self.correlation)
        if not np.allclose(np.diag(np.atleast_2d(np.asarray(self.correlation, float))), 1.0):
            raise InputError("Copula needs a correlation matrix with ones on its diagonal")

    @classmethod
    def match(cls, data: object, space: Space) -> Mixture:
        """0.9 of it with kernel margins and the correlation of the data's normal scores.

        The rest is ``matched(space, data)``. R is shrunk toward the identity by d / (n + d).
        """
        points = as_points(data, space, f"Copula.match on {shown(space)}")
        check_varies(points)
        n, d = points.shape
        columns = np.hsplit(points, d)
        margins = [
            kernel_table(column, line, ends)
            for column, (line, ends) in zip(columns, _lines(space), strict=True)
        ]
        scores = np.column_stack(
            [_score(part, column) for part, column in zip(margins, columns, strict=True)]
        )
        correlation = np.atleast_2d(np.corrcoef(scores, rowvar=False)) * (n / (n + d))
        np.fill_diagonal(correlation, 1.0)
        broad: Part = matched(space, points)  # type: ignore[assignment]
        return Mixture([cls(margins, correlation), broad], (1 - BROAD, BROAD))

    @property
    def dimension(self) -> int:
        return len(self.parts)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        z = rng.standard_normal((size, self.dimension)) @ self._factor().T
        shares = ndtr(z)
        columns = [part.quantile(u) for part, u in zip(self.parts, shares.T, strict=True)]
        return np.hstack(columns)

    def log_density(self, x: FloatArray) -> FloatArray:
        columns = np.hsplit(x, self.dimension)
        pairs = list(zip(self.parts, columns, strict=True))
        alone = np.sum([part.log_density(column) for part, column in pairs], axis=0)
        z = np.column_stack([_score(part, column) for part, column in pairs])
        factor = self._factor()
        whitened = np.linalg.solve(factor, z.T)
        excess = (z**2).sum(axis=1) - (whitened**2).sum(axis=0)
        tied = excess / 2 - np.log(np.diag(factor)).sum()
        return np.where(np.isfinite(alone), alone + tied, -math.inf)

    def _factor(self) -> FloatArray:
        return np.linalg.cholesky(np.atleast_2d(np.asarray(self.correlation, np.float64)))


def _score(part: Tabulated, column: FloatArray) -> FloatArray:
    """Normal scores: where the share of the mass below lies in a standard normal."""
    shares = part.cdf(np.nan_to_num(column))
    return np.asarray(ndtri(np.clip(shares, LEAST, MOST)), dtype=np.float64)


@singledispatch
def _lines(space: Space) -> list[tuple[Space, tuple[float, float]]]:
    """For each column its space, and its ends."""
    raise InputError(
        "Copula.match(data, space) knows the spaces Reals, Orthant and Box of ncbayes.spaces, such "
        f"as ncbayes.spaces.Orthant(2), got {shown(space)}"
    )


@_lines.register
def _(space: Reals) -> list[tuple[Space, tuple[float, float]]]:
    return [(Reals(1), (-math.inf, math.inf))] * space.dimension


@_lines.register
def _(space: Orthant) -> list[tuple[Space, tuple[float, float]]]:
    return [(Orthant(1), (0.0, math.inf))] * space.dimension


@_lines.register
def _(space: Box) -> list[tuple[Space, tuple[float, float]]]:
    ends = np.transpose(space.bounds).tolist()
    return [(Box(low, high), (low, high)) for low, high in ends]
