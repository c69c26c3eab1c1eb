"""Polygons: what is inside, how large they are, uniform points in them, and what is refused."""

import copy
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import shapely
from scipy.special import ndtri

from ncbayes.base import InputError, Space
from ncbayes.spaces import Region, as_points

LSHAPE = [[0, 0], [4, 0], [4, 1], [1, 1], [1, 3], [0, 3]]
DC = Path(__file__).parents[3] / "shared" / "data" / "dc_boundary.geojson"


def square(low, high):
    return np.array([[low, low], [high, low], [high, high], [low, high]], dtype=float)


def star(rng, corners, center, smallest, largest):
    """A ring that never crosses itself, between two circles."""
    angles = np.sort(rng.random(corners) * 2 * np.pi)
    radii = smallest + (largest - smallest) * rng.random(corners)
    return center + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])


NESTED = (square(0, 4), square(1, 3), square(1.5, 2.5), square(6, 7))
REGIONS = {
    "triangle": Region.of([[0, 0], [3, 0], [0, 2]]),
    "L": Region.of(LSHAPE),
    "hole, island and second part": Region(NESTED),
    "hole that touches the border": Region((square(0, 4), np.array([[0, 2], [2, 1], [2, 3]]))),
    "clockwise": Region.of(LSHAPE[::-1]),
    "sliver": Region.of([[0, 0], [10, 10], [10, 10.02], [0, 0.02]]),
}
AREAS = {"triangle": 3.0, "L": 6.0, "hole, island and second part": 14.0,
         "hole that touches the border": 14.0, "clockwise": 6.0, "sliver": 0.2}  # fmt: skip
EACH = pytest.mark.parametrize("name", REGIONS)


def shoelace(ring):
    x, y = np.transpose(ring)
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def inside_by_rays(rings, points):
    """The even-odd rule, written out: crossings of the ray to the right."""
    odd = np.zeros(len(points), dtype=bool)
    for ring in rings:
        for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            meets = (y0 > points[:, 1]) != (y1 > points[:, 1])
            with np.errstate(divide="ignore", invalid="ignore"):
                at = x0 + (points[:, 1] - y0) / (y1 - y0) * (x1 - x0)
            odd ^= meets & (points[:, 0] < at)
    return odd


@EACH
def test_regions_are_spaces_of_two_columns(name):
    region = REGIONS[name]
    assert isinstance(region, Space)
    assert region.dimension == 2
    corners = np.concatenate(region.rings)
    assert np.array_equal(region.bounds, [corners.min(axis=0), corners.max(axis=0)])


@EACH
def test_volumes_are_those_of_closed_forms(name):
    assert REGIONS[name].log_volume == pytest.approx(math.log(AREAS[name]), abs=1e-10)


