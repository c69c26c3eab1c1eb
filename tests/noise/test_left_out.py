"""Kernel noise at the rows of a fit: each row's own kernel is left out of the density there."""

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import noise
from ncbayes.base import log_density_at_rows
from ncbayes.noise import KernelDensity, Mixture, Product, Restricted, Uniform
from ncbayes.noise.tempered import Resampled, Tempering
from ncbayes.problem import Source
from ncbayes.spaces import Binary, Box, Orthant, Reals, Torus

RNG = np.random.default_rng(7)
SPACES = {
    "reals": (Reals(3), RNG.standard_normal((25, 3))),
    "angles": (Torus(2), RNG.uniform(0, 6, (25, 2))),
    "positive": (Orthant(2), RNG.gamma(2.0, size=(25, 2))),
    "box": (Box((0, 0), (1, 1)), RNG.random((25, 2))),
    "binary": (Binary(4), RNG.integers(0, 2, (25, 4)).astype(float)),
    "repeated": (Reals(1), np.round(RNG.standard_normal((25, 1)), 1)),
}


def others(kernels, x, row):
    """The density at a row, of kernels at all rows but this one."""
    rest = np.delete(x, row, axis=0)
    alone = KernelDensity(rest, kernels.bandwidth, kernels.space)
    return alone.log_density(x[row : row + 1])[0]


@pytest.mark.parametrize(("space", "x"), SPACES.values(), ids=SPACES)
def test_each_row_is_seen_by_the_other_rows_kernels(space, x):
    kernels = KernelDensity.match(x, space)
    wanted = [others(kernels, x, row) for row in range(len(x))]
    assert kernels.log_density_at_rows(x, x) == pytest.approx(wanted)
    # The twin that counts every kernel is told apart.
    assert np.all(kernels.log_density(x) > np.array(wanted))


def test_rows_without_a_kernel_of_their_own_lose_none():
    x = RNG.standard_normal((40, 2))
    kernels = KernelDensity.match(x, most=11)
    centers = np.linspace(0, 39, 11).astype(int)
    found, plain = kernels.log_density_at_rows(x, x), kernels.log_density(x)
    assert set(np.flatnonzero(~np.isclose(found, plain, rtol=1e-12))) == set(centers)


def test_kernels_of_another_sample_lose_none():
    train, test = RNG.integers(0, 2, (2, 30, 12)).astype(float)
    kernels = KernelDensity.match(train, Binary(12))
    test[:5] = train[:5]  # rows that are the same by accident
    assert kernels.log_density_at_rows(test, test) == pytest.approx(kernels.log_density(test))


def test_groups_that_share_noise_made_from_all_of_them():
    x = RNG.standard_normal((30, 2))
    kernels = KernelDensity.match(x)
    source = Source(("a", "b"), (kernels,) * 2, (x[:4], x[4:]), (5, 5), 1)
    wanted = [others(kernels, x, row) for row in range(30)]
    found = [each.log_density_at_data for each in source.fixed(0).sets]
    assert np.concatenate(found) == pytest.approx(wanted)
    # At its own draws noise has the density that it is drawn from.
    drawn = source.fixed(0).sets[0]
    assert drawn.log_density == pytest.approx(kernels.log_density(drawn.points))


class Tilted:
    space, groups = Reals(2), {"linear": ["x"]}

    def statistics(self, x):
        return x[:, :1]

    def log_base(self, x):
        return np.zeros(len(x))


def test_noise_made_of_kernels_leaves_them_out_too():
    x = RNG.random((20, 2))
    kernels, square = KernelDensity.match(x), Box((0, 0), (1, 1))
    alone = kernels.log_density_at_rows(x, x)
    mixed = Mixture((kernels, Uniform(square)), (0.75, 0.25))
    assert log_density_at_rows(mixed, x, x) == pytest.approx(np.log(0.75 * np.exp(alone) + 0.25))
    cut = Restricted(kernels, square, -0.5)
    assert log_density_at_rows(cut, x, x) == pytest.approx(alone + 0.5)
    columns = [KernelDensity.match(x[:, :1]), KernelDensity.match(x[:, 1:])]
    product = sum(
        part.log_density_at_rows(x[:, k : k + 1], x[:, k : k + 1]) for k, part in enumerate(columns)
    )
    assert log_density_at_rows(Product(columns), x, x) == pytest.approx(product)
    way = Resampled(Tilted(), kernels, Tempering(np.array([2.0]), 0.25, 0.1, 0, 1, 2))
    assert log_density_at_rows(way, x, x) == pytest.approx(0.75 * alone + 0.5 * x[:, 0] - 0.1)
    plain = noise.Normal.match(x)
    assert log_density_at_rows(plain, x, x) == pytest.approx(plain.log_density(x))


def test_minus_zero_is_zero():
    x = np.array([[0.0], [0.5], [1.0], [2.0]])
    kernels = KernelDensity.match(np.where(x == 0, -0.0, x), Orthant(1))
    assert kernels.log_density_at_rows(x, x)[0] == pytest.approx(others(kernels, x, 0))


class Spheres:
    """``log p(x) = -a |x|^2 / 2`` in five dimensions."""

    space, groups = Reals(5), {"precision": ["a"]}

    def statistics(self, x):
        return -(x**2).sum(axis=1, keepdims=True) / 2

    def log_base(self, x):
        return np.zeros(len(x))


class CountsAll:
    """Kernels whose own one counts at the rows: the broken twin."""

    def __init__(self, kernels):
        self.sample, self.log_density = kernels.sample, kernels.log_density


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_kernel_noise_in_five_dimensions_agrees_with_the_likelihood():
    left_out, counted = [], []
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((500, 5)) / np.sqrt(1.5)
        kernels, best = KernelDensity.match(x), 2500 / (x**2).sum()
        settings = {
            "noise_ratio": 1,
            "draws": 150,
            "tune": 100,
            "chains": 1,
            "seed": seed,
            "progress": False,
        }
        for found, each in ((left_out, kernels), (counted, CountsAll(kernels))):
            posterior = ncb.fit(Spheres(), x, noise=each, **settings)
            found.append(float(posterior.theta.mean()) - best)
    # One fit differs by 0.043 (sd over data sets), so the mean of four by 0.022.
    assert abs(np.mean(left_out)) < 4.9 * 0.022
    assert np.mean(counted) < -2 * 4.9 * 0.022
