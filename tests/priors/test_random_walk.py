"""The random walk: its definition by a dense matrix, conditionals, moves, and what it refuses."""

import math
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import shown
from ncbayes.priors import RandomWalk
from ncbayes.testing import check_prior, dense_precision

# Two-sided false alarm rate 1e-6 over the at most 12 numbers of a check.
LIMIT = -ndtri(1e-6 / 2 / 12)
TIMES = (2.0, 3.0, 7.0, 7.5)
VARIANTS = {
    "equally spaced": RandomWalk(2.0, 1.5, initial="walk"),
    "unequal times": RandomWalk(2.0, 1.5, times=TIMES, initial="walk"),
    "separate start": RandomWalk(2.0, 1.5, initial="separate"),
    "unequal times, separate start": RandomWalk(2.0, 1.5, TIMES, initial="separate"),
    "a variance a statistic": RandomWalk(2.0, 1.5, TIMES, per_statistic=True, initial="walk"),
    "all of it": RandomWalk(2.0, 1.5, TIMES, True, "separate"),
}
every_variant = pytest.mark.parametrize("walk", VARIANTS.values(), ids=VARIANTS)


def gaps(walk):
    """d_t of the definition: the first is 1, the others by the median gap, which is 1 here."""
    return np.ones(4) if walk.times is None else np.array([1.0, 1.0, 4.0, 0.5])


def some_state(walk, statistics=3):
    variance = [0.3, 2.0, 0.7][:statistics] if walk.per_statistic else [0.4]
    state = {"variance": np.array(variance)}
    return state | ({"initial_variance": np.array([5.0])} if walk.initial == "separate" else {})


def step_variances(walk, state):
    """Of every step, (group, statistic); the first step is that from zero."""
    steps = np.outer(gaps(walk), np.broadcast_to(state["variance"], 3))
    if walk.initial == "separate":
        steps[0] = state["initial_variance"]
    return steps


@every_variant
def test_the_precision_is_that_of_the_steps(walk):
    state = some_state(walk)
    differences = np.kron(np.eye(4) - np.eye(4, k=-1), np.eye(3))
    wanted = differences.T @ np.diag(1 / step_variances(walk, state).ravel()) @ differences
    precision, shift = walk.gaussian(state, (4, 3))
    np.testing.assert_allclose(dense_precision(precision), wanted, rtol=1e-12)
    np.testing.assert_array_equal(shift, np.zeros((4, 3)))


def test_gaps_are_measured_by_their_median():
    years, days = (
        RandomWalk(times=tuple(np.array([0, 1, 2, 7]) * unit), initial="walk") for unit in (1, 365)
    )
    state = {"variance": np.array([0.5])}
    (one, _), (other, _) = (walk.gaussian(state, (4, 2)) for walk in (years, days))
    np.testing.assert_allclose(one.within, other.within, rtol=1e-12)
    np.testing.assert_allclose(one.between, [[-2, -2], [-2, -2], [-0.4, -0.4]])


@pytest.mark.parametrize("initial", ["walk", "separate"])
@pytest.mark.parametrize("times", [None, (7.0,)])
def test_one_group_is_a_normal(initial, times, seed):
    """Nothing to walk to: the prior is that of a static model, and lambda keeps its own."""
    walk = RandomWalk(2.0, 1.5, times, initial=initial)
    state = {"variance": np.array([0.3]), "initial_variance": np.array([4.0])}
    precision, shift = walk.gaussian(state, (1, 2))
    scale = math.sqrt(4.0 if initial == "separate" else 0.3)
    normal, normal_shift = ncb.priors.Normal(scale).gaussian({}, (1, 2))
    np.testing.assert_allclose(precision.within, normal.within, rtol=1e-12)
    np.testing.assert_array_equal(shift, normal_shift)
    assert precision.between is None
    if initial == "separate":
        found = updated(walk, state, np.ones((1, 2)), seed)["variance"]
        assert_gamma(1 / found, 2.0, 1.5)


def updated(walk, state, theta, seed, count=8000):
    rng = np.random.default_rng(seed)
    moved = [walk.update(state, theta, rng) for _ in range(count)]
    return {name: np.array([each[name] for each in moved]) for name in moved[0]}


def gamma_scores(values, shape, rate):
    """z-scores of the mean and the variance of gammas (draw, k)."""
    values, mean, spread = values * rate, shape, math.sqrt(shape)
    errors = [values.mean(axis=0) - mean, ((values - mean) ** 2).mean(axis=0) - shape]
    # The fourth central moment of a gamma is 3 k^2 + 6 k.
    widths = [spread, math.sqrt(2 * shape**2 + 6 * shape)]
    return np.array([e / (w / math.sqrt(len(values))) for e, w in zip(errors, widths, strict=True)])


def assert_gamma(values, shape, rate):
    assert np.abs(gamma_scores(values, shape, rate)).max() < LIMIT