def test_volumes_are_those_of_shapely_and_of_the_shoelace(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        outer = star(rng, 30, [500.0, 4e6], 2.0, 5.0)
        hole = star(rng, 7, [500.0, 4e6], 0.2, 0.3)
        if not shapely.Polygon(outer, [hole]).is_valid:
            continue  # few corners may leave the middle out
        region = Region((outer, hole))
        expected = shapely.Polygon(outer, [hole]).area
        assert region.log_volume == pytest.approx(math.log(expected), abs=1e-12)
        local = [ring - [500.0, 4e6] for ring in region.rings]
        assert expected == pytest.approx(shoelace(local[0]) - shoelace(local[1]), abs=1e-7)


@EACH
def test_what_is_inside_follows_the_even_odd_rule(name, seed):
    region = REGIONS[name]
    low, high = region.bounds
    points = np.random.default_rng(seed).uniform(low - 0.2, high + 0.2, (5000, 2))
    assert np.array_equal(region.contains(points), inside_by_rays(region.rings, points))


def test_random_rings_follow_the_even_odd_rule_or_are_refused(seed):
    """Rings anywhere: if they are accepted, none of them cross."""
    rng = np.random.default_rng(seed)
    accepted = 0
    for _ in range(200):
        sizes = rng.permutation([0.2, 0.8, 3.0])
        rings = [star(rng, 9, rng.uniform(0, 4, 2), size / 2, size) for size in sizes]
        lines = [shapely.LinearRing(ring) for ring in rings]
        apart = all(line.is_simple for line in lines) and not any(
            a.intersects(b) for k, a in enumerate(lines) for b in lines[:k]
        )
        if not apart:
            with pytest.raises(InputError):
                Region(tuple(rings))
            continue
        accepted += 1
        points = rng.uniform(-3, 9, (500, 2))
        found = Region(tuple(rings)).contains(points)
        assert np.array_equal(found, inside_by_rays(rings, points))
    assert 20 < accepted < 180


def test_borders_and_corners_are_inside_and_missing_points_nowhere():
    region = Region(NESTED)
    border = np.concatenate([*NESTED, [[2.0, 0.0], [1.0, 2.0], [2.5, 2.0], [6.0, 6.5]]])
    assert region.contains(border).all()
    nowhere = np.array([[np.nan, 1.0], [1.0, np.inf], [-np.inf, np.nan], [1.2, 1.2]])
    assert not region.contains(nowhere).any()
    assert region.contains(np.empty((0, 2))).shape == (0,)


def scores_of_shares(region, points):
    """z-scores of the shares of points in the cells of a grid against the areas there."""
    low, high = region.bounds
    whole = shapely.Polygon()
    for ring in region.rings:
        whole = whole.symmetric_difference(shapely.Polygon(ring))
    edges = np.linspace(low, high, 5)
    area, share = [], []
    for i in range(4):
        for j in range(4):
            cell = [edges[i, 0], edges[j, 1], edges[i + 1, 0], edges[j + 1, 1]]
            area.append(whole.intersection(shapely.box(*cell)).area / whole.area)
            held = (points >= cell[:2]) & (points < cell[2:])
            share.append(held.all(axis=1).mean())
    p = np.array(area)
    error = np.sqrt(p * (1 - p) / len(points))
    return np.divide(share - p, error, out=np.zeros(16), where=error > 0)


LIMIT = -ndtri(1e-6 / 2 / 16)


@EACH
def test_uniform_points_fill_a_region_evenly_and_others_do_not(name, seed):
    region = REGIONS[name]
    rng = np.random.default_rng(seed)
    points = region.uniform(20_000, rng)
    assert points.shape == (20_000, 2)
    assert region.contains(points).all()
    assert np.abs(scores_of_shares(region, points)).max() < LIMIT
    # Broken twins: dense toward one end, and a tenth of the cells forgotten.
    low, high = region.bounds
    bent = points[rng.random(20_000) < 0.5 + 0.5 * (points[:, 0] - low[0]) / (high - low)[0]]
    assert np.abs(scores_of_shares(region, bent)).max() > LIMIT
    corners, side = region._cells
    corners = corners[: int(0.9 * len(corners))]
    size = 200_000
    found = corners[rng.integers(len(corners), size=size)] + side * rng.random((size, 2))
    found = found[region.contains(found)][:20_000]
    assert np.abs(scores_of_shares(region, found)).max() > LIMIT


def test_parts_get_points_by_their_area_and_not_by_their_number(seed):
    region = Region((square(0, 3), square(5, 6)))
    rng = np.random.default_rng(seed)
    assert np.abs(scores_of_shares(region, region.uniform(20_000, rng))).max() < LIMIT
    equal = [Region.of(ring).uniform(10_000, rng) for ring in region.rings]
    assert np.abs(scores_of_shares(region, np.concatenate(equal))).max() > LIMIT


def test_uniform_points_depend_on_the_generator_alone():
    one, two = Region.of(LSHAPE), Region.of(LSHAPE)
    one.uniform(10, np.random.default_rng(9))
    draws = [each.uniform(50, np.random.default_rng(3)) for each in (one, two)]
    assert np.array_equal(*draws)
    assert one.uniform(0, np.random.default_rng(3)).shape == (0, 2)


def test_regions_compare_by_value_and_survive_a_pickle():
    one, two = Region.of(LSHAPE), Region.of(np.array([*LSHAPE, LSHAPE[0]]))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Region.of(LSHAPE[::-1])
    assert one != Region(NESTED)
    assert one != "Region"
    for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert other == one
        assert hash(other) == hash(one)
        assert other.contains(np.array([[0.5, 2.0], [2.0, 2.0]])).tolist() == [True, False]
    assert set(one.__getstate__()) == {"rings"}


def test_the_repr_is_short():
    assert repr(Region.of(LSHAPE)) == "Region(1 ring, 6 corners, area 6)"
    assert repr(Region(NESTED)) == "Region(4 rings, 16 corners, area 14)"


def test_corners_received_are_neither_written_nor_shared():
    ring = square(0, 1)
    region = Region((ring,))
    ring[:] = 7
    assert region == Region.of(square(0, 1))
    with pytest.raises(ValueError, match="read-only"):
        region.rings[0][0, 0] = 3.0


POLYGON = shapely.Polygon(square(0, 4), [square(1, 3)])
GEOJSON = {"type": "Polygon", "coordinates": [square(0, 4).tolist(), square(1, 3).tolist()]}
FEATURE = {"type": "Feature", "properties": {}, "geometry": GEOJSON}


class Drawn:
    __geo_interface__ = FEATURE


@pytest.mark.parametrize(
    "outline",
    [
        POLYGON,
        shapely.MultiPolygon([POLYGON]),
        GEOJSON,
        {"type": "MultiPolygon", "coordinates": [GEOJSON["coordinates"]]},
        {"type": "Polygon", "coordinates": [np.array(ring) for ring in GEOJSON["coordinates"]]},
        {"type": "Polygon", "coordinates": np.array(GEOJSON["coordinates"])},
        FEATURE,
        {"type": "FeatureCollection", "features": [FEATURE, {"type": "Feature", "geometry": None}]},
        {"type": "GeometryCollection", "geometries": [{"type": "Point"}, GEOJSON]},
        shapely.GeometryCollection([shapely.Point(0, 0), POLYGON]),
        shapely.force_3d(POLYGON),
        Drawn(),
        Region((square(0, 4), square(1, 3))),
    ],
    ids=lambda outline: type(outline).__name__,
)
def test_outlines_of_every_kind_become_the_same_region(outline):
    region = Region.of(outline)
    assert [shoelace(ring) for ring in region.rings] == [16, 4]
    assert region.log_volume == pytest.approx(math.log(12))
    assert region.contains(np.array([[0.5, 0.5], [2.0, 2.0]])).tolist() == [True, False]


@pytest.mark.parametrize("kind", [str, Path])
def test_outlines_are_read_from_files(tmp_path, kind):
    path = tmp_path / "outline.geojson"
    path.write_text(json.dumps(FEATURE))
    assert Region.of(kind(path)) == Region.of(GEOJSON)


def test_parts_that_touch_or_overlap_are_joined():
    features = [
        {"type": "Feature", "geometry": shapely.box(*bounds).__geo_interface__}
        for bounds in [(0, 0, 1, 1), (1, 0, 2, 1), (1.5, 0, 3, 1), (5, 5, 6, 6)]
    ]
    region = Region.of({"type": "FeatureCollection", "features": features})
    assert len(region.rings) == 2
    assert region.log_volume == pytest.approx(math.log(4))
    overlapping = shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)])
    assert Region.of(overlapping).log_volume == pytest.approx(math.log(7))


