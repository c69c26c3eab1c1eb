import math

import numpy as np
import pytest
from scipy import integrate, stats

import ncbayes as ncb
from ncbayes import noise
from ncbayes.noise.auto import families
from ncbayes.spaces import Box, Orthant, Reals, Torus
from ncbayes.testing import check_noise

KNOTS, HEIGHTS = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 2.0, 0.5, 1.0])
TABLE = noise.Tabulated(KNOTS, HEIGHTS)


def dependent(seed, n=400):
    z = np.random.default_rng(seed).standard_normal((n, 3))
    return np.abs(z @ [[1.0, 0.8, 0.0], [0.0, 0.6, -0.5], [0.0, 0.0, 1.0]] + 1.0)


SPACES = {"reals": Reals(3), "orthant": Orthant(3), "box": Box((0, 0, 0), (9, 9, 9))}
SPACE = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def test_shares_of_a_table_are_integrals_and_quantiles_their_inverse():
    x = np.linspace(0, 4, 41)
    shares = TABLE.cdf(x[:, None])
    for each, share in zip(x, shares, strict=True):
        inner = [k for k in KNOTS if 0 < k < each] or None
        area = integrate.quad(
            lambda t: math.exp(TABLE.log_density(np.array([[t]]))[0]), 0, each, points=inner
        )[0]
        assert share == pytest.approx(area, abs=1e-9)
    assert TABLE.cdf(np.array([[-1.0], [9.0]])).tolist() == [0.0, 1.0]
    assert TABLE.quantile(shares)[:, 0] == pytest.approx(x, abs=1e-7)
    gap = noise.Tabulated([0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 1.0])
    assert np.isfinite(gap.quantile(np.array([0.0, 0.5, 1.0]))).all()


def test_the_density_is_that_of_a_change_of_variables(seed):
    rng = np.random.default_rng(seed)
    correlation = np.array([[1.0, 0.7], [0.7, 1.0]])
    ours = noise.Copula([TABLE, TABLE], correlation)
    x = ours.sample(30, rng)
    z = stats.norm.ppf(np.column_stack([TABLE.cdf(x[:, :1]), TABLE.cdf(x[:, 1:])]))
    joint = stats.multivariate_normal(np.zeros(2), correlation).logpdf(z)
    alone = TABLE.log_density(x[:, :1]) + TABLE.log_density(x[:, 1:])
    expected = joint - stats.norm.logpdf(z).sum(axis=1) + alone
    assert ours.log_density(x) == pytest.approx(expected, rel=1e-9)
    outside = np.array([[5.0, 1.0], [1.0, -0.1], [math.nan, 1.0]])
    assert np.isneginf(ours.log_density(outside)).all()


@SPACE
def test_matched_copulas_pass_the_check_of_noise(space, seed):
    data = dependent(seed)
    ours = noise.Copula.match(data, space)
    check_noise(ours, space, seed=seed)
    assert np.isfinite(ours.log_density(data)).all()
    # It has the dependence of the data, which the product of its margins has not.
    made = np.corrcoef(ours.sample(4000, np.random.default_rng(seed)), rowvar=False)
    assert made[0, 1] > 0.3


def test_the_check_refuses_a_copula_with_another_correlation(seed):
    right = noise.Copula([TABLE, TABLE], [[1.0, 0.7], [0.7, 1.0]])
    wrong = noise.Copula([TABLE, TABLE], [[1.0, 0.5], [0.5, 1.0]])

    class Wrong:
        dimension = 2
        sample, log_density = right.sample, wrong.log_density

    with pytest.raises(AssertionError, match="do not follow its log_density"):
        check_noise(Wrong(), Box((0, 0), (4, 4)), seed=seed)


def test_it_is_tried_where_there_are_two_columns_or_more():
    assert list(families(Orthant(1))) == ["margins"]
    assert list(families(Orthant(2))) == ["margins", "copula"]
    assert list(families(Box((0, 0), (1, 1)))) == ["margins", "copula"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noise.Copula([], [[1.0]]), r"needs a list of ncbayes.noise.Tabulated margins"),
        (lambda: noise.Copula([noise.Normal(0, 1)], [[1.0]]), r"needs a list of .*Tabulated"),
        (lambda: noise.Copula([TABLE], [[2.0]]), "needs a correlation matrix with ones on its"),
        (lambda: noise.Copula([TABLE, TABLE], [[1.0, 1.0], [1.0, 1.0]]), "positive definite corr"),
        (
            lambda: noise.Copula.match(np.eye(2), Torus(2)),
            "knows the spaces Reals, Orthant and Box",
        ),
        (lambda: noise.Copula.match(np.ones((3, 2)), Orthant(2)), "got a constant column 0"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ncb.InputError, match=message):
        call()
