"""Runs of coefficients and their scales, against plain linear algebra."""

import numpy as np
import pytest

from ncbayes.linalg import clusters


def problem(sizes, points=30, seed=3):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((sum(sizes), points))
    weights, half = rng.random(points), np.where(rng.random(points) < 0.5, 0.5, -0.5)
    coef, offset = rng.standard_normal(sum(sizes)), rng.standard_normal(points)
    return rows, weights, half, offset, coef


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
def test_rotations_diagonalize(size):
    rng = np.random.default_rng(size)
    root = rng.standard_normal((size, size + 1))
    matrix, vectors = root @ root.T, np.empty((size, size))
    left = matrix.copy()
    clusters._diagonalized(left, vectors, size)
    np.testing.assert_allclose(np.sort(np.diag(left)), np.linalg.eigvalsh(matrix), rtol=1e-10)
    np.testing.assert_allclose(vectors @ np.diag(np.diag(left)) @ vectors.T, matrix, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_products_of_a_run(size):
    rows, weights, half, offset, coef = problem((2, size))
    psi = offset + coef @ rows
    gram, r = np.empty((size, size)), np.empty(size)
    if size == 4:
        clusters._products_of_four(rows, 2, weights, half, psi, gram, r)
    else:
        clusters._products(rows, 2, size, weights, half, psi, gram, r)
    own = rows[2:]
    np.testing.assert_allclose(gram, (own * weights) @ own.T, atol=1e-12)
    np.testing.assert_allclose(r, own @ (half - weights * psi), atol=1e-12)


@pytest.mark.parametrize("fictitious", [False, True])
def test_coefficients_integrate_out(fictitious):
    """Against the Gaussian integral by determinant and solve, up to one constant."""
    rows, weights, half, offset, _ = problem((3,))
    gram, r = (rows * weights) @ rows.T, rows @ (half - weights * offset)
    values, vectors = np.linalg.eigh(gram)
    multiplier, slab = 0.4, 1.7
    ours, exact = [], []
    for log_u in (-3.0, -0.5, 0.0, 2.0):
        u = np.exp(log_u)
        base = 1 / (u * multiplier) ** 2
        total = gram + (slab + base) * np.eye(3)
        normalizer = base if fictitious else slab + base
        prior = np.log(u / (1 + u**2))
        exact.append(
            prior
            + 1.5 * np.log(normalizer)
            - np.linalg.slogdet(total)[1] / 2
            + r @ np.linalg.solve(total, r) / 2
        )
        rotated = vectors.T @ r
        ours.append(clusters._log_density(log_u, 3, values, rotated, multiplier, slab, fictitious))
    np.testing.assert_allclose(np.diff(ours), np.diff(exact), rtol=1e-10)


def test_log_odds_follow_the_coefficients():
    sizes = (1, 4, 3, 4)
    rows, weights, half, offset, coef = problem(sizes)
    starts, runs = np.cumsum(sizes) - sizes, np.array(sizes)
    psi, log_local = offset + coef @ rows, np.zeros(4)
    before = coef.copy()
    clusters.sweep(rows, starts, runs, weights, half, psi, coef, log_local, np.full(4, 0.5),
                   np.ones(4), np.zeros(4, dtype=bool), np.random.default_rng(1))  # fmt: skip
    assert (coef != before).all()
    assert (log_local != 0).all()
    np.testing.assert_allclose(psi, offset + coef @ rows, atol=1e-12)


def test_a_run_held_at_zero_stays_there():
    """A slab of precision 1e12 and no local scale: a pair forced out."""
    rows, weights, half, offset, coef = problem((4,))
    clusters.sweep(rows, np.array([0]), np.array([4]), weights, half, offset + coef @ rows, coef,
                   np.zeros(1), np.array([np.inf]), np.array([1e12]), np.zeros(1, dtype=bool),
                   np.random.default_rng(1))  # fmt: skip
    assert np.abs(coef).max() < 1e-5