def test_what_make_valid_repairs_is_accepted():
    bow = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    assert Region.of(shapely.make_valid(bow)).log_volume == pytest.approx(math.log(0.5))


BOW = [[0, 0], [1, 1], [1, 0], [0, 1]]
OUTSIDE = {"type": "Polygon", "coordinates": [square(0, 4).tolist(), square(5, 6).tolist()]}
TWO = {"type": "MultiPolygon", "coordinates": [[square(0, 1).tolist()], [BOW]]}


def collection(*features):
    return {"type": "FeatureCollection", "features": list(features)}


@pytest.mark.parametrize(
    ("outline", "message"),
    [
        (
            BOW,
            r"not cross or touch itself, got the polygon that does at \(0.5, 0.5\): .*make_valid",
        ),
        (shapely.Polygon(BOW), r"cross or touch itself, .* \(0.5, 0.5\): .*shapely.make_valid"),
        (TWO, r"got polygon 1 \(counted from 0\) that does at \(0.5, 0.5\)"),
        ([[0, 0], [4, 0], [4, 4], [2, 0], [0, 4]], r"cross or touch itself, .* at \(2, 0\)"),
        (
            [[5e5, 4312345], [5e5 + 1, 4312346], [5e5 + 1, 4312345], [5e5, 4312346]],
            r"at \(500000.5, 4312345.5\)",
        ),
        (OUTSIDE, r"holes of a polygon must lie in it .* in the polygon at \(5, 5\): .*make_valid"),
        ([[0, 0], [1, 1], [0, 0]], "at least 3 different corners, got 2 in ring 0 .*: add corners"),
        (
            {"type": "MultiPolygon", "coordinates": [[square(0, 1)], [[[5, 5], [6, 6]]]]},
            "at least 3 different corners, got 2 in ring 0 of polygon 1 .*: add corners",
        ),
        ([[0, 0], [1, 1], [3, 3]], r"needs an area, got the polygon with .* line through \(0, 0\)"),
        ([[0, 0], [0.1, 0.3], [0.2, 0.6]], "needs an area"),
        (
            [[0, 0], [1, math.nan], [0, 1]],
            r"finite numbers, got missing .* corner 1 of ring 0 .*, \[1.0, nan\]: drop it or fill",
        ),
        ([[0, 0], [1, None], [0, 1]], r"missing or infinite ones in corner 1 of ring 0"),
        ([[0, 0], [math.inf, 1], [0, 1]], r"corner 1 of ring 0 .*, \[inf, 1.0\]"),
        ([[0, 0], [1], [0, 1]], r"numbers of shape \(k, 2\), got \[\[0, 0\], \[1\]"),
        ([["0", "0"], ["1", "0"], ["1", "1"]], r"numbers of shape \(k, 2\), got \[\['0', '0'\]"),
        (np.zeros((4, 3)), r"numbers of shape \(k, 2\), got shape \(4, 3\)"),
        ([], r"numbers of shape \(k, 2\), got \[\]"),
        (5, r"must be a shapely polygon, GeoJSON .* or an array of corners, .*, got 5$"),
        (None, "must be a shapely polygon, GeoJSON .* got None$"),
        (shapely.LineString([(0, 0), (1, 1)]), "must hold polygons .*, got a LineString$"),
        (collection({"type": "Point", "coordinates": [0, 0]}), "hold polygons .*, got a Point$"),
        ({"a": 1}, r"must hold polygons .*, got a dict with the keys \['a'\]$"),
        (collection(), "at least one polygon, got a FeatureCollection without any$"),
        (shapely.Polygon(), "at least one polygon, got a Polygon without any$"),
        ({"type": "Polygon"}, "GeoJSON needs a list 'coordinates' in a Polygon, got None: check"),
        ({"type": "Polygon", "coordinates": [1, 2]}, "needs lists in the list 'coord.*, got 1: "),
        ({"type": "Polygon", "coordinates": [[1, 2]]}, r"of shape \(k, 2\), got shape \(2,\)"),
        ({"type": "Polygon", "coordinates": ["ab"]}, "needs lists in the list .*, got 'ab': "),
        (collection(5), "GeoJSON needs objects with a type for features .*, got 5: check where"),
        ({"type": "Feature", "geometry": [1]}, r"needs objects with a type .*, got \[1\]: check"),
        ("nowhere.geojson", "can't be read from the file 'nowhere.geojson': pass the path of a"),
        ("a\0b", "can't be read from the file"),
    ],
)
def test_unusable_outlines_are_refused_with_the_place_and_the_remedy(outline, message):
    with pytest.raises(InputError, match=message) as raised:
        Region.of(outline)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("POLYGON ((0 0, 1 0, 1 1))", r"outline.geojson' is not GeoJSON \(line 1\): export the"),
        ("[1, 2]", r"outline.geojson' is not GeoJSON, .* object with a type, got \[1, 2\]"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("outline.geojson").write_text(text)
    with pytest.raises(InputError, match=message):
        Region.of("outline.geojson")


@pytest.mark.parametrize(
    ("rings", "message"),
    [
        (square(0, 1), r"Region\(rings\) needs a tuple of arrays .*: pass Region.of\(outline\)"),
        ((), r"Region\(rings\) needs a tuple of arrays of corners, .* got \(\)"),
        ("rings", "needs a tuple of arrays of corners, .* got 'rings'"),
        ((square(0, 4), BOW), r"got ring 1 \(counted from 0\) that does at \(0.5, 0.5\)"),
        (
            (square(0, 4), square(3, 5)),
            r"neither cross .* rings that do at \((3, 4|4, 3)\): .*union",
        ),
        ((square(0, 4), square(0, 4)), r"neither cross nor share a border, .*shapely.union_all"),
        ((square(0, 4), square(0, 2)), r"neither cross nor share a border, .* do at"),
        ((square(0, 1), square(0, 1) + np.array([1, 0])), r"share a border, .* at \(1, [01]\)"),
    ],
)
def test_unusable_rings_are_refused(rings, message):
    with pytest.raises(InputError, match=message):
        Region(rings)


def test_points_outside_are_counted_and_the_first_is_named():
    region = Region.of(LSHAPE)
    points = [[0.5, 0.5], [2.0, 2.0], [0.5, 2.5], [9.0, 0.25]]
    with pytest.raises(
        InputError,
        match=r"data must lie in the region, got 2 points of 4 outside, the first in row 1 "
        r"\(counted from 0\) at \(2, 2\): drop them, or widen the polygon$",
    ):
        as_points(points, region, "m")
    with pytest.raises(
        InputError, match=r"got 1 point of 3 outside, in row 1 .* at \(2, 2\): drop"
    ):
        as_points(points[:3], region, "m")
    with pytest.raises(InputError, match=r"at \(0.25, 3.5\): swap the two columns$"):
        as_points([[0.5, 0.5], [0.25, 3.5]], region, "m")
    assert as_points(points[::2], region, "m").tolist() == points[::2]


def test_geojson_is_read_as_utf_8(tmp_path):
    path = tmp_path / "outline.geojson"
    named = {**FEATURE, "properties": {"name": "Neukölln"}}
    path.write_bytes(json.dumps(named, ensure_ascii=False).encode())
    assert Region.of(path) == Region.of(GEOJSON)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="can't be read from the file"):
        Region.of(path)


@pytest.mark.skipif(not DC.is_file(), reason="the outline of Washington is not here")
def test_washington_has_its_area():
    from ncbayes.spaces import Projection

    degrees = Region.of(DC)
    projection = Projection.around(np.concatenate(degrees.rings))
    km = Region(tuple(projection.forward(ring) for ring in degrees.rings))
    # 68.34 square miles.
    assert math.exp(km.log_volume) == pytest.approx(177.0, rel=0.005)
