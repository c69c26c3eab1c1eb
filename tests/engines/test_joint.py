"""Sweeps under priors with learned scales or coupled groups: the law they leave invariant."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.base import Draw
from ncbayes.contrast import Contrast, Target
from ncbayes.engines import Gibbs, joint
from ncbayes.linalg import stretching, tridiagonal
from ncbayes.linalg.designs import Bordered, Dense
from ncbayes.priors import HalfCauchyNormal, MultivariateNormal, Normal, RandomWalk
from ncbayes.priors.blocks import Blocks, Part
from ncbayes.testing import check_engine


def of_coef(prior):
    """For the targets of check_engine: two statistics and c."""
    return Blocks((Part("theta", prior, 0, 2), Part("normalizer", Normal(1.0), 2, 3)))


pytestmark = pytest.mark.usefixtures("shared_pilots")

WALK = RandomWalk(2.0, 1.0)
# The plain walk and the half-Cauchy scale are among the priors of test_testing.py.
VARIANTS = {
    "unequal times, separate start": (
        replace(WALK, times=(0.0, 1.0, 4.0), initial="separate"),
        3,
    ),
    "a variance a statistic, separate start": (
        replace(WALK, per_statistic=True, initial="separate"),
        2,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "groups"), VARIANTS.values(), ids=VARIANTS)
def test_sweeps_leave_the_posterior_invariant(prior, groups, seed):
    check_engine(Gibbs(), of_coef(prior), groups=groups, seed=seed)


def rejected(prior, groups, seed):
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(Gibbs(), of_coef(prior), groups=groups, seed=seed)


@dataclass(frozen=True)
class OtherScale(RandomWalk):
    """Weighs its variance by a prior of another shape; that of none is not seen with every seed."""

    def log_prior(self, state):
        return super().log_prior(state) + 3 * float(np.sum(self.log_scales(state)))


@pytest.mark.slow
def test_scales_drawn_by_another_prior_are_rejected(seed):
    rejected(OtherScale(2.0, 1.0), 2, seed)


@dataclass(frozen=True)
class WrongStretch(RandomWalk):
    """Counts three degrees of freedom too many when it stretches."""

    def stretch(self, state, theta):
        found = super().stretch(state, theta)
        return replace(found, shape=found.shape + 3)


@pytest.mark.slow
def test_a_wrong_stretch_is_rejected(seed):
    rejected(WrongStretch(2.0, 1.0, per_statistic=True), 2, seed)


@pytest.mark.slow
def test_leaps_that_are_always_accepted_are_rejected(seed, monkeypatch):
    right = tridiagonal.leapt

    def always(*arguments):
        psi, _ = right(*arguments[:-2], 1.5, 2)
        return psi, np.inf

    monkeypatch.setattr(tridiagonal, "leapt", always)
    rejected(WALK, 2, seed)


def small_target(rng, prior, groups=3, structured=False, columns=3):
    contrasts = []
    for _ in range(groups):
        dense = Dense(rng.standard_normal((12, columns - 1)))
        design = Bordered(dense) if structured else Dense(Bordered(dense).dense())
        contrasts.append(Contrast(design, rng.standard_normal(12), rng.random(12) < 0.5))
    return Target(tuple(contrasts), of_coef(prior))


FULL = MultivariateNormal(np.array([[3.0, 1.2], [1.2, 2.0]]), mean=0.3)
SCALED = {
    "walk": ({"theta": WALK}, "theta.variance"),
    "walk, and a full matrix": ({"theta": WALK, "other": FULL}, "theta.variance"),
    "half-Cauchy, and a full matrix": (
        {"other": FULL, "theta": HalfCauchyNormal(1.0)},
        "theta.scale",
    ),
}


def marginal(precision, shift, grams, score):
    """Log density of pseudo-observations by dense matrices, up to what no scale changes."""
    prior = ncb.testing.dense_precision(precision)
    full, size = prior.copy(), grams.shape[1]
    for g, gram in enumerate(grams):
        own = slice(size * g, size * (g + 1))
        full[own, own] += gram
    h = (score + shift).ravel()
    determinants = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(full)[1]
    return h @ np.linalg.solve(full, h) / 2 + determinants / 2


@pytest.mark.parametrize(("priors", "name"), SCALED.values(), ids=SCALED)
def test_the_weight_of_a_scale_is_its_marginal_density(priors, name, seed):
    rng, groups, size = np.random.default_rng(seed), 3, 2 * len(priors) + 1
    parts = [Part(key, each, 2 * k, 2 * k + 2) for k, (key, each) in enumerate(priors.items())]
    blocks = Blocks((*parts, Part("normalizer", Normal(1.0), size - 1, size)))
    target = replace(small_target(rng, WALK, groups, columns=size), prior=blocks)
    grams = np.array([np.cov(rng.standard_normal((size, 9))) for _ in range(groups)])
    score = rng.standard_normal((groups, size))
    weights, expected = [], []
    for scale in (0.3, 2.0):
        scales = {name: np.array([scale])}
        weights.append(joint._gaussian(target, grams, score, scales).log_weight)
        expected.append(marginal(*blocks.gaussian(scales, (groups, size)), grams, score))
    assert weights[1] - weights[0] == pytest.approx(expected[1] - expected[0], abs=1e-10)


def test_stretches_follow_their_density(seed):
    """One number, many steps: the mean of s is that of the density by quadrature."""
    rng = np.random.default_rng(seed)
    given = (1.5, 2.0, -0.4, 2.0, 1.0)
    grid = np.linspace(-6, 6, 20001)
    linear, square, v, shape, rate = given
    log = linear * np.exp(grid) - square * np.exp(2 * grid) / 2
    log += -shape * (v + 2 * grid) - rate * np.exp(-(v + 2 * grid))
    density = np.exp(log - log.max())
    expected = np.sum(grid * density) / np.sum(density)
    s, seen = 0.0, []
    for _ in range(40_000):
        # From s on: the same density with its origin moved there.
        moved = (linear * np.exp(s), square * np.exp(2 * s), v + 2 * s, shape, rate)
        s += stretching._slice(*moved, rng)
        seen.append(s)
    values = np.array(seen).reshape(200, -1).mean(axis=1)
    z = (values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))
    assert abs(z) < 4.9
    off = (values.mean() - expected - 0.05) / (values.std(ddof=1) / np.sqrt(len(values)))
    assert abs(off) > 4.9  # an error of 0.05 would be seen


def test_only_dense_lasting_targets_with_scales_are_swept_jointly(seed):
    rng = np.random.default_rng(seed)
    target = small_target(rng, WALK)
    scales = target.prior.draw((3, 3), rng)
    assert joint.usable(target, scales)
    assert not joint.usable(replace(target, lasting=False), scales)
    assert not joint.usable(small_target(rng, WALK, structured=True), scales)
    assert not joint.usable(small_target(rng, Normal(1.0)), {})
    start = Draw(np.zeros((3, 3)), scales)
    assert "scale_acceptance" in Gibbs().step(target, start, rng).stats
    assert "scale_acceptance" not in Gibbs(leap=False).step(target, start, rng).stats
