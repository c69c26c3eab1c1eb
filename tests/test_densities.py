"""Read-outs of densities, checked by quadrature and by hand on posteriors made by hand."""

import json
import math
import sys

import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr
from scipy import integrate, stats

import ncbayes as ncb
from ncbayes import densities, integration, readout, scores, sites, stamps
from ncbayes.contrast import statistic_names
from ncbayes.fields import Field
from ncbayes.models import RadialBasis
from ncbayes.spaces import Box, Projection, Region

# Two-sided false alarm rate 1e-6.
Z = stats.norm.isf(5e-7)
SQUARE = Region((np.array([[0, 0], [4, 0], [4, 3], [0, 3]]), np.array([[1, 1], [2, 1], [2, 2.5]])))
MONTHS = np.array(["2022-01", "2022-02", "2022-03"], "datetime64[ns]")
MONTH_LABELS = ("2022-01", "2022-02", "2022-03")


def by_hand(field, theta, labels=("all",), **scales):
    """A posterior with these draws, (draw, group, statistic), and scales (draw, ...)."""
    values = {"theta": (("chain", "draw", "group", "statistic"), np.asarray(theta)[None])}
    for name, draws in scales.items():
        dims = ("chain", "draw", f"{name}_dim_0")
        values[name.replace("_", ".", 1)] = (dims, np.asarray(draws)[None])
    names = statistic_names(field.model)
    tree = {
        "posterior": xr.Dataset(values, coords={"group": list(labels), "statistic": names}),
        "field": field.dataset(),
    }
    tree = xr.DataTree.from_dict(tree)
    tree.attrs = {"model": repr(field.model), "ncbayes_version": ncb.__version__}
    return ncb.Posterior(tree)


def plane(space=None, kernel="exponential", **options):
    space = Box((0, 0), (4, 3)) if space is None else space
    centers = np.array([[0.7, 0.8], [2.5, 1.9], [3.3, 0.6]])
    return Field(RadialBasis(centers, 1.3, space, kernel), ("x", "y"), **options)


def line(**options):
    model = RadialBasis([[0.3], [1.1], [1.6]], 0.4, Box([0], [2]), kernel="gaussian")
    return Field(model, ("x",), **options)


def some_theta(seed, draws=6, groups=1, count=3, scale=2.0):
    return scale * np.random.default_rng(seed).normal(size=(draws, groups, count))


@pytest.fixture(scope="module")
def washington():
    """A field in degrees over a polygon, three months."""
    around = Projection(-77.0, 38.9)
    corners = np.array([[-77.1, 38.9], [-77.0, 38.8], [-76.9, 38.9], [-77.0, 39.0]])
    region = Region((around.forward(corners),))
    model = RadialBasis([[0.0, 0.0], [3.0, 2.0], [-4.0, 1.0]], 5.0, region)
    field = Field(model, ("lon", "lat"), MONTHS, around)
    return by_hand(field, some_theta(3, 40, 3), MONTH_LABELS)


def log_normalizers(model, theta):
    return integration.log_integrals(model, integration.fine_nodes(model, theta), theta)


@pytest.mark.parametrize(
    ("field", "size"),
    [(line(), 2000), (plane(), 200), (plane(SQUARE), 400)],
    ids=["line", "box", "region"],
)
def test_every_draw_integrates_to_one(field, size, seed):
    theta = some_theta(seed, groups=2)
    found = densities.density_draws(by_hand(field, theta, ("a", "b")), size=size)
    cell = math.prod(float(np.diff(found[name])[0]) for name in field.axes)
    assert found.dims == ("sample", "time", *field.axes[::-1])
    # Cells that the border cuts count as a whole or not at all here.
    near = 1e-3 if not isinstance(field.model.space, Region) else 5e-3
    np.testing.assert_allclose(found.sum(found.dims[2:]) * cell, 1, atol=near)


def test_a_box_of_three_dimensions_and_one_of_five(seed):
    rng = np.random.default_rng(seed)
    for dimension, near in ((3, 1e-3), (5, 2e-2)):
        box = Box([0] * dimension, [1] * dimension)
        model = RadialBasis(rng.uniform(size=(4, dimension)), 0.8, box, kernel="gaussian")
        field = Field(model, tuple("abcde"[:dimension]))
        posterior = by_hand(field, rng.normal(size=(5, 1, 4)))
        points = model.space.uniform(200_000, rng)
        found = densities.density_draws(posterior, points).mean("point")
        spread = densities.density_draws(posterior, points).std("point") / math.sqrt(len(points))
        assert (np.abs(found - 1) < Z * spread + near).all()
    with pytest.raises(ncb.InputError, match="a grid in at most 3 dimensions, and this density"):
        densities.density(posterior)


