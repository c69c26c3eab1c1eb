"""The hierarchical prior: closed forms, conjugate updates, and what it refuses."""

import re

import numpy as np
import pytest
from scipy.special import ndtri

from ncbayes import InputError, priors
from ncbayes.base import shown
from ncbayes.priors.hierarchical import inverse_wishart
from ncbayes.testing import check_prior, dense_precision

LIMIT = -ndtri(1e-6 / 2 / 12)
MATRIX = np.array([[1.0, 0.4], [0.4, 2.0]])
VARIANTS = [
    (priors.Hierarchical(), (3, 3)),
    (priors.Hierarchical(covariance="diagonal"), (3, 3)),
    (priors.Hierarchical(1.0, 0.7, df=6.0, scale=MATRIX), (4, 2)),
    (priors.Hierarchical([1.0, 2.0], [0.5, 3.0], "diagonal", shape=2.0, rate=[1.0, 0.2]), (1, 2)),
    (priors.Hierarchical(), (5, 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "shape"), VARIANTS, ids=str)
def test_updates_leave_the_law_of_the_population_unchanged(prior, shape, seed):
    check_prior(prior, shape, seed=seed)


class Miscounted(priors.Hierarchical):
    """Forgets a group when it counts degrees of freedom."""

    def _wishart(self, size):
        df, matrix = super()._wishart(size)
        return df - getattr(self, "less", 0.0), matrix

    def update(self, state, theta, rng):
        object.__setattr__(self, "less", 1.0)
        moved = super().update(state, theta, rng)
        object.__setattr__(self, "less", 0.0)
        return moved


class Flat(priors.Hierarchical):
    """Forgets the prior of mu when it draws mu."""

    def update(self, state, theta, rng):
        return priors.Hierarchical(0.0, 100.0, self.covariance).update(state, theta, rng)


@pytest.mark.parametrize("broken", [Miscounted(), Flat(2.0, 0.5, "diagonal")], ids=str)
def test_the_check_of_priors_rejects_broken_updates(broken, seed):
    with pytest.raises(AssertionError, match="do not leave the law"):
        check_prior(broken, (3, 2), seed=seed)


def test_precision_and_shift_are_those_of_the_population():
    state = {"mean": np.array([1.0, -2.0]), "covariance": MATRIX}
    precision, shift = priors.Hierarchical().gaussian(state, (3, 2))
    inverse = np.linalg.inv(dense_precision(precision))
    np.testing.assert_allclose(inverse, np.kron(np.eye(3), MATRIX), atol=1e-12)
    np.testing.assert_allclose(inverse @ shift.ravel(), np.tile([1.0, -2.0], 3))
    state = {"mean": np.array([1.0, -2.0]), "variance": np.array([0.5, 4.0])}
    precision, shift = priors.Hierarchical(covariance="diagonal").gaussian(state, (3, 2))
    np.testing.assert_allclose(precision.within, [[2.0, 0.25]] * 3)
    np.testing.assert_allclose(shift, [[2.0, -0.5]] * 3)


def draws_of(prior, state, theta, seed, count=20_000):
    rng = np.random.default_rng(seed)
    moved = [prior.update(state, theta, rng) for _ in range(count)]
    return {name: np.array([each[name].ravel() for each in moved]) for name in moved[0]}


def z_scores(values, mean):
    return (values.mean(axis=0) - mean) / (values.std(axis=0) / np.sqrt(len(values)))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_one_statistic_is_the_textbook_of_normal_means(covariance, seed):
    """mu | theta, v and 1 / v | theta, mu in closed form; full and diagonal agree for p = 1."""
    options = {"df": 4.0, "scale": 3.0} if covariance == "full" else {"shape": 2.0, "rate": 1.5}
    prior = priors.Hierarchical(0.5, 2.0, covariance, **options)
    name = "covariance" if covariance == "full" else "variance"
    theta, v = np.array([[1.0], [2.5], [0.2], [3.0]]), 0.8
    state = {"mean": np.zeros(1), name: np.full((1, 1) if covariance == "full" else 1, v)}
    found = draws_of(prior, state, theta, seed)
    precision = 4 / v + 1 / 4
    mean = (theta.sum() / v + 0.5 / 4) / precision
    mu, inverse = found["mean"], 1 / found[name]
    # 1 / v | mu is Gamma(2 + 4 / 2, 1.5 + sum (theta - mu)^2 / 2), of mean shape / rate.
    given = 4.0 / (1.5 + np.sum((theta.ravel() - mu) ** 2, axis=1, keepdims=True) / 2)
    scores = [
        z_scores(mu, mean),
        z_scores((mu - mean) ** 2, 1 / precision),
        z_scores(inverse - given, 0.0),
    ]
    assert np.abs(scores).max() < LIMIT
    # The broken twin: a prior of mu that is left out.
    assert np.abs(z_scores(mu, theta.mean())).max() > LIMIT


def test_inverse_wishart_moments(seed):
    """Means of the matrix and of its inverse: scale / (df - p - 1) and df scale^-1."""
    rng, df = np.random.default_rng(seed), 14.0
    scale = np.array([[1.0, 0.4, 0.1], [0.4, 2.0, -0.6], [0.1, -0.6, 0.5]])
    found = np.array([inverse_wishart(df, scale, rng) for _ in range(20_000)])
    upper = np.triu_indices(3)
    own, inverse = found[:, *upper], np.linalg.inv(found)[:, *upper]
    assert np.abs(z_scores(own, (scale / (df - 4))[upper])).max() < LIMIT
    assert np.abs(z_scores(inverse, (df * np.linalg.inv(scale))[upper])).max() < LIMIT
    # The broken twin: one degree of freedom less.
    wrong = np.array([inverse_wishart(df - 1, scale, rng) for _ in range(20_000)])
    assert np.abs(z_scores(wrong[:, *upper], (scale / (df - 4))[upper])).max() > LIMIT


def test_defaults_have_the_same_variances_in_both_forms(seed):
    """IW(p + 2, I) has variances IG(3/2, 1/2); 1 / v is Gamma(3/2, 1/2) of mean 3."""
    rng = np.random.default_rng(seed)
    full, diagonal = priors.Hierarchical(), priors.Hierarchical(covariance="diagonal")
    ones = [1 / np.diagonal(full.draw((2, 3), rng)["covariance"]) for _ in range(20_000)]
    others = [1 / diagonal.draw((2, 3), rng)["variance"] for _ in range(20_000)]
    for each in (ones, others):
        assert np.abs(z_scores(np.array(each), 3.0)).max() < LIMIT
    # The broken twin: the variances of IW(p + 3, I).
    wrong = priors.Hierarchical(df=6.0)
    found = [1 / np.diagonal(wrong.draw((2, 3), rng)["covariance"]) for _ in range(20_000)]
    assert np.abs(z_scores(np.array(found), 3.0)).max() > LIMIT


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_it_is_finite_to_the_ends_of_its_range(covariance, size, seed):
    name = "scale" if covariance == "full" else "rate"
    prior = priors.Hierarchical(mean_scale=size, covariance=covariance, **{name: size})
    rng = np.random.default_rng(seed)
    for _ in range(50):
        # Theta in the units of the scale: no sum holds a matrix and another, 1e100 times as large.
        theta = size**0.5 * rng.standard_normal((2, 3))
        state = prior.update(prior.draw((2, 3), rng), theta, rng)
        for each in (prior.draw((2, 3), rng), state):
            precision, shift = prior.gaussian(each, (2, 3))
            assert np.isfinite(precision.within).all()
            assert np.isfinite(shift).all()


@pytest.mark.parametrize("value", ["banded", None, 3])
def test_the_form_of_the_covariance_is_one_of_two(value):
    with pytest.raises(
        InputError,
        match=r"^Hierarchical\(covariance=...\) must be 'full' or 'diagonal', got "
        + re.escape(shown(value)),
    ):
        priors.Hierarchical(covariance=value)


@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({"shape": 1.0}, "df and scale"),
        ({"rate": 1.0}, "df and scale"),
        ({"covariance": "diagonal", "df": 5.0}, "shape and rate"),
        ({"covariance": "diagonal", "scale": 1.0}, "shape and rate"),
    ],
)
def test_settings_of_the_other_form_are_refused(options, own):
    with pytest.raises(InputError, match=f"has no meaning with covariance=.*, which takes {own};"):
        priors.Hierarchical(**options)


