"""Outlines of regions: what the user has for a polygon, turned into rings and checked."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces.points import is_numeric

ALLOWED = (
    "a shapely polygon, GeoJSON (a dict, or the path of a file) or an array of corners, shape "
    "(k, 2)"
)
# Relative width of what is a line but for rounding.
FLAT = 1e-12
REPAIR = "repair it, as by shapely.make_valid, and look at the result"


def shapely() -> Any:
    """The module shapely, imported when it is first needed: fits of angles never do."""
    import shapely as module

    return module


def checked_rings(rings: Any) -> tuple[FloatArray, ...]:
    """The rings as read-only arrays without the closing corner, each a polygon of its own."""
    if isinstance(rings, str) or not isinstance(rings, Sequence) or not len(rings):
        raise InputError(
            "Region(rings) needs a tuple of arrays of corners, each of shape (k, 2), got "
            f"{shown(rings)}: pass Region.of(outline) for {ALLOWED}"
        )
    return tuple(_checked_ring(ring, f"ring {k}") for k, ring in enumerate(rings))


def even_odd(rings: Sequence[FloatArray]) -> Any:
    """The shapely geometry inside an odd number of the rings."""
    module = shapely()
    areas = [module.Polygon(ring) for ring in rings]
    for k, area in enumerate(areas):
        _check_valid(area, f"ring {k} (counted from 0)" if len(areas) > 1 else "the polygon")
    inner, outer = module.STRtree(areas).query(areas, predicate="covered_by")
    others = inner != outer
    inner, outer = inner[others], outer[others]
    depth = np.bincount(inner, minlength=len(areas))
    holes: dict[int, list[FloatArray]] = {int(k): [] for k in np.flatnonzero(depth % 2 == 0)}
    for hole in np.flatnonzero(depth % 2 == 1):
        # The innermost ring around the hole; there are several only where rings cross.
        around = outer[inner == hole]
        holes.setdefault(int(around[np.argmax(depth[around])]), []).append(rings[int(hole)])
    parts = [module.Polygon(rings[k], inside) for k, inside in holes.items()]
    whole = parts[0] if len(parts) == 1 else module.MultiPolygon(parts)
    if not module.is_valid(whole):
        raise InputError(
            f"the rings of a region must neither cross nor share a border, got rings that do at "
            f"{_fault(whole)}: pass Region.of(shapely.union_all(polygons)) to join parts"
        )
    return whole


def opened(outline: Any) -> Any:
    """The outline, or what is in the file that it names."""
    return _read(outline) if isinstance(outline, str | os.PathLike) else outline


def in_degrees(outline: Any) -> bool | None:
    """Whether an outline says that its corners are longitude and latitude; None: it does not say.

    GeoJSON is in degrees by its standard, unless its numbers can't be degrees or it names another
    system, as older files do. What has a ``crs``, such as a GeoDataFrame, is asked for it.
    """
    if hasattr(getattr(outline, "crs", None), "is_geographic"):
        return bool(outline.crs.is_geographic)
    if not isinstance(outline, Mapping):
        return None
    system = outline.get("crs")
    if isinstance(system, Mapping):
        properties = system.get("properties")
        name = str(properties.get("name")) if isinstance(properties, Mapping) else ""
        if name and not re.search(r"CRS84|\b(4326|4269|4258)$", name):
            return False
    corners = np.concatenate(outline_rings(outline))
    return bool((np.abs(corners) <= [180, 90]).all())


def outline_rings(outline: Any) -> tuple[FloatArray, ...]:
    """The rings of an outline; parts that overlap or touch are joined."""
    outline = opened(outline)
    if hasattr(outline, "__geo_interface__"):
        outline = outline.__geo_interface__
    if not isinstance(outline, Mapping):
        if not (_is_list(outline) or hasattr(outline, "to_numpy")):
            raise InputError(f"the outline of a region must be {ALLOWED}, got {shown(outline)}")
        return (outline,)
    polygons = list(_polygons(outline))
    if not polygons:
        raise InputError(
            f"the outline of a region needs at least one polygon, got {_kind(outline)} without any"
        )
    module = shapely()
    parts = [_polygon(rings, k, len(polygons)) for k, rings in enumerate(polygons)]
    whole = module.MultiPolygon(parts)
    # Only where it must: joining moves corners about.
    if not module.is_valid(whole):
        whole = module.union_all(parts)
    return tuple(
        np.asarray(ring.coords)[:, :2]
        for part in module.get_parts(whole)
        for ring in (part.exterior, *part.interiors)
    )


def _checked_ring(ring: Any, which: str) -> FloatArray:
    corners = _floats(ring)
    if corners.ndim != 2 or corners.shape[1] != 2:
        got = f"shape {corners.shape}" if corners.size else shown(ring)
        raise InputError(f"the corners of a polygon must be numbers of shape (k, 2), got {got}")
    lost = np.flatnonzero(~np.isfinite(corners).all(axis=1))
    if len(lost):
        raise InputError(
            "the corners of a polygon must be finite numbers, got missing or infinite ones in "
            f"corner {lost[0]} of {which} (counted from 0), {corners[lost[0]].tolist()}: drop it "
            "or fill it in"
        )
    if len(corners) > 1 and np.array_equal(corners[0], corners[-1]):
        corners = corners[:-1]
    different = len(np.unique(corners, axis=0))
    if different < 3:
        raise InputError(
            f"a polygon needs at least 3 different corners, got {different} in {which} (counted "
            "from 0): add corners or drop this ring"
        )
    corners.setflags(write=False)
    return corners


def _floats(ring: Any) -> FloatArray:
    """A new array of the numbers, None being a missing one; empty if there are others."""
    try:
        values = np.asarray(ring)
    except ValueError:  # rows of different lengths
        return np.empty(0)
    if values.dtype.kind == "O":
        lost = np.frompyfunc(lambda value: value is None, 1, 1)(values).astype(bool)
        values = np.where(lost, math.nan, values).tolist()
    return np.array(values, dtype=np.float64) if is_numeric(values) else np.empty(0)


def _check_valid(polygon: Any, which: str) -> None:
    module = shapely()
    # The hull, since the area of a figure of eight may be 0 too.
    low, high = np.reshape(polygon.bounds, (2, 2))
    if not module.convex_hull(polygon).area > FLAT * np.max(high - low) ** 2:
        raise InputError(
            f"a region needs an area, got {which} with all corners on a line through "
            f"{place(polygon.exterior.coords[0])}: pass corners around the region"
        )
    if not module.is_valid(polygon):
        raise InputError(
            f"the outline of a region must not cross or touch itself, got {which} that does at "
            f"{_fault(polygon)}: {REPAIR}"
        )


def _polygon(rings: Sequence[Any], k: int, count: int) -> Any:
    """One polygon of GeoJSON: an outer ring, and holes in it."""
    module = shapely()
    part = f" of polygon {k}" if count > 1 else ""
    outer, *inner = (
        _checked_ring(_positions(ring), f"ring {j}{part}") for j, ring in enumerate(rings)
    )
    which = f"polygon {k} (counted from 0)" if count > 1 else "the polygon"
    _check_valid(module.Polygon(outer), which)
    polygon = module.Polygon(outer, inner)
    if not module.is_valid(polygon):
        raise InputError(
            f"the holes of a polygon must lie in it and apart from each other, got others in "
            f"{which} at {_fault(polygon)}: {REPAIR}"
        )
    return polygon


def _positions(ring: Any) -> Any:
    """The first two numbers of each position: the third is a height."""
    try:
        return [list(position)[:2] for position in ring]
    except TypeError:
        return ring


def _polygons(outline: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """The polygons in a GeoJSON object, each a list of rings."""
    kind = outline.get("type")
    if kind == "FeatureCollection":
        for feature in _listed(outline, "features"):
            yield from _polygons(feature)
    elif kind == "Feature":
        if outline.get("geometry") is not None:
            yield from _polygons(_object(outline["geometry"]))
    elif kind == "GeometryCollection":
        # shapely.make_valid leaves lines and points beside polygons.
        flat = ("Point", "MultiPoint", "LineString", "MultiLineString")
        for each in _listed(outline, "geometries"):
            yield from () if each.get("type") in flat else _polygons(each)
    elif kind == "MultiPolygon":
        yield from filter(len, _listed(outline, "coordinates"))
    elif kind == "Polygon":
        yield from filter(len, [_listed(outline, "coordinates")])
    else:
        raise InputError(
            "the outline of a region must hold polygons (the GeoJSON types Polygon, MultiPolygon, "
            f"GeometryCollection, Feature, FeatureCollection), got {_kind(outline)}"
        )


def _listed(outline: Mapping[str, Any], key: str) -> list[Any]:
    """What a GeoJSON object holds under a key: a list of lists, or of further objects."""
    found: Any = outline.get(key)
    if not _is_list(found):
        raise _malformed(f"a list {key!r} in a {outline['type']}", found)
    if key != "coordinates":
        return [_object(each) for each in found]
    for each in found:
        if not _is_list(each):
            raise _malformed(f"lists in the list {key!r} of a {outline['type']}", each)
    return list(found)


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _malformed("objects with a type for features and geometries", value)
    return value


def _malformed(needs: str, got: object) -> InputError:
    return InputError(
        f"GeoJSON needs {needs}, got {shown(got)}: check where this outline comes from"
    )


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _kind(outline: Mapping[str, Any]) -> str:
    kind = outline.get("type")
    return f"a {kind}" if isinstance(kind, str) else f"a dict with the keys {shown(list(outline))}"


def _read(path: str | os.PathLike[str]) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(
            f"the outline of a region can't be read from the file {shown(os.fspath(path))}: pass "
            "the path of a GeoJSON file"
        ) from error
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"the file {shown(os.fspath(path))} is not GeoJSON (line {error.lineno}): export the "
            "outline as GeoJSON, or pass a shapely polygon"
        ) from error
    if not isinstance(found, dict):
        raise InputError(
            f"the file {shown(os.fspath(path))} is not GeoJSON, which is an object with a type, "
            f"got {shown(found)}"
        )
    return found


def _fault(geometry: Any) -> str:
    """Where shapely finds the first fault."""
    reason = shapely().is_valid_reason(geometry)
    found = re.search(r"\[(\S+) (\S+)\]", reason)
    return place((float(found[1]), float(found[2]))) if found else str(reason)


def place(point: Iterable[float]) -> str:
    """Coordinates in a message."""
    # Nine digits are a decimetre in meters of a projection, and less in degrees.
    return "({:.9g}, {:.9g})".format(*point)
