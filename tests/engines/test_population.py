"""Groups of a common population: their posterior by quadrature, and label tests."""

from dataclasses import replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.contrast import Contrast, Target
from ncbayes.engines import Gibbs, Joint
from ncbayes.linalg.designs import Dense
from ncbayes.testing import check_engine


def tiny_target(rng):
    """Two groups of one coefficient, few points each."""
    contrasts = []
    for rows, data in ((6, 4), (9, 3)):
        design = Dense(rng.standard_normal((rows, 1)) + 0.5)
        contrasts.append(Contrast(design, rng.normal(0.5, 1.0, rows), np.arange(rows) < data))
    return Target(tuple(contrasts), ncb.priors.Hierarchical(0.3, 1.0, scale=0.6))


def features(mu, log_v, theta):
    return [mu, mu**2, log_v, np.tanh(log_v) ** 2, theta, theta**2, theta * mu]


def exact_features(target):
    """By quadrature over mu, log v and theta of both groups; IW(3, 0.6) is IG(1.5, 0.3)."""
    mu, log_v = np.linspace(-6, 6, 161), np.linspace(-5, 7, 161)
    theta, v = np.linspace(-14, 14, 1401), np.exp(log_v)
    likelihood = []
    for each in target.contrasts:
        log_odds = theta[:, None] * each.design.dense()[:, 0] + each.offset
        log = log_odds[:, each.is_data].sum(axis=1) - np.logaddexp(0, log_odds).sum(axis=1)
        likelihood.append(np.exp(log))
    moments = np.array([theta**0, theta, theta**2]) * likelihood[0]
    prior = np.exp(-((mu - 0.3) ** 2) / 2)
    weight, first, second = np.zeros((3, len(v), len(mu)))
    for k, each in enumerate(v):
        kernel = np.exp(-((theta - mu[:, None]) ** 2) / (2 * each)) / np.sqrt(each)
        other = kernel @ likelihood[1] * prior * np.exp(-1.5 * log_v[k] - 0.3 / each)
        weight[k], first[k], second[k] = (kernel @ moments.T).T * other
    grid_mu, grid_v = np.broadcast_to(mu, weight.shape), np.repeat(log_v[:, None], len(mu), 1)
    zero = np.zeros_like(grid_mu)
    parts = [each * weight for each in features(grid_mu, grid_v, zero)[:4]]
    parts += [first, second, first * grid_mu]
    return np.array([each.sum() for each in parts]) / weight.sum()


def chain_features(target, rng, chains=40, sweeps=300, tune=50):
    rows = []
    for _ in range(chains):
        kernel = Joint(tune).kernel(target)
        block = kernel.sweeps(kernel.start(rng), rng, tune + sweeps)
        mu, theta = block.scales["mean"][tune:, 0], block.coef[tune:, 0, 0]
        log_v = np.log(block.scales["covariance"][tune:, 0, 0])
        rows.append([each.mean() for each in features(mu, log_v, theta)])
    return np.array(rows)


def scores(rows, exact):
    return (rows.mean(axis=0) - exact) / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


class Miscounted(ncb.priors.Hierarchical):
    """Counts the volume of a group's deviation twice."""

    def coordinates(self, shape):
        found = super().coordinates(shape)
        return replace(found, prior_a=found.prior_a - 0.5)


@pytest.mark.slow
def test_the_posterior_of_a_tiny_problem_is_that_of_quadrature(seed):
    rng = np.random.default_rng(seed)
    target = tiny_target(rng)
    exact = exact_features(target)
    z = scores(chain_features(target, rng), exact)
    # 40 chains give t-scores; 7 is their two-sided 1e-6 / 7 point at 39 degrees of freedom.
    assert np.all(np.abs(z) < 7), z
    broken = replace(target, prior=Miscounted(0.3, 1.0, scale=0.6))
    z = scores(chain_features(broken, rng), exact)
    assert np.any(np.abs(z) > 7), z


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Gibbs(), Joint()], ids=["gibbs", "joint"])
@pytest.mark.parametrize(("covariance", "groups"), [("full", 3), ("diagonal", 1)])
def test_sweeps_with_a_population_pass_the_label_test(covariance, groups, engine, seed):
    prior = ncb.priors.Hierarchical(0.5, 1.0, covariance)
    check_engine(engine, prior, groups=groups, seed=seed)


@pytest.mark.slow
def test_the_label_test_rejects_degrees_of_freedom_that_are_miscounted(seed):
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(Joint(), Miscounted(0.5, 1.0), groups=3, seed=seed)
