"""Noise of spins is that of zeros and ones, with -1 in the place of 0."""

import itertools

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import noise
from ncbayes.models import Ising
from ncbayes.quadrature import quadrature
from ncbayes.spaces import Binary
from ncbayes.testing import check_noise

SPINS = Binary(3, spins=True)
CUBE = np.array(list(itertools.product([0.0, 1.0], repeat=3)))


def bits(seed):
    return (np.random.default_rng(seed).random((60, 3)) < [0.2, 0.5, 0.8]).astype(float)


MADE = {
    "Bernoulli": lambda data, space: noise.Bernoulli([0.2, 0.5, 0.7], space.spins),
    "Bernoulli.match": lambda data, space: noise.Bernoulli.match(data, space.spins),
    "matched": lambda data, space: noise.matched(space, data),
    "margins": lambda data, space: noise.margins(data, space),
    "kernels": lambda data, space: noise.KernelDensity.match(data, space),
    "uniform": lambda data, space: noise.Uniform(space),
}
EVERY = pytest.mark.parametrize("made", MADE.values(), ids=MADE)


@EVERY
def test_densities_and_draws_are_those_of_zeros_and_ones(made, seed):
    data = bits(seed)
    plain, spins = made(data, Binary(3)), made(2 * data - 1, SPINS)
    assert np.array_equal(spins.log_density(2 * CUBE - 1), plain.log_density(CUBE))
    draws = [each.sample(50, np.random.default_rng(seed)) for each in (plain, spins)]
    assert np.array_equal(draws[1], 2 * draws[0] - 1)
    assert np.exp(spins.log_density(2 * CUBE - 1)).sum() == pytest.approx(1)
    assert np.isneginf(spins.log_density(np.array([[0.0, 1.0, 1.0]]))).all()


@EVERY
def test_spins_pass_the_check_of_noise(made, seed):
    check_noise(made(2 * bits(seed) - 1, SPINS), SPINS, seed=seed)


def test_the_check_of_noise_refuses_spins_with_other_odds(seed):
    class Wrong:
        dimension = 3

        def sample(self, size, rng):
            return noise.Bernoulli([0.2, 0.5, 0.8], spins=True).sample(size, rng)

        def log_density(self, x):
            return noise.Bernoulli([0.2, 0.5, 0.7], spins=True).log_density(x)

    with pytest.raises(AssertionError, match="do not follow its log_density"):
        check_noise(Wrong(), SPINS, seed=seed)


def test_the_space_of_spins():
    assert SPINS.log_volume == Binary(3).log_volume
    assert SPINS.contains(np.array([[-1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])).tolist() == [True, False]
    draws = SPINS.uniform(100, np.random.default_rng(0))
    assert set(np.unique(draws)) == {-1.0, 1.0}
    with pytest.raises(ncb.InputError, match=r"Binary\(spins=...\) must be True or False, got 3"):
        Binary(2, spins=3)


def test_expectations_sum_over_spins():
    model, theta = Ising(3, coding="spins"), np.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.4])
    points, weights, _ = quadrature(model, theta)
    assert sorted(map(tuple, points)) == sorted(map(tuple, 2 * CUBE - 1))
    gradient = [
        (model.log_partition(theta + e) - model.log_partition(theta - e)) / 2e-5
        for e in 1e-5 * np.eye(6)
    ]
    assert weights @ model.statistics(points) == pytest.approx(gradient, abs=1e-8)
