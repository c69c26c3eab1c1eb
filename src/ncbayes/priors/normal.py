"""Independent normal priors, with a scale that is given or learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, InputError, Precision, State, shown


def numbers(value: object) -> FloatArray:
    """The value as an array of floats; NaN for what is not a finite number."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)
    return np.where(np.isfinite(array), array, np.nan)


def is_positive(value: object) -> bool:
    """Whether the value is a single positive, finite number."""
    array = numbers(value)
    return array.ndim == 0 and bool(array > 0)


@dataclass(frozen=True)
class Normal:
    """``theta_k ~ N(mean_k, scale_k^2)``; scale and mean are numbers, or one a statistic."""

    scale: float | Sequence[float] | FloatArray
    mean: float | Sequence[float] | FloatArray = 0.0

    def __post_init__(self) -> None:
        if not np.all(numbers(self.scale) > 0):
            raise InputError(
                f"Normal(scale=...) must be positive and finite, got {shown(self.scale)}; to keep "
                "a statistic near zero use a small scale, to drop it leave it out of the model"
            )
        if np.any(np.isnan(numbers(self.mean))):
            raise InputError(f"Normal(mean=...) must be finite, got {shown(self.mean)}")

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        return {}

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        precision = self._rows("scale", shape) ** -2
        return Precision(precision), precision * self._rows("mean", shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        return state

    def _rows(self, name: str, shape: tuple[int, int]) -> FloatArray:
        values = np.asarray(getattr(self, name), dtype=float)
        if values.shape not in ((), (shape[1],)):
            raise InputError(
                f"Normal({name}=...) must be one number or {shape[1]} of them, one for each "
                f"statistic, got shape {values.shape}"
            )
        return np.broadcast_to(values, shape)


@dataclass(frozen=True)
class HalfCauchyNormal:
    """``theta_gk ~ N(0, s^2)`` with one learned scale ``s ~ C+(0, scale)`` for all of them.

    The scale is updated through ``s^2 | a ~ IG(1/2, 1/a)``, ``a ~ IG(1/2, 1/scale^2)``.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not is_positive(self.scale):
            raise InputError(
                "HalfCauchyNormal(scale=...) must be one positive and finite number, "
                f"got {shown(self.scale)}"
            )

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        return {"scale": self.scale * np.abs(rng.standard_cauchy(1))}

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        return Precision(np.full(shape, float(state["scale"][0]) ** -2)), np.zeros(shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        auxiliary = (self.scale**-2 + state["scale"] ** -2) / rng.standard_gamma(1.0, 1)
        rate = 1 / auxiliary + np.sum(theta**2) / 2
        return {"scale": np.sqrt(rate / rng.standard_gamma((theta.size + 1) / 2, 1))}
