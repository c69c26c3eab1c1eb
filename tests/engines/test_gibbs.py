"""The Gibbs engine against exact answers."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import Draw
from ncbayes.contrast import Contrast, Target, contrast
from ncbayes.engines.gibbs import Gibbs, polya_gamma
from ncbayes.linalg.designs import Dense, with_intercept
from ncbayes.problem import noise_set


def mean_and_variance(z):
    """Of PG(1, z); even in z, with limits 1/4 and 1/24 at zero."""
    z = abs(z)
    if z < 1e-3:
        return 0.25, 1 / 24
    t = np.tanh(z / 2)
    return t / (2 * z), (2 * t / z - (1 - t**2)) / (4 * z**2)


def z_scores(z, draws):
    mean, variance = mean_and_variance(z)
    squares = (draws - mean) ** 2
    return np.array(
        [
            (draws.mean() - mean) / np.sqrt(variance / len(draws)),
            (squares.mean() - variance) / (squares.std() / np.sqrt(len(draws))),
        ]
    )


LIMIT = -ndtri(1e-6 / 2)
SIZES = [0.0, 0.5, 3.0, -3.0, 12.0, 49.9, 50.1, -180.0, 500.0, 1e4, 1e8]


@pytest.mark.parametrize("z", SIZES)
def test_polya_gamma_moments(z, seed):
    draws = polya_gamma(np.full(200_000, z), np.random.default_rng(seed))
    assert np.all(draws > 0)
    assert np.all(np.abs(z_scores(z, draws)) < LIMIT)


def test_the_moment_test_rejects_twice_the_parameter(seed):
    draws = polya_gamma(np.full(200_000, 6.0), np.random.default_rng(seed))
    assert np.any(np.abs(z_scores(3.0, draws)) > LIMIT)


def test_large_and_small_log_odds_mix_in_one_call(seed):
    z = np.tile([0.5, -400.0], 100_000)
    draws = polya_gamma(z, np.random.default_rng(seed))
    assert np.all(np.abs(z_scores(0.5, draws[::2])) < LIMIT)
    assert np.all(np.abs(z_scores(400.0, draws[1::2])) < LIMIT)


def small_target(rng):
    """Two coefficients, a strong offset and few points: a posterior far from normal."""
    design = with_intercept(Dense(rng.standard_normal((12, 1)) + 0.5))
    labels = np.arange(12) < 7
    return Target((Contrast(design, rng.normal(1.0, 1.0, 12), labels),), ncb.priors.Normal(2.0))


def exact_moments(target):
    """Means of features of coef under the contrastive posterior, by quadrature over a grid."""
    axis = np.linspace(-14, 14, 1201)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    each = target.contrasts[0]
    log_odds = grid @ each.design.dense().T + each.offset
    log = log_odds[:, each.is_data].sum(axis=1) - np.logaddexp(0, log_odds).sum(axis=1)
    log -= 0.5 * (grid**2).sum(axis=1) / 4
    weights = np.exp(log - log.max())
    return features(grid).T @ weights / weights.sum()


def features(coef):
    a, b = coef.T
    return np.column_stack([a, b, a**2, b**2, a * b, np.exp(-(a**2)), b > 0])


def gibbs_features(target, engine, rng, chains=40, sweeps=400):
    """Features averaged over each of many independent chains, a row a chain."""
    rows = []
    for _ in range(chains):
        draw = engine.start(target, rng)
        kept = []
        for sweep in range(sweeps):
            draw = engine.step(target, draw, rng)
            if sweep >= 100:
                kept.append(draw.coef[0])
        rows.append(features(np.array(kept)).mean(axis=0))
    return np.array(rows)


def scores(rows, exact):
    return (rows.mean(axis=0) - exact) / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


def test_the_posterior_is_that_of_quadrature(seed):
    rng = np.random.default_rng(seed)
    target = small_target(rng)
    z = scores(gibbs_features(target, Gibbs(), rng), exact_moments(target))
    # 40 chains give t-scores; 7 is their two-sided 1e-6 / 7 point at 39 degrees of freedom.
    assert np.all(np.abs(z) < 7), z


def test_quadrature_rejects_a_dropped_offset(seed):
    rng = np.random.default_rng(seed)
    target = small_target(rng)
    each = target.contrasts[0]
    dropped = Target((Contrast(each.design, 0 * each.offset, each.is_data),), target.prior)
    z = scores(gibbs_features(dropped, Gibbs(), rng), exact_moments(target))
    assert np.any(np.abs(z) > 7)


def test_one_group_of_several_uncoupled_ones_has_the_law_of_a_single_fit(seed):
    rng = np.random.default_rng(seed)
    target = small_target(rng)
    twice = Target(target.contrasts * 2, target.prior)
    z = scores(gibbs_features(twice, Gibbs(), rng), exact_moments(target))
    assert np.all(np.abs(z) < 7), z


@pytest.mark.parametrize("method", ["block_tridiagonal", "cholesky"])
def test_methods_that_share_their_normals_give_the_same_chain(method, seed):
    target = small_target(np.random.default_rng(seed))
    coefs = []
    for name in ("cholesky", method):
        rng = np.random.default_rng(seed)
        draw = Gibbs(name).start(target, rng)
        for _ in range(5):
            draw = Gibbs(name).step(target, draw, rng)
        coefs.append(draw.coef)
    np.testing.assert_allclose(*coefs, rtol=1e-8)


def test_log_likelihood_is_that_of_the_labels(seed):
    """Against the product over points, written out (the paper's eq. 1)."""
    rng = np.random.default_rng(seed)
    model = ncb.models.Gamma()
    data = model.sample(np.array([2.0, 1.0]), 15, rng)
    noise = ncb.noise.Gamma([1.5], [0.8])
    made = noise_set(noise, data, 22, rng)
    each = contrast(model, data, made)
    theta, c = np.array([1.7, 1.2]), -0.3
    pooled = np.concatenate([data, made.points])
    p = np.exp(model.statistics(pooled) @ theta + model.log_base(pooled) + c)
    q = np.exp(noise.log_density(pooled))
    r = 15 * p / (15 * p + 22 * q)
    expected = np.sum(np.log(r[:15])) + np.sum(np.log(1 - r[15:]))
    coef = np.append(theta, c)
    assert each.log_likelihood(each.log_odds(coef)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [100.0, 400.0, 1e5])
def test_separated_points_do_not_break_the_sampler(size, seed):
    """Log odds of hundreds, where the Polya-Gamma library alone returns a constant.

    100 separated points at log odds +-size have weights 1 / (2 size) up to O(size^-3/2), so one
    step from size leads to N(size, size / 50): a weight of 0.16 would lead to about 3.
    """
    rng = np.random.default_rng(seed)
    design = Dense(np.repeat([[-1.0], [1.0]], 50, axis=0))
    labels = np.repeat([False, True], 50)
    target = Target((Contrast(design, np.zeros(100), labels),), ncb.priors.Normal(1e9))
    draw = Gibbs().step(target, Draw(np.array([[size]]), {}), rng)
    assert abs(draw.coef[0, 0] - size) < 6 * np.sqrt(size / 50 + size / 100)


def test_trajectories_mix_where_polya_gamma_weights_do_not(seed):
    """Under Cauchy noise Polya-Gamma sweeps hardly move, and their mean is wrong."""
    rng = np.random.default_rng(seed)
    data = rng.normal(0.0, 1.0, 300)
    found = {}
    for engine in ("gibbs", "auto"):
        with pytest.warns(ncb.FitWarning) if engine == "gibbs" else nullcontext():
            posterior = ncb.fit(
                ncb.models.Gaussian(1),
                data,
                noise=ncb.noise.StudentT(0.0, 1.0, df=1),
                noise_ratio=10,
                engine=engine,
                chains=4,
                cores=1,
                draws=1000,
                tune=200,
                seed=seed,
                progress=False,
            )
        found[engine] = posterior.summary().loc["-x1^2/2"]
    assert found["gibbs"]["ess_bulk"] < 100 < 10 * 100 < found["auto"]["ess_bulk"]
    assert abs(found["auto"]["mean"] - 1 / data.var()) < 5 * found["auto"]["sd"]
