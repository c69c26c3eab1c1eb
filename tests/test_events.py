"""What points, times and domain may be: the same for a fit and for kernels."""

import numpy as np
import pandas as pd
import pytest
import shapely

import ncbayes as ncb
from ncbayes import places
from ncbayes.spaces import Box

RING = ncb.datasets.growing_ring(3, 30, seed=5)
POINTS, TIMES = RING.points, RING.times
DEGREES = POINTS * [0.05, 0.03] + [-77.0, 38.9]
SQUARE = [[-6.0, -6.0], [6.0, -6.0], [6.0, 6.0], [-6.0, 6.0]]
CITY = [[-78.0, 38.0], [-76.0, 38.0], [-76.0, 40.0], [-78.0, 40.0]]
BOWTIE = [[-6.0, -6.0], [6.0, 6.0], [6.0, -6.0], [-6.0, 6.0]]
ASKERS = (ncb.fit_density_over_time, ncb.baselines.kde_over_time)


def columns(**values):
    return pd.DataFrame(values)


@pytest.mark.parametrize(
    ("columns", "axes"),
    [
        (("Longitude", "LATITUDE"), ("Longitude", "LATITUDE")),
        (("lat", "lng"), ("lng", "lat")),
        (("latitude", "long"), ("long", "latitude")),
        (("x", "y"), None),
        (("lon", "y"), None),
    ],
)
def test_names_of_coordinates(columns, axes):
    frame = pd.DataFrame(DEGREES, columns=columns)
    table = places.read_table(frame, None, "here")
    assert table.known == (axes is not None)
    assert table.names == (axes or columns)
    order = [0, 1] if table.names == columns else [1, 0]
    np.testing.assert_array_equal(table.values, DEGREES[:, order])


