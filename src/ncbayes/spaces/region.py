"""Polygons in the plane: the points inside an outline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ncbayes.base import BoolArray, FloatArray, InputError
from ncbayes.spaces.outlines import checked_rings, even_odd, outline_rings, place, shapely

# Uniform draws are proposed in those cells of a grid of 64 x 64 over the region that meet it: at
# least a few percent are then inside even of slivers a thousand times longer than wide.
CELLS = 64
# Proposals held at a time: 16 MB.
CHUNK = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """The points of the plane inside the rings by the even-odd rule, borders included.

    A point is inside if a ray from it meets the rings an odd number of times. Each ring is a
    (k, 2) array of corners in order, closed or not; a ring within another is a hole, a ring within
    a hole an island, a ring beside the others a further part. Rings may touch in points, and
    neither cross nor share a border.

    >>> square = Region.of([[0, 0], [2, 0], [2, 2], [0, 2]])
    >>> square, square.contains(np.array([[1.0, 2.0], [3.0, 1.0]])).tolist()
    (Region(1 ring, 4 corners, area 4), [True, False])
    """

    rings: tuple[FloatArray, ...]
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rings", checked_rings(self.rings))
        _ = self._geometry

    @classmethod
    def of(cls, outline: Any) -> Region:
        """The region inside an outline, the parts of which are joined.

        Takes shapely polygons and all else with ``__geo_interface__``, GeoJSON as a dict or as the
        path of a file (geometries, features and collections of them), or corners (k, 2).
        """
        return outline if isinstance(outline, cls) else cls(outline_rings(outline))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Region)
            and len(self.rings) == len(other.rings)
            and all(map(np.array_equal, self.rings, other.rings))
        )

    def __hash__(self) -> int:
        return hash(tuple((ring + 0.0).tobytes() for ring in self.rings))

    def __repr__(self) -> str:
        count = len(self.rings)
        return (
            f"Region({count} {'ring' if count == 1 else 'rings'}, "
            f"{sum(map(len, self.rings))} corners, area {self._geometry.area:.6g})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """The rings alone: a geometry would come back from a pickle unprepared, and slow."""
        return {"rings": self.rings}

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest coordinates, each (2,)."""
        corners = np.concatenate(self.rings)
        return corners.min(axis=0), corners.max(axis=0)

    @property
    def dimension(self) -> int:
        return 2

    @property
    def log_volume(self) -> float:
        return math.log(self._geometry.area)

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        outside = np.flatnonzero(~self.contains(points))
        if len(outside):
            row = outside[0]
            first = "1 point" if len(outside) == 1 else f"{len(outside)} points"
            where = "in row" if len(outside) == 1 else "the first in row"
            swapped = bool(self.contains(points[:, ::-1]).all())
            raise InputError(
                f"data must lie in the region, got {first} of {len(points)} outside, {where} {row} "
                f"(counted from 0) at {place(points[row])}: "
                + ("swap the two columns" if swapped else "drop them, or widen the polygon")
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        # A missing coordinate is nowhere, in every version of shapely.
        finite = np.isfinite(points).all(axis=1)
        inside = shapely().intersects_xy(self._geometry, points[:, 0], points[:, 1])
        return np.asarray(finite & inside, dtype=np.bool_)

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        corners, side = self._cells
        share = self._geometry.area / (len(corners) * side.prod())
        kept, missing = [np.empty((0, 2))], size
        while missing > 0:
            count = min(CHUNK, int(1.1 * missing / share) + 16)
            cells = corners[rng.integers(len(corners), size=count)]
            points = cells + side * rng.random((count, 2))
            kept.append(points[self.contains(points)][:missing])
            missing -= len(kept[-1])
        return np.concatenate(kept)

    @cached_property
    def _geometry(self) -> Any:
        geometry = even_odd(self.rings)
        shapely().prepare(geometry)
        return geometry

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray]:
        """The lower corners of the cells that meet the region, and the sides of a cell."""
        low, high = self.bounds
        side = (high - low) / CELLS
        steps = np.stack(np.meshgrid(*[np.arange(CELLS)] * 2, indexing="ij"), axis=-1)
        corners = low + steps.reshape(-1, 2) * side
        boxes = shapely().box(*corners.T, *(corners + side).T)
        return corners[shapely().intersects(self._geometry, boxes)], side
