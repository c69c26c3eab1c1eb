import doctest
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import gaussian_kde, multivariate_normal

import ncbayes as ncb
from ncbayes import baselines
from ncbayes.base import InputError
from ncbayes.baselines import Kernels, TimewiseKDE
from ncbayes.datasets import growing_ring
from ncbayes.spaces import Binary, Box, Reals, Torus

LINE = np.column_stack([np.arange(5.0), 2 * np.arange(5.0)])


@pytest.fixture
def data(seed):
    found = growing_ring(3, [40, 70, 25], seed=seed)
    return found.points, found.times


@pytest.fixture
def x(seed):
    return np.random.default_rng(seed + 100).uniform(-4, 4, (60, 2))


def test_every_time_is_scipys_estimate(data, x):
    points, times = data
    kde = TimewiseKDE.of(points, times)
    assert kde.labels == (1, 2, 3)
    for k, t in enumerate((1, 2, 3)):
        theirs = gaussian_kde(points[times == t].T)
        assert kde.kernels[k].covariance == pytest.approx(theirs.covariance, rel=1e-12)
        assert kde.log_density(t, x) == pytest.approx(theirs.logpdf(x.T), rel=1e-10)
        assert kde.density(x)[k] == pytest.approx(theirs.pdf(x.T), rel=1e-10)
    assert kde.density(x).shape == (3, 60)


@pytest.mark.parametrize("dimension", [1, 3])
def test_other_dimensions(dimension, seed):
    points = np.random.default_rng(seed).normal(size=(30, dimension))
    kde = TimewiseKDE.of(points, np.zeros(30))
    assert kde.density(points)[0] == pytest.approx(gaussian_kde(points.T).pdf(points.T), rel=1e-10)


def test_chunks_do_not_show(data, x, monkeypatch):
    before = TimewiseKDE.of(*data).density(x)
    monkeypatch.setattr(baselines, "CHUNK", 7 * 25)
    assert np.array_equal(TimewiseKDE.of(*data).density(x), before)


def test_far_away_the_log_density_is_still_finite(data):
    logs = TimewiseKDE.of(*data).log_density(1, [[1e4, 0.0]])
    assert np.isfinite(logs).all()
    assert logs[0] < -1e6


def mixture(x, centers, covariance):
    logs = [multivariate_normal(each, covariance).logpdf(x) for each in centers]
    return logsumexp(logs, axis=0) - math.log(len(centers))


@pytest.mark.parametrize(
    "few",
    [
        LINE[:1],
        LINE[:2],
        LINE,
        LINE + np.outer([0, 1e-9, 0, 0, 0], [0, 1]),
        np.ones((9, 2)),
    ],
    ids=["one point", "two points", "a line", "nearly a line", "one place"],
)
def test_points_that_do_not_fill_the_plane_borrow_the_pooled_covariance(data, x, few):
    points, times = data
    both, labels = np.concatenate([points, few]), np.append(times, [9] * len(few))
    kde = TimewiseKDE.of(both, labels)
    expected = np.cov(both.T) * len(few) ** (-2 / 6)
    assert kde.log_density(9, x) == pytest.approx(mixture(x, few, expected), rel=1e-10)
    assert kde.log_density(1, x) == pytest.approx(TimewiseKDE.of(points, times).log_density(1, x))


def test_three_points_that_fill_the_plane_are_on_their_own(data, x):
    points, times = data
    three = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    kde = TimewiseKDE.of(np.concatenate([points, three]), np.append(times, [9] * 3))
    assert kde.log_density(9, x) == pytest.approx(gaussian_kde(three.T).logpdf(x.T))


def test_a_time_without_points_takes_the_pooled_estimate(data, x):
    points, times = data
    kde = TimewiseKDE.of(points, times, labels=[0, 1, 2, 3])
    assert kde.labels == (0, 1, 2, 3)
    assert kde.log_density(0, x) == pytest.approx(gaussian_kde(points.T).logpdf(x.T))
    assert np.array_equal(kde.density(x)[1:], TimewiseKDE.of(points, times).density(x))


def test_duplicates_do_no_harm(data, x):
    points, times = data
    twice = TimewiseKDE.of(np.round(points, 1).repeat(2, axis=0), times.repeat(2))
    assert np.isfinite(twice.density(x)).all()


def test_in_a_box_the_mass_is_that_of_scipys_integral(data, x):
    points, times = data
    box = Box(points.min(axis=0), points.max(axis=0))
    kde = TimewiseKDE.of(points, times, box)
    for k, t in enumerate((1, 2, 3)):
        theirs = gaussian_kde(points[times == t].T)
        mass = theirs.integrate_box(*box.bounds)
        assert math.exp(kde.log_mass[k]) == pytest.approx(mass, abs=5e-4)
        held = box.contains(x)
        assert 0 < held.sum() < len(x)
        assert kde.log_density(t, x)[held] == pytest.approx(
            theirs.logpdf(x[held].T) - math.log(mass), abs=1e-3
        )
        assert (kde.density(x)[k, ~held] == 0).all()
    # Without normalization a good part of the last ring is missing.
    assert kde.log_mass[2] < math.log(0.95)