@every_variant
def test_variances_given_theta_are_inverse_gamma(walk, seed):
    theta = np.array([[1.0, -2.0, 0.3], [1.5, -1.0, 0.1], [0.0, 1.0, 0.6], [0.4, 0.5, 0.2]])
    found = updated(walk, some_state(walk), theta, seed)
    squares = np.diff(theta, axis=0, prepend=np.zeros((1, 3))) ** 2 / gaps(walk)[:, None]
    own = squares[1:] if walk.initial == "separate" else squares
    if walk.initial == "separate":
        assert_gamma(1 / found["initial_variance"], 2 + 3 / 2, 1.5 + squares[0].sum() / 2)
    if walk.per_statistic:
        shape, rate = 2 + len(own) / 2, 1.5 + own.sum(axis=0) / 2
    else:
        shape, rate = 2 + own.size / 2, 1.5 + own.sum() / 2
    assert_gamma(1 / found["variance"], shape, rate)
    # The broken twins: one step too few, and gaps that are left out.
    assert np.abs(gamma_scores(1 / found["variance"], shape - 0.5, rate)).max() > LIMIT
    if walk.times is not None:
        plain = np.sum(
            (own * gaps(walk)[-len(own) :, None]), axis=0 if walk.per_statistic else None
        )
        assert np.abs(gamma_scores(1 / found["variance"], shape, 1.5 + plain / 2)).max() > LIMIT


@every_variant
def test_the_check_of_priors_passes(walk, seed):
    check_prior(walk, (4, 3), seed=seed)


@dataclass(frozen=True)
class Regular(RandomWalk):
    """Forgets the gaps when it updates."""

    def update(self, state, theta, rng):
        return replace(RandomWalk(**vars(self)), times=None).update(state, theta, rng)


@dataclass(frozen=True)
class Together(RandomWalk):
    """Takes the first group for a step of the walk when it updates, though it has a variance."""

    def update(self, state, theta, rng):
        moved = replace(RandomWalk(**vars(self)), initial="walk").update(state, theta, rng)
        return {**state, **moved}


@dataclass(frozen=True)
class Mingled(RandomWalk):
    """Updates the variances of all statistics by the mean of their squares."""

    def update(self, state, theta, rng):
        mean = np.sqrt(np.mean(theta**2, axis=1, keepdims=True))
        return super().update(state, np.broadcast_to(mean, theta.shape), rng)


@pytest.mark.parametrize(
    "broken",
    [
        Regular(2.0, 1.5, (0.0, 1.0, 2.0, 40.0)),
        Together(2.0, 1.5, initial="separate"),
        Mingled(2.0, 1.5, per_statistic=True),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_check_of_priors_rejects_broken_twins(broken, seed):
    with pytest.raises(AssertionError, match="do not leave the law of its state"):
        check_prior(broken, (4, 3), seed=seed)


def test_draws_follow_the_prior(seed):
    rng = np.random.default_rng(seed)
    for walk in VARIANTS.values():
        states = [walk.draw((4, 3), rng) for _ in range(4000)]
        for name in states[0]:
            assert_gamma(1 / np.array([state[name] for state in states]), 2.0, 1.5)


@pytest.mark.parametrize(
    "times", ["later", 3.0, [], [[1.0, 2.0]], [1.0, math.nan], [1.0, math.inf], [True], (0, 1e200)]
)
def test_times_are_finite_numbers(times):
    with pytest.raises(
        ncb.InputError,
        match=r"^RandomWalk\(times=...\) must be finite numbers of up to 1e\+100, one for each "
        rf"group, such as \(2020, 2021, 2024\), got {re.escape(shown(times))}$",
    ):
        RandomWalk(times=times)


@pytest.mark.parametrize("times", [(1.0, 3.0, 2.0), (1.0, 1.0), (2, 1)])
def test_times_rise(times):
    with pytest.raises(
        ncb.InputError,
        match=rf"^RandomWalk\(times=...\) must rise from group to group, got "
        rf"{re.escape(shown(times))}; sort the groups by time, and join those of the same time$",
    ):
        RandomWalk(times=times)


def test_times_are_apart():
    RandomWalk(times=(0.0, 1e-11, 1.0, 2.0))
    with pytest.raises(
        ncb.InputError,
        match=r"^RandomWalk\(times=...\) must be at least 1e-12 median gaps apart, got \(0.0, 1e-1"
        r"3, 1.0, 2.0\); join groups that are almost at the same time$",
    ):
        RandomWalk(times=(0.0, 1e-13, 1.0, 2.0))


def test_there_is_a_time_for_each_group():
    message = r"^RandomWalk\(times=...\) must hold one time for each of the 3 groups, got 4$"
    walk, state = RandomWalk(times=TIMES, initial="walk"), {"variance": np.ones(1)}
    for ask in (
        lambda: walk.gaussian(state, (3, 2)),
        lambda: walk.update(state, np.ones((3, 2)), np.random.default_rng(0)),
    ):
        with pytest.raises(ncb.InputError, match=message):
            ask()


@pytest.mark.parametrize("initial", ["start", None, True, ["walk"], np.array(["walk", "separate"])])
def test_starts_are_two(initial):
    with pytest.raises(
        ncb.InputError, match=r'^RandomWalk\(initial=...\) must be "walk" or "separate", got '
    ):
        RandomWalk(initial=initial)


@pytest.mark.parametrize("value", ["no", 1, None])
def test_per_statistic_is_yes_or_no(value):
    with pytest.raises(
        ncb.InputError,
        match=r"^RandomWalk\(per_statistic=...\) must be True or False, got " + shown(value),
    ):
        RandomWalk(per_statistic=value)
