"""Moves of a population with its groups: each against the joint density, all by quadrature."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import Precision
from ncbayes.contrast import Contrast, Target
from ncbayes.engines import population
from ncbayes.engines.gibbs import Gibbs
from ncbayes.linalg.designs import Dense
from ncbayes.testing import check_engine

pytestmark = pytest.mark.usefixtures("shared_pilots")

FORMS = {
    "full": ncb.priors.Hierarchical(
        0.5, [1.0, 2.0, 3.0], df=7.0, scale=[[1, 0.3, 0], [0.3, 2, 0.1], [0, 0.1, 0.5]]
    ),
    "diagonal": ncb.priors.Hierarchical(
        0.5, 2.0, "diagonal", shape=[1.0, 2.0, 3.0], rate=[0.5, 0.1, 1.0]
    ),
}


class Fixed:
    """Random numbers that are given."""

    def __init__(self, normals):
        self.normals = normals

    def standard_normal(self, size=None):
        return self.normals


def joint(prior, state, off, likelihood):
    """Log of: likelihood of deviations, their density given Sigma, and that of Sigma."""
    matrix = state["covariance"] if prior.covariance == "full" else np.diag(state["variance"])
    inverse, (_, log_det) = np.linalg.inv(matrix), np.linalg.slogdet(matrix)
    log = likelihood(off) - len(off) * log_det / 2 - np.sum((off @ inverse) * off) / 2
    if prior.covariance == "full":
        size = len(matrix)
        log -= (prior.df + size + 1) * log_det / 2 + np.trace(np.asarray(prior.scale) @ inverse) / 2
        return log
    shape, rate = np.asarray(prior.shape), np.asarray(prior.rate)
    return log - np.sum((shape + 1) * np.log(state["variance"]) + rate / state["variance"])


def a_spread(prior, seed, groups=4, size=3):
    """A spread in a state from the prior, with a likelihood of its own, and its log density."""
    rng = np.random.default_rng(seed)
    state = prior.draw((groups, size), rng)
    roots = rng.standard_normal((groups, 5, size))
    grams, shifts = np.einsum("gni,gnj->gij", roots, roots), rng.standard_normal((groups, size))
    coef = state["mean"] + rng.standard_normal((groups, size))
    found = prior.population(state, (groups, size))
    spread = population.Spread.of(found, coef, grams, shifts)

    def likelihood(off):
        full = state["mean"] + off
        return np.sum(shifts * full) - np.einsum("gi,gij,gj", full, grams, full) / 2

    def log_density(linear):
        """At B, for deviations and Sigma moved by B, by the volume element of B."""
        moved = prior.repopulated(state, state["mean"], linear)
        off = (coef - state["mean"]) @ linear.T
        _, log_det = np.linalg.slogdet(linear)
        volume = size + 1 if prior.covariance == "full" else 2
        return joint(prior, moved, off, likelihood) + (groups + volume) * log_det

    return spread, log_density


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", [0, 2])
def test_a_stretch_has_the_density_of_the_joint_law(form, column, seed, monkeypatch):
    spread, log_density = a_spread(FORMS[form], seed)
    places, got = [-1.0, -0.2, 0.3, 0.8], []

    def spy(density, rng):
        got.extend(density(t) - density(0.0) for t in places)
        return 0.3

    monkeypatch.setattr(population, "sliced", spy)
    before = log_density(np.eye(3))
    spread.stretch(column, None)
    wanted = []
    for t in places:
        linear = np.eye(3)
        linear[column, column] = np.exp(t)
        wanted.append(log_density(linear) - before)
    np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)


def test_a_shear_is_at_the_mode_and_as_wide_as_the_joint_law(seed):
    steps = []
    for normal in (0.0, 1.0):
        spread, log_density = a_spread(FORMS["full"], seed)
        spread.shear(0, 2, Fixed(normal))
        steps.append(spread.linear[0, 2])
    mode, deviation = steps[0], steps[1] - steps[0]

    def at(s):
        linear = np.eye(3)
        linear[0, 2] = s
        return log_density(linear)

    # A parabola: one standard deviation from the mode, on either side, is half a unit lower.
    np.testing.assert_allclose(at(mode) - at(mode + deviation), 0.5, rtol=1e-6)
    np.testing.assert_allclose(at(mode) - at(mode - deviation), 0.5, rtol=1e-6)


def test_what_a_spread_keeps_up_to_date_is_what_it_would_be_made_anew(seed):
    prior, rng = FORMS["full"], np.random.default_rng(seed)
    spread, _ = a_spread(prior, seed)
    before, score, off = spread.inverse.copy(), spread.score.copy(), spread.off.copy()
    for k, other in ((0, 1), (2, 0), (1, 2)):
        spread.stretch(k, rng)
        spread.shear(k, other, rng)
    linear = spread.linear
    np.testing.assert_allclose(spread.off, off @ linear.T)
    back = np.linalg.inv(linear)
    np.testing.assert_allclose(spread.inverse, back.T @ before @ back, rtol=1e-8)
    change = np.einsum("gij,gj->gi", spread.grams, spread.off - off)
    np.testing.assert_allclose(spread.score, score - change, atol=1e-8)


@pytest.mark.parametrize("coupled", [False, True])
def test_mu_has_the_law_of_a_dense_inverse(coupled, seed):
    """All of mu and coef as one Gaussian, with a fourth column that has no population.

    Coupled: that column is a random walk over the groups.
    """
    rng, groups = np.random.default_rng(seed), 3
    prior = ncb.priors.Hierarchical(0.5, [1.0, 2.0, 3.0])
    state = prior.draw((groups, 3), rng)
    found, inverse = prior.population(state, (groups, 3)), np.linalg.inv(state["covariance"])
    roots = rng.standard_normal((groups, 6, 4))
    grams, shifts = np.einsum("gni,gnj->gij", roots, roots), rng.standard_normal((groups, 4))
    within, outer = np.zeros((groups, 4, 4)), np.zeros((groups, 4))
    within[:, :3, :3], within[:, 3, 3], outer[:, 3] = inverse, 9.3, 0.7
    outer[:, :3] = inverse @ state["mean"]
    between = np.array([[0.0, 0.0, 0.0, -4.5]] * (groups - 1)) if coupled else None
    precision = Precision(within, between)
    whole, right = np.zeros((3 + 4 * groups,) * 2), np.zeros(3 + 4 * groups)
    whole[3:, 3:] = ncb.testing.dense_precision(precision)
    whole[:3, :3] = np.diag(found.precision) + groups * inverse
    right[:3] = found.shift
    for g in range(groups):
        own = slice(3 + 4 * g, 7 + 4 * g)
        whole[own, own] += grams[g]
        whole[:3, own][:, :3] = whole[own, :3][:3] = -inverse
        right[own] = shifts[g] + [0, 0, 0, 0.7]
    covariance = np.linalg.inv(whole)
    args = (found, precision, outer, grams, shifts)
    mean = population._mean(*args, Fixed(np.zeros(3)))
    np.testing.assert_allclose(mean, (covariance @ right)[:3], rtol=1e-8)
    roots = np.array([population._mean(*args, Fixed(unit)) - mean for unit in np.eye(3)]).T
    np.testing.assert_allclose(roots @ roots.T, covariance[:3, :3], rtol=1e-8)


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


def chain_features(target, rng, chains=40, sweeps=300):
    rows = []
    for _ in range(chains):
        draw, kept = Gibbs().start(target, rng), []
        for sweep in range(sweeps):
            draw = Gibbs().step(target, draw, rng)
            if sweep >= 50:
                v = float(draw.scales["covariance"][0, 0])
                own = float(draw.scales["mean"][0]), np.log(v), float(draw.coef[0, 0])
                kept.append(features(*own))
        rows.append(np.mean(kept, axis=0))
    return np.array(rows)


def scores(rows, exact):
    return (rows.mean(axis=0) - exact) / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


@pytest.mark.slow
def test_the_posterior_of_a_tiny_problem_is_that_of_quadrature(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    target = tiny_target(rng)
    exact = exact_features(target)
    z = scores(chain_features(target, rng), exact)
    # 40 chains give t-scores; 7 is their two-sided 1e-6 / 7 point at 39 degrees of freedom.
    assert np.all(np.abs(z) < 7), z
    # The broken twin: a stretch that counts the volume of a group's deviation twice.
    right = population.Spread.of

    def wrong(found, *rest):
        return right(replace(found, power=found.power - 1.0), *rest)

    monkeypatch.setattr(population.Spread, "of", wrong)
    z = scores(chain_features(target, rng), exact)
    assert np.any(np.abs(z) > 7), z


LIMIT = -ndtri(1e-6 / 2)


def test_slices_draw_from_their_density(seed):
    """A standard normal, by steps from a draw of it: the mean of squares stays 1."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(20_000)
    moves = np.array([population.sliced(lambda t, a=a: -((a + t) ** 2) / 2, rng) for a in x])
    change = (x + moves) ** 2 - x**2
    assert abs(change.mean()) < LIMIT * change.std() / np.sqrt(len(x))
    # The broken twin: another density.
    moves = np.array([population.sliced(lambda t, a=a: -((a + t) ** 2), rng) for a in x])
    change = (x + moves) ** 2 - x**2
    assert abs(change.mean()) > LIMIT * change.std() / np.sqrt(len(x))


