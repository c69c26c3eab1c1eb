"""The mode of a log posterior and the Gaussian around it, against differences."""

import numpy as np
import pytest

from ncbayes.contrast import Contrast
from ncbayes.engines.laplace import LogPosterior, laplace
from ncbayes.linalg.designs import Dense, with_intercept


def small_posterior(rng, rows=15):
    design = with_intercept(Dense(rng.standard_normal((rows, 1)) + 0.5))
    contrast = Contrast(design, rng.normal(1.0, 1.0, rows), np.arange(rows) < rows // 2)
    return LogPosterior(contrast, np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([0.2, -0.1]))


def test_gradient_and_curvature_are_those_of_the_log_density(seed):
    rng = np.random.default_rng(seed)
    posterior, coef, step = small_posterior(rng), rng.standard_normal(2), 1e-5
    units = step * np.eye(2)
    slope = [posterior.log_density(coef + e) - posterior.log_density(coef - e) for e in units]
    np.testing.assert_allclose(posterior.gradient(coef), np.array(slope) / (2 * step), rtol=1e-6)
    bend = [posterior.gradient(coef + e) - posterior.gradient(coef - e) for e in units]
    np.testing.assert_allclose(-posterior.curvature(coef), np.array(bend) / (2 * step), rtol=1e-6)


def test_laplace_stands_at_the_mode_with_its_curvature(seed):
    posterior = small_posterior(np.random.default_rng(seed))
    found = laplace(posterior)
    np.testing.assert_allclose(posterior.gradient(found.mode), 0, atol=1e-3)
    factor = np.tril(found.factor)
    np.testing.assert_allclose(factor @ factor.T, posterior.curvature(found.mode), rtol=1e-10)
    coef = np.array([0.3, -2.0])
    np.testing.assert_allclose(laplace(posterior, coef).mode, found.mode, atol=1e-3)
    np.testing.assert_allclose(found.coef(factor.T @ (coef - found.mode)), coef, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_laplace_converges_far_from_zero(size):
    """Separated labels, large offsets and all scales of the statistics."""
    rng = np.random.default_rng(0)
    x = size * np.concatenate([rng.normal(3, 1, 40), rng.standard_cauchy(400)])
    design = with_intercept(Dense(np.column_stack([x, -(x**2) / 2])))
    contrast = Contrast(design, np.full(440, -30.0), np.arange(440) < 40)
    precision = np.diag([1e-2 * size**2, 1e-2 * size**4, 1e-3])
    assert laplace(LogPosterior(contrast, precision, np.zeros(3))) is not None