def test_a_gaussian_basis_on_a_line_is_quad(seed):
    field, theta = line(), some_theta(seed)
    x = np.array([[0.0], [0.71], [2.0]])
    found = densities.density_draws(by_hand(field, theta), x).to_numpy()
    for draw, own in enumerate(theta[:, 0]):

        def unnormalized(u, own=own):
            return float(np.exp(field.model.statistics(np.array([[u]])) @ own)[0])

        total = integrate.quad(unnormalized, 0, 2, epsabs=1e-12)[0]
        wanted = [unnormalized(u) / total for u in x[:, 0]]
        np.testing.assert_allclose(found[draw, 0], wanted, rtol=1e-4)


def test_the_normalizer_of_a_plane_is_dblquad(seed):
    model, theta = plane().model, some_theta(seed, draws=2)[:, 0]
    got = log_normalizers(model, theta)
    for own, log_z in zip(theta, got, strict=True):

        def unnormalized(y, x, own=own):
            return math.exp((model.statistics(np.array([[x, y]])) @ own).item())

        total = integrate.dblquad(unnormalized, 0, 4, 0, 3, epsabs=1e-4, epsrel=1e-5)[0]
        assert log_z == pytest.approx(math.log(total), abs=5e-4)


def test_nodes_of_a_region_are_exact_for_planes():
    nodes = integration.nodes_of(SQUARE, 16)
    whole = shapely.Polygon(SQUARE.rings[0], [SQUARE.rings[1]])
    assert nodes.weights.sum() == pytest.approx(whole.area, rel=1e-12)
    middle = nodes.weights @ nodes.points / nodes.weights.sum()
    np.testing.assert_allclose(middle, whole.centroid.coords[0], rtol=1e-12)


def test_nodes_of_a_box_are_exact_for_parabolas():
    nodes = integration.nodes_of(Box((0, -1, 2), (4, 2, 3)), 12)
    x, y, z = nodes.points.T
    exact = (64 / 3) * (9 / 3) * 0.5
    assert nodes.weights @ (x**2 * y**2 * (z - 2)) == pytest.approx(exact, rel=1e-12)
    plain = nodes.weights.sum() / len(x)  # the midpoint rule, which is not
    assert np.sum(plain * x**2 * y**2 * (z - 2)) != pytest.approx(exact, rel=1e-3)


def test_combined_grids_of_a_region_are_better_than_the_finer_one():
    square, slope = Region.of([[0, 0], [1, 0], [1, 1], [0, 1]]), 3.0
    combined = integration.nodes_of(square, 32)
    finer, _ = integration._clipped(square, np.array([32, 32]))
    exact = math.expm1(slope) / slope
    errors = [abs(n.weights @ np.exp(slope * n.points[:, 0]) - exact) for n in (combined, finer)]
    assert errors[0] < 1e-2 * errors[1]


