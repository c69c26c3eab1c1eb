import numpy as np
import pytest

from ncbayes.base import Design
from ncbayes.linalg import Bordered, Dense, with_intercept

RNG = np.random.default_rng(3)
MATRIX = RNG.normal(size=(7, 4))
ONES = np.column_stack([MATRIX, np.ones(7)])

CASES = [
    pytest.param(Dense(MATRIX), MATRIX, id="dense"),
    pytest.param(Bordered(Dense(MATRIX)), ONES, id="bordered"),
    pytest.param(with_intercept(Dense(MATRIX)), ONES, id="dense with intercept"),
    pytest.param(
        Bordered(Bordered(Dense(MATRIX))), np.column_stack([ONES, np.ones(7)]), id="twice"
    ),
]


@pytest.mark.parametrize(("design", "matrix"), CASES)
def test_a_design_does_what_its_matrix_does(design, matrix):
    n, p = matrix.shape
    weights, values, coef = RNG.random(n), RNG.normal(size=n), RNG.normal(size=p)
    gram = matrix.T @ np.diag(weights) @ matrix
    assert isinstance(design, Design)
    assert design.shape == matrix.shape
    np.testing.assert_array_equal(design.dense(), matrix)
    np.testing.assert_allclose(design.matvec(coef), matrix @ coef, rtol=1e-12)
    np.testing.assert_allclose(design.rmatvec(values), matrix.T @ values, rtol=1e-12)
    np.testing.assert_allclose(design.gram(weights), gram, rtol=1e-12)
    np.testing.assert_allclose(design.gram_diagonal(weights), np.diag(gram), rtol=1e-12)


def test_with_intercept_keeps_a_dense_design_one_matrix_and_never_forms_a_structured_one():
    assert isinstance(with_intercept(Dense(MATRIX)), Dense)
    assert isinstance(with_intercept(Bordered(Dense(MATRIX))), Bordered)


def test_flops_of_a_matvec():
    assert Dense(MATRIX).matvec_flops == 2 * 7 * 4
    assert Bordered(Dense(MATRIX)).matvec_flops == 2 * 7 * 4 + 7
