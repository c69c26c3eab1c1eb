"""Rows simulated from a fitted model follow it: against enumeration and exact samplers."""

import numpy as np
import pytest
from scipy.special import softmax

from ncbayes import models, noise, spaces
from ncbayes.checks import populations
from ncbayes.normalizers import normalizer

SIZE = 4000


def near(found, wanted, count):
    """Whether means of rows are those wanted, within five standard errors of ``count`` rows."""
    spread = np.sqrt(np.maximum(wanted * (1 - wanted), 1e-3) / count)
    return np.abs(found - wanted).max() < 5 * spread.max()


def table(model, theta):
    d = model.space.dimension
    points = np.array(np.meshgrid(*[[0.0, 1.0]] * d, indexing="ij")).reshape(d, -1).T
    return points, softmax(model.statistics(points) @ theta)


def test_particles_of_annealing_follow_the_model(seed):
    rng = np.random.default_rng(seed)
    model = models.Ising(4)
    theta = np.append(np.full(4, -1.0), rng.normal(size=6))
    points, mass = table(model, theta)
    known = normalizer(model, theta[None], 0, None, rng)
    assert known.way == "sum"  # which has no particles: an annealed twin is made by hand
    weights = rng.random(500)
    particles = points[rng.choice(len(points), 500)]
    twin = type(known)(known.log_z, 0.0, "annealing", 0.0, (particles, np.log(weights)))
    rows, worth = populations.from_base(model, theta, twin, SIZE, rng)
    assert worth <= SIZE * populations.INDEPENDENT
    assert near(rows.mean(axis=0), mass @ points, worth)
    exact, all_worth = populations.from_base(model, theta, known, SIZE, rng)
    assert all_worth == SIZE
    assert near(exact.mean(axis=0), mass @ points, SIZE)


def test_rows_of_the_data_move_to_the_model(seed):
    rng = np.random.default_rng(seed)
    model = models.Ising(3)
    theta = np.array([0.5, -0.5, 0.0, 0.7, 0.0, -0.4])
    points, mass = table(model, theta)
    rows = populations.from_rows(model, theta, np.zeros((7, 3)), SIZE, rng)
    assert near(rows.mean(axis=0), mass @ points, SIZE)
    # The broken twin: at another theta they are elsewhere.
    assert not near(
        populations.from_rows(model, -theta, np.zeros((7, 3)), SIZE, rng).mean(axis=0),
        mass @ points,
        SIZE,
    )


class Bump:
    """An angle with a density that nobody can sample."""

    space = spaces.Torus(1)
    groups = {"bump": ("cos", "sin")}  # noqa: RUF012

    def statistics(self, x):
        return np.column_stack([np.cos(x), np.sin(x)])

    def log_base(self, x):
        return np.zeros(len(x))


@pytest.mark.parametrize("way", ["grid", "walk"])
def test_models_without_a_sampler_are_simulated_by_a_walk(way, seed):
    rng = np.random.default_rng(seed)
    theta = np.array([1.5, -0.5])
    exact = models.VonMises().sample(theta, 50_000, rng)
    wanted = np.exp(1j * exact).mean()
    if way == "grid":
        rows, worth = populations.from_base(Bump(), theta, None, SIZE, rng)
    else:
        started = noise.Uniform(spaces.Torus(1)).sample(50, rng)
        rows, worth = populations.from_rows(Bump(), theta, started, SIZE, rng), SIZE / 8
    assert abs(np.exp(1j * rows).mean() - wanted) < 5 / np.sqrt(worth)


def test_resampling_takes_each_as_often_as_its_weight(seed):
    weights = np.array([0.1, 0.25, 0.0, 0.65])
    chosen = populations._systematic(weights, 100, np.random.default_rng(seed))
    assert np.abs(np.bincount(chosen, minlength=4) - 100 * weights).max() <= 1
