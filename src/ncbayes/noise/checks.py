"""What noise refuses, said in the user's words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ncbayes.base import FloatArray, InputError, Noise, Space, shown
from ncbayes.spaces import check_numbers, is_numeric, is_whole, no_uniform


def row(values: ArrayLike) -> FloatArray:
    """A number or a list of them as an array, one entry a column."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


def check_space(space: object) -> None:
    """A space of finite volume, for ``Uniform``."""
    if isinstance(space, type) or not isinstance(space, Space):
        raise InputError(
            "Uniform(space) needs a space such as ncbayes.spaces.Torus(2) or "
            f"ncbayes.spaces.Box(0, 1), got {shown(space)}"
        )
    if not math.isfinite(space.log_volume):
        raise InputError(no_uniform(space))


def check_df(name: str, df: float, what: str, above: float) -> None:
    """One finite number above the limit, for ``StudentT``."""
    if not (is_numeric(df) and np.ndim(df) == 0 and above < df < math.inf):
        raise InputError(f"{name} needs a {what}, got {shown(df)}; 5 is the default")


def check_varies(data: FloatArray) -> None:
    """No constant columns, whose variance no noise can match."""
    constant = np.flatnonzero((np.ptp(data, axis=0) == 0) | (data.var(axis=0) == 0))
    if len(constant):
        raise InputError(
            f"data must vary to match noise to it, got a constant column {constant[0]} (counted "
            f"from 0) with value {data[0, constant[0]]:.6g}: drop this column or pass noise=..."
        )


def check_location_scale(name: str, field: str, mean: ArrayLike, matrix: ArrayLike) -> None:
    """A finite mean (d,) and a symmetric, positive definite matrix (d, d)."""
    check_numbers(name, **{"mean": mean, field: matrix})
    center, square = row(mean), np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    if center.ndim != 1 or square.shape != (len(center), len(center)):
        raise InputError(
            f"{name} needs a mean of shape (d,) and a {field} of shape (d, d), "
            f"got {center.shape} and {square.shape}"
        )
    if not (np.isfinite(center).all() and np.isfinite(square).all()):
        raise InputError(f"{name} needs a finite mean and {field}, got missing or infinite values")
    lopsided = np.abs(square - square.T).max() > 1e-8 * np.abs(square).max()
    needs = f"{name} needs a symmetric, positive definite {field}"
    if lopsided:
        raise InputError(f"{needs}, got one that is not symmetric")
    # Unlike eigenvalues, Cholesky does not mind columns of very different scales.
    try:
        np.linalg.cholesky(square)
    except np.linalg.LinAlgError as wrong:
        smallest = np.linalg.eigvalsh(square)[0]
        raise InputError(f"{needs}, got one with smallest eigenvalue {smallest:.6g}") from wrong


def check_columns(name: str, where: str, fine: bool, **fields: FloatArray) -> None:
    """One finite number a column in each field, and ``fine``."""
    shapes = [values.shape for values in fields.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise InputError(
            f"{name} needs one {' and one '.join(fields)} for each column, "
            f"got shapes {', '.join(map(str, shapes))}"
        )
    if not (fine and all(np.isfinite(values).all() for values in fields.values())):
        got = ", ".join(f"{field}={shown(values.tolist())}" for field, values in fields.items())
        raise InputError(f"{name} needs finite numbers {where}, got {got}")


def check_parts(name: str, parts: object) -> None:
    """A list of noise whose columns are known, for ``Product`` and ``Mixture``."""
    such = "such as [ncbayes.noise.Normal(0, 1), ncbayes.noise.Normal(2, 1)]"
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        raise InputError(f"{name} needs a list of noise, {such}, got {shown(parts)}")
    if not parts:
        raise InputError(f"{name} needs at least one part, got none")
    for k, part in enumerate(parts):
        if isinstance(part, type) or not isinstance(part, Noise):
            raise InputError(
                f"{name} needs a list of noise, {such}, got {shown(part)} as part {k} (counted "
                "from 0)"
            )
        dimension = getattr(part, "dimension", None)
        if not is_whole(dimension) or dimension < 1:
            got = f"{type(part).__name__} without one: give it one"
            raise InputError(f"{name} needs parts with a dimension (columns), got {got}")
