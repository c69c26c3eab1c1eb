"""Points with time stamps, made ready for a density over time: axes, space, groups and map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.models.radial import LEAST, MOST
from ncbayes.periods import Periods, periods
from ncbayes.spaces import Box, Projection, Reals, Region, as_points, column_count
from ncbayes.spaces.outlines import even_odd, shapely

# The box around the data is wider than their range by this share of it on each side.
MARGIN = 0.1
LONGITUDE, LATITUDE = ("longitude", "long", "lon", "lng"), ("latitude", "lat")


@dataclass(frozen=True, eq=False)
class Events:
    """The points of every time, by label and in order, and what they are points of.

    ``groups`` and ``space`` are in km where there is a ``projection``. ``times`` are datetimes or
    numbers, None for labels; ``places`` are numbers at the distances of the times, None where
    these are equally spaced. ``dropped`` points lay outside the space.
    """

    groups: dict[str, FloatArray]
    space: Box | Region
    axes: tuple[str, ...]
    times: NDArray[Any] | None
    places: FloatArray | None
    projection: Projection | None
    dropped: int


def events(
    asker: str, points: Any, times: Any, *, domain: Any, every: Any, degrees: Any, outside: Any
) -> Events:
    """What ``fit_density_over_time`` describes, checked; ``asker`` is who wants it."""
    axes, table, in_degrees = _table(points, degrees, asker)
    found = periods(times, every, len(table))
    projection = None
    if in_degrees:
        # In the order of time, so that nothing depends on the order of the rows.
        projection = Projection.around(table[np.argsort(found.index, kind="stable")])
        table = projection.forward(table)
    space = _space(domain, table, axes, projection)
    table, found, dropped = _inside(table, found, space, outside)
    groups = {label: table[found.index == g] for g, label in enumerate(found.labels)}
    return Events(groups, space, axes, found.starts, found.places, projection, dropped)


def _table(points: Any, degrees: Any, asker: str) -> tuple[tuple[str, ...], FloatArray, bool]:
    """Names of the axes, the coordinates, longitude first, and whether they are degrees."""
    if not (degrees is None or isinstance(degrees, bool | np.bool_)):
        raise InputError(f"degrees must be True, False or None, got {shown(degrees)}")
    dimension = column_count(points)
    table = as_points(points, Reals(dimension), asker)
    columns = getattr(points, "columns", None)
    if columns is None:
        axes = (
            ("longitude", "latitude") if degrees else tuple(f"x{k + 1}" for k in range(dimension))
        )
    else:
        axes = tuple(map(str, columns))
    low = [axis.lower() for axis in axes]
    named = any(name in low for name in LONGITUDE) and any(name in low for name in LATITUDE)
    if dimension != 2 and (degrees or (named and degrees is None)):
        raise InputError(
            f"points in degrees must have 2 columns, longitude and latitude, got {dimension}: "
            "select these two, or pass degrees=False"
        )
    if named and degrees is not False:
        order = [1, 0] if low[0] in LATITUDE else [0, 1]
        return tuple(axes[k] for k in order), np.ascontiguousarray(table[:, order]), True
    return axes, table, bool(degrees)


def _space(
    domain: Any, table: FloatArray, axes: Sequence[str], projection: Projection | None
) -> Box | Region:
    if domain is None:
        low, high = table.min(axis=0), table.max(axis=0)
        _check_sizes("points", low, high)
        if not (low < high).all():
            k = int(np.argmin(low < high))
            raise InputError(
                f"points must differ in every column, got {low[k]:.6g} throughout {shown(axes[k])}:"
                " leave this column out, or pass domain=ncbayes.spaces.Box(low, high)"
            )
        return Box(low - MARGIN * (high - low), high + MARGIN * (high - low))
    space = domain if isinstance(domain, Box | Region) else Region.of(domain)
    _check_sizes("domain", *space.bounds)
    if space.dimension != table.shape[1]:
        raise InputError(
            f"domain has {space.dimension} dimensions and points have {table.shape[1]} columns; "
            "they must agree"
        )
    if projection is None:
        return space
    for ring in space.rings if isinstance(space, Region) else [np.array(space.bounds)]:
        _check_whole(ring, projection)
    if isinstance(space, Box):
        return Box(*projection.forward(np.array(space.bounds)))
    # Parts that end at the date line, as in GeoJSON, meet there and are joined.
    return Region.of(shapely().transform(even_odd(space.rings), projection.forward))


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


def _check_whole(corners: FloatArray, projection: Projection) -> None:
    """Refuse corners that the projection tears apart, on the far side of the earth."""
    longitude = projection.longitude
    degree = projection.forward([[longitude + 1, projection.latitude]])[0, 0]
    away = projection.forward(corners)[:, 0] / degree
    if np.ptp(corners[:, 0] - away) > 180:
        raise InputError(
            "domain must lie within 180 degrees east and west of the points, which are around "
            f"longitude {longitude:.4g}, got longitudes from {corners[:, 0].min():.6g} to "
            f"{corners[:, 0].max():.6g}: cut it off nearer to the points"
        )


def _inside(
    table: FloatArray, found: Periods, space: Space, outside: str
) -> tuple[FloatArray, Periods, int]:
    """The points in the space, their groups, and how many were left out."""
    if not (isinstance(outside, str) and outside in ("error", "drop")):
        raise InputError(f'outside must be "error" or "drop", got {shown(outside)}')
    inside = space.contains(table)
    if not inside.any():
        raise InputError(
            "points must lie in the domain, got none that does: check that domain and points have "
            "the same coordinates, longitude before latitude"
        )
    dropped = int(np.sum(~inside))
    if dropped and outside == "error":
        row = int(np.argmin(inside))
        raise InputError(
            f"{dropped} of {len(table)} points lie outside the domain, the first in row {row} "
            '(counted from 0): widen the domain, or pass outside="drop"'
        )
    kept = Periods(found.labels, found.index[inside], found.starts, found.places)
    return table[inside], kept, dropped
