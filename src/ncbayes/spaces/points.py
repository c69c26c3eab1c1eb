"""The one door through which the user's data come in."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, FloatArray, InputError, Space, shown
from ncbayes.spaces.columns import column_labels, column_order


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


def is_continuous(space: object) -> bool:
    """Whether points of the space have a density by volume, and not each a probability.

    A space says so by its member ``continuous``; one that does not say counts as continuous.
    """
    return bool(getattr(space, "continuous", True))


def is_periodic(space: object) -> bool:
    """Whether coordinates of the space are angles, equal modulo 2 pi: its member ``periodic``."""
    return bool(getattr(space, "periodic", False))


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


def as_points(
    data: object,
    space: Space,
    owner: str,
    minimum: int = 2,
    names: Sequence[str] = (),
    *,
    binding: bool = True,
) -> FloatArray:
    """The user's data as a float (n, dimension) array of canonical points of the space.

    Takes arrays, lists, pandas or polars frames and series, Arrow's tables and xarray's arrays, and
    what the space reads ``from_objects``, such as graphs; the input is never written.
    ``owner`` is how messages name what asks for the data, as in ``TorusGraph(12)``.
    Columns with names are put in the order of ``names``, by ``columns.column_order``.
    Rows are counted from 0.

    >>> from ncbayes.spaces import Reals
    >>> as_points([1, 2, 3], Reals(1), "Gaussian(1)").shape
    (3, 1)
    """
    from_objects = getattr(space, "from_objects", None)
    if from_objects is not None:
        data = from_objects(data)
    values = _values(data)
    _check_table(values, data, owner)
    table = values[:, None] if values.ndim == 1 else values
    columns = _column_names(data, table.shape[1])
    order = column_order(data, names, owner, binding=binding)
    if order is not None:
        table, columns = table[:, order], [columns[k] for k in order]
    points = _floats(table, columns)
    _check_shape(values.shape, points.shape[1], space.dimension, owner)
    lost = ~np.isfinite(points)
    if lost.any():
        raise InputError(
            "data must be finite numbers, got missing or infinite ones: "
            f"{offenders(lost, points, columns)}: drop these rows or fill them in"
        )
    if len(points) < minimum:
        raise InputError(
            f"data must have at least {minimum} rows, one for each observation, got {len(points)}"
        )
    return np.ascontiguousarray(space.check(points, columns), dtype=np.float64)


def _values(data: Any) -> NDArray[Any]:
    if hasattr(data, "data_vars"):
        raise InputError(
            "data must be a table, got an xarray Dataset; pass data.to_dataframe(), or one of its "
            "arrays with rows along the first dimension"
        )
    if isinstance(data, np.ndarray) and data.dtype.names and data.ndim == 1:
        return np.array([data[name] for name in data.dtype.names]).T
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
    labels: Sequence[object] = column_labels(data)
    return [shown(label) for label in (labels if len(labels) == count else range(count))]


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


def offenders(bad: BoolArray, points: FloatArray, columns: Sequence[str]) -> str:
    """How many bad values there are, and the first with its row and column."""
    row, column = np.argwhere(bad)[0]
    count = int(bad.sum())
    first = "1 such value" if count == 1 else f"{count} such values, the first"
    return (
        f"{first} in row {row} (counted from 0) of column {columns[column]}: "
        f"{points[row, column]:.6g}"
    )