@pytest.mark.slow
@pytest.mark.parametrize(("covariance", "groups"), [("full", 3), ("diagonal", 1)])
def test_sweeps_with_a_population_pass_the_label_test(covariance, groups, seed):
    prior = ncb.priors.Hierarchical(0.5, 1.0, covariance)
    check_engine(Gibbs(), prior, groups=groups, seed=seed)


@pytest.mark.slow
def test_the_label_test_rejects_moves_on_another_likelihood(seed, monkeypatch):
    right = population.Spread.of

    def wrong(found, coef, grams, shifts):
        return right(found, coef, grams, -4 * shifts)

    monkeypatch.setattr(population.Spread, "of", wrong)
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(Gibbs(), ncb.priors.Hierarchical(0.5, 1.0), groups=3, seed=seed)


def test_priors_without_a_population_and_very_wide_ones_are_left_alone(seed, monkeypatch):
    target, rng = tiny_target(np.random.default_rng(seed)), np.random.default_rng(seed)
    draw = Gibbs().start(target, rng)
    monkeypatch.setattr(population, "MOST_COLUMNS", 0)
    assert population.moved(target, draw, None, rng) is draw
    plain = Target(target.contrasts, ncb.priors.Normal(1.0))
    assert population.moved(plain, draw, None, rng) is draw
