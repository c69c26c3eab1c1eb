"""Expectations under a model whose theta is known: points and weights for ``E_p f``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ncbayes.base import FloatArray, InputError, Model, Space, shown
from ncbayes.contrast import model_name
from ncbayes.spaces import TWO_PI, Binary, Box, Counts, Graphs, Reals, Torus, is_numeric

# Points whose statistics are held at once.
BLOCK = 1 << 14
# Points a column, by number of columns: the trapezoid rule has all digits of a smooth function that
# is periodic, or dies out, once its narrowest feature is a few points wide; 10^5 points are quick.
TORUS_POINTS = {1: 2048, 2: 256, 3: 48}
# On a box, Gauss-Legendre rules of 16 points side by side: so many.
BOX_PANELS, PANEL_POINTS = {1: 32, 2: 12}, 16
REALS_POINTS = {1: 2401, 2: 241}
# Half the width of the grid on the reals, in standard deviations of draws, and how many draws.
REALS_REACH, REALS_DRAWS = 12.0, 4000
MOST_ENUMERATED = 20
# A bell curve whose standard deviation is two grid points, enough for all digits, has a fifth of
# its mass on one point.
LARGEST_SHARE = 0.2


def quadrature(model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points, their weights under the model (of sum 1), and log p there.

    ``log_partition`` is used if the model has it; else log Z is the sum over the same points.
    """
    known = log_partition(model, theta) if hasattr(model, "log_partition") else None
    points, volumes, largest = rule(model.space, model, theta)
    kernel = log_kernel(model, theta, points)
    log_mass = kernel + np.log(volumes)
    total = float(logsumexp(log_mass))
    weights = np.exp(log_mass - total)
    log_z = total if known is None else known
    if weights.max() > largest or abs(total - log_z) > 1e-6:
        raise InputError(
            f"{model_name(model)} at theta={shown(theta.tolist())} can't be summed over the "
            f"{len(points)} points of a grid: it is too concentrated (one point has a share of "
            f"{weights.max():.2g}), or log_partition ({log_z:.6g}; {total:.6g} on the grid) is "
            "wrong; pass points and weights, such as draws from the model"
        )
    return points, weights, kernel - log_z


