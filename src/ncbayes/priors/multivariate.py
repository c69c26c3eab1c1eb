"""Normal priors with correlated parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, InputError, Precision, State, shown
from ncbayes.priors.normal import numbers


@dataclass(frozen=True, eq=False)
class MultivariateNormal:
    """``theta_g ~ N(mean, precision^-1)`` in every group, with ``precision`` (p, p)."""

    precision: FloatArray
    mean: FloatArray | float = 0.0

    def __post_init__(self) -> None:
        matrix = np.asarray(self.precision)
        square = (
            matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and matrix.dtype.kind in "fi"
        )
        if not square or not np.isfinite(matrix).all() or not _is_symmetric(matrix):
            raise InputError(
                "MultivariateNormal(precision=...) must be a finite symmetric matrix with one row "
                f"a statistic, got {shown(self.precision)}"
            )
        if not np.linalg.eigvalsh(_correlation(matrix)).min() > 0:
            raise InputError("MultivariateNormal(precision=...) must be positive definite")
        mean = numbers(self.mean)
        if mean.shape not in ((), (len(matrix),)) or np.isnan(mean).any():
            raise InputError(
                f"MultivariateNormal(mean=...) must be one finite number or {len(matrix)} of them, "
                f"one for each statistic, got {shown(self.mean)}"
            )

    def __repr__(self) -> str:
        return f"MultivariateNormal({len(self.precision)} statistics)"

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        return {}

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        matrix = np.asarray(self.precision, dtype=float)
        if len(matrix) != shape[1]:
            raise InputError(
                f"MultivariateNormal(precision=...) must have {shape[1]} rows, one for each "
                f"statistic, got {len(matrix)}"
            )
        mean = np.broadcast_to(np.asarray(self.mean, dtype=float), (shape[1],))
        within = np.broadcast_to(matrix, (shape[0], *matrix.shape))
        return Precision(within), np.broadcast_to(matrix @ mean, shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        return state


def _is_symmetric(matrix: FloatArray) -> bool:
    return bool(np.abs(matrix - matrix.T).max(initial=0) <= 1e-8 * np.abs(matrix).max(initial=0))


def _correlation(matrix: FloatArray) -> FloatArray:
    """Scaled to a unit diagonal, where eigenvalues can be trusted whatever the units."""
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0).all():
        return -np.eye(1)
    return np.asarray(matrix / np.sqrt(np.outer(diagonal, diagonal)))
