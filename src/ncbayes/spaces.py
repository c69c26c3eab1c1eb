"""Where points live, and the one door through which the user's data come in."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncbayes.base import BoolArray, FloatArray, InputError, Space, shown

TWO_PI = 2 * math.pi

# 2 pi stored as float32 lies 1.7e-7 above 2 pi.
ANGLE_SLACK = 1e-6


@dataclass(frozen=True)
class Torus:
    """Angles in radians: the points with ``0 <= x < 2 pi``; ``check`` brings others there."""

    dimension: int

    def __post_init__(self) -> None:
        _check_dimension("Torus", self.dimension)

    @property
    def log_volume(self) -> float:
        return self.dimension * math.log(TWO_PI)

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        if np.any(np.abs(points) > TWO_PI + ANGLE_SLACK):
            raise InputError(
                "angles must be in radians, between -2 pi and 2 pi, got values from "
                f"{points.min():.6g} to {points.max():.6g}: pass np.deg2rad(data) if they are "
                "degrees, data % (2 * np.pi) if they are unwrapped phases"
            )
        return wrapped(points)

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows((points >= 0) & (points < TWO_PI))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(0.0, TWO_PI, (size, self.dimension))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(points), np.zeros_like(points)


@dataclass(frozen=True, eq=False)
class Box:
    """The points with ``low <= x <= high`` in every coordinate.

    >>> Box(low=(0.0, 0.0), high=(1.0, 2.0)).dimension
    2
    """

    low: ArrayLike
    high: ArrayLike

    def __post_init__(self) -> None:
        check_numbers("Box", low=self.low, high=self.high)
        low, high = self.bounds
        if low.ndim != 1 or low.shape != high.shape:
            raise InputError(
                "Box(low, high) needs one lower and one upper bound for each column, "
                f"got shapes {low.shape} and {high.shape}"
            )
        if not np.all((low < high) & np.isfinite(low) & np.isfinite(high)):
            raise InputError(
                "Box(low, high) needs finite bounds with low < high in every column, "
                f"got low={shown(low.tolist())}, high={shown(high.tolist())}"
            )

    # The generated comparison is ambiguous for arrays.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and np.array_equal(self.bounds, other.bounds)

    def __hash__(self) -> int:
        return hash(tuple(np.concatenate(self.bounds).tolist()))

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds, each (dimension,)."""
        low, high = (np.atleast_1d(np.asarray(b, np.float64)) for b in (self.low, self.high))
        return low, high

    @property
    def dimension(self) -> int:
        return len(self.bounds[0])

    @property
    def log_volume(self) -> float:
        low, high = self.bounds
        return float(np.log(high - low).sum())

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        low, high = self.bounds
        outside = (points < low) | (points > high)
        if outside.any():
            column = np.argwhere(outside)[0, 1]
            raise InputError(
                f"data must lie in the box, got {_offenders(outside, points, columns)}, where the "
                f"bounds are {low[column]:.6g} and {high[column]:.6g}: drop these rows or widen "
                "the box"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        low, high = self.bounds
        return _rows((low <= points) & (points <= high))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        low, high = self.bounds
        return rng.uniform(low, high, (size, len(low)))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.bounds
        depth = (points - low) * (high - points) / (high - low)
        return depth**2, 2 * depth * (low + high - 2 * points) / (high - low)


@dataclass(frozen=True)
class Reals:
    """All real vectors."""

    dimension: int

    def __post_init__(self) -> None:
        _check_dimension("Reals", self.dimension)

    @property
    def log_volume(self) -> float:
        return math.inf

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows(np.isfinite(points))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        raise InputError(no_uniform(self))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(points), np.zeros_like(points)


@dataclass(frozen=True)
class Orthant:
    """Vectors with ``x >= 0`` in every coordinate; zeros belong to it."""

    dimension: int

    def __post_init__(self) -> None:
        _check_dimension("Orthant", self.dimension)

    @property
    def log_volume(self) -> float:
        return math.inf

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        negative = points < 0
        if negative.any():
            raise InputError(
                "data must be zero or positive, got "
                f"{_offenders(negative, points, columns)}: drop these rows or use a model of real "
                "numbers"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows(np.isfinite(points) & (points >= 0))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        raise InputError(no_uniform(self))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return points**2, 2 * points


@dataclass(frozen=True)
class Binary:
    """Vectors of zeros and ones; the volume is the number of points, 2^dimension."""

    dimension: int

    def __post_init__(self) -> None:
        _check_dimension("Binary", self.dimension)

    @property
    def log_volume(self) -> float:
        return self.dimension * math.log(2)

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        other = (points != 0) & (points != 1)
        if other.any():
            signs = np.array_equal(np.unique(points), [-1, 1])
            remedy = "pass (data + 1) / 2" if signs else "recode the data as 0 and 1"
            raise InputError(
                f"data must be 0 or 1, got {_offenders(other, points, columns)}: {remedy}"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows((points == 0) | (points == 1))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.integers(0, 2, (size, self.dimension)).astype(np.float64)


def wrapped(angles: FloatArray) -> FloatArray:
    """The angles modulo 2 pi, in [0, 2 pi)."""
    remainder = np.mod(angles, TWO_PI)
    # A tiny negative angle is rounded up to 2 pi itself.
    return np.where(remainder >= TWO_PI, 0.0, remainder)


def no_uniform(space: object) -> str:
    """What to tell someone who wants uniform points on an unbounded space."""
    return (
        f"there is no uniform distribution on {space}, its volume is infinite: "
        "use Normal or StudentT noise (Gamma for positive numbers), or a Box"
    )


def is_whole(value: object) -> TypeGuard[int]:
    """Whether the value is a whole number, of Python or NumPy; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_numeric(value: object) -> bool:
    """Whether the value is a real number or an array of them, as it stands.

    >>> is_numeric([1, 2.5]), is_numeric("5"), is_numeric(True), is_numeric([])
    (True, False, False, False)
    """
    try:
        array = np.asarray(value)
        np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    if array.dtype.kind == "O":
        # So come whole numbers beyond 64 bits.
        return array.size > 0 and all(isinstance(each, int) for each in array.flat)
    return array.size > 0 and array.dtype.kind in "iuf"


def check_numbers(owner: str, **fields: object) -> None:
    """Refuse parameters of ``owner`` that are not numbers or arrays of them."""
    for field, value in fields.items():
        if not is_numeric(value):
            raise InputError(
                f"{owner}({field}=...) must be a number or an array of numbers, such as 1.5 or "
                f"[1.5, 2.0], got {shown(value)}"
            )


def column_count(data: object) -> int:
    """How many columns ``as_points`` sees in the data; a flat list is one column."""
    values = _values(data)
    return max(1, values.shape[1]) if values.ndim == 2 else 1


def as_points(data: object, space: Space, owner: str, minimum: int = 2) -> FloatArray:
    """The user's data as a float (n, dimension) array of canonical points of the space.

    Takes arrays, lists, and pandas or polars frames and series; the input is never written.
    ``owner`` is how messages name what asks for the data, as in ``TorusGraph(12)``.
    Rows are counted from 0.

    >>> as_points([1, 2, 3], Reals(1), "Gaussian(1)").shape
    (3, 1)
    """
    values = _values(data)
    _check_table(values, data, owner)
    table = values[:, None] if values.ndim == 1 else values
    columns = _column_names(data, table.shape[1])
    points = _floats(table, columns)
    _check_shape(values.shape, points.shape[1], space.dimension, owner)
    lost = ~np.isfinite(points)
    if lost.any():
        raise InputError(
            "data must be finite numbers, got missing or infinite ones: "
            f"{_offenders(lost, points, columns)}: drop these rows or fill them in"
        )
    if len(points) < minimum:
        raise InputError(
            f"data must have at least {minimum} rows, one for each observation, got {len(points)}"
        )
    return np.ascontiguousarray(space.check(points, columns), dtype=np.float64)


def _rows(fine: BoolArray) -> BoolArray:
    return np.asarray(fine.all(axis=1), dtype=np.bool_)


def _values(data: Any) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        dtype = np.float64 if data.dtype.kind in "biuf" else object
        return np.where(np.ma.getmaskarray(data), np.nan, data.data.astype(dtype))
    if hasattr(data, "to_numpy"):
        return np.asarray(data.to_numpy())
    try:
        values = np.asarray(data)
        # NumPy turns [["a", 1.0]] into text throughout, which hides the column at fault.
        return np.array(data, dtype=object) if values.dtype.kind in "US" else values
    except ValueError as ragged:
        raise InputError(
            "data must have rows of equal length, got a list with rows of different lengths"
        ) from ragged


def _column_names(data: Any, count: int) -> list[str]:
    # The columns first: a frame with a column called "name" has an attribute of that name.
    labels: Sequence[object] = []
    if hasattr(data, "to_numpy"):
        labels = list(getattr(data, "columns", [getattr(data, "name", None)]))
    if len(labels) != count or labels == [None]:
        labels = range(count)
    return [shown(label) for label in labels]


def _check_table(values: NDArray[Any], data: object, owner: str) -> None:
    what = "one row for each observation and one column for each coordinate"
    if values.ndim == 0:
        raise InputError(
            f"data must be an array, a list or a data frame with {what}, got {type(data).__name__}"
        )
    if values.ndim > 2:
        raise InputError(
            f"data must be a table with {what} ({owner}), got {values.ndim} dimensions, "
            f"shape {values.shape}: reshape it to two"
        )
    if values.size == 0:
        raise InputError(f"data must have rows and columns, got empty data, shape {values.shape}")


def _check_shape(shape: tuple[int, ...], columns: int, dimension: int, owner: str) -> None:
    if columns == dimension:
        return
    turned = len(shape) == 2 and shape[0] == dimension
    plural = "column" if dimension == 1 else "columns"
    raise InputError(
        f"data must have {dimension} {plural} ({owner}), got shape {shape}"
        + (": pass data.T if its rows are the coordinates" if turned else "")
    )


def _floats(table: NDArray[Any], columns: Sequence[str]) -> FloatArray:
    kind = table.dtype.kind
    if kind in "biuf":
        return np.array(table, dtype=np.float64, order="C")
    if kind == "c":
        raise InputError(
            "data must be real numbers, got complex ones: pass np.angle(data) for their phases "
            "or np.abs(data) for their amplitudes"
        )
    points = np.empty(table.shape)
    for j, column in enumerate(columns):
        for i, value in enumerate(table[:, j]):
            try:
                points[i, j] = _number(value)
            except (TypeError, ValueError, OverflowError) as wrong:
                text = " ".join(str(value).split())
                raise InputError(
                    f"data must be numbers, got {text:.40} ({type(value).__name__}) in row {i} "
                    f"(counted from 0) of column {column}: drop this column or turn it into numbers"
                ) from wrong
    return points


def _number(value: Any) -> float:
    # pandas.NA has a type of its own, and pandas is not imported here.
    if value is None or type(value).__name__ == "NAType":
        return math.nan
    # Text that looks like a number, lists and dates would pass through float() silently.
    if hasattr(value, "__len__") or isinstance(value, np.datetime64 | np.timedelta64):
        raise TypeError
    return float(value)


def _offenders(bad: BoolArray, points: FloatArray, columns: Sequence[str]) -> str:
    row, column = np.argwhere(bad)[0]
    count = int(bad.sum())
    first = "1 such value" if count == 1 else f"{count} such values, the first"
    return (
        f"{first} in row {row} (counted from 0) of column {columns[column]}: "
        f"{points[row, column]:.6g}"
    )


def _check_dimension(name: str, dimension: object) -> None:
    if not is_whole(dimension) or dimension < 1:
        raise InputError(
            f"{name}(dimension) needs a whole number of at least 1, got {shown(dimension)}"
        )