def realistic(seed):
    """Thirty centers, and theta as large as in fits of some hundred points."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(1, 0.3, (400, 2)), rng.normal(2.5, 0.4, (400, 2))])
    space = Region((np.array([[-0.5, -0.5], [4.5, 0], [4, 4.5], [-1, 4]]),))
    model = RadialBasis.match(points[space.contains(points)], space)
    theta = rng.normal(0, 1, (300, 30))
    return model, theta * (15 / np.linalg.norm(theta, axis=1).max())


def halved(model, theta, cells):
    """By how much log Z changes if the step is halved."""
    coarse, fine = (integration.nodes_of(model.space, count) for count in (cells, 2 * cells))
    found = integration.log_integrals(model, coarse, theta)
    return np.abs(integration.log_integrals(model, fine, theta) - found).max()


def test_halving_the_step_hardly_changes_the_normalizer(seed):
    model, theta = realistic(seed)
    chosen = integration.fine_nodes(model, theta)
    cells = integration.FIRST[2]
    while len(integration.nodes_of(model.space, cells).points) < len(chosen.points):
        cells *= 2
    assert halved(model, theta, cells) < 1e-3
    assert halved(model, theta, 8) > 1e-3  # the check sees a grid that is too coarse


def test_work_in_pieces_changes_nothing(seed, monkeypatch):
    field, theta = plane(SQUARE), some_theta(seed, draws=9, groups=2)
    posterior = by_hand(field, theta, ("a", "b"))
    whole = densities.density(posterior, size=12)
    monkeypatch.setattr(integration, "ROWS", 100)
    monkeypatch.setattr(integration, "COLUMNS", 5)
    monkeypatch.setattr(readout, "CHUNK", 70)
    xr.testing.assert_allclose(densities.density(posterior, size=12), whole, rtol=1e-12)


def test_a_density_too_sharp_for_any_grid_is_told(monkeypatch):
    monkeypatch.setitem(integration.MOST, 1, 1024)
    model = RadialBasis([[0.5], [0.2]], 1e-4, Box([0], [1]), kernel="gaussian")
    posterior = by_hand(Field(model, ("x",)), np.full((2, 1, 2), 12.0))
    with pytest.warns(ncb.FitWarning, match=r"its bandwidth of 0.0001 is finer than the finest"):
        densities.density(posterior, [[0.5]])
    model = RadialBasis([[0.5], [0.2]], 1e-2, Box([0], [1]))
    posterior = by_hand(Field(model, ("x",)), np.full((2, 1, 2), 200.0))
    with pytest.warns(ncb.FitWarning, match=r"too concentrated .* still changes by .* a smaller"):
        densities.density(posterior, [[0.5]])


def test_a_bump_in_a_wide_domain_does_not_fall_between_the_nodes():
    center, width = np.array([[301.3], [302.1]]), 1.0
    model = RadialBasis(center, width, Box([0], [10_000]), kernel="gaussian")
    found = log_normalizers(model, np.array([[12.0, 0.0]]))
    near = integrate.quad(lambda u: math.expm1(12 * math.exp(-((u - 301.3) ** 2) / 2)), 290, 313)
    assert found[0] == pytest.approx(math.log(10_000 + near[0]), abs=1e-3)


def test_summaries_are_those_of_the_draws(seed):
    posterior = by_hand(plane(), some_theta(seed, 30, 2), ("a", "b"))
    points = np.array([[1.0, 1.0], [3.9, 2.5]])
    draws = densities.density_draws(posterior, points).to_numpy()
    ends = {
        "quantile": np.quantile(draws, [0.1, 0.9], axis=0),
        "normal": draws.mean(0) + np.multiply.outer([-1, 1], 1.2815515655 * draws.std(0, ddof=1)),
    }
    for interval, (low, high) in ends.items():
        found = densities.density(posterior, points, interval=interval, level=0.8)
        np.testing.assert_allclose(found["mean"], draws.mean(0))
        np.testing.assert_allclose(found["sd"], draws.std(0, ddof=1))
        np.testing.assert_allclose(found["low"], low)
        np.testing.assert_allclose(found["high"], high)
        assert (found.attrs["interval"], found.attrs["level"]) == (interval, 0.8)
        assert found.attrs["draws"] == 30
        assert found["low"].attrs["long_name"].startswith(f"lower end of the 80 % {interval} inter")
    low, high = readout.shortest(draws, 0.8)
    found = densities.density(posterior, points, interval="hpd", level=0.8)
    np.testing.assert_array_equal([found["low"], found["high"]], [low, high])


def test_the_shortest_interval_is_brute_force(seed):
    values = np.random.default_rng(seed).exponential(size=(40, 3))
    low, high = readout.shortest(values, 0.9)
    for column in range(3):
        own = np.sort(values[:, column])
        widths = {own[k + 35] - own[k]: (own[k], own[k + 35]) for k in range(5)}
        assert (low[column], high[column]) == widths[min(widths)]
    known = np.array([0.0, 5.0, 5.1, 5.2, 5.3, 9.0, 20.0, 30.0, 40.0, 50.0])[:, None]
    assert [each.item() for each in readout.shortest(known, 0.5)] == [5.0, 9.0]


def test_change_and_exceedance_by_hand(seed):
    posterior = by_hand(plane(), some_theta(seed, 50, 3), ("a", "b", "c"))
    points = np.array([[1.0, 1.0], [3.9, 2.5], [2.0, 0.1]])
    draws = densities.density_draws(posterior, points).to_numpy()
    steps = draws[:, 0] - draws[:, 2]
    found = densities.change(posterior, "c", 0, points, level=0.5)
    np.testing.assert_allclose(found["mean"], steps.mean(0))
    np.testing.assert_allclose(found["low"], np.quantile(steps, 0.25, axis=0))
    np.testing.assert_allclose(found["probability"], (steps > 0).mean(0))
    assert (found.attrs["start"], found.attrs["end"]) == ("c", "a")
    over = densities.exceedance(posterior, 0.08, points)
    np.testing.assert_allclose(over, (draws > 0.08).mean(0))
    assert over.attrs["threshold"] == 0.08
    assert list(over["time"].to_numpy()) == ["a", "b", "c"]


def test_outside_a_polygon_a_grid_has_nothing_and_points_have_zero(seed):
    posterior = by_hand(plane(SQUARE), some_theta(seed))
    grid = densities.density(posterior, size=20)
    x, y = np.meshgrid(grid["x"], grid["y"])
    inside = SQUARE.contains(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    np.testing.assert_array_equal(np.isfinite(grid["mean"][0]), inside)
    assert not inside.all()
    found = densities.density(posterior, [[1.7, 1.5], [9.0, 9.0], [0.5, 0.5]])["mean"][0]
    assert found[:2].to_numpy().tolist() == [0, 0]
    assert found[2] > 0
    far = densities.density(posterior, [[9.0, 9.0]])
    assert far["high"].to_numpy().tolist() == [[0]]


def test_grids_have_square_cells_and_the_names_of_the_axes(seed):
    found = densities.density(by_hand(plane(), some_theta(seed)), size=8)
    assert dict(found.sizes) == {"time": 1, "y": 6, "x": 8}
    np.testing.assert_allclose(found["x"], np.arange(0.25, 4, 0.5))
    assert found.attrs["units"] == "per unit area"
    odd = Field(plane().model, ("time", "time"))
    assert sites.axis_names(odd) == ("time_1", "time_2")
    assert sites.axis_names(Field(plane().model, ("time", "time_1"))) == ("time_1_", "time_1")
    assert densities.density(by_hand(odd, some_theta(seed)), size=4).sizes["time_2"] == 3


def test_degrees_give_densities_per_square_kilometer(washington):
    found = densities.density_draws(washington, size=400, draws=4)
    lon, lat = found["lon"].to_numpy(), found["lat"].to_numpy()
    step = np.radians(lon[1] - lon[0]) * np.radians(lat[1] - lat[0])
    area = 6371.0088**2 * np.cos(np.radians(lat)) * step
    total = (found * xr.DataArray(area, dims="lat")).sum(("lon", "lat"))
    np.testing.assert_allclose(total, 1, atol=5e-3)
    assert found.attrs["units"] == "per square kilometer"
    assert found["lon"].attrs["units"] == "degrees_east"
    swapped = pd.DataFrame({"lat": [38.9], "lon": [-77.0]})
    right = densities.density(washington, [[-77.0, 38.9]])["mean"]
    np.testing.assert_array_equal(densities.density(washington, swapped)["mean"], right)


def test_longitudes_do_not_jump_where_the_date_changes(seed):
    around = Projection(179.9, 0.0)
    box = Box(*around.forward([[179.5, -0.5], [-179.5, 0.5]]))
    model = RadialBasis([[0.0, 0.0], [5.0, 5.0]], 9.0, box, kernel="gaussian")
    field = Field(model, ("lon", "lat"), None, around)
    found = densities.density(by_hand(field, some_theta(seed, count=2)), size=10)
    assert (np.diff(found["lon"]) > 0).all()
    assert 179.5 < found["lon"].min() < found["lon"].max() < 180.5
    assert np.isfinite(found["mean"]).all()


def test_draws_are_evenly_chosen_from_all_chains(seed):
    theta = np.arange(40.0).reshape(2, 20, 1, 1) * np.ones(3) / 100
    whole = by_hand(line(), theta[0])
    tree = whole.data.copy()
    coords = {"group": ["all"], "statistic": statistic_names(line().model)}
    tree["posterior"] = xr.Dataset({"theta": (whole.theta.dims, theta)}, coords)
    found = readout.fitted("here", ncb.Posterior(tree), 10)
    np.testing.assert_allclose(found.theta[:, 0, 0] * 100, np.arange(2, 40, 4))


def test_log_score_is_the_log_of_the_mean_density(washington, seed):
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-77.02, -76.98, 7), rng.uniform(38.88, 38.92, 7)])
    days = ("03-31 23:59", "01-15", "01-01", "03-02", "01-31", "01-20", "03-10")
    dates = pd.to_datetime([f"2022-{day}" for day in days], format="ISO8601")
    groups = dates.month.to_numpy() - 1
    found = scores.log_score(washington, points, times=dates)
    wanted = np.log(densities.density(washington, points)["mean"].to_numpy()[groups, range(7)])
    np.testing.assert_allclose(found.pointwise, wanted)
    assert found.total == pytest.approx(wanted.sum(), rel=1e-9)
    assert found.mean == pytest.approx(found.total / 7)
    assert found.by_time["label"].to_numpy().tolist() == ["2022-01", "2022-03"]
    assert found.by_time[1].item() == pytest.approx(wanted[groups == 2].mean())
    for times in (dates.strftime("%Y-%m").tolist(), dates.strftime("%Y-%m-%d").tolist()):
        again = scores.log_score(washington, points, times=times)
        np.testing.assert_array_equal(again.pointwise, found.pointwise)


def test_log_score_refuses_what_was_not_fitted(washington):
    points = [[-77.0, 38.9]] * 3
    for times, wrong in (
        (["2022-01-05", "2022-04-01", "2023-01-01"], "'2022-04-01' in row 1 .* and 1 more"),
        (["2022-01", "soon", "2022-02"], "'soon' in row 1 .* and 0 more"),
        ([1, 2, 3], "got 1 in row 0"),
    ):
        with pytest.raises(ncb.InputError, match=f"among those that were fitted, .*{wrong}"):
            scores.log_score(washington, points, times=times)
    with pytest.raises(ncb.InputError, match="one time for each of the 3 points, got 2"):
        scores.log_score(washington, points, times=["2022-01"] * 2)
    with pytest.raises(ncb.InputError, match="1 of 3 outside, the first in row 2"):
        scores.log_score(washington, [*points[:2], [-75.0, 38.9]], times=["2022-01"] * 3)
    numbers = by_hand(line(times=np.array([0.5, 1.5])), some_theta(1, 4, 2), ("0.5", "1.5"))
    with pytest.raises(ncb.InputError, match="every= put together are named by where they start"):
        scores.log_score(numbers, [[1.0]], times=[0.7])
    assert np.isfinite(scores.log_score(numbers, [1.0, 1.2], times=[0.5, 1.5]).total)


@pytest.mark.parametrize(
    ("times", "labels", "given", "group"),
    [
        (None, ("a", "b", "c"), "b", 1),
        (None, ("a", "b", "c"), -1, 2),
        (None, ("2", "1", "0"), 2, 0),
        (np.array([1.0, 2.0, 3.0]), ("1", "2", "3"), 1, 0),
        (np.array([1.0, 2.0, 3.0]), ("1", "2", "3"), 0, 0),
        (np.array([0.1, 0.2, 0.7]), ("0.1", "0.2", "0.7"), 0.1 + 0.1, 1),
        (MONTHS, MONTH_LABELS, "2022-02", 1),
        (MONTHS, MONTH_LABELS, "17 March 2022", 2),
        (MONTHS, MONTH_LABELS, np.datetime64("2022-02-28"), 1),
        (MONTHS, MONTH_LABELS, pd.Timestamp("2022-01-09"), 0),
        (MONTHS, MONTH_LABELS, 1, 1),
    ],
)
def test_times_are_found_by_label_date_number_or_position(times, labels, given, group):
    assert stamps.position(given, times, labels, "start") == group


@pytest.mark.parametrize(
    ("every", "later"),
    [("day", "2022-03-05"), ("week", "2022-03-14"), ("month", "2022-05"), ("quarter", "2022-Q3"),
     ("year", "2024")],
)  # fmt: skip
def test_the_calendar_of_dates_is_recognized(every, later):
    found = stamps.periods(pd.Series(["2022-03-03", "2022-03-02"]), every, 2)
    if every == "week":
        found = stamps.periods(pd.Series(["2022-02-21", "2022-03-02"]), every, 2)
    assert stamps.calendar(found.starts, found.labels) == every
    assert stamps.later(2, found.starts, found.labels)[1] == later


def test_the_time_of_a_forecast():
    assert stamps.later(2, None, ("a", "b")) == ("b + 2", "b + 2")
    assert stamps.later(2, np.array([1.0, 1.5, 3.0]), ("1", "1.5", "3")) == (5.0, "5")
    date, label = stamps.later(1, MONTHS, MONTH_LABELS)
    assert (date, label) == (np.datetime64("2022-04-01"), "2022-04")


def forecast_z(seed, steps, wanted):
    """How far the variance of a forecast density is from ``wanted``(gradient), in sd."""
    field, lam, count = line(), np.array([1e-4, 4e-4, 2e-4]), 4000
    theta = np.tile([[[9.0, 9.0, 9.0], [0.5, -0.5, 1.0]]], (count, 1, 1))
    posterior = by_hand(field, theta, ("a", "b"), theta_variance=np.tile(lam, (count, 1)))
    points = np.array([[0.4], [1.5]])
    found = densities.forecast(posterior, steps, points, draws=count, seed=seed)
    fine = np.linspace(0, 2, 4001)[:, None]
    weights = np.exp(field.model.statistics(fine) @ theta[0, 1])
    mean = weights @ field.model.statistics(fine) / weights.sum()
    # For small steps p moves by p (statistics - their mean) . step.
    now = densities.density(posterior, points, times=["b"], draws=2)["mean"].to_numpy().T
    gradient = now * (field.model.statistics(points) - mean)
    ratio = found["sd"].to_numpy()[0] ** 2 / wanted(gradient, lam)
    return np.abs(ratio - 1).max() / math.sqrt(2 / (count - 1))


def test_a_forecast_varies_as_the_random_walk_says(seed):
    assert forecast_z(seed, 3, lambda g, lam: 3 * g**2 @ lam) < Z
    for broken in (
        lambda g, lam: g**2 @ lam,
        lambda g, lam: 3 * g**2 @ np.full(3, lam.mean()),
        lambda g, lam: 9 * g**2 @ lam,
    ):
        assert forecast_z(seed, 3, broken) > Z


def test_forecasts_know_their_time_and_need_a_random_walk(washington, seed):
    with pytest.raises(ncb.InputError, match="needs the variance of a random walk, and the prior"):
        densities.forecast(washington)
    theta, variance = washington.theta.to_numpy()[0], np.full((40, 1), 0.1)
    field = readout.ground("here", washington)
    moving = by_hand(field, theta, MONTH_LABELS, theta_variance=variance)
    found = densities.forecast(moving, 2, size=10)
    assert found["time"].to_numpy()[0] == np.datetime64("2022-05-01")
    assert found["label"].item() == "2022-05"
    xr.testing.assert_equal(found, densities.forecast(moving, 2, size=10))
    years = np.array(["2020", "2021", "2022"], "datetime64[ns]")
    yearly = by_hand(line(times=years), theta, ("2020", "2021", "2022"), theta_variance=variance)
    with pytest.raises(ncb.InputError, match="beyond the year 2261, got 240, which is the year 22"):
        densities.forecast(yearly, 240)
    for seed_of, message in ((-1, "seed must be"), ("x", "seed must be")):
        with pytest.raises(ncb.InputError, match=message):
            densities.forecast(moving, seed=seed_of)


def test_a_geotiff_comes_back(washington, tmp_path):
    import rasterio

    data = densities.density(washington, size=30)
    densities.to_geotiff(data, tmp_path / "map.tif", variable="sd")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.crs.to_epsg() == 4326
        assert file.descriptions == MONTH_LABELS
        np.testing.assert_array_equal(file.read()[:, ::-1], data["sd"])
        west, south, east, north = file.bounds
        row, column = file.index(data["lon"][4].item(), data["lat"][3].item())
        assert file.tags()["units"] == "per square kilometer"
    assert (row, column) == (len(data["lat"]) - 1 - 3, 4)
    np.testing.assert_allclose([west, east, south, north], [-77.1, -76.9, 38.8, 39.0])
    densities.to_geotiff(densities.change(washington, 0, 2, size=10), tmp_path / "change.tif")
    with rasterio.open(tmp_path / "change.tif") as file:
        assert file.count == 1
    flat = densities.exceedance(by_hand(plane(), some_theta(1)), 0.1, size=10)
    densities.to_geotiff(flat, tmp_path / "flat.tif")
    with rasterio.open(tmp_path / "flat.tif") as file:
        assert file.crs is None


def test_without_rasterio_the_error_says_what_to_install(washington, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    data = densities.density(washington, size=10)
    with pytest.raises(ncb.InputError, match=r"rasterio, .*: pip install ncbayes\[maps\]"):
        densities.to_geotiff(data, tmp_path / "map.tif")


def test_geojson_holds_bands_that_fill_the_map_or_cells(seed, tmp_path):
    around = Projection(-77.0, 38.9)
    box = Box(*around.forward([[-77.1, 38.8], [-76.9, 39.0]]))
    model = RadialBasis([[0.0, 0.0], [3.0, 2.0], [-4.0, 1.0]], 5.0, box)
    field = Field(model, ("lon", "lat"), MONTHS[:2], around)
    data = densities.density(by_hand(field, some_theta(seed, 9, 2), MONTH_LABELS[:2]), size=20)
    path = tmp_path / "map.geojson"
    densities.to_geojson(data, path, levels=6)
    features = json.loads(path.read_text())["features"]
    hull = np.ptp(data["lon"].to_numpy()) * np.ptp(data["lat"].to_numpy())
    for label in MONTH_LABELS[:2]:
        own = [each for each in features if each["properties"]["time"] == label]
        shapes = [shapely.geometry.shape(each["geometry"]) for each in own]
        assert all(shape.is_valid for shape in shapes)
        assert sum(shape.area for shape in shapes) == pytest.approx(hull, rel=1e-4)
        ends = [(each["properties"]["low"], each["properties"]["high"]) for each in own]
        steps = np.array(ends) / (data["mean"].max().item() / 6)
        np.testing.assert_allclose(steps, steps.round(), atol=1e-9)
        np.testing.assert_allclose(np.diff(steps), 1)
    densities.to_geojson(data, path, levels=None)
    cells = json.loads(path.read_text())["features"]
    assert len(cells) == data["mean"].size
    assert set(cells[0]["properties"]) == {"time", "mean", "sd", "low", "high"}
    assert cells[1]["properties"]["mean"] == data["mean"][0, 0, 1].item()
    areas = [shapely.geometry.shape(each["geometry"]).area for each in cells]
    assert sum(areas) == pytest.approx(2 * 0.2 * 0.2, rel=1e-4)
    densities.to_geojson(data["sd"], path, levels=[0, 0.01, 0.02])
    densities.to_geojson(data["sd"], path, levels=None)
    assert set(json.loads(path.read_text())["features"][0]["properties"]) == {"time", "sd"}


def test_exports_refuse_what_is_no_map(washington, tmp_path):
    data, path = densities.density(washington, size=10), tmp_path / "map.geojson"
    for levels in (0, [1.0], [2.0, 1.0], "many"):
        with pytest.raises(ncb.InputError, match="levels must be a whole number of bands"):
            densities.to_geojson(data, path, levels=levels)
    with pytest.raises(
        ncb.InputError, match=r"variable must be one of 'mean', 'sd', .* got 'median'"
    ):
        densities.to_geojson(data, path, variable="median")
    flat = densities.density(by_hand(plane(), some_theta(1)), size=10)
    with pytest.raises(ncb.InputError, match=r"needs longitude and latitude, .* axes 'x' and 'y'"):
        densities.to_geojson(flat, path)
    for wrong in (densities.density(washington, [[-77.0, 38.9]]), 3,
                  densities.density_draws(washington, size=10, draws=3)):  # fmt: skip
        with pytest.raises(
            ncb.InputError, match=r"to_geotiff needs what a function of ncbayes.den"
        ):
            densities.to_geotiff(wrong, path)
    with pytest.raises(ncb.InputError, match="must be a file in a folder that exists"):
        densities.to_geojson(data, tmp_path / "none" / "map.geojson")
    with pytest.raises(ncb.InputError, match="path must be the name of a file, got 3"):
        densities.to_geojson(data, 3)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: densities.density(p, interval="eti"), 'interval must be "quantile", "hpd" or'),
        (lambda p: densities.density(p, level=1.2), "level must be between 0 and 1"),
        (lambda p: densities.change(p, 0, 1, level=90), "level must be between 0 and 1"),
        (lambda p: densities.density(p, size=1), "size must be a whole number, 2 or more, got 1"),
        (lambda p: densities.density(p, draws=1), "draws must be a whole number, 2 or more, got 1"),
        (lambda p: densities.density(p, [[1.0]]), r"must have 2 columns \(densities.density\)"),
        (lambda p: densities.density(p, [[1.0, 95]]), "latitudes must lie between -90 and 90"),
        (lambda p: densities.density(p, times=[]), r"times must be a list of times, got \[\]"),
        (lambda p: densities.density(p, times="2022-01"), "times must be a list of times, got '2"),
        (lambda p: densities.density(p, times=[7]), "each of times must be one of the 3 times"),
        (lambda p: densities.change(p, 0, "2021-05"), "end must be one of the 3 times that were "
         "fitted, '2022-01' to '2022-03', or a position among them from 0, got '2021-05'"),
        (lambda p: densities.change(p, True, 1), "start must be one of the 3 times"),
        (lambda p: densities.change(p, [0], 1), r"start must be one of the 3 times .* got \[0\]"),
        (lambda p: densities.change(p, np.array([0, 1]), 1), "start must be one of the 3 times"),
        (lambda p: densities.density(p, times=[[1], [2, 3]]), "times must be a list of times"),
        (lambda p: densities.density(p, size=10**9), r"size=1000000000 makes a grid of \S+ cells, "
         r"more than 4e\+06: pass a smaller size, or at=points"),
        (lambda p: scores.log_score(p, [[-77, 38.9]] * 2, times=[[1], [2, 3]]), "one time for each "
         r"of the 2 points, got \[\[1\], \[2, 3\]\]"),
        (lambda p: densities.change(p, 1, "2022-02"), "different times, got '2022-02' twice"),
        (lambda p: densities.change(p, 0, 1, interval=3), 'interval must be "quantile"'),
        (lambda p: densities.exceedance(p, -1), r"0 or more \(per square kilometer\), got -1"),
        (lambda p: densities.exceedance(p, "high"), "threshold must be a density"),
        (lambda p: densities.forecast(p, 0), "steps must be a whole number, 1 or more, got 0"),
        (lambda p: densities.forecast(p, 1001), "steps must be 1000 or less, got 1001"),
        (lambda p: densities.density(3), "densities.density needs the posterior that ncbayes.fit"),
        (lambda p: scores.log_score(None, [[0, 0]], times=[0]), "posterior must be what ncbayes"),
    ],
)  # fmt: skip
def test_errors_say_what_was_wrong(ask, message, washington):
    with pytest.raises(ncb.InputError, match=message):
        ask(washington)


def test_draws_that_no_memory_holds_are_refused(washington, monkeypatch):
    monkeypatch.setattr(densities, "MOST_VALUES", 359)
    with pytest.raises(
        ncb.InputError, match=r"hold 3.6e\+02 numbers, 2.9e-06 GB: ask for fewer dr"
    ):
        densities.density_draws(washington, [[-77.0, 38.9]] * 3)


def test_one_draw_is_no_posterior():
    with pytest.raises(
        ncb.InputError, match=r"densities.density needs a posterior of at least 2 draws, got 1"
    ):
        densities.density(by_hand(line(), some_theta(1, draws=1)), [[1.0]])


def test_posteriors_of_other_models_are_refused():
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"theta": ("x", [1.0])})})
    tree.attrs = {"model": "VonMises()"}
    with pytest.raises(ncb.InputError, match=r"densities.density needs the posterior of a density"):
        densities.density(ncb.Posterior(tree))


def test_fits_over_time_and_fits_of_a_basis_can_be_read_also_from_a_file(tmp_path, seed):
    rng = np.random.default_rng(seed)
    times = pd.to_datetime(["2022-01-05", "2022-02-07", "2022-03-09"])[rng.integers(0, 3, 300)]
    points = rng.normal(0, 1, (300, 2))
    short = {"draws": 50, "tune": 50, "chains": 1, "cores": 1, "seed": seed, "progress": False}
    with pytest.warns(ncb.FitWarning):
        moving = ncb.fit_density_over_time(points, times, every="month", basis=8, **short)
    moving.save(tmp_path / "moving.nc")
    loaded = ncb.load(tmp_path / "moving.nc")
    for ask in (
        lambda p: densities.density(p, size=10),
        lambda p: densities.change(p, "2022-01", "2022-03-15", size=10),
        lambda p: densities.forecast(p, size=10),
        lambda p: scores.log_score(p, points[:9], times=times[:9]).pointwise,
    ):
        xr.testing.assert_identical(ask(moving), ask(loaded))
    grid = densities.density(loaded, size=60)
    cell = float(np.diff(grid["x1"])[0] * np.diff(grid["x2"])[0])
    np.testing.assert_allclose(grid["mean"].sum(("x1", "x2")) * cell, 1, atol=2e-3)
    grid.to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
    model = RadialBasis.match(points, Box((-5, -5), (5, 5)), 6)
    with pytest.warns(ncb.FitWarning):
        static = ncb.fit(model, points, noise="matched", **short)
    found = densities.density(static, [[0.0, 0.0], [4.9, 4.9]])
    assert found["time"].to_numpy().tolist() == static.theta["group"].to_numpy().tolist()
    assert found["mean"][0, 0] > found["mean"][0, 1]
