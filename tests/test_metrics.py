import doctest
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import kstest

import ncbayes as ncb
from ncbayes import metrics
from ncbayes.base import InputError
from ncbayes.datasets import growing_ring, moving_mixture
from ncbayes.metrics import (
    absolute_error,
    average_length,
    coverage,
    evaluation_points,
    high_density,
    intervals,
    rectangle,
    rescaled,
)
from ncbayes.spaces import Box


def test_evaluation_points_are_uniform_in_the_rectangle(seed):
    points = np.random.default_rng(seed).normal(size=(200, 2)) * [1, 30]
    box = rectangle(pd.DataFrame(points))
    assert box == Box(points.min(axis=0), points.max(axis=0))
    x = evaluation_points(points, 5000, seed)
    assert box.contains(x).all()
    low, high = box.bounds
    u = (x - low) / (high - low)
    # A line through both coordinates sees dependence; the sum of two modulo 1 is uniform too.
    columns = [u[:, 0], u[:, 1], u.sum(axis=1) % 1]
    assert min(kstest(each, "uniform").pvalue for each in columns) > 1e-6 / 3
    # The broken twin: in the middle more often.
    assert kstest((columns[0] + columns[1]) / 2, "uniform").pvalue < 1e-6 / 3


def test_evaluation_points_repeat_and_are_500(seed):
    points = [[0.0, 1.0], [2.0, 5.0]]
    x = evaluation_points(points, seed=seed)
    assert x.shape == (500, 2)
    assert np.array_equal(x, evaluation_points(points, seed=np.random.default_rng(seed)))
    assert not np.array_equal(x, evaluation_points(points, seed=seed + 1))
    assert evaluation_points(points).shape == (500, 2)


def test_rescaled_densities_have_monte_carlo_integral_one(seed):
    draws = np.random.default_rng(seed).gamma(1.0, size=(6, 3, 50))
    ours = rescaled(draws, volume=7.0)
    assert 7.0 * ours.mean(axis=-1) == pytest.approx(np.ones((6, 3)))
    assert ours[2, 1] / ours[2, 1, 0] == pytest.approx(draws[2, 1] / draws[2, 1, 0])
    assert rescaled(draws[0], 7.0) == pytest.approx(ours[0])


def test_the_absolute_error_by_hand():
    # Row 1: (.5, 1.5) against (1, 1), row 2: the same.
    estimate, truth = np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([[1.0, 1.0], [5.0, 5.0]])
    assert absolute_error(estimate, truth, 3.0) == pytest.approx(0.25)
    assert absolute_error(estimate, estimate * [[2.0], [0.1]], 3.0) == pytest.approx(0)
    # As they are: 3 mean(0, 2, 3, 3).
    assert absolute_error(estimate, truth, 3.0, rescale=False) == pytest.approx(6)


def test_the_absolute_error_is_symmetric_bounded_and_blind_to_volume(seed):
    one, other = np.random.default_rng(seed).gamma(0.3, size=(2, 4, 30))
    error = absolute_error(one, other, 2.0)
    assert error == pytest.approx(absolute_error(other, one, 50.0))
    assert 0 < error < 2
    apart = np.array([[1.0, 0.0]])
    assert absolute_error(apart, apart[:, ::-1], 2.0) == pytest.approx(2)


def test_the_absolute_error_is_the_integral(seed):
    """Against a grid: the two times of a mixture, in a rectangle that holds nearly all of them."""
    found = moving_mixture(2, 1, seed=seed)
    low, high = np.array([-5.0, -5.0]), np.array([6.0, 6.0])
    axis = low[0] + 11 * (np.arange(400) + 0.5) / 400
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    exact = np.abs(found.density(1, grid) - found.density(2, grid)).mean() * 121
    x = evaluation_points([low, high], 100_000, seed)
    one, other = found.density(1, x), found.density(2, x)
    # Rescaling moves the ratio of means by its first-order terms.
    terms = 121 * np.abs(one - other)
    sign = np.sign(one - other)
    slopes = [121 * np.mean(sign * each) for each in (one, other)]
    terms = terms - slopes[0] * 121 * one + slopes[1] * 121 * other
    error = terms.std() / math.sqrt(len(x))
    limit = -ndtri(1e-6 / 2)
    ours = absolute_error(one[None], other[None], 121.0)
    assert abs(ours - exact) < limit * error
    # The broken twin: squares for absolute values.
    assert abs(121 * np.mean((one - other) ** 2) - exact) > limit * error


