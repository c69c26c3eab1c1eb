"""Fixed features with a linear head: the last layer of a network as an exponential family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ncbayes.autodiff import double_precision
from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.notebooks import model_html

BLOCK = "feature"


@dataclass(frozen=True, eq=False)
class Features:
    """``log p(x) = theta . function(x) + log_base(x) - log Z``, with a function that is given.

    ``function(x)``, NumPy or JAX, takes all points (n, d) and returns their features (n, k), such
    as the last hidden layer of a network. ``names``: the features' names, or how many there are;
    None: as many as the function returns. ``base(x)`` (n,) is log_base, None: zero; what a network
    has learned besides may stand there. JAX functions are computed in double precision.
    """

    function: Callable[[Any], Any]
    space: Space
    names: Sequence[str] | int | None = None
    base: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        given = {"function": self.function}
        if self.base is not None:
            given["base"] = self.base
        for name, value in given.items():
            if not callable(value):
                raise InputError(
                    f"Features({name}=...) must be a function of points (n, d), got {shown(value)}"
                )
        if isinstance(self.space, type) or not isinstance(self.space, Space):
            raise InputError(
                "Features(..., space=...) must be one such as ncbayes.spaces.Reals(2), got "
                f"{shown(self.space)}"
            )
        _check_names(self.names)

    def __repr__(self) -> str:
        return f"Features({len(self.groups[BLOCK])} on {self.space})"

    @cached_property
    def groups(self) -> Mapping[str, Sequence[str]]:
        if self.names is not None and not isinstance(self.names, int | np.integer):
            return {BLOCK: tuple(self.names)}
        count = self._count() if self.names is None else int(self.names)
        return {BLOCK: tuple(f"f{k + 1}" for k in range(count))}

    def statistics(self, x: FloatArray) -> FloatArray:
        return _evaluated(self.function, x)

    def log_base(self, x: FloatArray) -> FloatArray:
        if self.base is None:
            return np.zeros(len(x))
        values = _evaluated(self.base, x)
        if np.isnan(values).any():
            where = np.asarray(x)[np.argwhere(np.isnan(values))[0][0]] if values.ndim else x[0]
            raise InputError(
                f"Features(base=...) must return a number for every point, got nan at "
                f"{where.tolist()}; return -inf where there is no mass"
            )
        return values

    def _count(self) -> int:
        """How many features a point has, by the function itself."""
        if np.isfinite(self.space.log_volume):
            point = self.space.uniform(1, np.random.default_rng(0))
        else:
            point = np.ones((1, self.space.dimension))
        shape = _evaluated(self.function, point).shape
        if len(shape) != 2 or shape[0] != 1 or not shape[1]:
            raise InputError(
                "Features(function) must take all points (n, d) and return their features, shape "
                f"(n, k), got shape {shape} for one point {point.tolist()}"
            )
        return int(shape[1])

    _repr_html_ = model_html


def _evaluated(function: Callable[[Any], Any], x: FloatArray) -> FloatArray:
    with double_precision():
        found = function(x)
    try:
        values = np.asarray(found)
        if values.dtype.kind == "c":
            raise TypeError("complex numbers")
        return values.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(
            "the functions of Features must return real numbers, one row a point, got "
            f"{shown(found)}; return a NumPy or JAX array"
        ) from error


def _check_names(names: object) -> None:
    count = isinstance(names, int | np.integer) and not isinstance(names, bool)
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    if names is None or (count and names >= 1):  # type: ignore[operator]
        return
    if listed and len(names) and all(isinstance(name, str) for name in names):  # type: ignore
        return
    raise InputError(
        "Features(names=...) must be a list of names, how many features there are, or None, got "
        f"{shown(names)}"
    )
