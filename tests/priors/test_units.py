"""Priors of groups in units of the data: multiplying the data changes nothing."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.models import Gaussian, VonMises
from ncbayes.priors import Hierarchical, Normal, RandomWalk

UNITS = np.array([2.0, 0.5, 1.0])


def test_what_is_given_stays():
    walk = RandomWalk(2.0, 0.3)
    assert walk.in_units(UNITS) is walk
    given = Hierarchical(mean_scale=3.0, covariance="diagonal", rate=0.1)
    assert given.in_units(UNITS).mean_scale == 3.0
    assert given.in_units(UNITS).rate == 0.1


def test_what_is_not_given_is_in_units():
    assert RandomWalk().in_units(UNITS).units == (2.0, 0.5, 1.0)
    full, diagonal = (
        Hierarchical(covariance=each).in_units(UNITS) for each in ("full", "diagonal")
    )
    np.testing.assert_allclose(full._wishart(3)[1], np.diag(UNITS**2))
    np.testing.assert_allclose(diagonal.rate, UNITS**2 / 2)
    np.testing.assert_allclose(diagonal.mean_scale, 10 * UNITS)


@pytest.mark.parametrize("per_statistic", [True, False])
@pytest.mark.parametrize("initial", ["walk", "separate"])
def test_a_walk_in_units_is_a_walk_of_theta_in_units(per_statistic, initial):
    plain = RandomWalk(2.0, 0.3, per_statistic=per_statistic, initial=initial)
    scaled = replace(plain, units=tuple(UNITS))
    state = plain.draw((4, 3), np.random.default_rng(1))
    theta = np.random.default_rng(2).normal(size=(4, 3))
    for one, other in zip(
        plain.gaussian(state, (4, 3)), scaled.gaussian(state, (4, 3)), strict=True
    ):
        if hasattr(one, "within"):
            np.testing.assert_allclose(one.within, other.within * UNITS**2)
            np.testing.assert_allclose(one.between, other.between * UNITS**2)
    moved = [
        each.update(state, x, np.random.default_rng(3))
        for each, x in ((plain, theta), (scaled, theta * UNITS))
    ]
    for name in state:
        np.testing.assert_allclose(moved[0][name], moved[1][name])
    with pytest.raises(ncb.InputError, match="one unit for each of the 2 statistics, got 3"):
        scaled.coordinates((4, 2))


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_basis_has_one_unit():
    points = np.random.default_rng(1).normal(size=(90, 1))
    found = ncb.fit_density_over_time(
        points, np.repeat([0, 1, 2], 30), basis=6, tune=5, draws=5, chains=1, cores=1, seed=1,
        progress=False, verify=False,
    )  # fmt: skip
    prior = found.run.problem.prior.parts[0].prior
    assert prior.units is None
    assert prior.rate == pytest.approx(0.01 * prior.initial_rate)
    assert prior.initial_rate > 1


def fit(model, data, prior, **options):
    given = {"noise": "matched", "tune": 400, "draws": 1500, "chains": 2, "seed": 5, "cores": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            model, data, prior=prior, progress=False, verify=False, **{**given, **options}
        )


def apart(prior):
    """How far means are apart, in sds, with data in units of which one is a hundredth."""
    rng = np.random.default_rng(1)
    data = {str(g): rng.normal(0.3 * g, 1, (40, 1)) for g in range(4)}
    one = fit(Gaussian(1), data, prior).theta
    other = fit(Gaussian(1), {g: 100 * x for g, x in data.items()}, prior).theta
    draws = ("chain", "draw")
    return float(
        np.abs((one.mean(draws) - other.mean(draws) * np.array([100, 1e4])) / one.std(draws)).max()
    )


def test_data_times_a_hundred_change_nothing():
    """The twins have scales of their own."""
    assert apart(RandomWalk()) < 0.25
    assert apart(Hierarchical()) < 0.25
    assert apart(Hierarchical(covariance="diagonal")) < 0.25
    assert apart(RandomWalk(rate=1.0)) > 0.5
    assert apart(Hierarchical(scale=1.0)) > 0.5


@pytest.mark.parametrize("unit", [0.01, 1.0])
def test_what_hardly_moves_is_smoothed_and_what_moves_is_not(unit):
    """Steps of none and of a whole sd of the data; the twin has the rate of the paper."""
    rng = np.random.default_rng(1)

    def steps(move, prior):
        data = {str(t): unit * rng.normal(move * t, 1, (60, 1)) for t in range(6)}
        theta = fit(Gaussian(1), data, prior).theta
        return float(np.sqrt(np.mean(np.diff(theta.mean(("chain", "draw"))[:, 0]) ** 2)) * unit)

    assert steps(0.0, RandomWalk()) < 0.07
    assert 0.6 < steps(1.0, RandomWalk()) < 1.4
    if unit == 1.0:
        assert steps(0.0, RandomWalk(rate=1.0)) > 0.09


def test_a_mapping_of_blocks_has_the_units_of_its_own():
    model = ncb.models.TorusGraph(2)
    data = {g: VonMises().sample(np.array([1.0, 0]), 30, np.random.default_rng(1)) for g in "ab"}
    data = {g: np.column_stack([x, x]) + 0.1 for g, x in data.items()}
    rng = np.random.default_rng(2)
    data = {g: (x + rng.normal(0, 0.5, x.shape)) % (2 * np.pi) for g, x in data.items()}
    found = fit(model, data, {"edge": Hierarchical(covariance="diagonal"), "marginal": Normal(2.0)})
    part = next(each for each in found.run.problem.prior.parts if each.name == "edge")
    assert np.shape(part.prior.rate) == (part.stop - part.start,)
