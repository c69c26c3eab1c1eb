"""Evidence for differences: against closed forms, and under no difference."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, false_discovery_control

from ncbayes.graphs import evidence

# Of edges that do not differ, in the checks below.
EDGES, DRAWS, LIMIT = 500, 300, 0.1
# Five sds of a share of EDGES at LIMIT: a false alarm in a million.
SLACK = 5 * math.sqrt(LIMIT * (1 - LIMIT) / EDGES)


def covariance(size, rng):
    root = rng.normal(size=(size, size + 2))
    return root @ root.T


def without_difference(size, rng, spread=(1.0, 1.0), coupling=0.0):
    """Draws of two groups with the same coefficients: (draw, edge, kind), twice."""
    groups = []
    for scale in spread:
        root = scale * np.linalg.cholesky(covariance(size, rng) / size)
        estimate = coupling + rng.normal(size=(EDGES, size)) @ root.T
        groups.append(estimate + rng.normal(size=(DRAWS, EDGES, size)) @ root.T)
    return groups


def some_interval_excludes_zero(change):
    low, high = np.quantile(change, [LIMIT / 2, 1 - LIMIT / 2], axis=0)
    return ((low > 0) | (high < 0)).any(axis=1)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_of_a_normal_posterior_it_is_the_tail_of_chi_square(size, seed):
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance(size, rng))
    for distance in (0.5, 1.5, 2.5):
        direction = rng.normal(size=size)
        mean = distance * root @ (direction / np.linalg.norm(direction))
        draws = mean + rng.normal(size=(40_000, 1, size)) @ root.T
        expected = chi2.sf(distance**2, size)
        error = math.sqrt(expected * (1 - expected) / 40_000)
        # The largest of three estimates: a little too large, never much too small.
        assert -5 * error < evidence.tail_mass(draws)[0] - expected < 10 * error


@pytest.mark.parametrize("size", [1, 4])
def test_under_no_difference_the_nominal_share_is_selected(size, seed):
    """And the broken twin, one interval a coefficient, selects three times as many."""
    first, second = without_difference(size, np.random.default_rng(seed), (1.0, 3.0))
    share = np.mean(evidence.tail_mass(first - second) < LIMIT)
    assert LIMIT - SLACK < share < LIMIT + SLACK
    if size > 1:
        assert some_interval_excludes_zero(first - second).mean() > LIMIT + SLACK
        assert (np.linalg.norm(first - second, axis=2) > 0.1).mean() > 0.99


@pytest.mark.parametrize("coupling", [0.0, 2.0])
def test_the_signed_difference_of_strengths_favours_no_group(coupling, seed):
    """Norms do, the broken twin: the smaller group has the wider posterior and larger norms."""
    first, second = without_difference(4, np.random.default_rng(seed), (1.0, 3.0), coupling)
    change = first - second
    direction = evidence.shared_direction(first, change)
    assert np.linalg.norm(direction, axis=1) == pytest.approx(1)
    strength = np.einsum("tek,ek->te", change, direction)
    assert np.mean(evidence.tail_mass(strength[:, :, None]) < LIMIT) < LIMIT + SLACK
    stronger = (strength > 0).mean(axis=0)
    assert abs(np.mean(stronger > 0.5) - 0.5) < 5 * 0.5 / math.sqrt(EDGES)
    norms = np.linalg.norm(first, axis=2) - np.linalg.norm(second, axis=2)
    broken = np.mean((norms > 0).mean(axis=0) > 0.5)
    assert abs(broken - 0.5) > 5 * 0.5 / math.sqrt(EDGES)


def test_the_shared_coefficients_are_the_mean_weighted_by_precision(seed):
    rng = np.random.default_rng(seed)
    first = rng.normal([1.0, 2.0], 0.1, size=(4000, 1, 2))
    second = rng.normal([3.0, 0.0], 0.2, size=(4000, 1, 2))
    expected = np.array([0.8 * 1 + 0.2 * 3, 0.8 * 2])
    found = evidence.shared_direction(first, first - second)[0]
    assert found == pytest.approx(expected / np.linalg.norm(expected), abs=0.02)
    assert evidence.shared_direction(0 * first, 0 * first)[0] == pytest.approx([0.5**0.5] * 2)


def test_spikes_at_zero_are_counted_and_not_taken_for_normal(seed):
    """A normal law with the moments of these draws has a mass of .007 beyond zero."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(1.0, 0.05, size=(4000, 1, 1))
    spike = np.arange(480)
    draws[spike] = rng.normal(0.0, 0.001, size=(480, 1, 1))
    mean, sd = draws.mean(), draws.std()
    assert chi2.sf((mean / sd) ** 2, 1) < 0.01
    assert evidence.tail_mass(draws)[0] > 0.09


def test_few_draws_and_draws_that_do_not_vary_claim_nothing(seed):
    rng = np.random.default_rng(seed)
    assert (evidence.tail_mass(rng.normal(3, 1, size=(3, 5, 4))) == 1).all()
    assert evidence.tail_mass(np.ones((50, 2, 4))) == pytest.approx([1, 1])
    assert evidence.tail_mass(np.zeros((50, 2, 1))) == pytest.approx([1, 1])
    # Two values, many times over: an effective number of draws near two, whatever is stored.
    stuck = np.repeat([[2.0], [2.1]], 200, axis=0)[:, None]
    assert evidence.tail_mass(stuck)[0] > 0.05
    assert evidence.tail_mass(np.zeros((50, 0, 4))).shape == (0,)


def test_a_threshold_is_the_nearest_difference_that_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    means, precision = rng.normal(1, 1, size=(6, 3)), covariance(3, rng)
    found = evidence._nearest(means, np.array([precision] * 6), 0.8)
    for mean, point in zip(means, found, strict=True):
        if np.linalg.norm(mean) <= 0.8:
            assert point == pytest.approx(mean)
            continue

        def distance(x, mean=mean):
            return (x - mean) @ precision @ (x - mean)

        ball = {"type": "ineq", "fun": lambda x: 0.64 - x @ x}
        best = minimize(distance, 0.1 * mean, constraints=ball, options={"ftol": 1e-12})
        assert distance(point) == pytest.approx(best.fun, rel=1e-4)
        assert np.linalg.norm(point) == pytest.approx(0.8)


def test_masses_grow_with_the_threshold(seed):
    draws = np.random.default_rng(seed).normal(1.0, 0.3, size=(1000, 1, 2))
    masses = [evidence.tail_mass(draws, threshold)[0] for threshold in (0.0, 0.5, 1.0, 2.0)]
    assert masses == sorted(masses)
    assert masses[0] < 0.01
    assert masses[-1] == 1
    means, covariances = draws.mean(axis=0), np.cov(draws[:, 0].T)[None]
    normal = [evidence.normal_mass(means, covariances, 1e6, each)[0] for each in (0.0, 0.5, 2.0)]
    assert normal == pytest.approx([masses[0], masses[1], masses[3]], abs=0.01)


def test_adjusted_masses_are_those_of_benjamini_and_hochberg(seed):
    masses = np.random.default_rng(seed).uniform(size=40) ** 3
    assert evidence.adjusted(masses) == pytest.approx(false_discovery_control(masses))
    assert evidence.adjusted(np.zeros(0)).shape == (0,)
