"""Degrees or plane numbers, the middle of the map, and what is said of both before a fit."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import shapely

import ncbayes as ncb
from ncbayes import densities, events
from ncbayes.fields import stored_field
from ncbayes.spaces import Box, Projection, Region

pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
RNG = np.random.default_rng(4)
CITY = np.column_stack([RNG.normal(-77.0, 0.04, 200), RNG.normal(38.9, 0.03, 200)])
DATES = np.repeat(["2022-01-05", "2022-02-05"], 100)
OUTLINE = {
    "type": "Polygon",
    "coordinates": [[[-77.5, 38.5], [-76.5, 38.5], [-76.5, 39.2], [-77.5, 39.2], [-77.5, 38.5]]],
}
OPTIONS = {"domain": None, "every": None, "coordinates": None, "outside": "error",
           "day_first": None, "tz": None}  # fmt: skip
QUICK = {"basis": 4, "draws": 4, "tune": 2, "chains": 1, "cores": 1, "seed": 1, "noise_ratio": 1}


def taken(points, times=DATES, **options):
    return events.events("here", points, times, **{**OPTIONS, **options})


def frame(points, *names):
    return pd.DataFrame(np.asarray(points), columns=list(names))


LOST = CITY.copy()
LOST[[17, 40]] = 0.0


@pytest.mark.parametrize("names", [("lon", "lat"), ("x", "y")])
def test_points_that_are_dropped_do_not_choose_the_map(names):
    """Places that were not found, at (0, 0), moved its middle to latitude 19.5."""
    kept = np.delete(CITY, [17, 40], axis=0)
    dates = np.delete(DATES, [17, 40])
    found = taken(frame(LOST, *names), domain=OUTLINE, outside="drop")
    assert found.projection == Projection(-77.0, 38.85)  # the middle of the outline
    assert found.dropped == 2
    assert found.rows == 198
    again = taken(frame(kept, *names), dates, domain=OUTLINE)
    for label, points in again.groups.items():
        np.testing.assert_array_equal(found.groups[label], points)
    assert found.notes[1] == (
        "2 of 200 points are left out, since they lie outside the domain (2 at (0, 0)), the first "
        "in row 17 (counted from 0) at (0, 0)"
    )
    assert found.warnings == ()
    # Shapes are right to one percent, where they were stretched by 1.47.
    assert found.projection.stretch(38.9) == pytest.approx(1, abs=0.01)
    assert Projection(-77.0, 19.5).stretch(38.9) == pytest.approx(1.47, abs=0.005)


@pytest.mark.parametrize(
    "domain", [OUTLINE, Box((-77.5, 38.5), (-76.5, 39.2)), shapely.box(-77.5, 38.5, -76.5, 39.2)]
)
def test_the_middle_of_the_map_is_that_of_the_domain(domain):
    found = taken(frame(CITY[:50], "lon", "lat"), DATES[:50], domain=domain)
    assert found.projection == Projection(-77.0, 38.85)
    alone = taken(frame(CITY[:50], "lon", "lat"), DATES[:50])
    assert alone.projection == Projection.around(CITY[:50])


def test_degrees_are_known_by_an_outline_of_geojson(tmp_path):
    """In an array, or under other names, they were plane numbers without a word."""
    path = tmp_path / "city.geojson"
    path.write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": OUTLINE}))
    named = taken(frame(CITY, "lon", "lat"), domain=OUTLINE)
    for points in (CITY, frame(CITY, "X_COORD", "Y_COORD"), CITY.tolist()):
        for domain in (OUTLINE, path, str(path)):
            found = taken(points, domain=domain)
            assert found.projection == named.projection
            np.testing.assert_array_equal(found.groups["2022-01"], named.groups["2022-01"])
            assert found.notes[0].startswith(
                "coordinates are taken as degrees, by the outline, which is in degrees: "
            )
    assert taken(CITY, domain=OUTLINE).axes == ("longitude", "latitude")
    assert taken(CITY, domain=OUTLINE, coordinates="plane").projection is None


def system(name):
    return {"type": "name", "properties": {"name": name}}


def tables(geographic):
    """What GeoDataFrames have, as far as this package asks."""
    crs = SimpleNamespace(is_geographic=geographic)
    return SimpleNamespace(__geo_interface__=OUTLINE, crs=crs)


@pytest.mark.parametrize(
    ("domain", "degrees"),
    [
        (shapely.geometry.shape(OUTLINE), False),
        (OUTLINE["coordinates"][0], False),
        (Region.of(OUTLINE), False),
        ({**OUTLINE, "crs": system("urn:ogc:def:crs:OGC:1.3:CRS84")}, True),
        ({**OUTLINE, "crs": system("urn:ogc:def:crs:EPSG::4326")}, True),
        ({**OUTLINE, "crs": system("EPSG:26985")}, False),
        (tables(True), True),
        (tables(False), False),
    ],
)
def test_what_says_that_an_outline_is_in_degrees(domain, degrees):
    found = taken(CITY, domain=domain)
    assert (found.projection is not None) == degrees
    assert found.coordinates == ("degrees" if degrees else "plane")
    if not degrees:
        assert found.notes[0].endswith(
            '; if they are longitude and latitude, pass coordinates="degrees"'
        )
        assert taken(CITY, domain=domain, coordinates="degrees").projection is not None


def test_an_outline_in_kilometers_is_plane():
    square = shapely.box(340, 400, 370, 440)
    outline = json.loads(shapely.to_geojson(square))
    points = RNG.uniform((341, 401), (369, 439), (200, 2))
    found = taken(frame(points, "x", "y"), domain=outline)
    assert found.projection is None
    assert found.notes[0].startswith("coordinates are taken as those of a plane: x 341.")
    assert "degrees" not in found.notes[0]


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (
            CITY * 1000,
            {"domain": OUTLINE},
            "must have the same coordinates, got a domain in degrees and points that are not, from "
            r"\(-77.*: bring both to longitude and latitude, or both to a plane and pass coord",
        ),
        (
            frame(CITY, "lon", "lat"),
            {"domain": shapely.box(340, 400, 370, 440)},
            "got points in degrees, by the names of their columns, and a domain that is not, from "
            r"\(340, 400\) to \(370, 440\): bring both to",
        ),
        (
            CITY,
            {"domain": Box((340, 400), (370, 440)), "coordinates": "degrees"},
            "got points in degrees, as told, and a domain that is not",
        ),
        (
            CITY[:, ::-1],
            {"domain": OUTLINE},
            "none that does .*: swap the two columns, longitude f",
        ),
        (
            LOST,
            {"domain": OUTLINE},
            r"^2 of 200 points lie outside the domain \(2 at \(0, 0\), as places that were not "
            r"found are\), the first in row 17 \(counted from 0\) at \(0, 0\): widen the domain",
        ),
    ],
)
def test_points_and_domain_of_different_kinds(points, options, message):
    with pytest.raises(ncb.InputError, match=message):
        taken(points, **options)


def test_places_that_are_not_on_earth_can_be_dropped():
    points = CITY.copy()
    points[3] = -999
    assert taken(points, domain=OUTLINE, outside="drop").dropped == 1
    with pytest.raises(ncb.InputError, match=r"latitudes must .* got -999 in row 3"):
        taken(points, domain=OUTLINE)


def test_the_box_in_kilometers_shows_swapped_columns():
    right = taken(CITY, coordinates="degrees").notes[0]
    low, high = CITY.min(axis=0), CITY.max(axis=0)
    assert right.startswith(
        f"coordinates are in degrees, as told: longitude {low[0]:.6g} to {high[0]:.6g}, latitude "
        f"{low[1]:.6g} to {high[1]:.6g}, a box of "
    )
    box = [float(each) for each in right.split("a box of ")[1].split(" km")[0].split(" by ")]
    degree = 111.195 * np.array([np.cos(np.radians(38.9)), 1])
    np.testing.assert_allclose(box, (high - low) * degree, rtol=0.01)
    swapped = taken(CITY[:, ::-1], coordinates="degrees").notes[0]
    assert "longitude 38." in swapped
    assert "latitude -77." in swapped


def test_the_stretch_of_a_wide_map_is_told():
    assert "stretches" not in taken(CITY, coordinates="degrees").notes[0]
    wide = Box((-125, 25), (-67, 49))
    note = taken(CITY, coordinates="degrees", domain=wide).notes[0]
    worst = (np.cos(np.radians(37)) / np.cos(np.radians(49))) ** 2
    assert f"stretches shapes east-west by up to {worst:.2f} (at latitude 49; 1 at 37)" in note


def test_a_map_of_the_whole_earth_can_be_read():
    """A tenth beyond the points would have been beyond the poles."""
    points = np.column_stack([RNG.uniform(-179, 179, 200), RNG.uniform(-85, 85, 200)])
    kde = ncb.baselines.kde_over_time(
        points, np.repeat([1, 2], 100), coordinates="degrees", progress=False
    )
    grid = densities.density(kde, size=8)
    assert np.isfinite(grid["mean"]).all()
    assert np.ptp(grid["longitude"].to_numpy()) < 360


def test_the_map_is_cut_where_there_are_no_points():
    """At the mean of longitudes the cut would have gone through those in the Pacific."""
    east = np.column_stack([RNG.uniform(0, 20, 60), RNG.uniform(-5, 5, 60)])
    west = np.column_stack([RNG.uniform(175, 195, 60), RNG.uniform(-5, 5, 60)])
    points = np.concatenate([east, west])
    points[:, 0] = (points[:, 0] + 180) % 360 - 180
    km = Projection.around(points).forward(points)
    assert np.ptp(km[60:, 0]) < 2300  # 20 degrees
    assert np.ptp(km[:60, 0]) < 2300


@pytest.mark.parametrize(
    ("rings", "longitude"),
    [
        ([(177, 180), (-180, -178)], 179.5),
        ([(-150, 150)], 0),
        ([(27, 180), (-180, -169)], 109),
        ([(170, 190)], -180),
        ([(-77.5, -76.5), (-77.4, -77)], -77),
        ([(340, 360)], -10),
    ],
)
def test_the_middle_of_rings(rings, longitude):
    corners = [np.array([[low, -4.0], [high, 8.0]]) for low, high in rings]
    found = Projection.over(corners)
    assert (found.longitude - longitude) % 360 == pytest.approx(0, abs=1e-9)
    assert found.latitude == 2


def test_points_at_zero_are_named_before_the_fit():
    (line,) = taken(LOST, coordinates="degrees").warnings
    assert line.startswith(
        "2 points lie far from the others, the first in row 17 (counted from 0) at (0, 0), 8,"
    )
    assert "km from the nearest other, as places that were not found do: repair or drop" in line
    meters = CITY * 1e5
    meters[9] = 0
    (line,) = taken(meters).warnings
    assert line.startswith("row 9 (counted from 0) lies at (0, 0), 8")
    # Broken twins: (0, 0) among others, and an honest point near it.
    around = RNG.normal(0, 1, (200, 2))
    around[5] = 0
    for coordinates in ("degrees", "plane"):
        assert taken(around, coordinates=coordinates).warnings == ()


def test_points_far_from_all_others_are_named():
    lost = CITY.copy()
    lost[3, 0] *= -1
    (line,) = taken(lost, coordinates="degrees").warnings
    assert line.startswith("row 3 (counted from 0) lies at (7")
    assert "km from the middle of all points, of which three quarters are within" in line
    with pytest.warns(
        ncb.FitWarning, match="row 3 .* check the sign and the order of coordinates"
    ) as said:
        ncb.baselines.kde_over_time(lost, DATES, coordinates="degrees", progress=False)
    assert said[0].filename == __file__
    few = taken(lost[2:6], DATES[2:6], coordinates="degrees").warnings
    assert "row 1 (counted from 0)" in few[0]
    # Hawaii is not far from a country, nor are cities of the world from each other.
    country = RNG.uniform((-124, 25), (-67, 49), (200, 2))
    country[0] = [-157.8, 21.3]
    world = RNG.uniform((-180, -60), (180, 70), (200, 2))
    for points in (country, world):
        assert taken(points, coordinates="degrees").warnings == ()


def test_points_at_zero_are_named_as_the_cause_after_the_fit_too(tmp_path):
    """It was "AUC 1.0000", and the advice to choose other noise."""
    options = {**QUICK, "tune": 50, "draws": 20}
    posterior = ncb.fit_density_over_time(
        LOST, DATES, coordinates="degrees", every="month", progress=False, **options
    )
    posterior.save(tmp_path / "fit.nc")
    for each in (posterior, ncb.load(tmp_path / "fit.nc")):
        (line,) = (each for each in each.warning_lines() if each.startswith("noise and data are"))
        assert "perfectly in group 2022-01, most likely since 2 points lie far from the o" in line
        assert "AUC" not in line


def test_lines_about_times():
    assert taken(CITY).notes[-1] == (
        "dates from 2022-01-05 to 2022-02-05, read as year-month-day: 2 months, none empty"
    )
    gap = np.repeat(["2022-01-05", "2022-04-05"], 100)
    assert taken(CITY, gap, every="month").notes[-1].endswith(": 4 months, 2 of them empty")
    numbers = taken(CITY, np.repeat([1, 4], 100), every=2).notes[-1]
    assert numbers == "times from 1 to 4, read as numbers: 3 periods of 2, 1 of them empty"
    labels = taken(CITY, np.repeat(["b", "a"], 100)).notes[-1]
    assert labels == (
        "times from b to a, read as labels, in the order in which they appear: 2 labels, none empty"
    )
    series = pd.Series(DATES)
    mixed = taken(frame(CITY, "x", "y"), series.sample(frac=1, random_state=1)).notes[-1]
    assert ", matched to the points by their index: " in mixed


def test_more_empty_than_filled_periods_name_the_odd_row():
    dates = pd.date_range("2023-01-01", "2023-04-30", periods=200).astype(str).to_numpy(object)
    dates[77] = "2003-02-11"
    found = taken(CITY, dates, every="month")
    assert found.warnings == (
        "238 of 243 months from 2003-02 to 2023-04 have no points: '2003-02-11' in row 77 (counted "
        "from 0) stands 239 months before all others; repair or drop it, or pass a longer every=",
    )
    dates[[78, 79]] = "2003-02-12"
    (line,) = taken(CITY, dates, every="month").warnings
    assert "'2003-02-11' in row 77 (counted from 0) and 2 more rows stand 239 months before" in line
    halves = np.repeat(["2003-02-11", "2023-02-11"], 100)
    (line,) = taken(CITY, halves, every="month").warnings
    assert line.endswith("have no points: the longest gap is after 2003-02; pass a longer every=")
    assert taken(CITY, np.repeat(["2022-01-05", "2022-04-05"], 100), every="month").warnings == ()


def test_lines_are_printed_with_the_progress_and_silenced_with_it(capsys):
    with pytest.warns(ncb.FitWarning) as short:
        posterior = ncb.fit_density_over_time(CITY, DATES, domain=OUTLINE, every="month", **QUICK)
    assert {each.filename for each in short} == {__file__}
    lines = capsys.readouterr().err.splitlines()[:2]
    assert lines[0].startswith("ncbayes: coordinates are taken as degrees, by the outline")
    assert lines[1] == (
        "ncbayes: dates from 2022-01-05 to 2022-02-05, read as year-month-day: 2 months, none empty"
    )
    assert posterior.data.attrs["coordinate_system"] == "degrees"
    for progress, count in ((None, 2), (False, 0), (lambda event: None, 2)):
        ncb.baselines.kde_over_time(CITY, DATES, every="month", progress=progress)
        said = capsys.readouterr()
        assert (len(said.err.splitlines()), said.out) == (count, "")


def test_an_array_of_degrees_makes_a_map_with_a_system(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    kde = ncb.baselines.kde_over_time(CITY, DATES, domain=OUTLINE, progress=False)
    grid = densities.density(kde, size=6)
    assert grid["mean"].attrs["units"] == "per square kilometer"
    densities.to_geotiff(grid, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.crs.to_epsg() == 4326


def test_what_was_taken_is_kept_and_used_again(tmp_path):
    """Held-out dates are read as those of the fit were."""
    days = pd.Series(pd.date_range("2023-03-01", "2023-05-28", periods=200))
    text = days.dt.strftime("%d/%m/%Y %H:%M:%S") + "+00:00"
    options = {"domain": OUTLINE, "every": "month", "tz": "America/New_York", "progress": False}
    folder = tmp_path / "checkpoint"
    posterior = ncb.fit_density_over_time(CITY, text, checkpoint=folder, **options, **QUICK)
    with pytest.raises(ncb.InputError, match=r"holds a run that differs in: .*tz"):
        ncb.fit_density_over_time(
            CITY, text, checkpoint=folder, **{**options, "tz": "UTC"}, **QUICK
        )
    posterior.save(tmp_path / "fit.nc")
    for each in (posterior, ncb.load(tmp_path / "fit.nc")):
        facts = {name: each.data.attrs[name] for name in ("coordinate_system", "day_first", "tz")}
        assert facts == {"coordinate_system": "degrees", "day_first": 1, "tz": "America/New_York"}
        style = stored_field(each.data, "here").style
        assert (style.day_first, style.tz) == (True, "America/New_York")
        few = ["05/04/2023 12:00:00+00:00", "01/05/2023 01:00:00+00:00"]  # in April in New York
        score = ncb.scores.log_score(each, CITY[:2], times=few, draws=4)
        assert score.by_time["label"].values.tolist() == ["2023-04"]
    kde = ncb.baselines.kde_over_time(CITY, text, **options)
    assert ncb.scores.log_score(kde, CITY[:2], times=few).by_time["label"].values.tolist() == [
        "2023-04"
    ]
    plain = ncb.baselines.kde_over_time(CITY, days, every="month", progress=False)
    with pytest.raises(ncb.InputError, match="times must be written as year-month-day, since"):
        ncb.scores.log_score(plain, CITY[:1], times=["05/04/2023"])


def test_read_outs_know_longitude_by_name_too():
    kde = ncb.baselines.kde_over_time(CITY, DATES, domain=OUTLINE, progress=False)
    right = densities.density(kde, CITY[:3])["mean"]
    turned = densities.density(kde, frame(CITY[:3, ::-1], "lat", "lon"))["mean"]
    np.testing.assert_array_equal(right, turned)


def test_numbers_as_dates_are_found_again():
    months = np.repeat([202112, 202201], 100)
    kde = ncb.baselines.kde_over_time(CITY, months, every="month", progress=False)
    assert kde.labels == ("2021-12", "2022-01")
    score = ncb.scores.log_score(kde, CITY[:2], times=[202201, 202112])
    assert score.by_time["label"].values.tolist() == ["2021-12", "2022-01"]
    first = densities.density(kde, CITY[:1], times=[0])["label"].values.tolist()
    assert first == ["2021-12"]


def test_a_zero_that_went_to_the_map_and_back_is_written_as_one():
    from ncbayes.remarks import _spans

    low, high = np.array([-77.0, 3e-15]), np.array([0.0, 39.0])
    assert _spans(["lon", "lat"], low, high) == "lon -77 to 0, lat 0 to 39"
