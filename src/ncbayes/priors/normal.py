"""Independent normal priors, with a scale that is given or learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ncbayes.base import Coordinates, FloatArray, InputError, Precision, State, shown
from ncbayes.spaces import is_numeric

# A precision is the square of a scale: within these its products, too, are far from the ends of
# double precision (1e308).
LEAST, MOST = 1e-100, 1e100
RANGE = f"between {LEAST:g} and {MOST:g}"
RESCALE = "rescale the data so that the statistics are of the order of 1"


def numbers(value: object) -> FloatArray:
    """The value as an array of floats; NaN for what is not a number."""
    return np.asarray(value if is_numeric(value) else np.nan, dtype=np.float64)


def check_scale(name: str, value: object) -> None:
    """Refuse what is not one positive number between 1e-100 and 1e100."""
    array = numbers(value)
    if array.ndim > 0 or np.isnan(array):
        raise InputError(f"{name} must be one positive and finite number, got {shown(value)}")
    if not LEAST <= array <= MOST:
        raise InputError(f"{name} must be positive, {RANGE}, got {shown(value)}; {RESCALE}")


@dataclass(frozen=True)
class Normal:
    """``theta_k ~ N(mean_k, scale_k^2)``; scale and mean are numbers, or one a statistic."""

    scale: float | Sequence[float] | FloatArray
    mean: float | Sequence[float] | FloatArray = 0.0

    def __post_init__(self) -> None:
        scale, mean = numbers(self.scale), numbers(self.mean)
        if not np.all((scale > 0) & np.isfinite(scale)):
            raise InputError(
                f"Normal(scale=...) must be positive and finite, got {shown(self.scale)}; to keep "
                "a statistic near zero use a small scale, to drop it leave it out of the model"
            )
        if not np.all((scale >= LEAST) & (scale <= MOST)):
            raise InputError(
                f"Normal(scale=...) must lie {RANGE}, got {shown(self.scale)}; {RESCALE}"
            )
        if not np.all(np.abs(mean) <= MOST):
            raise InputError(
                f"Normal(mean=...) must be finite, between {-MOST:g} and {MOST:g}, got "
                f"{shown(self.mean)}; {RESCALE}"
            )

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
        check_scale("HalfCauchyNormal(scale=...)", self.scale)

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        return {"scale": self.scale * np.abs(rng.standard_cauchy(1))}

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        return Precision(np.full(shape, float(state["scale"][0]) ** -2)), np.zeros(shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        auxiliary = (self.scale**-2 + state["scale"] ** -2) / rng.standard_gamma(1.0, 1)
        rate = 1 / auxiliary + np.sum(theta**2) / 2
        return {"scale": np.sqrt(rate / rng.standard_gamma((theta.size + 1) / 2, 1))}

    def coordinates(self, shape: tuple[int, int]) -> Coordinates:
        groups, size = shape
        none, zeros = np.full(groups, -1), np.zeros(groups)
        return Coordinates(
            mix=np.eye(groups),
            classes=np.arange(groups),
            level=-1,
            mean=np.zeros(shape),
            row=np.arange(groups),
            start=np.zeros(groups, dtype=np.intp),
            size=np.full(groups, size),
            slab=zeros,
            first=np.zeros(groups, dtype=np.intp),
            second=none,
            factor=zeros,
            fictitious=np.zeros(groups, dtype=bool),
            kinds=np.array([0]),
            prior_a=np.array([np.log(self.scale)]),
            prior_b=np.zeros(1),
        )

    def log_scales(self, state: State) -> FloatArray:
        return np.log(state["scale"])

    def at_log_scales(
        self, values: FloatArray, hidden: FloatArray, shape: tuple[int, int]
    ) -> State:
        return {"scale": np.exp(values)}
