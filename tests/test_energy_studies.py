"""The studies of energies, in small."""

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


def test_the_study_of_noise_for_energies():
    import energy_noise

    rng = np.random.default_rng(1)
    for name, make in energy_noise.CELLS.items():
        energy, truth = make()
        space = energy.space
        x = (
            space.uniform(9, rng)
            if np.isfinite(space.log_volume)
            else rng.normal(size=(9, space.dimension))
        )
        row = energy.row({key: np.array(value) for key, value in truth.items()})
        assert np.all(np.isfinite(energy.evaluated(row[None], x))), name
        steps = 1e-5 * np.eye(space.dimension)
        slopes = [
            (energy.evaluated(row[None], x + step) - energy.evaluated(row[None], x - step))[0]
            / 2e-5
            for step in steps
        ]
        np.testing.assert_allclose(
            energy.slopes(row, x), np.transpose(slopes), rtol=1e-5, atol=1e-6
        )
    one = {
        "ratio": 10.0, "widening": [0.04, 0.05], "off": 1.0, "seconds": 9.0, "noise": "good",
        "chosen": "the fitted model", "kept": {},
    }  # fmt: skip
    done = {("wells 5", 1): {"auto": one, "families alone": {**one, "off": -2.0}}}
    lines = energy_noise.table(done).splitlines()
    assert lines[2] == (
        "| wells 5 | 1 | auto | the fitted model | 10 to 10 | 4 % | 5 % | 1.00 | 9 | good |"
    )
    assert lines[3].endswith("| 2.00 | 9 | good |")