def test_each_draw_is_rescaled_before_intervals_are_taken(seed):
    rng = np.random.default_rng(seed)
    shapes = rng.gamma(5.0, size=(400, 2, 20))
    scales = rng.gamma(1.0, size=(400, 2, 1))
    low, high = intervals(shapes * scales, 3.0)
    ours = shapes / (3.0 * shapes.mean(axis=-1, keepdims=True))
    assert low == pytest.approx(np.quantile(ours, 0.025, axis=0))
    assert high == pytest.approx(np.quantile(ours, 0.975, axis=0))
    # The broken twin: intervals first, rescaled by the mean of the draws; their scales show.
    draws = shapes * scales
    wrong = np.quantile(draws, [0.025, 0.975], axis=0) / (3.0 * draws.mean(axis=(0, 2))[:, None])
    assert (wrong[1] - wrong[0]).mean() > 1.5 * (high - low).mean()


def test_intervals_by_sd(seed):
    draws = np.random.default_rng(seed).gamma(5.0, size=(400, 2, 20))
    low, high = intervals(draws, 1.0, level=0.9, kind="sd")
    ours = rescaled(draws, 1.0)
    assert (low + high) / 2 == pytest.approx(ours.mean(axis=0))
    assert (high - low) / 2 == pytest.approx(1.6448536 * ours.std(axis=0, ddof=1), rel=1e-6)


def test_intervals_of_calibrated_draws_cover(seed):
    """Truth and draws from one law: the interval holds the truth with its level."""
    rng = np.random.default_rng(seed)
    draws, truth = rng.gamma(2.0, size=(999, 50, 40)), rng.gamma(2.0, size=(50, 40))
    low, high = intervals(draws, 2.0, level=0.9)
    # Points of a time share its normalizer, so times are counted as one.
    by_time = [coverage(low[[t]], high[[t]], rescaled(truth, 2.0)[[t]]) for t in range(len(truth))]
    error = np.std(by_time, ddof=1) / math.sqrt(50)
    # t with 49 degrees of freedom: once in a million.
    assert abs(np.mean(by_time) - 0.9) < 5.6 * error
    assert coverage(low, high, rescaled(truth, 2.0)) == pytest.approx(np.mean(by_time))
    # The broken twin: the truth in other units than the intervals.
    assert coverage(low, high, truth) < 0.9 - 5.6 * error


def test_coverage_and_length_by_hand():
    low, high = np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 2.0, 5.0]])
    truth = np.array([[1.0, 0.5, 3.0]])
    assert coverage(low, high, truth) == pytest.approx(2 / 3)
    assert coverage(low, high, truth, where=truth < 0.7) == 0
    assert coverage(low, high, truth, where=[[True, False, True]]) == 1
    assert average_length(low, high) == pytest.approx(5 / 3)


def test_high_density_is_relative_to_the_peak_of_each_time():
    truth = np.array([[100.0, 1.0, 1.1], [1.0, 0.02, 0.005]])
    expected = [[True, False, True], [True, True, False]]
    assert high_density(truth).tolist() == expected
    assert high_density(truth * [[5.0], [0.1]]).tolist() == expected
    assert high_density(truth, share=0.5).sum() == 2


