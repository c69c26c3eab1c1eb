"""Parameters of an energy: real or positive, of any shape, each with its prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Prior, shown
from ncbayes.priors import Normal
from ncbayes.priors.normal import check_scale, numbers

# Chains begin about so far from the start, in units of the prior's sd if that is smaller: wide
# enough for R-hat to see, near enough for a neural network not to saturate.
SPREAD = 0.5
# And about so far from a start that was given.
NEAR = 0.1


@dataclass(frozen=True, eq=False)
class Real:
    """Real numbers in an array of this ``shape``, with a prior such as ``priors.Normal(2.0)``.

    The prior acts on the entries in C order; those with learned scales, such as
    ``priors.HalfCauchyNormal()``, learn one for the parameter. Chains begin near ``initial``, or
    near the prior's mean.
    """

    prior: Prior
    shape: tuple[int, ...] = ()
    initial: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.prior, type) or not isinstance(self.prior, Prior):
            raise InputError(
                "Real(prior=...) must be a prior such as ncbayes.priors.Normal(1.0), got "
                f"{shown(self.prior)}"
            )
        _check_shape("Real", self.shape)
        _check_initial("Real", self.initial, self.shape)
        _ = self.flat_prior

    @property
    def flat_prior(self) -> Prior:
        """The prior of the entries in a row."""
        if not isinstance(self.prior, Normal):
            return self.prior
        return Normal(
            _entries("scale", self.prior.scale, self.shape),
            _entries("mean", self.prior.mean, self.shape),
        )

    @property
    def start(self) -> FloatArray:
        if self.initial is not None:
            return _flat(self.initial, self.shape)
        return self._gaussian()[0]

    @property
    def start_spread(self) -> FloatArray:
        """How far from the start chains begin."""
        deviation = np.minimum(self._gaussian()[1], 1.0)
        return deviation * (SPREAD if self.initial is None else NEAR)

    def _gaussian(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the prior at some of its scales."""
        size = (1, math.prod(self.shape))
        state = self.flat_prior.draw(size, np.random.default_rng(0))
        precision, shift = self.flat_prior.gaussian(state, size)
        within = precision.within[0]
        diagonal = within if within.ndim == 1 else np.diag(within)
        safe = np.where(diagonal > 0, diagonal, 1.0)
        return shift[0] / safe, safe**-0.5

    def constrained(self, values: Any) -> Any:
        """The parameter itself, of what is free of constraints."""
        return values

    def free(self, values: Any) -> Any:
        """The inverse of ``constrained``."""
        return values


@dataclass(frozen=True, eq=False)
class Positive:
    """Positive numbers: ``log value ~ N(log median, spread^2)``, sampled as logarithms.

    ``spread=1``: two times out of three within a factor of 2.7 of the median.
    """

    median: float = 1.0
    spread: float = 1.0
    shape: tuple[int, ...] = ()
    initial: Any = None

    def __post_init__(self) -> None:
        check_scale("Positive(median=...)", self.median)
        check_scale("Positive(spread=...)", self.spread)
        _check_shape("Positive", self.shape)
        _check_initial("Positive", self.initial, self.shape)
        if self.initial is not None and not np.all(numbers(self.initial) > 0):
            raise InputError(
                f"Positive(initial=...) must be positive, got {shown(self.initial)}; use Real for "
                "parameters of either sign"
            )

    @property
    def flat_prior(self) -> Prior:
        """The prior of the logarithms in a row."""
        return Normal(self.spread, math.log(self.median))

    @property
    def start(self) -> FloatArray:
        if self.initial is None:
            return np.full(math.prod(self.shape), math.log(self.median))
        return np.log(_flat(self.initial, self.shape))

    @property
    def start_spread(self) -> FloatArray:
        """How far from the start chains begin."""
        share = SPREAD if self.initial is None else NEAR
        return np.full(math.prod(self.shape), min(self.spread, 1.0) * share)

    def constrained(self, values: Any) -> Any:
        """The parameter itself, of its logarithm."""
        if isinstance(values, np.ndarray):
            return np.exp(values)
        from jax import numpy as jnp

        return jnp.exp(values)

    def free(self, values: Any) -> Any:
        """The logarithm."""
        return np.log(values)


def as_parameter(value: object) -> Real | Positive | None:
    """A parameter as it is, a bare prior as one real number; None for what is neither."""
    if isinstance(value, Real | Positive):
        return value
    if isinstance(value, Prior) and not isinstance(value, type):
        return Real(value)
    return None


def _check_shape(owner: str, shape: object) -> None:
    whole = isinstance(shape, tuple) and all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0
        for size in shape
    )
    if not whole:
        raise InputError(
            f"{owner}(shape=...) must be a tuple of positive whole numbers, such as (3,) or (), "
            f"got {shown(shape)}"
        )


def _check_initial(owner: str, initial: object, shape: Sequence[int]) -> None:
    if initial is None:
        return
    values = numbers(initial)
    if values.shape not in ((), tuple(shape)) or not np.isfinite(values).all():
        raise InputError(
            f"{owner}(initial=...) must be one finite number or an array of shape {tuple(shape)}, "
            f"got {shown(initial)}"
        )


def _flat(values: Any, shape: Sequence[int]) -> FloatArray:
    return np.ravel(np.broadcast_to(np.asarray(values, dtype=float), shape))


def _entries(name: str, values: Any, shape: Sequence[int]) -> FloatArray:
    array = numbers(values)
    if array.shape not in ((), tuple(shape)):
        raise InputError(
            f"Real(Normal({name}=...), shape={tuple(shape)}) must have one {name}, or an array of "
            f"this shape, got shape {array.shape}"
        )
    return _flat(array, shape)
