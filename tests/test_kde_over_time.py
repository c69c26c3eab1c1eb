"""Kernels with the interface of a fit: SciPy's numbers in the results of densities over time."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr
from scipy.stats import gaussian_kde

import ncbayes as ncb
from ncbayes import densities, scores
from ncbayes.baselines import KDEOverTime, TimewiseKDE, kde_over_time
from ncbayes.spaces import Box, Projection, Region

RING = ncb.datasets.growing_ring(3, 40, seed=5)
POINTS, TIMES = RING.points, RING.times
DEGREES = pd.DataFrame(POINTS * [0.05, 0.03] + [-77.0, 38.9], columns=["lon", "lat"])
# March has no points.
DATES = pd.to_datetime(np.array(["", "2022-01-03", "2022-02-07", "2022-04-20"])[TIMES])
AWAY = Box((-30, -30), (30, 30))
OUTLINE = shapely.box(-77.14, 38.82, -76.85, 39.0) - shapely.box(-77.01, 38.89, -76.99, 38.91)
PLACES = [[0.5, 0.5], [-1.0, 2.0], [2.5, -0.3]]


@pytest.fixture(scope="module")
def city():
    return kde_over_time(DEGREES, DATES, domain=OUTLINE, every="month", outside="drop")


@pytest.fixture(scope="module")
def wide():
    return kde_over_time(POINTS, TIMES, domain=AWAY)


def scipys(time):
    own = POINTS[time == TIMES]
    return gaussian_kde(own.T)


def test_every_time_is_scipys_estimate(wide):
    found = densities.density(wide, PLACES)["mean"]
    assert found.dims == ("time", "point")
    theirs = [scipys(t).pdf(np.transpose(PLACES)) for t in (1, 2, 3)]
    np.testing.assert_allclose(found, theirs, rtol=1e-5)
    near = densities.density(kde_over_time(POINTS, TIMES), PLACES)["mean"]
    # The last ring reaches beyond the box around the points, and what that cuts off is given back.
    assert (near[2] / theirs[2] > 1.01).all()


def test_it_integrates_to_one_over_a_polygon():
    ring = Region.of(shapely.box(-4, -4, 3, 4) - shapely.Point(0, 0).buffer(1.5))
    kde = kde_over_time(POINTS, TIMES, domain=ring, outside="drop")
    grid = densities.density(kde, size=400)["mean"]
    cell = math.prod(float(np.diff(grid[name])[0]) for name in ("x1", "x2"))
    np.testing.assert_allclose(grid.sum(("x1", "x2")) * cell, 1, atol=5e-3)
    assert (np.exp(kde.estimate.log_mass) < 0.9).all()  # it would not without being normalized
    assert (np.isnan(grid[0]) == ~inside(ring, grid)).all()
    assert densities.density(kde, [[0.0, 0.0], [9.0, 9.0]])["mean"].to_numpy().max() == 0


def inside(region, grid):
    x, y = np.meshgrid(grid["x1"], grid["x2"])
    return region.contains(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)


def test_degrees_give_densities_per_square_kilometer(city):
    kept = shapely.contains_xy(OUTLINE, *DEGREES.to_numpy().T)
    around = Projection.around(DEGREES)
    rings = [np.asarray(ring.coords)[:-1] for ring in (OUTLINE.exterior, *OUTLINE.interiors)]
    region = Region(tuple(around.forward(ring) for ring in rings))
    by_hand = TimewiseKDE.of(around.forward(DEGREES[kept]), TIMES[kept], region)
    where = [[-76.95, 38.95], [-77.1, 38.87]]
    found = densities.density(city, where)["mean"]
    assert found.attrs["units"] == "per square kilometer"
    # Orders of corners differ, and with them the last digits of the mass.
    wanted = by_hand.density(around.forward(where))
    np.testing.assert_allclose(found.isel(time=[0, 1, 3]), wanted, rtol=1e-6)
    assert city.dropped == int(np.sum(~kept)) > 0
    grid = densities.density(city, size=300)["mean"]
    lon, lat = grid["lon"].to_numpy(), grid["lat"].to_numpy()
    step = np.radians(lon[1] - lon[0]) * np.radians(lat[1] - lat[0])
    area = xr.DataArray(6371.0088**2 * np.cos(np.radians(lat)) * step, dims="lat")
    np.testing.assert_allclose((grid * area).sum(("lon", "lat")), 1, atol=5e-3)
    turned = kde_over_time(DEGREES[["lat", "lon"]], DATES, domain=OUTLINE, every="month",
                           outside="drop")  # fmt: skip
    xr.testing.assert_identical(densities.density(turned, where)["mean"], found)


CASES = {
    "a plane": (POINTS, TIMES, {}),
    "a polygon in degrees": (
        DEGREES,
        DATES,
        {"domain": OUTLINE, "every": "month", "outside": "drop"},
    ),
    "a line": (POINTS[:, 0], np.array(["", "a", "b", "c"])[TIMES], {}),
    "a room": (np.column_stack([POINTS, POINTS[::-1, 0]]), TIMES / 4, {"every": 0.5}),
    "odd names": (pd.DataFrame(POINTS, columns=["time", "mean"]), TIMES, {}),
}


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize(("points", "times", "options"), CASES.values(), ids=CASES)
def test_results_are_laid_out_like_those_of_a_fit(points, times, options):
    kde = kde_over_time(points, times, **options)
    quick = {"draws": 4, "tune": 2, "chains": 1, "cores": 1, "seed": 1, "basis": 4}
    posterior = ncb.fit_density_over_time(points, times, progress=False, **quick, **options)
    rows = [k for k in range(len(points)) if k % 20 == 0]
    some = points.iloc[rows] if isinstance(points, pd.DataFrame) else points[rows]
    for ask in (
        lambda density: densities.density(density, size=7),
        lambda density: densities.density(density, some),
        lambda density: densities.density(density, times=[-1, 0], size=5),
        lambda density: densities.change(density, 0, -1, size=7),
        lambda density: densities.change(density, 0, -1, some),
    ):
        ours, theirs = ask(kde), ask(posterior)
        assert list(ours.data_vars) == ["mean"]
        assert ours["mean"].dims == theirs["mean"].dims
        xr.testing.assert_identical(
            ours["mean"].coords.to_dataset(), theirs["mean"].coords.to_dataset()
        )
        np.testing.assert_array_equal(np.isnan(ours["mean"]), np.isnan(theirs["mean"]))
        assert ours["mean"].attrs["units"] == theirs["mean"].attrs["units"]
        facts = {name for name in theirs.attrs if name not in ("interval", "level", "draws")}
        assert ours.attrs == {name: theirs.attrs[name] for name in facts}
    held, when = some, np.asarray(times)[rows]
    if "domain" in options:
        held, when = some.iloc[1:3], when[1:3]
    elif options:
        when = np.floor(when / 0.5) * 0.5
    ours, theirs = (scores.log_score(each, held, times=when) for each in (kde, posterior))
    for name in ("by_time", "pointwise"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.dims == other.dims
        xr.testing.assert_identical(one.coords.to_dataset(), other.coords.to_dataset())
    assert list(posterior.theta["group"].to_numpy()) == list(kde.labels)


def test_what_the_numbers_are_called(wide):
    found = densities.density(wide, PLACES)
    assert found["mean"].attrs == {"long_name": "kernel density estimate", "units": "per unit area"}
    change = densities.change(wide, 1, 3, PLACES)
    words = "kernel density estimate, change of the density from 1 to 3"
    assert change["mean"].attrs["long_name"] == words
    assert (change.attrs["start"], change.attrs["end"]) == ("1", "3")
    mean = found["mean"].to_numpy()
    np.testing.assert_array_equal(change["mean"], mean[2] - mean[0])
    score = scores.log_score(wide, PLACES, times=[1, 2, 3])
    assert score.pointwise.attrs["long_name"] == "log of the kernel density estimate"


def test_log_score_is_the_log_density(wide):
    when = [3, 1, 3]
    found = scores.log_score(wide, PLACES, times=when)
    wanted = [scipys(t).logpdf(x)[0] for t, x in zip(when, PLACES, strict=True)]
    np.testing.assert_allclose(found.pointwise, wanted, atol=1e-5)
    assert found.total == pytest.approx(sum(wanted), abs=1e-4)
    assert found.mean == pytest.approx(found.total / 3)
    np.testing.assert_allclose(found.by_time, [wanted[1], (wanted[0] + wanted[2]) / 2], atol=1e-5)
    # The density is too small for a number here, and its log is not.
    far = scores.log_score(wide, [[29.0, 29.0]], times=[1])
    assert densities.density(wide, [[29.0, 29.0]], times=[1])["mean"].item() == 0
    theirs = scipys(1).logpdf([29.0, 29.0])[0]
    assert far.total == pytest.approx(theirs, rel=1e-6)
    with pytest.raises(ncb.InputError, match="1 of 1 outside, the first in row 0"):
        scores.log_score(wide, [[31.0, 0.0]], times=[1])
    with pytest.raises(ncb.InputError, match="among those that were fitted, '1' to '3', got 4"):
        scores.log_score(wide, [[0.0, 0.0]], times=[4])


def test_a_period_without_points_takes_the_estimate_of_all(city):
    assert city.labels == ("2022-01", "2022-02", "2022-03", "2022-04")
    rows = np.concatenate(list(city.points.values()))
    pooled = TimewiseKDE.of(rows, np.zeros(len(rows)), city.space)
    where = np.array([[-76.95, 38.95], [-77.1, 38.87]])
    found = densities.density(city, where, times=["2022-03"])["mean"][0]
    np.testing.assert_allclose(found, pooled.density(city.projection.forward(where))[0], rtol=1e-10)
    assert len(city.points["2022-03"]) == 0


def test_the_order_of_the_rows_does_not_matter(seed):
    order = np.random.default_rng(seed).permutation(len(POINTS))
    one = kde_over_time(DEGREES, TIMES)
    other = kde_over_time(DEGREES.iloc[order], TIMES[order])
    np.testing.assert_allclose(
        densities.density(one, size=9)["mean"], densities.density(other, size=9)["mean"], rtol=1e-9
    )


def test_it_says_what_it_is(city, wide):
    assert repr(wide) == "<KDEOverTime of 120 points: axes x1, x2, times 3 (1 to 3)>"
    assert repr(kde_over_time(POINTS, ["May"] * 120)).endswith("times 1 (May)>")
    assert repr(city) == (
        f"<KDEOverTime of {120 - city.dropped} points: axes lon, lat, "
        "times 4 (2022-01 to 2022-04), 1 of them without points, "
        f"{city.dropped} points outside the domain dropped>"
    )
    assert isinstance(city, KDEOverTime)


def test_maps_can_be_taken_elsewhere(city, tmp_path):
    import rasterio

    data = densities.density(city, size=20)
    densities.to_geotiff(data, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.crs.to_epsg() == 4326
        assert file.descriptions == city.labels
        np.testing.assert_array_equal(file.read()[:, ::-1], data["mean"])
        assert file.tags()["units"] == "per square kilometer"
    densities.to_geojson(data, tmp_path / "map.geojson")
    assert json.loads((tmp_path / "map.geojson").read_text())["features"]
    densities.to_geojson(data, tmp_path / "cells.geojson", levels=None)
    cells = json.loads((tmp_path / "cells.geojson").read_text())["features"]
    assert set(cells[0]["properties"]) == {"time", "mean"}
    densities.to_geotiff(densities.change(city, 0, 3, size=20), tmp_path / "change.tif")
    data.to_netcdf(tmp_path / "map.nc", engine="h5netcdf")
    with pytest.raises(ncb.InputError, match="variable must be one of 'mean', got 'sd'"):
        densities.to_geojson(data, tmp_path / "map.geojson", variable="sd")


@pytest.mark.parametrize(
    ("name", "arguments"), [("density_draws", ()), ("exceedance", (0.1,)), ("forecast", ())]
)
def test_what_needs_draws_is_refused(wide, name, arguments):
    message = (
        rf"^densities.{name} needs the draws of a posterior, and a kernel density estimate has "
        "none: use densities.density, or fit the points by ncbayes.fit_density_over_time$"
    )
    with pytest.raises(ncb.InputError, match=message):
        getattr(densities, name)(wide, *arguments)
    with pytest.raises(ncb.InputError, match=rf"densities.{name} needs the posterior .*, got 3$"):
        getattr(densities, name)(3, *arguments)


LINE = np.column_stack([np.arange(9.0), 2 * np.arange(9.0)])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda kde: densities.density(kde.estimate),
            r"^densities.density needs the posterior .*, or what ncbayes.baselines.kde_over_time "
            r"returns, got TimewiseKDE\(",
        ),
        (lambda kde: scores.log_score(3, [[0.0, 0.0]], times=[1]), "kde_over_time returns, got 3"),
        (lambda kde: densities.change(kde, 2, 2), "start and end must be different times, got '2'"),
        (lambda kde: densities.density(kde, times=[7]), "each of times must be one of the 3 times"),
        (lambda kde: densities.density(kde, size=1), "size must be a whole number, 2 or more"),
        (lambda kde: densities.density(kde, draws=1), "draws must be a whole number, 2 or more"),
        (lambda kde: densities.density(kde, interval="sd"), 'interval must be "quantile", "hpd"'),
        (lambda kde: densities.density(kde, level=2), "level must be"),
        (lambda kde: densities.density(kde, [[1.0]]), r"must have 2 columns \(densities.density\)"),
        (
            lambda kde: kde_over_time(LINE, [1] * 9),
            "points must have at least 3 rows that vary in every direction, got 9",
        ),
    ],
)
def test_errors_say_what_was_wrong(wide, ask, message):
    with pytest.raises(ncb.InputError, match=message) as caught:
        ask(wide)
    assert "\n" not in str(caught.value)
