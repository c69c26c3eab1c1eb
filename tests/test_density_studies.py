"""The studies and benchmarks of densities over time, in small."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bandwidths
import crime
import density_readings
import density_size
import ncbayes as ncb
from ncbayes_bench import density_mixing
from ncbayes_paper import crime_figure, density_table

# Beside the checkout, where there is one; never part of it.
REAL = Path(__file__).parents[2] / "shared" / "data"


def test_a_replication_of_table_one_is_measured():
    names = {column.name for column in density_table.COLUMNS}
    for method in ("2 common", "2 one_at_a_time"):
        row = density_table.measured("density", method, 1, 20, 40)
        assert set(row) == names | {"seconds"}
        assert 0.1 < row["abe"] < 0.8
        assert 50 < row["cp"] <= 100
    kde = density_table.measured("density", "2 kde", 1, 20, 40)
    assert 0.5 < kde["abe"] < 0.65
    # Scenario 1 has other data.
    assert density_table.measured("density", "1 kde", 1, 20, 40)["abe"] < 0.4


def test_readings_of_table_one_are_measured_and_shown():
    value = density_readings.measured("2", "factor 1.5, uniform noise", 1, 10, 20)
    assert 0.2 < value < 0.8
    # Our rule is what a fit takes by itself.
    given = density_readings.measured("2", "factor 1.5, the rule", 1, 20, 40)
    assert given == pytest.approx(
        density_table.measured("density", "2 common", 1, 20, 40)["abe"], abs=1e-9
    )
    found = {(scenario, "factor 3"): [0.25, 0.35] for scenario in "12"}
    assert density_readings.table(found).splitlines()[2:] == [
        "| the paper, N1 | 0.267 | 0.350 |",
        "| factor 3 | 0.300 ± 0.050 | 0.300 ± 0.050 |",
    ]


def test_mixing_is_measured_on_the_normalized_density():
    problem = density_mixing.Problem(1)
    measured, posterior = density_mixing.ours(problem, density_mixing.SAMPLERS["ours"], 10, 60)
    assert measured.density.shape == (60, 10 * density_mixing.PLACES)
    assert measured.beta.shape == (60, 10)
    assert (measured.worst > 0).all()
    # What NUTS gets is the logistic regression that the fit has sampled from.
    statistics, offset, is_data, times = density_mixing.stacked(posterior, problem)
    theta, log_z = posterior.theta.to_numpy()[0, -1], posterior.log_z.to_numpy()[0, -1]
    log_odds = np.sum(statistics * theta[times], axis=1) - log_z[times] + offset
    value = np.sum(log_odds[is_data]) - np.sum(np.logaddexp(0, log_odds))
    stored = posterior.data["sample_stats"]["log_likelihood"].to_numpy()[0, -1]
    assert value == pytest.approx(stored, abs=1e-6)


def test_the_cost_of_a_sweep_is_measured(monkeypatch):
    monkeypatch.setattr(density_size, "SWEEPS", 4)
    assert density_size.milliseconds(points=200, times=2, basis=5) > 0


def test_folds_are_even_within_months():
    months = np.repeat([1, 2, 3], [7, 10, 2])[np.random.default_rng(1).permutation(19)]
    found = crime.split(months, 5)
    for month, n in ((1, 7), (2, 10), (3, 2)):
        sizes = np.bincount(found[months == month], minlength=5)
        assert sizes.sum() == n
        assert np.ptp(sizes) <= 1
    np.testing.assert_array_equal(found, crime.split(months, 5))
    assert (found != crime.split(months, 5, seed=2)).any()


def test_scores_of_a_fold_and_how_they_are_shown():
    methods = ("ncbayes", "kde")
    fits = {method: crime.measured(None, None, method, 0, 5, 10, 20) for method in methods}
    held = crime.split(ncb.datasets.incidents(seed=1).times.dt.month.to_numpy(), 5) == 0
    assert {len(scores) for scores in fits.values()} == {held.sum()}
    # Far from nonsense: an even spread over the city has a log score of -5.4.
    assert all(-5.3 < np.mean(scores) < -4 for scores in fits.values())
    shown = crime.table(
        {
            "ncbayes": [[1.0, 3.0], [2.0]],
            "kde": [[0.0, 1.0], [3.0]],
            "pooled_kde": [[0.0, 0.0], [0.0]],
        }
    ).splitlines()
    assert shown[0].endswith("| all | less kde (folds better) | less pooled_kde (folds better) |")
    # Differences to kde are 1, 2 and -1: their mean 2/3, its standard error sqrt(7/3 / 3).
    assert shown[2] == (
        "| ncbayes | 2.000 | 2.000 | 2.000 | +0.667 ± 0.882 (1 of 2) | +2.000 ± 0.577 (2 of 2) |"
    )
    assert shown[3].startswith("| kde | 0.500 | 3.000 | 1.333 |  | +1.333")


def test_kernels_integrate_to_one_in_the_city(monkeypatch):
    monkeypatch.setattr(crime, "NODES", 50_000)
    city = ncb.datasets.incidents(seed=1)
    months = city.times.dt.month.to_numpy()
    kde = crime.kernels(city.points, months, city.outline)
    at = kde.space.uniform(20_000, np.random.default_rng(1))
    values = np.exp(kde.space.log_volume + kde.estimate.log_density("3", at))
    assert abs(values.mean() - 1) < 5 * values.std() / np.sqrt(len(at)) + 1e-3
    assert ncb.densities.density(kde, [[-30.2, 45.0]], times=[3])["mean"].item() == 0
    # Scott's width by the other way to normalize.
    again = crime.widened(kde.estimate, 1.0)
    np.testing.assert_allclose(again.log_mass, kde.estimate.log_mass, atol=0.02)
    narrow = crime.kernels(city.points, months, city.outline, 0.7)
    wide = kde.estimate.kernels[2].covariance
    np.testing.assert_allclose(narrow.estimate.kernels[2].covariance, 0.49 * wide)


def test_both_rows_of_maps_have_one_scale_of_colours(monkeypatch):
    monkeypatch.setattr(crime_figure, "SHOWN", (0, 2))
    city = ncb.datasets.incidents(months=3, seed=1)
    rows = np.ones(len(city.points), dtype=bool)
    posterior = crime.fitted(city, rows, "ncbayes", tune=10, draws=20, chains=1)
    figure = crime.maps(posterior, city, size=20)
    meshes = [axis.collections[0] for axis in figure.axes[:4]]
    assert len({mesh.get_clim() for mesh in meshes}) == 1
    assert meshes[0].get_clim()[1] == max(mesh.get_array().max() for mesh in meshes)
    titles = [axis.get_title() for axis in figure.axes[:2]]
    counts = city.times.dt.month.value_counts()
    assert titles == [f"Jan 2023 (n = {counts[1]})", f"Mar 2023 (n = {counts[3]})"]
    assert [figure.axes[k].get_ylabel() for k in (0, 2)] == ["NC-Bayes", "KDE month by month"]
    plt.close(figure)


@pytest.mark.skipif(
    not (REAL / "dc_gun_assaults_2022.csv").is_file(),
    reason="the crime file of 2022 is not beside the checkout",
)
def test_the_papers_incidents_lie_in_the_outline_and_are_scored():
    files = [str(REAL / name) for name in ("dc_gun_assaults_2022.csv", "dc_boundary.geojson")]
    found = crime.loaded(*files)
    assert ncb.spaces.Region.of(found.outline).contains(found.points.to_numpy()).all()
    scores = crime.measured(*files, "kde", 0, 5, 0, 0)
    assert np.mean(scores) == pytest.approx(-4.718, abs=0.001)


def test_a_bandwidth_is_measured_and_shown(monkeypatch):
    monkeypatch.setattr(bandwidths, "TUNE", 10)
    monkeypatch.setattr(bandwidths, "DRAWS", 20)
    row = bandwidths.measured("ring", "exponential", 1.5, 0, None, None)
    assert 0.1 < row["abe"] < 0.8
    assert -4 < row["score"] < -2.5
    # So wide that the columns of the design depend on each other: the prior tells them apart.
    assert set(bandwidths.measured("ring", "gaussian", 3.0, 0, None, None)) == {"abe", "score"}
    points, times, others, later, region, truth = bandwidths.split("city", 1, (None, None))
    assert region.contains(points).all()
    assert region.contains(others).all()
    assert (len(points), len(others), truth) == (len(times), len(later), None)
    best, worse = {"score": -2.0, "abe": 0.25}, {"score": -2.5, "abe": 0.5}
    shown = bandwidths.table(
        {
            ("exponential", 1.0, "ring"): [worse, {"score": -2.5, "abe": 0.25}],
            ("exponential", 1.5, "ring"): [best, best],
            ("gaussian", 0.5, "ring"): [best, best],
            ("gaussian", 1.0, "ring"): [best, {}],
        }
    ).splitlines()
    assert shown[0] == "| kernel | factor | ring: log score | ring: ABE |"
    assert shown[2] == "| exponential | 1 | -0.500 ± 0.000 | 0.375 ± 0.125 |"
    assert shown[3] == "| exponential | 1.5 (the rule) | -2.000 | 0.250 ± 0.000 |"
    assert shown[5] == "| gaussian | 1 | refused in 1 of 2 | refused in 1 of 2 |"
