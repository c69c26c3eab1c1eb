"""What priors tell of their coordinates, against the Gaussian and the draws of the same prior."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaincc, ndtri

import ncbayes as ncb
from ncbayes.base import Scaled
from ncbayes.priors import HalfCauchyNormal, Hierarchical, Horseshoe, RandomWalk
from ncbayes.testing import dense_precision

SHAPE = (4, 3)
TIMES = (2.0, 3.0, 7.0, 7.5)
WALK = RandomWalk(2.0, 1.5, initial="walk")
SHRUNK = replace(Horseshoe(slab=0.5, scale=0.3), runs=(2, 1), relative=np.array([2.0, 0.7]))
PRIORS = {
    "half-Cauchy": HalfCauchyNormal(0.8),
    "walk": WALK,
    "unequal times": replace(WALK, times=TIMES),
    "separate start": replace(WALK, initial="separate"),
    "unequal times, separate start": replace(WALK, times=TIMES, initial="separate"),
    "a variance a statistic": replace(WALK, times=TIMES, per_statistic=True),
    "walk in units": RandomWalk(2.0, 1.5, units=(2.0, 0.5, 1.0)),
    "walk, all of it": RandomWalk(2.0, 1.5, TIMES, True, "separate"),
    "population": Hierarchical(
        [0.5, 1.0, -1.0], [1.0, 2.0, 0.3], "diagonal", shape=2.0, rate=[1.0, 0.2, 3.0]
    ),
    "full population": Hierarchical(0.5, 2.0, df=7.0, scale=[1.0, 2.0, 0.5]),
    "horseshoe": Horseshoe(),
    "horseshoe, runs": SHRUNK,
    "horseshoe, no slab": replace(SHRUNK, slab=None),
    "horseshoe, fixed tau": replace(SHRUNK, tau=0.4),
    "horseshoe, a run out and one not shrunk": replace(SHRUNK, relative=np.array([0.0, np.inf])),
    "horseshoe, slab as likelihood": replace(SHRUNK, slab_form="likelihood"),
}
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def hidden(prior, state):
    """Rows of the prior's own, flat; most have none."""
    return np.ravel(prior.hidden(state)) if hasattr(prior, "hidden") else np.zeros(0)


def law(found, zeta):
    """Mean and precision of every entry of y, (row, column)."""
    padded = np.append(zeta, 0.0)  # -1 stands for no scale
    precision = np.full(found.mean.shape, np.nan)
    for k, (row, start, size) in enumerate(zip(found.row, found.start, found.size, strict=True)):
        log_scale = padded[found.first[k]] + padded[found.second[k]] + found.factor[k]
        own = found.slab[k] + np.exp(-2 * log_scale)
        assert np.isnan(precision[row, start : start + size]).all()  # no cell covers another
        precision[row, start : start + size] = own
    return found.mean, precision


def columns(found, zeta):
    """What single cells of a row are turned into: columns apart, or linked by the last of zeta."""
    size = found.mean.shape[1]
    links = np.eye(size)
    if found.wishart is not None:
        links[np.tril_indices(size, -1)] = -zeta[size:]
    return np.linalg.inv(links)


def dense_law(found, zeta, own_rows):
    """Mean and covariance of theta, row by row, given the prior's own rows of y."""
    groups = len(found.mix)
    mean, precision = law(found, zeta)
    known = np.concatenate([mean[:groups], own_rows.reshape(-1, mean.shape[1])])
    mix = np.kron(found.mix[:, :groups], columns(found, zeta))
    covariance = mix @ np.diag(1 / precision[:groups].ravel()) @ mix.T
    return (found.mix @ known).ravel(), covariance


def agrees(found, prior, state):
    precision, shift = prior.gaussian(state, SHAPE)
    mean, covariance = dense_law(found, prior.log_scales(state), hidden(prior, state))
    wanted = np.linalg.inv(dense_precision(precision))
    return np.allclose(covariance, wanted, rtol=1e-8, atol=1e-12 * np.abs(wanted).max()) and (
        np.allclose(mean, wanted @ shift.ravel(), rtol=1e-8, atol=1e-8)
    )


