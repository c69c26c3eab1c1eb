"""Densities over time, end to end: frames, dates and polygons, runs, and what is refused."""

import json
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr
from scipy import stats

import ncbayes as ncb
from ncbayes import densities, metrics, scores, sites
from ncbayes.baselines import TimewiseKDE
from ncbayes.fields import stored_field
from ncbayes.models import RadialBasis
from ncbayes.noise import Adaptive, KernelDensity, Mixture, Restricted, Uniform
from ncbayes.priors import Normal, RandomWalk
from ncbayes.spaces import Box, Region

pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
OPTIONS = {"chains": 1, "cores": 1, "seed": 1, "progress": False, "basis": 5}
QUICK = {"draws": 6, "tune": 2, **OPTIONS}
SHORT = {"draws": 100, "tune": 50, **OPTIONS}
RING = ncb.datasets.growing_ring(3, 30, seed=5)
POINTS, TIMES = RING.points, RING.times
DEGREES = POINTS * [0.05, 0.03] + [-77.0, 38.9]
SQUARE = [[-6.0, -6.0], [6.0, -6.0], [6.0, 6.0], [-6.0, 6.0]]
CITY = [[-78.0, 38.0], [-76.0, 38.0], [-76.0, 40.0], [-78.0, 40.0]]


def fit(points=POINTS, times=TIMES, **options):
    return ncb.fit_density_over_time(points, times, **{**QUICK, **options})


def common_noise(space):
    return Mixture((KernelDensity.match(POINTS, space), Uniform(space)), (0.9, 0.1))


def assert_same(one, *others):
    for other in others:
        for name, values in one.data["posterior"].data_vars.items():
            np.testing.assert_array_equal(values, other.data["posterior"][name], err_msg=name)
        xr.testing.assert_equal(one.data["field"].to_dataset(), other.data["field"].to_dataset())


def differ(one, other):
    return not np.array_equal(one.theta, other.theta)


@pytest.fixture(scope="module")
def plain():
    return fit()


def field_of(posterior):
    return stored_field(posterior.data, "here")


def test_longitude_and_latitude_are_known_by_name_in_either_order():
    frame = pd.DataFrame(DEGREES, columns=["lon", "lat"])
    named, turned = fit(frame), fit(frame[["lat", "lon"]])
    assert_same(named, turned)
    assert field_of(named).axes == ("lon", "lat")
    array = fit(DEGREES, coordinates="degrees")
    np.testing.assert_array_equal(array.theta, named.theta)
    assert field_of(array).axes == ("longitude", "latitude")
    where = pd.DataFrame({"lat": [38.9, 38.95], "lon": [-77.0, -77.05]})
    one, other = densities.density(named, where), densities.density(array, where[["lon", "lat"]])
    np.testing.assert_array_equal(one["mean"], other["mean"])
    assert one["mean"].attrs["units"] == "per square kilometer"
    flat = fit(frame, coordinates="plane")
    assert field_of(flat).projection is None
    assert densities.density(flat, where)["mean"].attrs["units"] == "per unit area"


@pytest.mark.parametrize("names", [(0, 1), ("low", "mean"), ("x", "x")], ids=str)
def test_columns_may_have_any_names(names, tmp_path):
    frame = pd.DataFrame(POINTS, columns=names)
    posterior = fit(frame)
    for found in (
        densities.density(posterior, size=4),
        densities.density(posterior, frame[:3]),
        densities.change(posterior, "1", "2", size=4),
        densities.exceedance(posterior, 0.1, size=4),
        densities.density_draws(posterior, size=4),
        scores.log_score(posterior, frame[:3], times=TIMES[:3]).pointwise,
        densities.forecast(posterior, size=4),
    ):
        found.to_netcdf(tmp_path / "file.nc", engine="h5netcdf")
        assert set(sites.axis_names(field_of(posterior))) <= set(found.coords)


def test_points_on_both_sides_of_the_date_line(seed):
    rng = np.random.default_rng(seed)
    east = np.column_stack([rng.normal(180, 1, 60), rng.normal(0, 1, 60)])
    wrapped = np.column_stack(
        [np.where(east[:, 0] > 180, east[:, 0] - 360, east[:, 0]), east[:, 1]]
    )
    times = np.repeat([1, 2], 30)
    parts = shapely.MultiPolygon([shapely.box(172, -8, 180, 8), shapely.box(-180, -8, -172, 8)])
    for domain in (None, Box((172, -8), (188, 8)), parts):
        one, other = (
            fit(points, times, coordinates="degrees", domain=domain) for points in (east, wrapped)
        )
        np.testing.assert_allclose(one.theta, other.theta, rtol=1e-6, atol=1e-6)
        sides = field_of(one).model.space.bounds
        assert np.ptp(sides, axis=0).max() < 2500  # km


