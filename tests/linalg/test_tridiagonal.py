"""Block-tridiagonal factors against dense matrices, trajectories against their definition."""

from itertools import pairwise

import numpy as np
import pytest

from ncbayes.base import Precision
from ncbayes.linalg import gaussian, tridiagonal
from ncbayes.linalg.designs import Dense
from ncbayes.testing import dense_precision

SHAPES = [(1, 3), (2, 1), (5, 4), (7, 12)]


def blocks(rng, groups, size, coupled=True):
    roots = rng.standard_normal((groups, size, size + 2))
    within = roots @ roots.transpose(0, 2, 1) + 3 * np.eye(size)
    between = -rng.random((groups - 1, size)) if coupled else np.zeros((0, size))
    return within, between


def factor(within, between):
    upper, side = within.copy(), np.empty((len(between), *within.shape[1:]))
    return upper, side, tridiagonal.factorized(upper, side, between)


def dense(within, between):
    return dense_precision(Precision(within, between if len(between) else None))


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_and_determinants_are_those_of_the_dense_matrix(shape, coupled, seed):
    rng = np.random.default_rng(seed)
    within, between = blocks(rng, *shape, coupled)
    upper, side, half = factor(within, between)
    full, right = dense(within, between), rng.standard_normal(shape)
    solved = right.copy()
    tridiagonal.forward(upper, side, solved)
    # U'^-1 has the square of the inverse.
    assert np.vdot(solved, solved) == pytest.approx(
        right.ravel() @ np.linalg.solve(full, right.ravel()), rel=1e-10
    )
    tridiagonal.backward(upper, side, solved)
    np.testing.assert_allclose(solved.ravel(), np.linalg.solve(full, right.ravel()), atol=1e-10)
    assert half == pytest.approx(np.linalg.slogdet(full)[1] / 2, abs=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_have_the_covariance_of_the_dense_inverse(shape, seed):
    rng = np.random.default_rng(seed)
    within, between = blocks(rng, *shape)
    upper, side, _ = factor(within, between)
    units = np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    for unit in units:
        tridiagonal.backward(upper, side, unit)
    root = units.reshape(len(units), -1)
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(dense(within, between)), atol=1e-10)


def test_the_joint_draw_is_that_of_the_general_code(seed):
    rng = np.random.default_rng(seed)
    designs = tuple(Dense(rng.standard_normal((20, 4))) for _ in range(5))
    weights = tuple(rng.random(20) for _ in range(5))
    prior = Precision(2 + rng.random((5, 4)), -rng.random((4, 4)))
    shift, normals = rng.standard_normal((2, 5, 4))
    law = gaussian.Conditional(designs, weights, prior, shift)
    within = np.array([d.gram(w) for d, w in zip(designs, weights, strict=True)])
    np.einsum("gii->gi", within)[...] += prior.within
    upper, side, _ = factor(within, prior.between)
    mean, spread = shift.copy(), gaussian.block_tridiagonal(law, np.zeros_like(normals))
    tridiagonal.forward(upper, side, mean)
    tridiagonal.backward(upper, side, mean)
    np.testing.assert_allclose(mean, spread, atol=1e-10)


def test_the_determinant_of_diagonal_blocks_is_that_of_full_ones(seed):
    rng = np.random.default_rng(seed)
    within, between = 2 + rng.random((6, 3)), -rng.random((5, 3))
    full = dense(within, between)
    expected = np.linalg.slogdet(full)[1] / 2
    assert tridiagonal.log_determinant(within, between) == pytest.approx(expected, abs=1e-12)
    apart = tridiagonal.log_determinant(within, np.zeros((0, 3)))
    assert apart == pytest.approx(np.sum(np.log(within)) / 2, abs=1e-12)


def test_no_factor_is_told_by_nan():
    within, between = np.array([np.eye(2), -np.eye(2)]), np.zeros((1, 2))
    assert np.isnan(factor(within, between)[2])
    assert np.isnan(tridiagonal.log_determinant(np.array([[1.0], [0.5]]), np.array([[-1.0]])))


def log_posterior(design, bounds, offset, is_data, full, shift, coef):
    rows = [slice(a, b) for a, b in pairwise(bounds)]
    psi = np.concatenate([design[r] @ own for r, own in zip(rows, coef, strict=True)]) + offset
    flat = coef.ravel()
    return (
        np.sum(psi[is_data]) - np.sum(np.logaddexp(0, psi))
        + shift.ravel() @ flat - flat @ full @ flat / 2
    )  # fmt: skip


@pytest.mark.parametrize("coupled", [True, False])
def test_a_trajectory_is_leapfrog_in_the_whitened_coordinates(coupled, seed):
    """Against central differences of the log posterior and dense matrices throughout."""
    rng = np.random.default_rng(seed)
    groups, size, bounds = 3, 4, np.array([0, 7, 7, 19])  # a group without points among them
    design, offset = rng.standard_normal((19, size)), rng.standard_normal(19)
    is_data = rng.random(19) < 0.5
    within, between = blocks(rng, groups, size, coupled)
    shift, coef, momentum = rng.standard_normal((3, groups, size))
    metric, beside = blocks(rng, groups, size, coupled)
    upper, side, _ = factor(metric, beside)
    full, root = dense(within, between), np.linalg.cholesky(dense(metric, beside)).T

    def value(flat):
        place = flat.reshape(groups, size)
        return log_posterior(design, bounds, offset, is_data, full, shift, place)

    def gradient(flat):
        steps = 1e-6 * np.eye(flat.size)
        return np.array([(value(flat + e) - value(flat - e)) / 2e-6 for e in steps])

    place, speed, step, count = coef.ravel(), momentum.ravel(), 0.1, 3
    energy = speed @ speed / 2 - value(place)
    for _ in range(count):
        speed = speed + step / 2 * np.linalg.solve(root.T, gradient(place))
        place = place + step * np.linalg.solve(root, speed)
        speed = speed + step / 2 * np.linalg.solve(root.T, gradient(place))
    after = speed @ speed / 2 - value(place)
    there = coef.copy()
    psi, accepted = tridiagonal.leapt(
        design, bounds, offset, is_data, within, between, shift, upper, side, there,
        momentum.copy(), step, count,
    )  # fmt: skip
    np.testing.assert_allclose(there.ravel(), place, atol=1e-6)
    assert accepted == pytest.approx(energy - after, abs=1e-6)
    own = np.concatenate([design[:7] @ there[0], design[7:] @ there[2]])
    np.testing.assert_allclose(psi, own + offset, atol=1e-12)