@every_prior
def test_coordinates_have_the_gaussian_of_their_prior(prior, seed):
    state = prior.draw(SHAPE, np.random.default_rng(seed))
    found = prior.coordinates(SHAPE)
    assert isinstance(prior, Scaled)
    assert agrees(found, prior, state)
    # Broken twins: other scales, and groups that are not mixed as they should be.
    free = np.isfinite(found.factor)
    if free.any():
        assert not agrees(replace(found, factor=found.factor + 0.1 * free), prior, state)
    assert not agrees(replace(found, mix=1.1 * found.mix), prior, state)


@every_prior
def test_log_scales_go_and_come_back(prior, seed):
    """One state, and many at once."""
    rng = np.random.default_rng(seed)
    states = [prior.draw(SHAPE, rng) for _ in range(5)]
    logs = np.array([prior.log_scales(each) for each in states])
    own = np.array([hidden(prior, each) for each in states])
    assert logs.shape[1] == len(prior.coordinates(SHAPE).kinds)
    for many, one, row, rest in zip(range(5), states, logs, own, strict=True):
        back = prior.at_log_scales(row, rest, SHAPE)
        together = prior.at_log_scales(logs, own, SHAPE)
        assert back.keys() == together.keys() == one.keys()
        for name, values in one.items():
            np.testing.assert_allclose(back[name], values, rtol=1e-12, err_msg=name)
            np.testing.assert_allclose(together[name][many], values, rtol=1e-12, err_msg=name)
            assert back[name].shape == values.shape


def uniforms(found, logs):
    """Of each log scale, (draw, scale), its place in the law that ``kinds`` tells."""
    half_cauchy = 2 / np.pi * np.arctan(np.exp(logs - found.prior_a))
    with np.errstate(invalid="ignore"):
        inverse_gamma = gammaincc(found.prior_a, found.prior_b * np.exp(-2 * logs))
    return np.where(found.kinds == 1, inverse_gamma, half_cauchy)


def z_scores(places):
    """Of mean and variance, 1/2 and 1/12 of uniforms, over draws."""
    off = places - 0.5
    errors = [off, off**2 - 1 / 12]
    return np.array([e.mean(axis=0) / (e.std(axis=0) / np.sqrt(len(e))) for e in errors])


APART = {
    name: prior
    for name, prior in PRIORS.items()
    if name not in ("horseshoe, slab as likelihood", "full population")
}


@pytest.mark.parametrize("prior", APART.values(), ids=APART)
def test_log_scales_have_the_prior_that_is_told(prior, seed):
    """But for those that have no law of their own: it is told together with that of others."""
    rng = np.random.default_rng(seed)
    found = prior.coordinates(SHAPE)
    logs = np.array([prior.log_scales(prior.draw(SHAPE, rng)) for _ in range(4000)])
    limit = -ndtri(1e-6 / 4 / logs.shape[1])
    assert np.abs(z_scores(uniforms(found, logs))).max() < limit
    # The broken twin: another parameter, which every scale shows.
    other = replace(found, prior_a=found.prior_a + 0.4)
    assert np.abs(z_scores(uniforms(other, logs))).max(axis=0).min() > limit


def test_the_prior_of_a_population_s_mean_is_its_own_row():
    prior = PRIORS["population"]
    found = prior.coordinates(SHAPE)
    mean, precision = law(found, np.zeros(3))
    np.testing.assert_allclose(mean[4], [0.5, 1.0, -1.0])
    np.testing.assert_allclose(precision[4], [1.0, 0.25, 0.3**-2])
    assert found.level == 4


@every_prior
def test_rows_of_one_class_have_the_same_cells_and_mean_zero(prior):
    found = prior.coordinates(SHAPE)
    fields = (found.start, found.size, found.slab, found.first, found.second, found.factor)
    cells = [np.column_stack([f[found.row == r] for f in fields]) for r in range(len(found.mean))]
    assert len(found.classes) == len(found.mean) == found.mix.shape[1]
    for number in set(found.classes.tolist()):
        rows = np.flatnonzero(found.classes == number)
        if len(rows) > 1:
            assert not found.mean[rows].any()
            assert all(np.array_equal(cells[r], cells[rows[0]]) for r in rows)


def test_there_is_a_time_for_each_group():
    message = r"^RandomWalk\(times=...\) must hold one time for each of the 3 groups, got 4$"
    with pytest.raises(ncb.InputError, match=message):
        PRIORS["unequal times"].coordinates((3, 3))