@pytest.mark.parametrize("columns", [1, 3])
def test_one_and_three_dimensions(columns, seed):
    points = np.random.default_rng(seed).normal(size=(60, columns))
    posterior = fit(points[:, 0] if columns == 1 else points, np.repeat([1, 2], 30))
    grid = densities.density(posterior, size=20)
    cell = math.prod(float(np.diff(grid[name])[0]) for name in field_of(posterior).axes)
    total = grid["mean"].sum(field_of(posterior).axes) * cell
    np.testing.assert_allclose(total, 1, atol=0.02)


def test_a_polygon_comes_in_many_forms(tmp_path):
    path = tmp_path / "outline.geojson"
    polygon = shapely.Polygon(SQUARE)
    geojson = json.loads(shapely.to_geojson(polygon))
    path.write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": geojson}))
    forms = (polygon, geojson, str(path), path, SQUARE, Region.of(SQUARE))
    # GeoJSON with such numbers would be taken as degrees.
    first, *others = (fit(domain=form, coordinates="plane") for form in forms)
    assert_same(first, *others)
    assert isinstance(field_of(first).model.space, Region)
    found = densities.density(first, [[0.0, 0.0], [7.0, 0.0]])["mean"]
    assert (found[:, 0] > 0).all()
    assert (found[:, 1] == 0).all()


def test_a_box_and_the_box_around_the_points(plain):
    low, high = POINTS.min(axis=0), POINTS.max(axis=0)
    margin = 0.1 * (high - low)
    assert_same(plain, fit(domain=Box(low - margin, high + margin)))
    wide = fit(domain=Box((-6, -6), (6, 6)))
    assert field_of(wide).model.space == Box((-6, -6), (6, 6))


def test_points_outside_the_domain_are_named_or_dropped():
    small = Box((-3, -3), (3, 3))
    inside = small.contains(POINTS)
    first, count = int(np.argmin(inside)), int((~inside).sum())
    message = (
        rf"^{count} of 90 points lie outside the domain, the first in row {first} \(counted from "
        r'0\) at \(.*\): widen the domain, or pass outside="drop"$'
    )
    with pytest.raises(ncb.InputError, match=message):
        fit(domain=small)
    dropped = fit(domain=small, outside="drop")
    assert field_of(dropped).dropped == count
    kept = fit(POINTS[inside], TIMES[inside], domain=small)
    assert field_of(kept).dropped == 0
    np.testing.assert_array_equal(dropped.theta, kept.theta)


def test_a_time_whose_points_were_all_dropped_is_still_there():
    moved = np.where((TIMES == 2)[:, None], POINTS + 100, POINTS)
    posterior = fit(moved, domain=SQUARE, outside="drop")
    assert posterior.theta["group"].to_numpy().tolist() == ["1", "2", "3"]
    assert np.isfinite(posterior.theta).all()


def test_a_domain_much_wider_than_the_points():
    posterior = fit(DEGREES, coordinates="degrees", domain=shapely.box(-100, 25, -60, 50))
    assert np.isfinite(posterior.theta).all()


def test_mass_does_not_leak_to_where_no_points_are(seed):
    points = np.random.default_rng(seed).normal(size=(200, 2))
    space, line = Box((-100, -100), (100, 100)), np.linspace(-4, 4, 42)[1:] - 4 / 41
    near = np.stack(np.meshgrid(line, line)).reshape(2, -1).T

    def mass(noise):
        posterior = fit(points, np.ones(200), domain=space, noise=noise)
        found = densities.density_draws(posterior, near)
        return float(found.mean()) * 64

    assert mass("common") > 0.85
    assert mass(KernelDensity.match(points, space)) < 0.7  # without noise anywhere


def test_a_time_without_points_and_nothing_that_carries_it():
    labels = pd.Categorical(np.array(["", "a", "b", "d"])[TIMES], categories=list("abcd"))
    for options in ({"prior": ncb.priors.Normal(1.0)}, {"noise": ncb.noise.Fresh()}):
        assert np.isfinite(fit(times=labels, **options).theta).all()