@pytest.mark.parametrize("name", ["mean_scale", "df", "shape", "rate"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "a", [1.0, -1.0], 1e-200])
def test_scales_are_positive(name, value):
    form = "diagonal" if name in ("shape", "rate") else "full"
    with pytest.raises(
        InputError,
        match=rf"^Hierarchical\({name}=...\) must be positive, between 1e-100 and 1e\+100, got "
        + re.escape(f"{shown(value)}; rescale the data"),
    ):
        priors.Hierarchical(covariance=form, **{name: value})


@pytest.mark.parametrize("value", ["a", None, np.nan, np.inf, -1e200, [0.0, np.inf]])
def test_a_mean_is_finite(value):
    with pytest.raises(
        InputError,
        match=r"^Hierarchical\(mean=...\) must be finite, between -1e\+100 and 1e\+100, got "
        + re.escape(f"{shown(value)}; rescale the data"),
    ):
        priors.Hierarchical(mean=value)


def test_degrees_of_freedom_are_one_number_and_enough():
    with pytest.raises(InputError, match=r"^Hierarchical\(df=...\) must be one number, got \[5"):
        priors.Hierarchical(df=[5.0, 5.0])
    with pytest.raises(
        InputError,
        match=r"^Hierarchical\(df=...\) must exceed 2, the number of statistics less one, got 2.0; "
        "with many statistics use covariance='diagonal'",
    ):
        priors.Hierarchical(df=2.0).draw((2, 3), np.random.default_rng(0))


@pytest.mark.parametrize(
    "value",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[1.0, np.inf], [np.inf, 1.0]],
        np.ones((2, 3)),
        np.ones((2, 2, 2)),
    ],
    ids=str,
)
def test_a_scale_matrix_is_symmetric_and_positive_definite(value):
    with pytest.raises(
        InputError,
        match=r"^Hierarchical\(scale=...\) must be a positive number, or a symmetric positive "
        "definite matrix with one row a statistic, got ",
    ):
        priors.Hierarchical(scale=value)


def test_settings_for_other_statistics_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"\(mean=...\) must be one number or 2 of them, one for"):
        priors.Hierarchical(mean=[1.0, 2.0, 3.0]).draw((2, 2), rng)
    with pytest.raises(InputError, match=r"\(scale=...\) must be one number, 3 of them, or a mat"):
        priors.Hierarchical(scale=MATRIX).draw((2, 3), rng)


def test_it_is_named_by_its_form():
    assert repr(priors.Hierarchical()) == "Hierarchical(covariance='full')"
