"""Points and their domain: degrees or plane numbers, on which map, and which of them are inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.models.radial import LEAST, MOST
from ncbayes.spaces import Box, Projection, Reals, Region, as_points, column_count
from ncbayes.spaces.outlines import even_odd, in_degrees, opened, place, shapely

# The box around the data is wider than their range by this share of it on each side.
MARGIN = 0.1
LONGITUDE, LATITUDE = ("longitude", "long", "lon", "lng"), ("latitude", "lat")
# What coordinates may be said to be.
DEGREES, PLANE = "degrees", "plane"
# The largest longitude and latitude.
FARTHEST = np.array([360.0, 90.0])


@dataclass(frozen=True, eq=False)
class Table:
    """The user's coordinates, (n, dimension), and the names of their columns, if they have any.

    Where the names are ``known`` to be longitude and latitude, the former comes first.
    """

    values: FloatArray
    names: tuple[str, ...] | None
    known: bool

    def axes(self, degrees: bool) -> tuple[str, ...]:
        """What the axes are called."""
        if self.names is not None:
            return self.names
        width = self.values.shape[1]
        return ("longitude", "latitude") if degrees else tuple(f"x{k + 1}" for k in range(width))


@dataclass(frozen=True, eq=False)
class Places:
    """Where points are: which of them are ``inside`` the space, and these in its coordinates.

    With a ``projection`` points and space are in km. ``table`` holds all points as the user has
    them, and ``why`` says what made them ``degrees`` or plane numbers.
    """

    table: Table
    points: FloatArray
    inside: BoolArray
    space: Box | Region
    axes: tuple[str, ...]
    projection: Projection | None
    why: str


def read_table(points: Any, coordinates: Any, asker: str) -> Table:
    """The coordinates, checked; ``asker`` is who wants them."""
    check_word("coordinates", coordinates, (DEGREES, PLANE), none=True)
    width = column_count(points)
    values = as_points(points, Reals(width), asker)
    columns = getattr(points, "columns", None)
    names = None if columns is None else tuple(map(str, columns))
    order = None if coordinates == PLANE else longitude_first(names or ())
    if width != 2 and (coordinates == DEGREES or order is not None):
        raise InputError(
            f"points in degrees must have 2 columns, longitude and latitude, got {width}: select "
            'these two, or pass coordinates="plane"'
        )
    if order is None or names is None:
        return Table(values, names, False)
    turned = np.ascontiguousarray(values[:, order])
    return Table(turned, tuple(names[k] for k in order), True)


def longitude_first(names: tuple[str, ...]) -> list[int] | None:
    """The order of columns that puts longitude before latitude; None if names tell of neither."""
    low = [name.strip().lower() for name in names]
    if not (set(low) & set(LONGITUDE) and set(low) & set(LATITUDE)):
        return None
    return [1, 0] if low[0] in LATITUDE else [0, 1]


def check_word(name: str, value: Any, words: tuple[str, ...], none: bool = False) -> None:
    """Raise InputError unless the value is one of the words, or None where that is allowed."""
    if (none and value is None) or (isinstance(value, str) and value in words):
        return
    allowed = " or ".join(f'"{word}"' for word in words) + (" or None" if none else "")
    raise InputError(f"{name} must be {allowed}, got {shown(value)}")


def place_points(table: Table, domain: Any, coordinates: Any, outside: Any) -> Places:
    """The points in their domain, which may be None for a box around them."""
    check_word("outside", outside, ("error", "drop"))
    outline = domain if isinstance(domain, Box | Region) else opened(domain)
    space = outline if isinstance(outline, Box | Region | None) else Region.of(outline)
    _check_space(space, table)
    degrees, why = _taken(table, coordinates, space, in_degrees(outline))
    projection = None
    if degrees:
        if space is not None:
            _check_degrees(space, coordinates)
        # Points that are dropped must not choose the map: where there is a domain, it does.
        projection = Projection.around(table.values) if space is None else _centered(space)
    points = _projected(table.values, projection, outside == "drop" and space is not None)
    axes = table.axes(degrees)
    if space is None:
        ground: Box | Region = _box(points, axes, projection)
    else:
        ground = space if projection is None else _projected_space(space, projection)
    inside = ground.contains(points)
    if not inside.any():
        swapped = _projected(table.values[:, ::-1], projection, drop=True)
        raise _none_inside(table.values, bool(ground.contains(swapped).any()))
    if outside == "error":
        _check_inside(table.values, inside)
    return Places(table, points[inside], inside, ground, axes, projection, why)


def _taken(
    table: Table, coordinates: Any, space: Box | Region | None, outline: bool | None
) -> tuple[bool, str]:
    """Whether coordinates are degrees, and why."""
    if coordinates is not None:
        return coordinates == DEGREES, "as told"
    if table.known:
        return True, "by the names of the columns"
    if not outline or table.values.shape[1] != 2:
        return False, ""
    if np.mean((np.abs(table.values) <= FARTHEST).all(axis=1)) < 0.5:
        raise InputError(
            "domain and points must have the same coordinates, got a domain in degrees and points "
            f"that are not, from {_corner(table.values.min(axis=0))} to "
            f"{_corner(table.values.max(axis=0))}: bring both to longitude and latitude, or both "
            'to a plane and pass coordinates="plane"'
        )
    return True, "by the outline, which is in degrees"


def _corner(point: FloatArray) -> str:
    return place(point) if len(point) == 2 else shown(point.tolist())


def _check_space(space: Box | Region | None, table: Table) -> None:
    if space is None:
        return
    _check_sizes("domain", *space.bounds)
    if space.dimension != table.values.shape[1]:
        raise InputError(
            f"domain has {space.dimension} dimensions and points have {table.values.shape[1]} "
            "columns; they must agree"
        )


def _check_degrees(space: Box | Region, coordinates: Any) -> None:
    low, high = space.bounds
    if (np.maximum(np.abs(low), np.abs(high)) > FARTHEST).any():
        told = "as told" if coordinates is not None else "by the names of their columns"
        raise InputError(
            f"domain and points must have the same coordinates, got points in degrees, {told}, and "
            f"a domain that is not, from {_corner(low)} to {_corner(high)}: bring both to "
            'longitude and latitude, or both to a plane and pass coordinates="plane"'
        )


def _rings(space: Box | Region) -> tuple[FloatArray, ...]:
    return space.rings if isinstance(space, Region) else (np.array(space.bounds),)


def _centered(space: Box | Region) -> Projection:
    projection = Projection.over(_rings(space))
    for ring in _rings(space):
        _check_whole(ring, projection)
    return projection


def _check_whole(corners: FloatArray, projection: Projection) -> None:
    """Refuse corners that the projection tears apart, on the far side of the earth."""
    longitude = projection.longitude
    degree = projection.forward([[longitude + 1, projection.latitude]])[0, 0]
    away = projection.forward(corners)[:, 0] / degree
    if np.ptp(corners[:, 0] - away) > 180:
        raise InputError(
            "domain must lie within 180 degrees east and west of its middle, which is at longitude "
            f"{longitude:.4g}, got longitudes from {corners[:, 0].min():.6g} to "
            f"{corners[:, 0].max():.6g}: cut it off nearer to the points"
        )


def _projected(values: FloatArray, projection: Projection | None, drop: bool) -> FloatArray:
    """Points on the map; where points may be dropped, those that are not on earth are nowhere."""
    if projection is None:
        return values
    if not drop:
        return projection.forward(values)
    points = np.full(values.shape, np.nan)
    there = (np.abs(values) <= FARTHEST).all(axis=1)
    if there.any():
        points[there] = projection.forward(values[there])
    return points


def _projected_space(space: Box | Region, projection: Projection) -> Box | Region:
    if isinstance(space, Box):
        return Box(*projection.forward(np.array(space.bounds)))
    # Parts that end at the date line, as in GeoJSON, meet there and are joined.
    return Region.of(shapely().transform(even_odd(space.rings), projection.forward))


def _box(points: FloatArray, axes: tuple[str, ...], projection: Projection | None) -> Box:
    """The box around the points, on earth where these are."""
    low, high = points.min(axis=0), points.max(axis=0)
    _check_sizes("points", low, high)
    if not (low < high).all():
        k = int(np.argmin(low < high))
        raise InputError(
            f"points must differ in every column, got {low[k]:.6g} throughout {shown(axes[k])}:"
            " leave this column out, or pass domain=ncbayes.spaces.Box(low, high)"
        )
    margin = MARGIN * (high - low)
    low, high = low - margin, high + margin
    if projection is not None:
        first, last = projection.bounds
        low, high = np.maximum(low, first), np.minimum(high, last)
    return Box(low, high)


def _check_sizes(what: str, low: FloatArray, high: FloatArray) -> None:
    """Refuse coordinates whose squares would leave double precision."""
    with np.errstate(over="ignore"):
        sides = high - low
    largest = max(np.abs(low).max(), np.abs(high).max())
    if largest > MOST or ((sides > 0) & (sides < LEAST)).any():
        raise InputError(
            f"{what} must have coordinates of up to {MOST:g} that are {LEAST:g} or more apart, got "
            f"{shown(low.tolist())} to {shown(high.tolist())}: rescale them to ordinary units"
        )


def _none_inside(values: FloatArray, swapped: bool) -> InputError:
    remedy = "swap the two columns, longitude first" if swapped else (
        "check that domain and points have the same coordinates, longitude before latitude"
    )  # fmt: skip
    return InputError(
        f"points must lie in the domain, got none that does (points are from "
        f"{_corner(values.min(axis=0))} to {_corner(values.max(axis=0))}): {remedy}"
    )


def _check_inside(values: FloatArray, inside: BoolArray) -> None:
    """Raise InputError if there are points outside the domain."""
    outside = np.flatnonzero(~inside)
    if not len(outside):
        return
    zeros = int((values[outside] == 0).all(axis=1).sum())
    failed = f" ({zeros} at (0, 0), as places that were not found are)" if zeros else ""
    lie = "point lies" if len(outside) == 1 else "points lie"
    raise InputError(
        f"{len(outside)} of {len(inside)} {lie} outside the domain{failed}, the first in row "
        f"{outside[0]} (counted from 0) at {_corner(values[outside[0]])}: widen the domain, or "
        'pass outside="drop"'
    )