def walk_scores(posterior, group, batches=20):
    """Batch means of ``(theta_t - its neighbours' mean)^2 / (lambda / 2)``, one where no data are.

    Given its neighbours, theta_t of a random walk is N(their mean, lambda / 2).
    """
    theta = posterior.theta.to_numpy()[0]
    variance = posterior.data["posterior"]["theta.variance"].to_numpy()[0]
    away = theta[:, group] - (theta[:, group - 1] + theta[:, group + 1]) / 2
    squares = np.mean(away**2 / (variance / 2), axis=1)
    means = squares.reshape(batches, -1).mean(axis=1)
    return (means.mean() - 1) / (means.std(ddof=1) / math.sqrt(batches))


@pytest.mark.slow
def test_a_month_without_points_is_carried_by_its_neighbours(seed):
    rng = np.random.default_rng(seed)
    months = ["2022-01", "2022-03", "2022-04", "2022-05"]
    middles = {"2022-04": 2.0}  # the points of April lie elsewhere
    points = np.concatenate([rng.normal(middles.get(m, -2.0), 0.7, (80, 2)) for m in months])
    times = pd.to_datetime(np.repeat(months, 80)) + pd.to_timedelta(rng.integers(0, 28, 320), "D")
    options = {**SHORT, "draws": 400, "seed": seed}
    posterior = ncb.fit_density_over_time(points, times, every="month", **options)
    labels = posterior.theta["group"].to_numpy().tolist()
    assert labels == ["2022-01", "2022-02", "2022-03", "2022-04", "2022-05"]
    limit = stats.t.isf(5e-7, 19)
    assert abs(walk_scores(posterior, 1)) < limit
    assert abs(walk_scores(posterior, 3)) > limit  # April has points, and what they say
    near = densities.density(posterior, [[-2.0, -2.0], [-1.5, -2.0], [-2.0, -1.5]], level=0.98)
    before, empty, after = (near.isel(time=k) for k in range(3))
    assert (empty["sd"] > np.maximum(before["sd"], after["sd"])).all()
    for neighbour in (before, after):
        assert (empty["low"] < neighbour["mean"]).all()
        assert (neighbour["mean"] < empty["high"]).all()


@pytest.mark.parametrize("categories", [["z", "a", "b"], ["a", "z", "b"], ["a", "b", "z"]])
def test_a_first_or_last_time_without_points(categories):
    times = pd.Categorical(np.where(TIMES == 1, "a", "b"), categories=categories)
    posterior = fit(times=times, noise="per_time")
    assert posterior.theta["group"].to_numpy().tolist() == categories
    assert np.isfinite(densities.density(posterior, size=5)["sd"]).all()


@pytest.mark.parametrize("prior", [None, Normal(2.0)], ids=["walk", "normal"])
def test_one_time_is_the_static_model(prior, seed):
    """The same draws as those of ``fit`` with the same basis, noise and prior."""
    space = Box((-6, -6), (6, 6))
    options = {**SHORT, "seed": seed, "prior": prior}
    moving = ncb.fit_density_over_time(POINTS, ["May"] * 90, domain=space, **options)
    model = RadialBasis.match(POINTS, space, options.pop("basis"))
    noise = common_noise(space)
    options["prior"] = prior or RandomWalk(initial="separate")
    static = ncb.fit(model, POINTS, noise=noise, noise_ratio=5.0, **options)
    np.testing.assert_array_equal(moving.theta, static.theta)
    np.testing.assert_array_equal(moving.log_z, static.log_z)
    one, other = (densities.density(each, size=8)["mean"] for each in (moving, static))
    np.testing.assert_array_equal(one, other)


def test_the_order_of_the_rows_does_not_matter(seed):
    order = np.random.default_rng(seed).permutation(90)
    mixed = order[np.argsort(TIMES[order], kind="stable")]
    for points, options in (
        (POINTS, {}),
        (DEGREES, {"coordinates": "degrees", "noise": "per_time"}),
    ):
        assert_same(fit(points[order], TIMES[order], **options),
                    fit(points[mixed], TIMES[mixed], **options))  # fmt: skip


def test_unequal_times_reach_the_prior(plain):
    spread = np.array([0, 1, 2, 5])[TIMES]
    unequal = fit(times=spread)
    assert_same(unequal, fit(times=spread, prior=RandomWalk(times=(1, 2, 5), initial="separate")))
    assert differ(unequal, plain)
    np.testing.assert_array_equal(
        plain.theta, fit(times=np.array(["", "a", "b", "c"])[TIMES]).theta
    )


REPEATED = {
    "rounded": np.round(POINTS),
    "one time at one point": np.where((TIMES == 2)[:, None], 0.3, POINTS),
    "two points in all": np.repeat([[0.0, 0.0], [1.0, 1.0]], 45, axis=0),
    "on a line": np.column_stack([POINTS[:, 0], 2 * POINTS[:, 0]]),
    "on a line at one time": np.where((TIMES == 2)[:, None], POINTS[:, :1], POINTS),
}


