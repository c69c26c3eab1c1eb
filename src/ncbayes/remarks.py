"""What is said of points and times before a density is fitted: what they were taken for, in lines.

A fit can't know that a column is latitude or that 3/12 is in March. It says what it took, so that
who knows better sees it, and names rows that look like a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, shown
from ncbayes.periods import Periods, Reading
from ncbayes.places import Places
from ncbayes.spaces.outlines import place
from ncbayes.spaces.projection import distances

# How much shapes may be stretched before it is said.
STRETCH = 1.1
# Points so many km from the middle of the others, and so many times as far as three quarters of
# them, are named: Hawaii among American cities is not, a place with a lost sign in one city is.
FAR_KM, FAR_TIMES = 1000.0, 10.0
# In plane numbers, (0, 0) is named if it is so many times as far from the others as these reach.
ZERO_TIMES = 3.0
# The share of rows up to which those beyond the longest gap are called odd.
ODD = 0.05


def about_places(where: Places, coordinates: Any) -> Iterator[str]:
    """What coordinates were taken for with the box around the points, and what was dropped."""
    values = where.table.values
    kept = values[where.inside]
    if where.projection is None:
        spans = _spans(where.axes, kept.min(axis=0), kept.max(axis=0))
        taken = "are in a plane, as told" if where.why else "are taken as those of a plane"
        other = ""
        if kept.shape[1] == 2 and not where.why and (np.abs(kept) <= [180, 90]).all():
            other = '; if they are longitude and latitude, pass coordinates="degrees"'
        yield f"coordinates {taken}: {spans}{other}"
    else:
        east, north = np.ptp(where.points, axis=0)
        degrees = where.projection.unwrapped(where.points)
        spans = _spans(where.axes, degrees.min(axis=0), degrees.max(axis=0))
        taken = "in degrees" if coordinates is not None else "taken as degrees"
        other = "" if coordinates is not None else '; coordinates="plane" says otherwise'
        box = f"a box of {_km(east)} by {_km(north)} km{_stretched(where)}"
        yield f"coordinates are {taken}, {where.why}: {spans}, {box}{other}"
    if not where.inside.all():
        outside = np.flatnonzero(~where.inside)
        zeros = int((values[outside] == 0).all(axis=1).sum())
        failed = f" ({zeros} at (0, 0))" if zeros else ""
        yield (
            f"{len(outside)} of {len(values)} points are left out, since they lie outside the "
            f"domain{failed}, the first in row {outside[0]} (counted from 0) at "
            f"{_at(values[outside[0]])}"
        )


def _km(length: float) -> str:
    return f"{length:.3g}" if length < 1000 else f"{length:,.0f}"


def _spans(axes: Sequence[str], low: FloatArray, high: FloatArray) -> str:
    # A zero that went to the map and back is not quite one.
    tiny = 1e-12 * (high - low)
    low, high = (np.where(np.abs(each) < tiny, 0.0, each) for each in (low, high))
    return ", ".join(
        f"{axis} {start:.6g} to {stop:.6g}"
        for axis, start, stop in zip(axes, low, high, strict=True)
    )


def _at(point: FloatArray) -> str:
    return place(point) if len(point) == 2 else f"{point[0]:.9g}" if len(point) == 1 else str(point)


def _stretched(where: Places) -> str:
    """How much an equal-area map stretches the shapes of a wide domain."""
    assert where.projection is not None
    edges = where.projection.inverse(np.array(where.space.bounds))
    stretch = where.projection.stretch(edges[:, 1])
    worst = int(np.argmax(np.maximum(stretch, 1 / stretch)))
    factor = max(stretch[worst], 1 / stretch[worst])
    if factor < STRETCH:
        return ""
    direction = "east-west" if stretch[worst] > 1 else "north-south"
    size = f"{factor:.2f}" if factor < 100 else "more than 100"
    return (
        f", on an equal-area map that stretches shapes {direction} by up to {size} (at latitude "
        f"{edges[worst, 1]:.3g}; 1 at {where.projection.latitude:.3g})"
    )


def about_times(reading: Reading, counts: NDArray[np.intp], matched: bool) -> str:
    """What times were taken for, and how many groups they make."""
    empty = int(np.sum(counts == 0))
    of_them = "none empty" if not empty else f"{empty} of them empty"
    labels = ", matched to the points by their index" if matched else ""
    hint = f"; {reading.hint}" if reading.hint else ""
    many = _counted(len(counts), reading.unit)
    return (
        f"{reading.kind} from {reading.first} to {reading.last}, read as {reading.form}{labels}: "
        f"{many}, {of_them}{hint}"
    )


def _counted(count: int, unit: str) -> str:
    word, space, rest = unit.partition(" ")
    return f"{count} {word}{'' if count == 1 else 's'}{space}{rest}"


def far_points(where: Places) -> Iterator[str]:
    """A warning of points at (0, 0) or thousands of km away from all others, if there are any."""
    values = where.table.values[where.inside]
    rows = np.flatnonzero(where.inside)
    zeros, others = (values == 0).all(axis=1), (values != 0).any(axis=1)
    named = np.zeros(len(values), dtype=bool)
    if zeros.any() and np.sum(others) > 1 and _zero_is_far(where, values[others]):
        named = zeros
        yield (
            f"{_points(named, rows)} at (0, 0), {_from_zero(where, values[others])} the nearest "
            f"other, as places that were not found do: {REMEDY}"
        )
    if where.projection is not None:
        km = distances(values, _middle(values))
        near = np.sort(km)[int(0.75 * (len(km) - 1))]
        far = (km > max(FAR_KM, FAR_TIMES * near)) & ~named
        if far.any():
            first = int(np.argmax(far))
            yield (
                f"{_points(far, rows)} at {place(values[first])}, {_km(km[first])} km from the "
                f"middle of all points, of which three quarters are within {_km(near)} km: check "
                f"the sign and the order of coordinates there; {REMEDY}"
            )


REMEDY = 'repair or drop such rows, or leave them out by domain= with outside="drop"'


def _points(chosen: NDArray[np.bool_], rows: NDArray[np.intp]) -> str:
    count, row = int(chosen.sum()), rows[int(np.argmax(chosen))]
    if count == 1:
        return f"row {row} (counted from 0) lies"
    return f"{count} points lie far from the others, the first in row {row} (counted from 0)"


def _zero_is_far(where: Places, others: FloatArray) -> bool:
    if where.projection is not None:
        return bool(distances(others, np.zeros(2)).min() > FAR_KM)
    reach = np.linalg.norm(np.ptp(others, axis=0))
    return bool(np.linalg.norm(others, axis=1).min() > ZERO_TIMES * reach)


def _from_zero(where: Places, others: FloatArray) -> str:
    if where.projection is not None:
        return f"{_km(distances(others, np.zeros(2)).min())} km from"
    return f"{np.linalg.norm(others, axis=1).min():.6g} from"


def _middle(degrees: FloatArray) -> FloatArray:
    """The median of points on the sphere, which a quarter of them can't carry away."""
    longitude, latitude = np.radians(degrees.T)
    east = np.cos(latitude) * np.array([np.cos(longitude), np.sin(longitude)])
    x, y, z = np.median([*east, np.sin(latitude)], axis=1)
    return np.degrees([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])