class Disc:
    """The unit disc as a space, as short as a user may write it."""

    dimension, log_volume = 2, math.log(math.pi)

    def check(self, points, columns):
        return points

    def contains(self, points):
        return (points**2).sum(axis=1) <= 1

    def uniform(self, size, rng):
        raise NotImplementedError


def test_any_space_is_a_domain(seed):
    """One normal kernel: of N(0, s^2 I) the share 1 - exp(-1 / (2 s^2)) is in the unit disc."""
    kernels = Kernels(np.zeros((1, 2)), 0.64 * np.eye(2))
    assert baselines._log_mass(kernels, Disc()) == pytest.approx(
        math.log1p(-math.exp(-1 / 1.28)), abs=1e-3
    )
    points = 0.4 * np.random.default_rng(seed).normal(size=(50, 2))
    assert TimewiseKDE.of(points, [1] * 50, Disc()).log_density(1, [[2.0, 0]])[0] == -math.inf
    everywhere = TimewiseKDE.of(points, [1] * 50, Reals(2))
    assert everywhere.log_mass[0] == pytest.approx(0, abs=1e-6)
    inside = TimewiseKDE.of(points % 6, [1] * 50, Torus(2))
    assert inside.log_mass[0] < -0.1


def test_labels_may_be_words_dates_or_months(data):
    points, times = data
    words = TimewiseKDE.of(pd.DataFrame(points), np.array(["?", "b", "a", "c"])[times])
    assert words.labels == ("a", "b", "c")
    dates = pd.to_datetime("2022-01-01") + pd.to_timedelta(times, "D")
    by_day = TimewiseKDE.of(points, pd.Series(dates, index=range(5, 5 + len(times))))
    assert by_day.log_density(pd.Timestamp("2022-01-03"), [[0.0, 0]]) == pytest.approx(
        words.log_density("a", [[0.0, 0]])
    )
    months = TimewiseKDE.of(points, pd.PeriodIndex(dates, freq="M"))
    assert months.labels == (pd.Period("2022-01", "M"),)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("times must be a list of 5 times, one for each row of points, got shape", {"times": [1]}),
        ("times must be a list of 5 times, one for each row of points, got shape", {"times": 3}),
        ("times must not be missing, got nan in row 1", {"times": [1, np.nan, 1, 1, 1]}),
        ("times must be of one kind, to be sorted, got", {"times": [1, "a", 1, 1, 1]}),
        ("labels must be different times, at least one, got", {"labels": [1, 1]}),
        ("labels must be different times, at least one, got", {"labels": []}),
        ("labels must hold every time that occurs, got 2 in row 1", {"labels": [1]}),
        ("points must have at least 3 rows that vary in every direction, got 5", {"points": LINE}),
        ("points must have at least 3 rows that vary in every", {"points": LINE * [1, 0]}),
        ("domain must be a space, such as", {"domain": "city"}),
        (r"data must have 3 columns \(TimewiseKDE\), got shape", {"domain": Reals(3)}),
        ("data must lie in the box", {"domain": Box([0, 0], [1, 1])}),
    ],
)
def test_what_cannot_be_estimated(message, arguments):
    points = LINE + np.outer([0, 1, 0, 3, 0], [0, 1])
    with pytest.raises(InputError, match=message):
        TimewiseKDE.of(**{"points": points, "times": [1, 2, 1, 2, 1], **arguments})


def test_two_points_are_not_enough():
    with pytest.raises(InputError, match=r"points must have at least 3 rows .* got 2"):
        TimewiseKDE.of(LINE[:2], [1, 2])


def test_a_domain_without_area():
    points = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    with pytest.raises(InputError, match=r"domain must have an area, got Binary\(dimension=2"):
        TimewiseKDE.of(points, [1] * 4, Binary(2))


def test_labels_and_points_that_are_none(data):
    kde = TimewiseKDE.of(*data)
    with pytest.raises(InputError, match=r"label must be one of the times \[1, 2, 3\], got 4"):
        kde.log_density(4, [[0.0, 0.0]])
    with pytest.raises(InputError, match=r"data must have 2 columns \(TimewiseKDE\)"):
        kde.density([[0.0, 0.0, 1.0]])


def test_examples_run():
    assert doctest.testmod(baselines).failed == 0


def test_it_is_a_namespace_that_comes_when_called():
    assert ncb.baselines.TimewiseKDE is TimewiseKDE
    code = "import sys, ncbayes; print('ncbayes.baselines' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
