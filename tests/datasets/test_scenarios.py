import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import chi2, multivariate_normal, norm

from ncbayes.base import InputError
from ncbayes.datasets import densities, growing_ring, moving_mixture

BOTH = [moving_mixture, growing_ring]


def chance(counts, probabilities):
    """The p-value of Pearson's chi-square; cells that expect fewer than 20 are put together."""
    expected = counts.sum() * np.append(probabilities, 1 - probabilities.sum())
    counts = np.append(counts, 0) if len(counts) < len(expected) else counts
    few = expected < 20
    counts, expected = (np.append(v[~few], v[few].sum()) for v in (counts, expected))
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


def over_radius(found, t, low, high):
    """The mass of a density with round symmetry between two distances from the origin."""

    def ring(r):
        return found.density(t, [[0.6 * r, 0.8 * r]])[0] * 2 * math.pi * r

    return quad(ring, low, high, epsabs=1e-12)[0]


@pytest.mark.parametrize("simulate", BOTH)
def test_the_simulations_have_the_papers_sizes(simulate):
    found = simulate(seed=1)
    assert found.points.shape == (1000, 2)
    assert found.times.tolist() == np.repeat(np.arange(1, 11), 100).tolist()
    assert found.truth.last == 10


@pytest.mark.parametrize("simulate", BOTH)
def test_a_seed_is_a_simulation_and_numbers_may_differ_by_time(simulate):
    one, same = simulate(4, [3, 0, 5, 1], seed=7), simulate(4, np.array([3, 0, 5, 1]), seed=7)
    assert np.array_equal(one.points, same.points)
    assert one.times.tolist() == [1] * 3 + [3] * 5 + [4]
    assert simulate(1, 0, seed=1).points.shape == (0, 2)
    assert simulate(1, 2, seed=1).density(1, [[0.5, 0.5]]).shape == (1,)


@pytest.mark.parametrize("t", [1, 4, 10])
def test_the_mixture_is_that_of_the_paper(t, seed):
    x = np.random.default_rng(seed).uniform(-4, 4, (50, 2))
    first = multivariate_normal([-2 + 4 * t / 10, 0], np.diag([0.7, 0.2])).pdf(x)
    second = multivariate_normal([-2 + 4 * t / 10, -2 + 4 * t / 10], 0.5 * np.eye(2)).pdf(x)
    found = moving_mixture(seed=1).density(t, x)
    assert found == pytest.approx(0.4 * first + 0.6 * second, rel=1e-12)


@pytest.mark.parametrize(("t", "mean", "sd"), [(1, 1, 0.5), (4, 5 / 3, 13 / 30), (10, 3, 0.3)])
def test_the_ring_is_that_of_the_paper(t, mean, sd):
    found = growing_ring(seed=1)
    for r in (0.2, 1.0, 3.1):
        both = norm.pdf(r, mean, sd) + norm.pdf(-r, mean, sd)
        angle = np.array([0.0, 1.0, 4.0])
        x = r * np.column_stack([np.cos(angle), np.sin(angle)])
        assert found.density(t, x) == pytest.approx(np.full(3, both / (2 * math.pi * r)), rel=1e-12)


@pytest.mark.parametrize("t", [1, 3])
def test_the_mixture_integrates_to_one(t):
    axis = np.linspace(-8, 8, 400)
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = moving_mixture(3, seed=1).density(t, x).sum() * (axis[1] - axis[0]) ** 2
    assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("t", [1, 5, 10])
def test_the_ring_integrates_to_one(t):
    found = growing_ring(seed=1)
    assert over_radius(found, t, 0, 8) == pytest.approx(1, abs=1e-9)
    if t == 1:
        # The broken twin: without the points of negative radius.
        lost = over_radius(found, t, 0, 8) - ndtr(1 / 0.5)
        assert lost == pytest.approx(ndtr(-2), abs=1e-9)
        assert lost > 0.02


def test_at_the_origin_the_ring_is_infinite():
    assert growing_ring(seed=1).density(1, [[0.0, 0.0], [1.0, 0.0]])[0] == math.inf


def test_draws_of_the_ring_follow_its_density(seed):
    found = growing_ring(3, [20_000, 0, 0], seed=seed)
    edges = np.linspace(0, 2.4, 17)
    slices = 8
    r, angle = np.hypot(*found.points.T), np.arctan2(*found.points.T)
    counts, _, _ = np.histogram2d(
        r, angle, bins=[[*edges, np.inf], np.linspace(-math.pi, math.pi, slices + 1)]
    )
    shares = {
        t: [over_radius(found, t, a, b) for a, b in itertools.pairwise(edges)] for t in (1, 2)
    }
    outside = counts[-1].sum()
    inside = np.append(counts[:-1].ravel(), outside)
    by_time = {t: np.repeat(np.array(share) / slices, slices) for t, share in shares.items()}
    assert chance(inside, by_time[1]) > 1e-6
    # Two broken twins: the density of the next time, and that without negative radii.
    assert chance(inside, by_time[2]) < 1e-6
    one_side = np.diff(norm.cdf(edges, 1, 0.5)) / ndtr(2)
    assert chance(inside, np.repeat(one_side / slices, slices)) < 1e-6


def test_draws_of_the_mixture_follow_its_density(seed):
    found = moving_mixture(10, [0] * 6 + [20_000] + [0] * 3, seed=seed)
    cells, fine = 12, 40
    axis = -3 + 7 * (np.arange(cells * fine) + 0.5) / (cells * fine)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    shares = {}
    for t in (7, 8):
        mass = found.density(t, x).reshape(cells, fine, cells, fine).sum(axis=(1, 3))
        shares[t] = mass.ravel() * (axis[1] - axis[0]) ** 2
    edges = np.linspace(-3, 4, cells + 1)
    counts = np.histogram2d(*found.points.T, bins=[edges, edges])[0].ravel()
    counts = np.append(counts, len(found.points) - counts.sum())
    assert chance(counts, shares[7]) > 1e-6
    # The broken twin: the density of the next time.
    assert chance(counts, shares[8]) < 1e-6


@pytest.mark.parametrize("simulate", BOTH)
def test_every_time_is_drawn_from_its_own_density(simulate, seed):
    """The mean log density at each time, against that of the other times."""
    found = simulate(5, 2000, seed=seed)
    for t in range(1, 6):
        x = found.points[found.times == t]
        own = np.log(found.density(t, x))
        for other in {1, 2, 3, 4, 5} - {t}:
            gain = own - np.log(found.density(other, x))
            assert gain.mean() > 4.9 * gain.std() / math.sqrt(len(gain))


@pytest.mark.parametrize("n", [-1, 2.5, [1, 2], [1, 2, -3], "abc", None, True, np.array(3.0)])
def test_numbers_of_points_that_are_none(n):
    with pytest.raises(InputError, match=r"n must be a whole number, 0 or more, or a list of 3 of"):
        moving_mixture(3, n, seed=1)


def test_times_that_are_none():
    with pytest.raises(InputError, match="times must be a whole number, 1 or more, got 0"):
        growing_ring(0)
    found = growing_ring(4, 1, seed=1)
    for t in (0, 5, 1.5, "1"):
        with pytest.raises(InputError, match="t must be a whole number from 1 to 4, one of the"):
            found.density(t, found.points)


def test_points_that_are_none():
    found = moving_mixture(2, 1, seed=1)
    with pytest.raises(InputError, match=r"data must have 2 columns \(density\(t, x\)\), got sha"):
        found.density(1, [[1.0, 2.0, 3.0]])


def test_the_truth_is_a_value():
    assert moving_mixture(3, 1).truth == densities.MovingMixture(3)
