"""The study of two moons, in small."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

STUDY = Path(__file__).parents[1] / "studies" / "two_moons.py"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("two_moons", STUDY)
    module = importlib.util.module_from_spec(spec)
    sys.modules["two_moons"] = module
    spec.loader.exec_module(module)
    return module


def test_the_true_density_is_one_and_is_that_of_the_points(study):
    points, log_cell = study.grid()
    log_density = study.true_log_density(points)
    assert abs(logsumexp(log_density) + log_cell) < 1e-3
    # The mean of log p over its own draws is minus the entropy.
    entropy = -np.sum(np.exp(log_density + log_cell) * log_density)
    scores = study.true_log_density(study.moons(4000, 7))
    assert abs(scores.mean() + entropy) < 4.9 * scores.std() / np.sqrt(4000)


def test_the_last_layer_learns_and_knows_its_normalizer(study, seed):
    data, held_out = study.moons(300, seed), study.moons(500, 1000 + seed)
    weights = study.trained(data, seed, steps=400)
    assert study.size(weights) == 150
    model, posterior = study.last_layer(weights, data, seed, draws=200)
    points, log_cell = study.grid(100)
    theta = posterior.theta.to_numpy().reshape(-1, study.WIDTH)[::10]
    exact = logsumexp(theta @ model.statistics(points).T, axis=1) + log_cell
    off = posterior.log_z.to_numpy().ravel()[::10] - exact
    # Given theta, labels of 300 data points leave log Z an sd of less than 0.1.
    assert abs(off.mean()) < 0.5
    # Better than the uniform density by far.
    score = study.ncb.scores.log_score(posterior, held_out)
    assert score.low > -study.BOX.log_volume + 0.5
