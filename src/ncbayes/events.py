"""Points with time stamps, made ready for a density over time: axes, space, groups and map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import remarks
from ncbayes.base import FloatArray
from ncbayes.dates import DateStyle, checked_style
from ncbayes.periods import periods
from ncbayes.places import place_points, read_table
from ncbayes.spaces import Box, Projection, Region
from ncbayes.spaces.rows import match_rows


@dataclass(frozen=True, eq=False)
class Events:
    """The points of every time, by label and in order, and what they are points of.

    ``groups`` and ``space`` are in km where there is a ``projection``. ``times`` are datetimes or
    numbers, None for labels; ``places`` are numbers at the distances of the times, None where
    these are equally spaced; ``style`` is how dates were read. ``dropped`` points lay outside the
    space. ``notes`` say in a line each what coordinates and times were taken for, ``warnings``
    what looks like a mistake in them, and ``far`` which of the points are far from all others.
    """

    groups: dict[str, FloatArray]
    space: Box | Region
    axes: tuple[str, ...]
    times: NDArray[Any] | None
    places: FloatArray | None
    projection: Projection | None
    dropped: int
    style: DateStyle
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    far: str

    @property
    def coordinates(self) -> str:
        """What coordinates were taken for: "degrees" or "plane"."""
        return "plane" if self.projection is None else "degrees"

    @property
    def rows(self) -> int:
        """How many points there are in all groups."""
        return sum(map(len, self.groups.values()))


def events(
    asker: str,
    points: Any,
    times: Any,
    *,
    domain: Any,
    every: Any,
    coordinates: Any,
    outside: Any,
    day_first: Any,
    tz: Any,
) -> Events:
    """What ``fit_density_over_time`` describes, checked; ``asker`` is who wants it."""
    style = checked_style(day_first, tz)
    table = read_table(points, coordinates, asker)
    stamps = match_rows(points, times)
    found = periods(stamps, every, len(table.values), style)
    where = place_points(table, domain, coordinates, outside)
    index = found.index[where.inside]
    counts = np.bincount(index, minlength=len(found.labels))
    far = tuple(remarks.far_points(where))
    return Events(
        groups={label: where.points[index == g] for g, label in enumerate(found.labels)},
        space=where.space,
        axes=where.axes,
        times=found.starts,
        places=found.places,
        projection=where.projection,
        dropped=int(np.sum(~where.inside)),
        style=found.reading.style,
        notes=(
            *remarks.about_places(where, coordinates),
            remarks.about_times(found.reading, counts, matched=stamps is not times),
        ),
        warnings=(*far, *remarks.empty_periods(found, where.inside, stamps)),
        far="; ".join(far),
    )
