"""The prior of coef, put together from blocks."""

from dataclasses import dataclass

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.base import Precision
from ncbayes.priors.blocks import Blocks, Part, blocks
from ncbayes.testing import check_prior, dense_precision

GROUPS = {"marginal": ("a", "b"), "edge": ("c", "d", "e")}


def DEFAULT(start, stop):
    return ncb.priors.Normal([3.0, 3.0, 4.0, 4.0, 4.0][start:stop])


def precision_of(prior, groups=2, state=None):
    full = blocks(prior, GROUPS, DEFAULT)
    shape = (groups, 6)
    state = full.draw(shape, np.random.default_rng(0)) if state is None else state
    return full.gaussian(state, shape), state


def test_defaults_and_the_normalizer():
    (precision, shift), state = precision_of(None)
    row = [1 / 9, 1 / 9, 1 / 16, 1 / 16, 1 / 16, 1 / 1000]
    np.testing.assert_allclose(precision.within, [row, row])
    assert precision.between is None
    assert not shift.any()
    assert state == {}


def test_a_mapping_sets_blocks_and_the_normalizer():
    prior = {
        "edge": ncb.priors.Normal([1.0, 2.0, 4.0], mean=1.0),
        "normalizer": ncb.priors.Normal(5),
    }
    (precision, shift), _ = precision_of(prior, groups=1)
    np.testing.assert_allclose(precision.within, [[1 / 9, 1 / 9, 1, 0.25, 1 / 16, 0.04]])
    np.testing.assert_allclose(shift, [[0, 0, 1, 0.25, 1 / 16, 0]])


def test_a_single_prior_is_for_all_of_theta():
    state = {"theta.variance": np.array([0.5])}
    (precision, _), state = precision_of(
        ncb.priors.RandomWalk(rate=1.0, initial="walk"), state=state
    )
    np.testing.assert_allclose(precision.within, [[4] * 5 + [0.001], [2] * 5 + [0.001]])
    np.testing.assert_allclose(precision.between, [[-2] * 5 + [0]])
    assert list(state) == ["theta.variance"]


def test_coupled_and_uncoupled_blocks_stand_side_by_side():
    state = {"edge.variance": np.array([0.25])}
    (precision, _), _ = precision_of(
        {"edge": ncb.priors.RandomWalk(rate=1.0, initial="walk")}, groups=3, state=state
    )
    np.testing.assert_allclose(precision.between, [[0, 0, -4, -4, -4, 0]] * 2)


@dataclass(frozen=True)
class Correlated:
    """A prior with full blocks, as a population covariance has."""

    def draw(self, shape, rng):
        return {}

    def gaussian(self, state, shape):
        block = np.eye(shape[1]) + 0.5
        return Precision(np.broadcast_to(block, (shape[0], *block.shape))), np.zeros(shape)

    def update(self, state, theta, rng):
        return state


def test_full_blocks_are_embedded():
    (precision, _), _ = precision_of({"edge": Correlated()})
    expected = np.diag([1 / 9, 1 / 9, 0, 0, 0, 1 / 1000])
    expected[2:5, 2:5] = np.eye(3) + 0.5
    np.testing.assert_allclose(precision.within, [expected, expected])


def test_random_walk_is_the_joint_density_of_its_steps():
    walk = ncb.priors.RandomWalk(rate=1.0, initial="walk")
    precision, _ = walk.gaussian({"variance": np.array([0.3])}, (4, 2))
    theta = np.random.default_rng(0).standard_normal((4, 2))
    steps = np.diff(theta, axis=0, prepend=np.zeros((1, 2)))
    quadratic = theta.ravel() @ dense_precision(precision) @ theta.ravel()
    assert quadratic == pytest.approx(np.sum(steps**2) / 0.3)


def test_a_walk_of_one_step_is_a_normal():
    precision, _ = ncb.priors.RandomWalk(rate=1.0, initial="walk").gaussian(
        {"variance": np.array([0.3])}, (1, 2)
    )
    np.testing.assert_allclose(precision.within, [[1 / 0.3] * 2])
    assert precision.between is None


def test_blocks_pass_the_check_of_a_prior(seed):
    prior = {
        "marginal": ncb.priors.HalfCauchyNormal(),
        "edge": ncb.priors.RandomWalk(2.0, 1.0, initial="walk"),
    }
    check_prior(blocks(prior, GROUPS, DEFAULT), (2, 6), seed=seed)


def test_blocks_whose_updates_are_swapped_are_rejected(seed):
    class Swapped(ncb.priors.HalfCauchyNormal):
        def update(self, state, theta, rng):
            return super().update(state, theta[:1], rng)

    broken = Blocks((Part("a", Swapped(), 0, 2), Part("b", ncb.priors.HalfCauchyNormal(), 2, 4)))
    with pytest.raises(AssertionError, match="do not leave the law"):
        check_prior(broken, (3, 4), seed=seed)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ncb.priors.HalfCauchyNormal(0.0), "HalfCauchyNormal.* must be positive"),
        (lambda: ncb.priors.HalfCauchyNormal(np.inf), "HalfCauchyNormal.* must be positive"),
        (lambda: ncb.priors.RandomWalk(shape=0), r"RandomWalk\(shape=...\) must be positive"),
        (lambda: ncb.priors.RandomWalk(rate=-1), r"RandomWalk\(rate=...\) must be positive"),
        (lambda: ncb.priors.Normal(1.0, mean=np.nan), r"Normal\(mean=...\) must be finite"),
    ],
)
def test_bad_settings(make, sentence):
    with pytest.raises(ncb.InputError, match=sentence):
        make()
