"""Trajectories against what they are derived from: the energy, and the likelihood."""

import numpy as np
import pytest

from ncbayes.contrast import Contrast
from ncbayes.linalg.designs import Dense
from ncbayes.linalg.trajectories import log_likelihood, picked_square, trajectory


def problem(rng, points=60, size=5):
    """A logistic regression under a normal prior, with a metric near its curvature."""
    rows = rng.standard_normal((size, points))
    offset, is_data = rng.standard_normal(points), rng.random(points) < 0.4
    precision, shift = rng.uniform(0.5, 2.0, size), rng.standard_normal(size)
    metric = 0.2 * rows @ rows.T + np.diag(precision)
    return rows, offset, is_data, precision, shift, np.linalg.cholesky(metric)


def gone(given, coef, momentum, step, count, psi=None):
    rows, offset, is_data, precision, shift, factor = given
    psi = offset + coef @ rows if psi is None else psi
    return trajectory(rows, coef, psi, is_data, precision, shift, factor, momentum, step, count)


def test_log_odds_follow_the_coefficients(seed):
    rng = np.random.default_rng(seed)
    given = problem(rng)
    start = rng.standard_normal(5)
    coef, psi, _ = gone(given, start, rng.standard_normal(5), 0.3, 6)
    assert not np.array_equal(coef, start)
    np.testing.assert_allclose(psi, given[1] + coef @ given[0], atol=1e-10)


def test_energy_is_conserved_the_better_the_smaller_the_steps(seed):
    """Its error is of the second order: a hundredth for steps of a tenth."""
    rng = np.random.default_rng(seed)
    given = problem(rng)
    coef, momentum = rng.standard_normal(5), rng.standard_normal(5)
    large, small = (abs(gone(given, coef, momentum, 1.2 / k, k)[2]) for k in (20, 200))
    assert small < 0.02 * large + 1e-3


def test_a_trajectory_is_its_own_way_back(seed):
    """From its end with the momentum turned round: found from the coefficients of one more step."""
    rng = np.random.default_rng(seed)
    given = problem(rng)
    coef, momentum, step = rng.standard_normal(5), rng.standard_normal(5), 0.25
    there, _, log_acceptance = gone(given, coef, momentum, step, 1)
    # One leapfrog step is there = coef + step L'^-1 (momentum + step / 2 L^-1 gradient(coef)).
    rows, offset, is_data, precision, shift, factor = given

    def whitened_gradient(at):
        chance = 1 / (1 + np.exp(-(offset + at @ rows)))
        return np.linalg.solve(factor, rows @ (is_data - chance) + shift - precision * at)

    half = momentum + step / 2 * whitened_gradient(coef)
    np.testing.assert_allclose(there, coef + step * np.linalg.solve(factor.T, half))
    end = half + step / 2 * whitened_gradient(there)
    back, _, log_back = gone(given, there, -end, step, 1)
    np.testing.assert_allclose(back, coef, atol=1e-10)
    assert log_back == pytest.approx(-log_acceptance, abs=1e-8)


def test_the_likelihood_for_log_odds_of_any_size(seed):
    rng = np.random.default_rng(seed)
    psi = np.concatenate([rng.standard_normal(2000), [-800.0, 800.0, 0.0, 1e5, -1e5]])
    is_data = rng.random(len(psi)) < 0.5
    contrast = Contrast(Dense(np.ones((len(psi), 1))), psi, is_data)
    assert log_likelihood(psi, is_data) == pytest.approx(contrast.log_likelihood(psi), rel=1e-12)


def test_a_square_is_picked(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((7, 7))
    matrix = matrix + matrix.T
    places = np.array([0, 3, 4, 6])
    np.testing.assert_array_equal(picked_square(matrix, places), matrix[np.ix_(places, places)])