@pytest.mark.parametrize("points", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("domain", [None, 3 * np.array(SQUARE)], ids=["box", "region"])
def test_points_may_repeat(points, domain):
    posterior = fit(points, noise="per_time", domain=domain)
    assert np.isfinite(posterior.theta).all()
    if domain is None:
        found = densities.density(posterior, points[:3])
        assert (found["mean"] > 0).all()
        assert np.isfinite(found["sd"]).all()


def test_one_point_a_time_and_two_points_in_all():
    assert np.isfinite(fit(POINTS[:6], range(6), noise="per_time").theta).all()
    assert np.isfinite(fit(POINTS[:2], [1, 2]).theta).all()


@pytest.mark.slow
def test_words_for_noise(plain):
    space, n = field_of(plain).model.space, len(POINTS)
    common = common_noise(space)
    np.testing.assert_array_equal(plain.theta, fit(noise=common).theta)
    assert plain.data.attrs["noise_ratio"] == 5
    adaptive = fit(noise="adaptive")
    assert adaptive.data.attrs["schedule"] == "Adaptive"
    np.testing.assert_array_equal(
        adaptive.theta, fit(noise=Adaptive(noise=common, alpha=0.2)).theta
    )
    assert fit(noise="auto").data.attrs["schedule"] == "Auto"
    assert fit(noise="auto", noise_ratio=2.0).data.attrs["noise_ratio"] == 2
    assert np.isfinite(fit(noise="matched", noise_ratio=1.0).theta).all()
    assert len(fit(noise_ratio=0.5).data["noise"]["row_group"]) == n // 2


def test_noise_of_each_time_where_it_has_points_enough():
    counts = {"9": 9, "10": 10, "same": 12, "none": 0, "40": 40}
    rows = np.arange(71)
    labels = pd.Categorical(np.repeat(list(counts), list(counts.values())), categories=list(counts))
    points = np.where((labels == "same")[:, None], 0.5, POINTS[rows])
    noises = fit(points, labels, noise="per_time").noises
    sizes = {label: len(np.asarray(noise.parts[0].points)) for label, noise in noises.items()}
    assert sizes == {"9": 71, "10": 10, "same": 71, "none": 71, "40": 40}
    assert noises["9"] is noises["none"]
    within = fit(points, labels, noise="per_time", domain=SQUARE).noises
    assert all(isinstance(noise.parts[0], Restricted) for noise in within.values())


def test_the_same_seed_gives_the_same_draws(plain):
    assert_same(plain, fit())
    assert_same(fit(seed=np.random.default_rng(3)), fit(seed=np.random.default_rng(3)))
    assert differ(plain, fit(seed=2))


def test_a_resumed_run_equals_an_uninterrupted_one(resumed, tmp_path):
    times = np.array(["", "2022-01-03", "2022-02-07", "2022-04-20"])[TIMES]
    options = {"every": "month", "coordinates": "degrees", "domain": CITY, "draws": 20, "tune": 10}
    whole = fit(DEGREES, times, **options)
    for posterior in resumed(partial(fit, DEGREES, times, **options), (1, 3, 20)):
        assert_same(posterior, whole)
    with pytest.raises(ncb.InputError, match="checkpoint"):
        fit(DEGREES + 0.01, times, checkpoint=tmp_path / "20", **options)


def test_files_hold_all_that_read_outs_need(tmp_path):
    times = np.array(["", "2022-01-03", "2022-02-07", "2022-04-20"])[TIMES]
    small = shapely.box(-77.2, 38.8, -76.9, 39.0) - shapely.box(-77.01, 38.89, -76.99, 38.91)
    posterior = fit(
        DEGREES, times, every="month", coordinates="degrees", domain=small, outside="drop"
    )
    posterior.save(tmp_path / "file.nc")
    loaded = ncb.load(tmp_path / "file.nc")
    one, other = field_of(posterior), field_of(loaded)
    assert one.dropped == other.dropped > 0
    assert one.projection == other.projection
    assert one.model.space == other.model.space
    for ask in (
        lambda p: densities.density(p, size=12),
        lambda p: densities.density(p, DEGREES[:5], interval="hpd"),
        lambda p: densities.change(p, "2022-01", "2022-03", size=12),
        lambda p: densities.exceedance(p, 0.01, size=12),
    ):
        xr.testing.assert_identical(ask(posterior), ask(loaded))


def test_reports_and_more_draws_where_a_month_is_empty():
    times = np.array(["", "2022-01-03", "2022-02-07", "2022-04-20"])[TIMES]
    posterior = fit(times=times, every="month")
    assert len(posterior.summary())
    assert posterior.noise_report() is not None
    assert_same(posterior.extend(4), fit(times=times, every="month", draws=10))


@pytest.mark.slow
def test_a_growing_ring_is_recovered(seed):
    """Better than a kernel estimate a time; and not if times are shuffled."""
    ring = ncb.datasets.growing_ring(6, 60, seed=seed)
    x = metrics.evaluation_points(ring.points, seed=seed)
    volume = math.exp(metrics.rectangle(ring.points).log_volume)
    truth = np.array([ring.density(t, x) for t in range(1, 7)])

    def error(times):
        options = {**OPTIONS, "basis": 20, "draws": 150, "tune": 100, "seed": seed}
        posterior = ncb.fit_density_over_time(ring.points, times, **options)
        found = densities.density(posterior, x)["mean"].to_numpy()
        return metrics.absolute_error(found, truth, volume)

    kernels = TimewiseKDE.of(ring.points, ring.times).density(x)
    wanted = 0.8 * metrics.absolute_error(kernels, truth, volume)
    assert error(ring.times) < wanted
    assert error(np.random.default_rng(seed).permutation(ring.times)) > wanted


# What is wrong with points, times and domain is in test_events.py.
REFUSED = {
    "one place in a box": (np.ones((90, 2)), {"domain": SQUARE}, "at least 2 different points"),
    "a constant column in a box": (
        pd.DataFrame({"x": POINTS[:, 0], "z": 1.0}),
        {"domain": SQUARE},
        "data must vary to match noise to it, got a constant colu",
    ),
    "times that almost coincide": (
        POINTS,
        {"times": np.array([0, 1, 1 + 1e-14, 2e3, 9e3])[TIMES]},
        r"RandomWalk\(times=...\) must be at least 1e-12 median gaps",
    ),
    "basis": (POINTS, {"basis": 1}, "must be a whole number of at least 2, got 1"),
    "bandwidth": (POINTS, {"bandwidth": -1}, "must be a positive number, a distance in the units"),
    "kernel": (POINTS, {"kernel": ["gaussian"]}, 'must be "exponential" or "gaussian", got'),
    "noise": (
        POINTS,
        {"noise": "N1"},
        "noise must be one of 'common', 'per_time', 'adaptive', 'auto'"
        ", 'matched', or what ncbayes.fit takes, got 'N1'",
    ),
    "no noise": (POINTS, {"noise": None}, 'noise must be "auto" .* got None'),
    "noise of other groups": (
        POINTS,
        {"noise": {"1": ncb.noise.Normal.match(POINTS)}},
        r"noise must name the groups of the data, \['1', '2', '3'\], got",
    ),
    "noise of another dimension": (
        POINTS,
        {"noise": ncb.noise.Uniform(Box(0, 1))},
        "of dimension 2",
    ),
    "noise_ratio": (POINTS, {"noise_ratio": 0}, "noise_ratio must be a positive number"),
    "prior": (POINTS, {"prior": "walk"}, "the prior of theta must be one such as"),
    "a prior of other times": (
        POINTS,
        {"prior": RandomWalk(times=(1, 2))},
        "for each of the 3 group",
    ),
    "engine": (POINTS, {"engine": "metropolis"}, "engine must be one of 'auto', 'exact', "),
    "an engine without noise": (
        POINTS,
        {"engine": "hyvarinen"},
        'engine must be "auto", "gibbs" or '
        "one such as .*Gibbs.*: densities over time are fitted by contrast "
        "with noise, which 'hyvarinen' does not use",
    ),
    "a word without noise": (POINTS, {"engine": "exact"}, "noise, which 'exact' does not use"),
    "another without noise": (POINTS, {"engine": ncb.engines.Hyvarinen()}, "which Hyvarinen"),
    "draws": (POINTS, {"draws": 0}, "draws must be a whole number, 1 or more, got 0"),
    "seed": (POINTS, {"seed": -1}, "seed must be a whole number, 0 or more"),
    "checkpoint": (POINTS, {"checkpoint": 3}, "checkpoint must be the path of a folder, got 3"),
}


@pytest.mark.parametrize(("points", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_errors_say_what_was_wrong(points, options, message):
    with pytest.raises(ncb.InputError, match=message) as caught:
        fit(points, **options)
    assert "\n" not in str(caught.value)
