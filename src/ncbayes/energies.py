"""Energies: any log density up to a constant, as a JAX function of named parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from ncbayes.autodiff import ONE_THREAD, double_precision, jax_module
from ncbayes.base import BoolArray, FloatArray, InputError, NoiseSet, Prior, Space, shown
from ncbayes.curved import Curved
from ncbayes.notebooks import energy_html
from ncbayes.parameters import Positive, Real, as_parameter

__all__ = ["Energy", "Positive", "Real"]

# Taken by the result for other things.
TAKEN = ("chain", "draw", "group", "log_z", "normalizer", "statistic", "theta")
EXAMPLE = '{"mean": ncbayes.energies.Real(ncbayes.priors.Normal(10.0), shape=(2,))}'


@dataclass(frozen=True)
class Leaf:
    """A parameter, its name in the result, and its columns of coef."""

    name: str
    path: tuple[str, ...]
    parameter: Real | Positive
    start: int
    stop: int


@dataclass(frozen=True, eq=False, repr=False)
class Energy:
    """``log p(x) = log_density(params, x) - log Z(params)``, and nobody knows Z.

    ``log_density(params, x)`` is a JAX function of all points at once: x (n, d) -> (n,). ``params``
    is a nested dict with, for every parameter, ``energies.Real(prior, shape)``,
    ``energies.Positive(median, spread, shape)``, or a bare prior for one real number; the function
    gets the same dict with arrays of these shapes. It needs no additive constant: that is log Z.

    Seen as an exponential family, an energy is its tangent at the starting values: ``statistics``
    are derivatives by the parameters.
    """

    log_density: Callable[[Any, Any], Any]
    params: Mapping[str, Any]
    space: Space

    def __post_init__(self) -> None:
        if not callable(self.log_density):
            raise InputError(
                "Energy(log_density, ...) must be a JAX function log_density(params, x), got "
                f"{shown(self.log_density)}"
            )
        if isinstance(self.space, type) or not isinstance(self.space, Space):
            raise InputError(
                "Energy(..., space=...) must be one such as ncbayes.spaces.Reals(2), got "
                f"{shown(self.space)}"
            )
        if not self.leaves:
            raise InputError(f"Energy(..., params) has no parameters; name one, as in {EXAMPLE}")
        axes = {axis for leaf in self.leaves for axis in _axes(leaf)}
        for leaf in self.leaves:
            if leaf.name in axes:
                raise InputError(
                    f"params has the key {leaf.name!r}, which in the result is the name of an axis "
                    "of another parameter; call it something else"
                )

    def __repr__(self) -> str:
        return f"Energy({', '.join(leaf.name for leaf in self.leaves)}; {self.space})"

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The parameters in column order."""
        found: list[Leaf] = []
        for path, parameter in _walk(self.params, ()):
            start = found[-1].stop if found else 0
            size = math.prod(parameter.shape)
            found.append(Leaf(".".join(path), path, parameter, start, start + size))
        return tuple(found)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return {leaf.name: _entry_names(leaf) for leaf in self.leaves}

    @property
    def priors(self) -> dict[str, Prior]:
        """The prior of every parameter, of its logarithm if it is positive."""
        return {leaf.name: leaf.parameter.flat_prior for leaf in self.leaves}

    @cached_property
    def start(self) -> FloatArray:
        """The parameters where chains begin, flat and without constraints."""
        return np.concatenate([leaf.parameter.start for leaf in self.leaves])

    @cached_property
    def spread(self) -> FloatArray:
        """How far from there they begin."""
        return np.concatenate([leaf.parameter.start_spread for leaf in self.leaves])

    def tree(self, row: Any) -> dict[str, Any]:
        """The nested dict of the parameters in a flat row."""
        found: dict[str, Any] = {}
        for leaf in self.leaves:
            inner = found
            for key in leaf.path[:-1]:
                inner = inner.setdefault(key, {})
            values = row[leaf.start : leaf.stop].reshape(leaf.parameter.shape)
            inner[leaf.path[-1]] = leaf.parameter.constrained(values)
        return found

    def flat_log_density(self, row: Any, x: Any) -> Any:
        """``log_density`` of a flat row of parameters, in JAX."""
        jnp = jax_module("Energy").numpy
        return self.log_density(self.tree(jnp.asarray(row)), jnp.asarray(x))

    def statistics(self, x: FloatArray) -> FloatArray:
        jax = jax_module("Energy")
        with double_precision():
            slopes = jax.jit(jax.jacfwd(self.flat_log_density))
            return np.asarray(slopes(self.start, x), dtype=float)

    def log_base(self, x: FloatArray) -> FloatArray:
        jax = jax_module("Energy")
        with double_precision():
            value, change = jax.jvp(
                lambda row: self.flat_log_density(row, x), (self.start,), (self.start,)
            )
            return np.asarray(value - change, dtype=float)

    def curve(self, data: FloatArray, noise: NoiseSet) -> Curved:
        """The contrast of data with noise; noise points outside of the space are left out.

        They are noise for certain whatever the parameters are, and m still counts them.
        """
        inside = self.inside(noise.points)
        points = np.concatenate([data, noise.points[inside]])
        log_noise = np.concatenate([noise.log_density_at_data, noise.log_density[inside]])
        is_data = np.arange(len(points)) < len(data)
        return Curved(
            self.flat_log_density,
            points,
            is_data / max(len(data), 1),
            np.log(len(data) / len(noise.points)) - log_noise,
            is_data,
            np.append(self.start, 0.0),
            np.append(self.spread, 0.0),
        )

    def inside(self, points: FloatArray) -> BoolArray:
        """Which points lie in the space."""
        return self.space.contains(points)

    def variables(
        self, coef: FloatArray, data: Sequence[FloatArray]
    ) -> dict[str, tuple[tuple[str, ...], FloatArray]]:
        """Dimensions and values of every parameter and of log_z, of coef (..., group, k)."""
        dims, found = ("chain", "draw", "group"), {}
        for leaf in self.leaves:
            shape = (*coef.shape[:-1], *leaf.parameter.shape)
            values = leaf.parameter.constrained(coef[..., leaf.start : leaf.stop].reshape(shape))
            found[leaf.name] = ((*dims, *_axes(leaf)), np.asarray(values))
        log_z = [self._mean(coef[..., g, :-1], points) for g, points in enumerate(data)]
        found["log_z"] = (dims, np.stack(log_z, axis=-1) - coef[..., -1])
        return found

    def _mean(self, rows: FloatArray, points: FloatArray) -> FloatArray:
        """The mean log density, up to log Z, of the points for every row of parameters."""
        return self.evaluated(rows.reshape(-1, rows.shape[-1]), points, mean=True).reshape(
            rows.shape[:-1]
        )

    def evaluated(self, rows: FloatArray, points: FloatArray, mean: bool = False) -> FloatArray:
        """The log density up to log Z, (row, point), or its mean over the points, (row,)."""
        with double_precision():
            return np.asarray(_mapped()(self.flat_log_density, mean, rows, points), dtype=float)

    def slopes(self, row: FloatArray, x: FloatArray) -> FloatArray:
        """Derivatives of the log density by the coordinates of each point, (n, d)."""
        with double_precision():
            return np.array(_sloped()(self.flat_log_density, row, x), dtype=float)

    def row(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Flat rows (..., k) of values by name, (..., *shape) each: the inverse of ``tree``."""
        parts = []
        for leaf in self.leaves:
            free = np.asarray(leaf.parameter.free(np.asarray(values[leaf.name], dtype=float)))
            outer = free.shape[: free.ndim - len(leaf.parameter.shape)]
            parts.append(free.reshape(*outer, leaf.stop - leaf.start))
        return np.concatenate(parts, axis=-1)

    _repr_html_ = energy_html


@cache
def _mapped() -> Callable[..., Any]:
    """A compiled function of many rows of parameters, one after the other."""
    jax = jax_module("Energy")

    def mapped(function: Callable[..., Any], mean: bool, rows: Any, x: Any) -> Any:
        def each(row: Any) -> Any:
            return function(row, x).mean() if mean else function(row, x)

        return jax.lax.map(each, rows)

    compiled: Callable[..., Any] = jax.jit(
        mapped, static_argnums=(0, 1), compiler_options=ONE_THREAD
    )
    return compiled


@cache
def _sloped() -> Callable[..., Any]:
    """The compiled derivative of a sum over points by the points."""
    jax = jax_module("Energy")

    def total(function: Callable[..., Any], row: Any, x: Any) -> Any:
        return function(row, x).sum()

    compiled: Callable[..., Any] = jax.jit(
        jax.grad(total, argnums=2), static_argnums=0, compiler_options=ONE_THREAD
    )
    return compiled


def _walk(params: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    where = f"params{''.join(f'[{key!r}]' for key in path)}"
    if not isinstance(params, Mapping):
        found = as_parameter(params)
        if found is None or not path:
            raise InputError(
                f"{where} must be a prior such as ncbayes.priors.Normal(1.0), "
                "ncbayes.energies.Real(prior, shape=...) or ncbayes.energies.Positive(shape=...), "
                f"or a dict of such, got {shown(params)}; start there by initial=..."
            )
        yield path, found
        return
    for key, value in params.items():
        if not isinstance(key, str) or not key or set(key) & set("./") or key in TAKEN:
            raise InputError(
                f"{where} has the key {shown(key)}; a parameter's name is text without '.' and "
                f"'/', and none of {', '.join(map(repr, TAKEN))}; call it something else"
            )
        yield from _walk(value, (*path, key))


def _axes(leaf: Leaf) -> tuple[str, ...]:
    """Names of the dimensions of a parameter in the result."""
    return tuple(f"{leaf.name}_dim_{k}" for k in range(len(leaf.parameter.shape)))


def _entry_names(leaf: Leaf) -> tuple[str, ...]:
    if not leaf.parameter.shape:
        return (leaf.name,)
    indices = np.ndindex(leaf.parameter.shape)
    return tuple(f"{leaf.name}[{', '.join(map(str, index))}]" for index in indices)
