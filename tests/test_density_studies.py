"""The studies and benchmarks of densities over time, in small."""

import density_mixing
import density_size
import numpy as np
import pytest

import density_tables


def test_a_replication_of_table_one_is_measured_and_shown(monkeypatch):
    monkeypatch.setattr(density_tables, "TUNE", 20)
    monkeypatch.setattr(density_tables, "DRAWS", 40)
    found = {
        method: [density_tables.measured(2, method, 0)] for method in ("common", "default", "kde")
    }
    for method in ("common", "default"):
        row = found[method][0]
        assert set(density_tables.NAMES) <= set(row)
        assert 0.1 < row["abe"] < 0.8
        assert 0.5 < row["cp"] <= 1
    text = density_tables.table(2, found)
    assert "| common | " in text
    assert "(0.35)" in text
    assert text.splitlines()[-1].startswith("| kde | 0.")
    # Points are those of the data's rectangle, so the estimate of the truth itself has no error.
    simulated = density_tables.SCENARIOS[1](seed=3)
    at = density_tables.ncb.metrics.evaluation_points(simulated.points, seed=3)
    truth = np.array([simulated.density(t, at) for t in range(1, 11)])
    assert density_tables.ncb.metrics.absolute_error(truth, truth, 30.0) == 0


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
