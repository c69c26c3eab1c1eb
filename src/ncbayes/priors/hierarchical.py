"""A common population of groups: the paper's hierarchical models (section 2.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ncbayes.base import (
    Coordinates,
    FloatArray,
    InputError,
    Precision,
    State,
    shown,
)
from ncbayes.priors.normal import LEAST, MOST, RANGE, RESCALE, numbers

Numbers: TypeAlias = float | Sequence[float] | FloatArray

# An inverse Wishart of p + 2 degrees of freedom has its scale matrix for its mean, and its
# variances are IG(3/2, 1/2) where that is 1: the same for the diagonal form.
DEGREES_ABOVE = 2
SHAPE, RATE = 1.5, 0.5
# How far from ``mean`` mu may be.
MEAN_SCALE = 10.0
# Units that have squares.
UNITS = (1e-70, 1e70)


@dataclass(frozen=True, eq=False)
class Hierarchical:
    """``theta_g ~ N(mu, Sigma)`` for all groups g, with ``mu_k ~ N(mean_k, mean_scale_k^2)``.

    ``covariance="full"``: ``Sigma ~ IW(df, scale)``, an inverse Wishart of density
    ``|Sigma|^-((df + p + 1) / 2) exp(-tr(scale Sigma^-1) / 2)`` and, for df > p + 1, of mean
    ``scale / (df - p - 1)``. df is p + 2 and scale the identity unless given; scale is a matrix, or
    its diagonal, or one number for all of that.

    ``covariance="diagonal"``, for many statistics: ``Sigma_kk ~ IG(shape, rate)``, of mean
    ``rate / (shape - 1)``, and no correlation. Shape is 3/2 and rate 1/2 unless given.

    ``mean_scale`` (10), ``scale`` (the identity) and ``rate`` are, unless given, in units of
    ``1 / sd(statistic)`` over the data: in which units the data are changes nothing.
    """

    mean: Numbers = 0.0
    mean_scale: Numbers | None = None
    covariance: Literal["full", "diagonal"] = "full"
    df: float | None = None
    scale: Numbers | None = None
    shape: Numbers | None = None
    rate: Numbers | None = None

    def __post_init__(self) -> None:
        if self.covariance not in ("full", "diagonal"):
            raise InputError(
                "Hierarchical(covariance=...) must be 'full' or 'diagonal', got "
                f"{shown(self.covariance)}"
            )
        for name in ("shape", "rate") if self.covariance == "full" else ("df", "scale"):
            if getattr(self, name) is not None:
                own = "df and scale" if self.covariance == "full" else "shape and rate"
                raise InputError(
                    f"Hierarchical({name}=...) has no meaning with covariance="
                    f"{self.covariance!r}, which takes {own}; leave it out"
                )
        if not np.all(np.abs(numbers(self.mean)) <= MOST):
            raise InputError(
                f"Hierarchical(mean=...) must be finite, between {-MOST:g} and {MOST:g}, got "
                f"{shown(self.mean)}; {RESCALE}"
            )
        for name in ("mean_scale", "df", "shape", "rate"):
            _check_positive(name, getattr(self, name))
        if self.df is not None and numbers(self.df).ndim:
            raise InputError(f"Hierarchical(df=...) must be one number, got {shown(self.df)}")
        _check_scale_matrix(self.scale)

    def __repr__(self) -> str:
        return f"Hierarchical(covariance={self.covariance!r})"

    def in_units(self, units: FloatArray) -> Hierarchical:
        """With what is not given for statistics of which one unit of theta is so much."""
        units = np.clip(units, *UNITS)
        spread = {"scale": units**2} if self.covariance == "full" else {"rate": RATE * units**2}
        wanted = {"mean_scale": MEAN_SCALE * units, **spread}
        missing: dict[str, Any] = {
            name: each for name, each in wanted.items() if getattr(self, name) is None
        }
        return dataclasses.replace(self, **missing)

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        mean = self._row("mean", shape[1], 0.0)
        spread = self._row("mean_scale", shape[1], MEAN_SCALE)
        centre = mean + spread * rng.standard_normal(shape[1])
        if self.covariance == "full":
            df, matrix = self._wishart(shape[1])
            return {"mean": centre, "covariance": inverse_wishart(df, matrix, rng)}
        gammas = np.maximum(rng.standard_gamma(self._row("shape", shape[1], SHAPE)), LEAST)
        return {"mean": centre, "variance": self._row("rate", shape[1], RATE) / gammas}

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        if self.covariance == "full":
            matrix = _inverse(state["covariance"])
            within = np.broadcast_to(matrix, (shape[0], *matrix.shape))
            return Precision(within), np.broadcast_to(matrix @ state["mean"], shape)
        precision = 1 / state["variance"]
        return (
            Precision(np.broadcast_to(precision, shape)),
            np.broadcast_to(precision * state["mean"], shape),
        )

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        """``mu | theta, Sigma``, then ``Sigma | theta, mu``: both conjugate."""
        groups, size = theta.shape
        weight = self._row("mean_scale", size, MEAN_SCALE) ** -2
        shift = weight * self._row("mean", size, 0.0)
        normals = rng.standard_normal(size)
        if self.covariance == "diagonal":
            own = 1 / state["variance"]
            precision = weight + groups * own
            mean = (shift + own * theta.sum(axis=0)) / precision + normals / np.sqrt(precision)
            rate = self._row("rate", size, RATE) + np.sum((theta - mean) ** 2, axis=0) / 2
            gammas = rng.standard_gamma(self._row("shape", size, SHAPE) + groups / 2)
            return {"mean": mean, "variance": rate / np.maximum(gammas, LEAST)}
        inner = _inverse(state["covariance"])
        factor = np.linalg.cholesky(np.diag(weight) + groups * inner)
        half = np.linalg.solve(factor, shift + inner @ theta.sum(axis=0))
        mean = np.linalg.solve(factor.T, half + normals)
        df, matrix = self._wishart(size)
        off = theta - mean
        moved = inverse_wishart(df + groups, matrix + off.T @ off, rng)
        return {"mean": np.asarray(mean), "covariance": moved}

    def coordinates(self, shape: tuple[int, int]) -> Coordinates:
        """Rows are the groups' deviations from mu, and mu.

        A full covariance is taken apart: column k is linked to those before it by phi_k, and what
        is left has the variance v_k. In these an inverse Wishart of df and S is
        ``prod_k v_k^-((df - p - 1 + 2 k) / 2) exp(-(T S T')_kk / (2 v_k))`` by the measure of phi
        and log v (k = 1, ..., p), since the volume of Sigma is ``prod_k v_k^(p - k)`` of theirs.
        """
        groups, size = shape
        cells = np.arange((groups + 1) * size)
        row, column = cells // size, cells % size
        deviation = row < groups
        mean = np.zeros((groups + 1, size))
        mean[groups] = self._row("mean", size, 0.0)
        weight = self._row("mean_scale", size, MEAN_SCALE) ** -2
        links, wishart = 0, None
        a = np.array(self._row("shape", size, SHAPE))
        b = np.array(self._row("rate", size, RATE))
        if self.covariance == "full":
            df, wishart = self._wishart(size)
            links, b = size * (size - 1) // 2, np.array(np.diagonal(wishart) / 2, dtype=float)
            a = np.asarray((df - size + 1) / 2 + np.arange(size), dtype=float)
        return Coordinates(
            mix=np.column_stack([np.eye(groups), np.ones(groups)]),
            classes=np.arange(groups + 1),
            level=groups,
            mean=mean,
            row=row,
            start=column,
            size=np.ones(len(cells), dtype=np.intp),
            slab=np.where(deviation, 0.0, weight[column]),
            first=np.where(deviation, column, -1),
            second=np.full(len(cells), -1),
            factor=np.where(deviation, 0.0, np.inf),
            fictitious=np.zeros(len(cells), dtype=bool),
            kinds=np.repeat([1, 2], [size, links]),
            prior_a=np.append(a, np.zeros(links)),
            prior_b=np.append(b, np.zeros(links)),
            wishart=wishart,
        )

    def hidden(self, state: State) -> FloatArray:
        """mu."""
        return state["mean"]

    def log_scales(self, state: State) -> FloatArray:
        if self.covariance == "diagonal":
            return np.asarray(np.log(state["variance"]) / 2)
        factor = np.linalg.cholesky(state["covariance"])
        roots = np.diagonal(factor)
        # Sigma = L D L' with ones on the diagonal of L; T is its inverse.
        inverse = np.linalg.inv(factor / roots)
        return np.append(np.log(roots), -inverse[np.tril_indices(len(roots), -1)])

    def at_log_scales(
        self, values: FloatArray, hidden: FloatArray, shape: tuple[int, int]
    ) -> State:
        size = shape[1]
        roots = np.exp(values[..., :size])
        if self.covariance == "diagonal":
            return {"mean": hidden, "variance": roots**2}
        below = np.broadcast_to(np.eye(size), (*values.shape[:-1], size, size)).copy()
        below[(..., *np.tril_indices(size, -1))] = -values[..., size:]
        factor = np.linalg.inv(below) * roots[..., None, :]
        covariance = factor @ np.swapaxes(factor, -1, -2)
        return {"mean": hidden, "covariance": np.asarray(covariance, dtype=float)}

    def _row(self, name: str, size: int, default: float) -> FloatArray:
        given = getattr(self, name)
        values = np.asarray(default if given is None else given, dtype=float)
        if values.shape not in ((), (size,)):
            raise InputError(
                f"Hierarchical({name}=...) must be one number or {size} of them, one for each "
                f"statistic, got shape {values.shape}"
            )
        return np.broadcast_to(values, (size,))

    def _wishart(self, size: int) -> tuple[float, FloatArray]:
        """Degrees of freedom and scale matrix for this many statistics."""
        df = float(size + DEGREES_ABOVE if self.df is None else self.df)
        if not df > size - 1:
            raise InputError(
                f"Hierarchical(df=...) must exceed {size - 1}, the number of statistics less one, "
                f"got {shown(self.df)}; with many statistics use covariance='diagonal'"
            )
        matrix = np.asarray(1.0 if self.scale is None else self.scale, dtype=float)
        if matrix.shape not in ((), (size,), (size, size)):
            raise InputError(
                f"Hierarchical(scale=...) must be one number, {size} of them, or a matrix of shape "
                f"{(size, size)}, one row for each statistic, got shape {matrix.shape}"
            )
        return df, matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, (size,)))


def inverse_wishart(df: float, scale: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A draw by Bartlett's decomposition: ``B B'`` with ``B = C A'^-1``, ``C C' = scale``.

    A is lower triangular with standard normals below the diagonal and, on it, the roots of
    chi-squared draws of df, df - 1, ... degrees of freedom.
    """
    size = len(scale)
    lower = np.tril(rng.standard_normal((size, size)), -1)
    chi_squared = 2 * rng.standard_gamma((df - np.arange(size)) / 2)
    np.einsum("ii->i", lower)[...] = np.sqrt(np.maximum(chi_squared, LEAST))
    root = np.linalg.solve(lower, np.linalg.cholesky(scale).T).T
    return np.asarray(root @ root.T)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Of a covariance, symmetric to the last bit."""
    deviations = np.sqrt(np.diagonal(covariance))
    # By way of the correlation, whose inverse can be trusted whatever the units.
    inverse = np.linalg.inv(covariance / np.outer(deviations, deviations))
    inverse /= np.outer(deviations, deviations)
    return np.asarray((inverse + inverse.T) / 2)


def _check_positive(name: str, value: object) -> None:
    array = numbers(1.0 if value is None else value)
    if not np.all((array >= LEAST) & (array <= MOST)):
        raise InputError(
            f"Hierarchical({name}=...) must be positive, {RANGE}, got {shown(value)}; {RESCALE}"
        )


def _check_scale_matrix(value: object) -> None:
    matrix = numbers(1.0 if value is None else value)
    if matrix.ndim < 2:
        _check_positive("scale", value)
        return
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    sound = square and bool((np.abs(matrix) <= MOST).all() and np.array_equal(matrix, matrix.T))
    if sound and (np.diagonal(matrix) >= LEAST).all():
        roots = np.sqrt(np.diagonal(matrix))
        sound = bool(np.linalg.eigvalsh(matrix / np.outer(roots, roots))[0] > 0)
    else:
        sound = False
    if not sound:
        raise InputError(
            "Hierarchical(scale=...) must be a positive number, or a symmetric positive definite "
            f"matrix with one row a statistic, got {shown(value)}"
        )