LON, LAT = DEGREES.T
REFUSED = {
    "no points": (None, {}, r"data must be an array, a list or a data frame"),
    "text": ([["a", "b"]] * 90, {}, r"data must be numbers, got a \(str\) in row 0"),
    "numbers as text": (POINTS.astype(str), {}, r"data must be numbers, got .* \(str\) in row 0"),
    "a column of text": (columns(x=LON, y="b"), {}, r"got b \(str\) in row 0 .* of column 'y'"),
    "missing": (
        np.where(np.arange(180).reshape(90, 2) == 5, np.nan, POINTS),
        {},
        r"data must be finite numbers, got .* in row 2 \(counted from 0\) of column 1",
    ),
    "complex": (POINTS + 1j, {}, "data must be real numbers, got complex ones"),
    "three dimensions": (POINTS.reshape(45, 2, 2), {}, "got 3 dimensions, shape"),
    "empty": (np.empty((0, 2)), {}, "got empty data"),
    "rows of different lengths": ([[1, 2], [3]], {}, "must have rows of equal length"),
    "turned": (POINTS.T, {}, "times must hold one time stamp for each of the 2 points"),
    "one point": (POINTS[:1], {"times": [1]}, "data must have at least 2 rows"),
    "one place": (np.ones((90, 2)), {}, "must differ in every column, got 1 throughout 'x1'"),
    "a constant column": (
        columns(x=LON, z=7.0),
        {},
        "got 7 throughout 'z': leave this column out, "
        r"or pass domain=ncbayes.spaces.Box\(low, high\)",
    ),
    "huge": (
        POINTS * 1e300,
        {},
        r"points must have coordinates of up to 1e\+100 that are 1e-100 or "
        "more apart, got .*: rescale them to ordinary units",
    ),
    "tiny": (POINTS * 1e-300, {}, r"points must have coordinates of up to 1e\+100"),
    "beyond numbers": (POINTS * 5e307, {}, r"points must have coordinates of up to 1e\+100"),
    "a huge box": (POINTS, {"domain": Box((-1e150, -9), (1e150, 9))}, "domain must have coord"),
    "latitude": (
        np.add(DEGREES, (0, 60)),
        {"coordinates": "degrees"},
        "latitudes must lie between -90 and 90 deg",
    ),
    "longitude": (
        np.subtract(DEGREES, (400, 0)),
        {"coordinates": "degrees"},
        "longitudes must lie between -360 and 3",
    ),
    "at a pole": (
        np.add(DEGREES, (0, 50)),
        {"coordinates": "degrees"},
        "nearer to a pole use a polar projection",
    ),
    "height": (
        columns(lon=LON, lat=LAT, z=LON),
        {},
        "points in degrees must have 2 columns, "
        "longitude and latitude, got 3: select these two, or pass coordinates=.plane",
    ),
    "degrees of a line": (LON, {"coordinates": "degrees"}, "must have 2 columns, .* got 1: select"),
    "other coordinates": (
        POINTS,
        {"coordinates": "miles"},
        'coordinates must be "degrees" or "plane" or None, got \'miles\'',
    ),
    "coordinates by column": (
        POINTS,
        {"coordinates": np.array(["degrees", "plane"])},
        'coordinates must be "degrees" or "plane"',
    ),
    "no domain": (POINTS, {"domain": 3}, "the outline of a region must be a shapely polygon"),
    "an unbounded domain": (
        POINTS,
        {"domain": ncb.spaces.Reals(2)},
        "the outline of a region must",
    ),
    "no file": (POINTS, {"domain": "none.geojson"}, "can't be read from the file 'none.geojson'"),
    "a box of another dimension": (
        POINTS,
        {"domain": Box(0, 1)},
        "domain has 1 dimensions and points have 2 columns; they must agree",
    ),
    "a polygon for a line": (
        POINTS[:, 0],
        {"domain": SQUARE},
        "domain has 2 dimensions and points h",
    ),
    "a bowtie": (
        POINTS,
        {"domain": BOWTIE},
        r"must not cross or touch itself, got the polygon that "
        r"does at \(0, 0\): repair it, as by shapely.make_valid",
    ),
    "a shapely bowtie": (POINTS, {"domain": shapely.Polygon(BOWTIE)}, "must not cross or touch it"),
    "no point inside": (
        POINTS,
        {"domain": Box((50, 50), (60, 60))},
        "points must lie in the domain, "
        r"got none that does \(points are from .* to .*\): check that domain and points have "
        "the same coordinates",
    ),
    "none left": (
        POINTS,
        {"domain": Box((50, 50), (60, 60)), "outside": "drop"},
        "got none that doe",
    ),
    "a swapped domain": (
        DEGREES,
        {"coordinates": "degrees", "domain": [c[::-1] for c in CITY]},
        "got none that does .*: swap the two columns, longitude first",
    ),
    "the whole earth": (
        DEGREES,
        {"coordinates": "degrees", "domain": Box((-180, -80), (180, 80))},
        "domain must lie within 180 degrees east and west of its middle, which is at longitude 0, "
        "got longitudes from -180 to 180: cut it off",
    ),
    "outside": (POINTS, {"outside": "keep"}, 'outside must be "error" or "drop", got \'keep\''),
    "outside by list": (POINTS, {"outside": np.array(["drop", "x"])}, 'outside must be "error" or'),
    "times": (POINTS, {"times": [1, 2]}, "one time stamp for each of the 90 points, .*, got 2"),
    "a column's name": (POINTS, {"times": "date"}, "one time stamp for each of .*, got 'date'"),
    "too many times": (np.tile(POINTS, (5, 1)), {"times": range(450)}, "times make 450 groups"),
    "every": (
        POINTS,
        {"every": "month"},
        "every must be a positive number where times are numbers",
    ),
    "some points outside": (
        POINTS,
        {"domain": Box((-3, -3), (3, 3))},
        r"of 90 points lie outside the domain, the first in row \d+ \(counted from 0\) at .*: "
        r'widen the domain, or pass outside="drop"$',
    ),
}


@pytest.mark.parametrize(("points", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_errors_say_what_was_wrong_and_all_say_the_same(points, options, message):
    said = []
    for ask in ASKERS:
        with pytest.raises(ncb.InputError, match=message) as caught:
            ask(points, **{"times": TIMES, **options})
        said.append(str(caught.value).replace(ask.__name__, "asker"))
    assert said[0] == said[1]
    assert "\n" not in said[0]
