"""The multivariate normal prior: its precision as it is, and what it refuses."""

import numpy as np
import pytest

from ncbayes import InputError, priors
from ncbayes.testing import check_prior, dense_precision

MATRIX = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]])
MEAN = np.array([1.0, -2.0, 0.5])


def test_precision_and_shift_are_the_matrix_and_its_product_with_the_mean():
    prior = priors.MultivariateNormal(MATRIX, MEAN)
    precision, shift = prior.gaussian({}, (2, 3))
    np.testing.assert_array_equal(precision.within, [MATRIX, MATRIX])
    assert precision.between is None
    np.testing.assert_allclose(shift, [MATRIX @ MEAN] * 2)
    np.testing.assert_allclose(
        np.linalg.solve(dense_precision(precision), shift.ravel()), np.tile(MEAN, 2)
    )


def test_a_number_is_a_mean_for_all():
    _, shift = priors.MultivariateNormal(MATRIX, 2.0).gaussian({}, (1, 3))
    np.testing.assert_allclose(shift, [2 * MATRIX.sum(axis=1)])
    assert not priors.MultivariateNormal(MATRIX).gaussian({}, (1, 3))[1].any()


def test_a_diagonal_precision_is_the_independent_prior():
    scale = np.array([0.5, 2.0, 10.0])
    precision, shift = priors.MultivariateNormal(np.diag(scale**-2), MEAN).gaussian({}, (2, 3))
    other, other_shift = priors.Normal(scale, MEAN).gaussian({}, (2, 3))
    np.testing.assert_allclose(dense_precision(precision), dense_precision(other))
    np.testing.assert_allclose(shift, other_shift)


def test_it_learns_nothing():
    prior, rng = priors.MultivariateNormal(MATRIX), np.random.default_rng(0)
    assert prior.draw((2, 3), rng) == {}
    assert prior.update({}, np.ones((2, 3)), rng) == {}
    assert repr(prior) == "MultivariateNormal(3 statistics)"


def test_it_passes_the_check_of_priors():
    check_prior(priors.MultivariateNormal(MATRIX, MEAN), (2, 3))


@pytest.mark.parametrize(
    "matrix",
    ["a", None, 1.0, [1.0, 2.0], np.ones((2, 3)), [[1.0, np.nan], [np.nan, 1.0]],
     [[np.inf, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]], [["a", "b"], ["b", "a"]]],
    ids=str,
)  # fmt: skip
def test_a_precision_is_a_finite_symmetric_matrix(matrix):
    with pytest.raises(
        InputError,
        match=r"^MultivariateNormal\(precision=...\) must be a finite symmetric matrix with one "
        "row a statistic, got ",
    ):
        priors.MultivariateNormal(matrix)


@pytest.mark.parametrize(
    "matrix", [[[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[-1.0]], [[1.0, 1.0], [1.0, 1.0]]], ids=str
)
def test_a_precision_is_positive_definite(matrix):
    with pytest.raises(
        InputError, match=r"^MultivariateNormal\(precision=...\) must be positive definite$"
    ):
        priors.MultivariateNormal(matrix)


def test_units_do_not_matter_for_being_positive_definite():
    units = np.array([1e-40, 1.0, 1e40])
    precision, _ = priors.MultivariateNormal(MATRIX * np.outer(units, units)).gaussian({}, (1, 3))
    assert np.isfinite(precision.within).all()


def test_a_matrix_for_other_statistics_is_refused():
    with pytest.raises(InputError, match=r"must have 2 rows, one for each statistic, got 3$"):
        priors.MultivariateNormal(MATRIX).gaussian({}, (1, 2))


@pytest.mark.parametrize("mean", ["a", [1.0, 2.0], np.nan], ids=str)
def test_a_mean_is_one_finite_number_a_statistic(mean):
    try:
        priors.MultivariateNormal(MATRIX, mean).gaussian({}, (1, 3))
    except InputError:
        return
    raise AssertionError("taken")