def given_points(
    model: Model, theta: FloatArray, points: object, weights: object
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points and weights that the user passed, ``E_p f = sum weights f``, and log p there."""
    columns = model.space.dimension
    values = np.asarray(points, dtype=float) if is_numeric(points) else np.empty(())
    if values.ndim != 2 or values.shape[1] != columns or not model.space.contains(values).all():
        raise InputError(
            f"points must be rows of {columns} numbers in {model.space}, got {shown(points)}"
        )
    mass = np.full(len(values), 1 / len(values)) if weights is None else _mass(weights, len(values))
    if not hasattr(model, "log_partition"):
        raise InputError(
            f"with points of your own {model_name(model)} needs log_partition(theta), since the "
            "probability of data against noise depends on the normalized density"
        )
    log_p = log_kernel(model, theta, values) - log_partition(model, theta)
    outside = np.flatnonzero((log_p == -np.inf) & (mass > 0))
    if len(outside):
        raise InputError(
            f"points must lie where {model_name(model)} has mass, got "
            f"{values[outside[0]].tolist()}, where log_base is minus infinity"
        )
    return values, mass, log_p


def _mass(weights: object, count: int) -> FloatArray:
    mass = np.asarray(weights, dtype=float) if is_numeric(weights) else np.empty(())
    right = mass.shape == (count,) and bool((mass >= 0).all())
    if not right or not math.isclose(mass.sum(), 1, rel_tol=1e-6):
        raise InputError(
            f"weights must be {count} numbers, one for each point, 0 or more, with sum 1 "
            "(E_p f = sum weights * f(points): for a quadrature rule, its weights times the "
            f"density of the model), got {shown(weights)}"
        )
    return np.asarray(mass / mass.sum())


def log_kernel(model: Model, theta: FloatArray, points: FloatArray) -> FloatArray:
    """``theta . statistics + log_base``, minus infinity where the model has no mass."""
    kernel = np.asarray(model.log_base(points), dtype=float).copy()
    inside = np.flatnonzero(kernel > -np.inf)
    for rows, part in blocks(model, points[inside]):
        kernel[inside[rows]] += part @ theta
    bad = np.flatnonzero(~(kernel < np.inf))
    if len(bad):
        raise InputError(
            f"the log density of {model_name(model)} is {kernel[bad[0]]} at "
            f"{points[bad[0]].tolist()}; it must be finite, or minus infinity where there is no "
            "mass"
        )
    return kernel


def log_partition(model: Any, theta: FloatArray) -> float:
    """The model's own log Z, checked."""
    value = float(model.log_partition(theta))
    if not math.isfinite(value):
        raise InputError(
            f"theta={shown(theta.tolist())} is not a parameter of {model_name(model)}: its "
            f"log_partition is {value}"
        )
    return value


def blocks(model: Model, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """The statistics of the points, a block of rows at a time."""
    for start in range(0, len(points), BLOCK):
        rows = slice(start, start + BLOCK)
        yield rows, np.asarray(model.statistics(points[rows]), dtype=float)


@singledispatch
def rule(space: Space, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Points, their volumes (1 if discrete), and the largest share of mass one may have."""
    raise _no_rule(model)


@rule.register
def _(space: Binary, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    d = space.dimension
    if d > MOST_ENUMERATED:
        raise _no_rule(model)
    ones = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    return np.where(ones == 1, 1.0, space.lower), np.ones(2**d), 1.0


@rule.register
def _(space: Graphs, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    return rule(Binary(space.dimension), model, theta)


@rule.register
def _(space: Counts, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    if space.log_volume > MOST_ENUMERATED * math.log(2):
        raise _no_rule(model)
    axis = np.arange((space.most or 0) + 1.0)
    return *_grid([axis] * space.dimension, [np.ones(len(axis))] * space.dimension), 1.0


@rule.register
def _(space: Torus, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    d = space.dimension
    if d not in TORUS_POINTS:
        raise _no_rule(model)
    size = TORUS_POINTS[d]
    axis = np.arange(size, dtype=np.float64) * (TWO_PI / size)
    return *_grid([axis] * d, [np.full(size, TWO_PI / size)] * d), LARGEST_SHARE**d


@rule.register
def _(space: Box, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    d = space.dimension
    if d not in BOX_PANELS:
        raise _no_rule(model)
    panels = BOX_PANELS[d]
    nodes, weights = np.polynomial.legendre.leggauss(PANEL_POINTS)
    unit = ((np.arange(panels)[:, None] + (1 + nodes) / 2) / panels).ravel()
    share = np.tile(weights / 2 / panels, panels)
    low, high = space.bounds
    sides = list(zip(low, high - low, strict=True))
    axes = [start + side * unit for start, side in sides]
    return *_grid(axes, [side * share for _, side in sides]), LARGEST_SHARE**d


@rule.register
def _(space: Reals, model: Model, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    d = space.dimension
    if d not in REALS_POINTS or not hasattr(model, "sample"):
        raise _no_rule(model)
    # The draws only place the grid: any seed gives the same sums.
    draws = model.sample(theta, REALS_DRAWS, np.random.default_rng(0))
    factor = np.linalg.cholesky(np.atleast_2d(np.cov(draws, rowvar=False)))
    axis = np.linspace(-REALS_REACH, REALS_REACH, REALS_POINTS[d])
    points, volumes = _grid([axis] * d, [np.full(len(axis), axis[1] - axis[0])] * d)
    stretch = float(np.prod(np.diag(factor)))
    return draws.mean(axis=0) + points @ factor.T, volumes * stretch, LARGEST_SHARE**d


def _grid(axes: list[FloatArray], weights: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    volumes = np.stack(np.meshgrid(*weights, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return points, np.prod(volumes, axis=1)


def _no_rule(model: Model) -> InputError:
    return InputError(
        f"there is no way to sum over all points of {model.space} here (there is one for up to "
        f"{MOST_ENUMERATED} zeros and ones, a million bounded counts, 3 angles, 2 columns of a "
        "box, and 2 real columns of a model with sample); pass points, such as draws from "
        f"{model_name(model)}"
    )
