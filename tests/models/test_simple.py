import math
import os
import warnings

import numpy as np
import pytest
from scipy import integrate, stats

from ncbayes.base import InputError, Model
from ncbayes.models import Exponential, Gamma, Gaussian, VonMises

SEED = int(os.environ.get("NCBAYES_TEST_SEED", "1"))

PRECISION = np.array([[2.0, 0.5, -0.4], [0.5, 1.5, 0.3], [-0.4, 0.3, 1.0]])
LINEAR = np.array([0.5, -1.0, 0.25])
THETA_3 = np.concatenate([LINEAR, np.diag(PRECISION), PRECISION[np.triu_indices(3, 1)]])
NORMAL_3 = stats.multivariate_normal(np.linalg.solve(PRECISION, LINEAR), np.linalg.inv(PRECISION))

# model, theta, the limits of a one-dimensional integral, the same density in scipy.stats
CASES = {
    "von Mises": (
        VonMises(),
        np.array([1.5, -0.8]),
        (0, 2 * math.pi),
        stats.vonmises(1.7, math.atan2(-0.8, 1.5)),
    ),
    "normal": (Gaussian(1), np.array([0.7, 2.0]), (-20, 20), stats.norm(0.35, 0.5**0.5)),
    "normal 3": (Gaussian(3), THETA_3, None, NORMAL_3),
    "exponential": (Exponential(), np.array([2.5]), (0, math.inf), stats.expon(scale=0.4)),
    "gamma": (Gamma(), np.array([1.8, 2.5]), (0, math.inf), stats.gamma(1.8, scale=0.4)),
}
CASE = pytest.mark.parametrize(("model", "theta", "limits", "twin"), CASES.values(), ids=CASES)


def log_unnormalized(model, theta, x):
    return model.statistics(x) @ theta + model.log_base(x)


def gradient(function, theta, step=1e-5):
    sides = step * np.eye(len(theta))
    return np.array([function(theta + s) - function(theta - s) for s in sides]) / (2 * step)


@CASE
def test_every_model_fulfils_the_contract(model, theta, limits, twin):
    x = model.sample(theta, 4, np.random.default_rng(SEED))
    assert isinstance(model, Model)
    assert x.shape == (4, model.space.dimension)
    assert model.space.contains(x).all()
    assert model.statistics(x).shape == (4, sum(map(len, model.groups.values())))
    assert model.log_base(x).shape == (4,)


@CASE
def test_the_density_is_that_of_scipy(model, theta, limits, twin):
    x = model.sample(theta, 20, np.random.default_rng(SEED))
    ours = log_unnormalized(model, theta, x) - model.log_partition(theta)
    theirs = twin.logpdf(x if model.space.dimension > 1 else x[:, 0])
    assert ours == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize(
    ("model", "theta", "limits", "twin"),
    [case for case in CASES.values() if case[2]],
    ids=[name for name, case in CASES.items() if case[2]],
)
def test_the_partition_is_the_integral(model, theta, limits, twin):
    def kernel(x):
        return math.exp(log_unnormalized(model, theta, np.array([[x]]))[0])

    integral = integrate.quad(kernel, *limits, epsabs=1e-12)[0]
    assert model.log_partition(theta) == pytest.approx(math.log(integral), rel=1e-8)


def scores(model, theta, x):
    """z-scores of the mean statistics of x against their expectation, the gradient of log Z."""
    statistics = model.statistics(x)
    error = statistics.std(axis=0) / math.sqrt(len(x))
    return (statistics.mean(axis=0) - gradient(model.log_partition, theta)) / error


@CASE
def test_samples_have_the_expected_statistics_and_those_of_a_neighbour_do_not(
    model, theta, limits, twin
):
    rng = np.random.default_rng(SEED)
    assert np.abs(scores(model, theta, model.sample(theta, 40_000, rng))).max() < 4.9
    assert np.abs(scores(model, theta, model.sample(1.15 * theta, 40_000, rng))).max() > 4.9


def test_statistics_are_named_in_column_order():
    assert VonMises().groups == {"mean": ("cos", "sin")}
    assert Exponential().groups == {"rate": ("-x",)}
    assert Gamma().groups == {"shape": ("log(x)",), "rate": ("-x",)}
    assert Gaussian(3).groups == {
        "linear": ("x1", "x2", "x3"),
        "precision": ("-x1^2/2", "-x2^2/2", "-x3^2/2", "-x1*x2", "-x1*x3", "-x2*x3"),
    }
    assert Gaussian(3).statistics(np.array([[1.0, 2.0, 3.0]]))[0].tolist() == [
        *(1, 2, 3),
        *(-0.5, -2, -4.5),
        *(-2, -3, -6),
    ]


def test_the_partition_is_infinite_where_there_is_no_distribution():
    assert Exponential().log_partition(np.array([0.0])) == math.inf
    assert Gamma().log_partition(np.array([-1.0, 1.0])) == math.inf
    assert Gamma().log_partition(np.array([1.0, 0.0])) == math.inf
    assert Gaussian(2).log_partition(np.array([0.0, 0.0, 1.0, 1.0, 2.0])) == math.inf


def test_concentrated_angles_do_not_overflow():
    # log I_0(k) is k - log(2 pi k) / 2 up to 1 / (8 k)
    expected = 1e5 + math.log(2 * math.pi) / 2 - math.log(1e5) / 2
    assert VonMises().log_partition(np.array([1e5, 0.0])) == pytest.approx(expected, abs=2e-6)


def test_zeros_give_infinite_statistics_without_warnings():
    zero = np.array([[0.0]])
    assert Gamma().statistics(zero)[0, 0] == -math.inf
    assert Gamma().log_base(zero)[0] == math.inf


@pytest.mark.parametrize(
    ("model", "theta", "message"),
    [
        (Exponential(), [-1.0], "positive rate, got -1"),
        (Gamma(), [0.0, 1.0], "positive shape, got 0"),
        (Gamma(), [1.0, -2.0], "positive rate, got -2"),
        (Gaussian(2), [0.0, 0.0, 1.0, 1.0, 2.0], "positive definite .* smallest eigenvalue -1"),
    ],
)
def test_no_samples_where_there_is_no_distribution(model, theta, message):
    with pytest.raises(InputError, match=message):
        model.sample(np.array(theta), 3, np.random.default_rng(SEED))


def test_dimensions_are_whole_and_positive():
    with pytest.raises(InputError, match="needs a whole number of at least 1, got 0"):
        Gaussian(0)


def test_draws_of_a_gamma_of_small_shape_are_positive():
    draws = Gamma().sample(np.array([0.005, 1.0]), 2000, np.random.default_rng(1))
    assert draws.min() > 0
    assert np.mean(draws < 1e-300) > 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nor do their inverse squares warn
        Gamma().score_statistics(draws, 0)
