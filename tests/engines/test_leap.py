"""The step on the likelihood: exact pieces, invariance, and what it is for."""

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.contrast import Contrast
from ncbayes.engines.gibbs import Gibbs
from ncbayes.engines.leap import Laplace, LogPosterior, laplace, leap
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
    np.testing.assert_allclose(found.coef(found.whitened(coef)), coef, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_laplace_converges_far_from_zero(size):
    """Separated labels, large offsets and all scales of the statistics."""
    rng = np.random.default_rng(0)
    x = size * np.concatenate([rng.normal(3, 1, 40), rng.standard_cauchy(400)])
    design = with_intercept(Dense(np.column_stack([x, -(x**2) / 2])))
    contrast = Contrast(design, np.full(440, -30.0), np.arange(440) < 40)
    precision = np.diag([1e-2 * size**2, 1e-2 * size**4, 1e-3])
    assert laplace(LogPosterior(contrast, precision, np.zeros(3))) is not None


def exact_draws(posterior, count, rng):
    """By inversion on a fine grid."""
    axis = np.linspace(-12, 12, 1201)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    each = posterior.contrast
    log_odds = grid @ each.design.dense().T + each.offset
    log = log_odds[:, each.is_data].sum(axis=1) - np.logaddexp(0, log_odds).sum(axis=1)
    log += grid @ posterior.shift - np.einsum("ij,jk,ik->i", grid, posterior.precision, grid) / 2
    weights = np.exp(log - log.max())
    chosen = rng.choice(len(grid), count, p=weights / weights.sum())
    return grid[chosen] + rng.uniform(-0.01, 0.01, (count, 2))


def worst_z(posterior, approximation, rng, move=leap):
    """Exact draws, one step each: paired differences of features must have mean zero."""
    before = exact_draws(posterior, 20_000, rng)
    after = np.array([move(approximation, coef, rng)[0] for coef in before])

    def features(coef):
        a, b = coef.T
        return np.column_stack([a, b, a * a, b * b, a * b, np.tanh(a), np.tanh(b)])

    change = features(after) - features(before)
    return np.max(np.abs(change.mean(axis=0) / (change.std(axis=0) / len(change) ** 0.5)))


LIMIT = -ndtri(1e-6 / 14)


def test_leap_leaves_the_posterior_invariant(seed):
    rng = np.random.default_rng(seed)
    posterior = small_posterior(rng)
    assert worst_z(posterior, laplace(posterior), rng) < LIMIT


def test_invariance_rejects_a_leap_that_always_accepts(seed):
    rng = np.random.default_rng(seed)
    posterior = small_posterior(rng, rows=6)
    found = laplace(posterior)
    # A metric far too small makes large steps, whose error the acceptance must correct.
    rough = Laplace(posterior, found.mode, found.factor / 2.5)

    class Greedy:
        def __init__(self, rng):
            self.rng = rng

        def standard_exponential(self):
            return np.inf

        def __getattr__(self, name):
            return getattr(self.rng, name)

    always = lambda approximation, coef, rng: leap(approximation, coef, Greedy(rng))  # noqa: E731
    assert worst_z(posterior, rough, rng) < LIMIT
    assert worst_z(posterior, rough, rng, always) > LIMIT


def test_an_approximation_is_made_once_for_a_target(monkeypatch, seed):
    from ncbayes.engines import gibbs

    made = []
    monkeypatch.setattr(gibbs, "laplace", lambda posterior: made.append(1) or laplace(posterior))
    model = ncb.models.VonMises()
    data = model.sample(np.array([1.0, 0.5]), 60, np.random.default_rng(seed))
    options = {
        "noise": "matched",
        "draws": 100,
        "tune": 10,
        "chains": 2,
        "cores": 1,
        "seed": 1,
        "progress": False,
    }
    with pytest.warns(ncb.FitWarning):
        fixed = ncb.fit(model, data, **{**options, "draws": 20})
    assert len(made) == 2  # once a chain
    assert fixed.data["sample_stats"]["leap_acceptance"].mean() > 0.5
    made.clear()
    for settings in (
        {"noise": ncb.noise.Fresh()},
        {"engine": Gibbs(leap=False)},
    ):
        with pytest.warns(ncb.FitWarning):
            other = ncb.fit(model, data, **{**options, **settings, "draws": 20})
        assert np.isnan(other.data["sample_stats"]["leap_acceptance"]).all()
    assert not made


def test_leaps_mix_where_polya_gamma_weights_do_not(seed):
    """Under Cauchy noise Polya-Gamma sweeps alone hardly move, and their mean is wrong."""
    rng = np.random.default_rng(seed)
    data = rng.normal(0.0, 1.0, 300)
    found = {}
    for use in (False, True):
        with pytest.warns(ncb.FitWarning) if not use else _no_warning():
            posterior = ncb.fit(
                ncb.models.Gaussian(1),
                data,
                noise=ncb.noise.StudentT(0.0, 1.0, df=1),
                noise_ratio=10,
                engine=Gibbs(leap=use),
                chains=2,
                cores=1,
                draws=600,
                tune=200,
                seed=seed,
                progress=False,
            )
        found[use] = posterior.summary().loc["-x1^2/2"]
    assert found[False]["ess_bulk"] < 100 < 5 * 100 < found[True]["ess_bulk"]
    assert abs(found[True]["mean"] - 1 / data.var()) < 5 * found[True]["sd"]


def _no_warning():
    from contextlib import nullcontext

    return nullcontext()