def empty_periods(found: Periods, inside: NDArray[np.bool_], stamps: Any) -> Iterator[str]:
    """A warning of more empty than filled periods, with the row beyond the longest gap."""
    index, rows = found.index[inside], np.flatnonzero(inside)
    filled = np.unique(index)
    empty = len(found.labels) - len(filled)
    if empty <= len(filled):
        return
    unit = found.reading.unit
    start = (
        f"{empty} of {_counted(len(found.labels), unit)} from {found.labels[0]} to "
        f"{found.labels[-1]} have no points"
    )
    widest = int(np.argmax(np.diff(filled))) if len(filled) > 1 else 0
    early = index <= filled[widest]
    gap = int(filled[widest + 1] - filled[widest]) if len(filled) > 1 else 0
    few, side = (early, "before") if early.mean() <= 0.5 else (~early, "after")
    if not gap or few.sum() > max(1, ODD * len(index)):
        gaps = f": the longest gap is after {found.labels[filled[widest]]}" if gap else ""
        yield f"{start}{gaps}; pass a longer every="
        return
    row = rows[int(np.argmax(few))]
    more = f" and {few.sum() - 1} more rows stand" if few.sum() > 1 else " stands"
    yield (
        f"{start}: {shown(str(list(stamps)[row]))} in row {row} (counted from 0){more} "
        f"{_counted(gap, unit)} {side} all others; repair or drop it, or pass a longer every="
    )