def test_intervals_that_never_reach_zero_cover_where_the_density_matters(seed):
    """The reason for ``where``: in most of the rectangle the ring's density is practically 0."""
    found = growing_ring(seed=seed)
    x = evaluation_points(found.points, seed=seed)
    truth = np.array([found.density(t, x) for t in range(1, 11)])
    matters = high_density(truth)
    assert 0 < matters.mean() < 1
    low, high = 0.5 * truth + 1e-6 * truth.max(), 2 * truth + 1e-3 * truth.max()
    assert coverage(low, high, truth, where=matters) == 1
    assert coverage(low, high, truth) < 1


ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    ("message", "call"),
    [
        (
            r"estimate must be an array of numbers \(time, point\), got shape \(3,\)",
            lambda: absolute_error(ONES[0], ONES, 1.0),
        ),
        (
            r"truth must be an array of numbers \(time, point\), got 'x'",
            lambda: absolute_error(ONES, "x", 1.0),
        ),
        (
            r"estimate and truth must have the same shape \(time, point\), got \(2, 3\) and \(1, 3",
            lambda: absolute_error(ONES, ONES[:1], 1.0),
        ),
        (
            r"truth must hold finite numbers, got inf at \(0, 1\)",
            lambda: absolute_error(ONES, np.where([0, 1, 0], np.inf, ONES), 1.0),
        ),
        (
            r"estimate must hold densities, 0 or more, got -1 at \(0, 0\)",
            lambda: absolute_error(-ONES, ONES, 1.0),
        ),
        (
            r"estimate must be above 0 at some point of every time .* of \(1,\) \(counted from 0\)",
            lambda: absolute_error(ONES * [[1], [0]], ONES, 1.0),
        ),
        (
            r"draws must be an array of numbers \(draw, time, point\), got shape \(2, 3\)",
            lambda: intervals(ONES, 1.0),
        ),
        (
            r"values must be an array of numbers \(time, point\) or \(draw, time, point\)",
            lambda: rescaled(1.0, 1.0),
        ),
        ("draws must be two or more to make", lambda: intervals(ONES[None], 1.0)),
        ("level must be between 0 and 1, such as 0.95, got 95", lambda: level(95)),
        ("kind must be 'quantile' or 'sd', got 'hpd'", lambda: level(0.5, "hpd")),
        ("volume must be a positive number, that of the", lambda: rescaled(ONES, 0.0)),
        ("volume must be a positive number, that of the", lambda: rescaled(ONES, "1")),
        ("volume must be a positive number, that of the", lambda: rescaled(ONES, math.inf)),
        ("share must be a number from 0 to below 1, got 1", lambda: high_density(ONES, 1)),
        ("share must be a number from 0 to below 1, got '1'", lambda: high_density(ONES, "1")),
        (
            r"low must not exceed high, got 1 and 0 at \(0, 0\)",
            lambda: average_length(ONES, 0 * ONES),
        ),
        (
            r"low and high must have the same shape",
            lambda: average_length(ONES, ONES[:, :2]),
        ),
        (
            r"where must be True and False of shape \(2, 3\), with True somewhere, got int64",
            lambda: coverage(ONES, ONES, ONES, where=np.ones((2, 3), dtype=np.int64)),
        ),
        (
            r"where must be True and False of shape .* shape \(2, 3\) with 0 that are not 0",
            lambda: coverage(ONES, ONES, ONES, where=ONES < 0),
        ),
        (
            r"where must be True and False of shape .* got bool of shape \(3,\)",
            lambda: coverage(ONES, ONES, ONES, where=ONES[0] > 0),
        ),
        ("size must be a whole number, 1 or more, got 0", lambda: evaluation_points(ONES, 0)),
        (
            "seed must be a whole number, 0 or more, or a generator such as",
            lambda: evaluation_points([[0.0, 1.0], [1.0, 2.0]], 5, -1),
        ),
        (r"Box\(low, high\) needs finite bounds with low < high", lambda: rectangle(ONES)),
    ],
)
def test_what_cannot_be_measured(message, call):
    with pytest.raises(InputError, match=message):
        call()


def level(value, kind="quantile"):
    return intervals(np.ones((4, 2, 3)), 1.0, value, kind)


def test_examples_run():
    assert doctest.testmod(metrics).failed == 0
    assert ncb.metrics is metrics
