"""Where densities are read: at the user's points, or on a grid over the domain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncbayes.base import BoolArray, FloatArray, InputError
from ncbayes.fields import Ground
from ncbayes.inputs import checked_count
from ncbayes.integration import cell_counts
from ncbayes.places import longitude_first
from ncbayes.spaces import Box, Reals, Region, as_points

# Names that results have for other things.
RESERVED = ("chain", "draw", "label", "point", "sample", "time", "density", "mean", "sd", "low",
            "high", "probability", "log_score")  # fmt: skip
MOST_GRID_AXES = 3
# Cells of a grid for which the results of 10 times fill about 1 GB.
MOST_CELLS = 4_000_000
DEGREES = ({"units": "degrees_east", "standard_name": "longitude"},
           {"units": "degrees_north", "standard_name": "latitude"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sites:
    """Points (n, dimension) in the model's coordinates, and how results lay them out.

    Where a point is not ``inside`` the space the density has the value ``beyond``.
    """

    points: FloatArray
    inside: BoolArray
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, Any]
    beyond: float


def axis_names(field: Ground) -> tuple[str, ...]:
    """The names of the axes, made different from each other and from other names of results."""
    found = list(field.axes)
    for k, name in enumerate(field.axes):
        if name in RESERVED or field.axes.count(name) > 1:
            found[k] = f"{name}_{k + 1}"
            while found[k] in field.axes:
                found[k] += "_"
    return tuple(found)


def units(field: Ground) -> str:
    """What a density of the field is measured in."""
    if field.projection is not None:
        return "per square kilometer"
    words = {1: "per unit length", 2: "per unit area"}
    return words.get(len(field.axes), "per unit volume")


def user_coordinates(field: Ground, points: FloatArray) -> FloatArray:
    """Points of the model in the user's coordinates; longitudes do not jump within the domain."""
    if field.projection is None or not len(points):
        return points
    return field.projection.unwrapped(points)


def sites(field: Ground, at: Any, size: Any, asker: str) -> Sites:
    """The sites at the user's points, or on a grid of ``size`` cells along the longer side."""
    count = checked_count("size", size, 2)
    return _grid(field, count, asker) if at is None else _points(field, at, asker)


def _points(field: Ground, at: Any, asker: str) -> Sites:
    table, points = checked_points(field, at, asker)
    coords = {
        name: ("point", table[:, k], _axis_attributes(field, k))
        for k, name in enumerate(axis_names(field))
    }
    inside = _space(field).contains(points)
    return Sites(points, inside, ("point",), (len(points),), coords, 0.0)


def checked_points(field: Ground, at: Any, asker: str) -> tuple[FloatArray, FloatArray]:
    """The user's points, and the same in the model's coordinates."""
    columns = list(getattr(at, "columns", ()))
    named = {str(name): name for name in columns}
    if len(named) == len(columns) and set(field.axes) <= set(named):
        at = np.column_stack([np.asarray(at[named[name]]) for name in field.axes])
    elif field.projection is not None:
        order = longitude_first(tuple(map(str, columns)))
        at = at if order is None or len(columns) != 2 else at[[columns[k] for k in order]]
    table = as_points(at, Reals(len(field.axes)), asker, minimum=1)
    return table, table if field.projection is None else field.projection.forward(table)


def _grid(field: Ground, size: int, asker: str) -> Sites:
    space, names = _space(field), axis_names(field)
    if space.dimension > MOST_GRID_AXES:
        raise InputError(
            f"{asker} makes a grid in at most {MOST_GRID_AXES} dimensions, and this density has "
            f"{space.dimension}: pass at=points"
        )
    counts = cell_counts(space.bounds[1] - space.bounds[0], size, 2)
    if math.prod(counts.tolist()) > MOST_CELLS:
        raise InputError(
            f"size={size} makes a grid of {math.prod(counts.tolist()):.2g} cells, more than "
            f"{MOST_CELLS:.2g}: pass a smaller size, or at=points"
        )
    low, high = user_coordinates(field, np.array(space.bounds))
    ticks = [
        start + (np.arange(count) + 0.5) * (stop - start) / count
        for start, stop, count in zip(low, high, counts, strict=True)
    ]
    mesh = np.meshgrid(*ticks[::-1], indexing="ij")[::-1]
    table = np.stack([each.ravel() for each in mesh], axis=1)
    points = table if field.projection is None else field.projection.forward(table)
    coords = {
        name: (name, tick, _axis_attributes(field, k))
        for k, (name, tick) in enumerate(zip(names, ticks, strict=True))
    }
    inside = space.contains(points) if isinstance(space, Region) else np.ones(len(points), bool)
    return Sites(points, inside, names[::-1], mesh[0].shape, coords, np.nan)


def _axis_attributes(field: Ground, axis: int) -> dict[str, str]:
    return {} if field.projection is None else DEGREES[axis]


def _space(field: Ground) -> Box | Region:
    space = field.space
    assert isinstance(space, Box | Region)
    return space
