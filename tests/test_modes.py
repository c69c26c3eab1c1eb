"""Chains in copies of one mode are told as that; chains that have not mixed are not."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.diagnostics import convergence
from ncbayes.energies import Energy, Real
from ncbayes.engines import Nuts
from ncbayes.modes import modes
from ncbayes.priors import Normal
from ncbayes.spaces import Reals

DRAWS = 400


def r_hat(values):
    return convergence(values, np.zeros(values.shape[1], dtype=int))[2]


def chains(means, rng, drift=0.0):
    """Draws (chain, draw, 1, parameter) around the means of each chain."""
    noise = 0.1 * rng.standard_normal((len(means), DRAWS, len(means[0])))
    way = drift * np.linspace(0, 1, DRAWS)[:, None]
    return (np.array(means)[:, None] + noise + way)[:, :, None]


CASES = {
    "one mode": ([[1.0, -2.0]] * 3, 0.0, 0.0, None),
    "labels change": ([[1.0, -2.0], [-2.0, 1.0], [1.0, -2.0]], 0.0, 0.0, "copies"),
    "signs change": ([[1.0, -2.0], [-1.0, -2.0], [1.0, 2.0]], 0.0, 0.0, "copies"),
    "other modes of one height": ([[1.0, -2.0], [3.0, 0.5], [1.0, -2.0]], 0.0, 0.0, "equals"),
    "other heights": ([[1.0, -2.0], [-2.0, 1.0], [1.0, -2.0]], 3.0, 0.0, None),
    "on the way": ([[1.0, -2.0], [3.0, 0.5], [1.0, -2.0]], 0.0, 2.0, None),
}


@pytest.mark.parametrize("name", CASES)
def test_kinds_of_disagreement(name, seed):
    means, heights, drift, kind = CASES[name]
    rng = np.random.default_rng(seed)
    height = rng.standard_normal((3, DRAWS)) + heights * np.arange(3)[:, None]
    values = chains(means, rng, drift)
    # Two variables of one number each, or one of two: what belongs together is not known.
    for parameters in ({"a": values[..., :1], "b": values[..., 1:]}, {"both": values}):
        assert modes(parameters, height, r_hat) == kind


def test_one_chain_has_nothing_to_disagree_with(seed):
    values = chains([[1.0, -2.0]], np.random.default_rng(seed))
    assert modes({"a": values}, np.zeros((1, DRAWS)), r_hat) is None


def experts(params, x):
    """``log p = -sum log cosh(W x)``: rows of W in any order and of any sign."""
    return -jnp.log(jnp.cosh(x @ params["filter"].T)).sum(axis=1)


@pytest.fixture(scope="module")
def sources():
    rng = np.random.default_rng(1)
    mixed = np.log(np.abs(rng.standard_cauchy((300, 2))))
    return mixed @ np.linalg.inv([[2.0, 0.5], [-0.5, 1.5]]).T


OPTIONS = {"draws": 100, "tune": 100, "chains": 3, "seed": 1, "cores": 1, "progress": False}


ENERGY = Energy(experts, {"filter": Real(Normal(3.0), (2, 2))}, Reals(2))


@pytest.fixture(scope="module")
def apart(sources):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(ENERGY, sources, **OPTIONS)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_the_advice_for_independent_components_works(sources, apart):
    lines = " ".join(apart.warning_lines())
    assert "the chains sit in copies of one mode: log likelihoods agree" in lines
    assert "posterior.data['posterior']['filter'][0].mean('draw')[0]" in lines
    assert "have not mixed" not in lines
    assert max(map(len, apart.warning_lines())) < 300
    start = apart.data["posterior"]["filter"][0].mean("draw")[0]
    energy = Energy(experts, {"filter": Real(Normal(3.0), (2, 2), initial=start)}, Reals(2))
    again = ncb.fit(energy, sources, **OPTIONS)
    assert again.summary()["r_hat"].max() < 1.1
    assert "the chains sit" not in " ".join(again.warning_lines())


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_trees_that_are_cut_off_are_told(sources, apart):
    short = {**OPTIONS, "chains": 1, "draws": 20, "tune": 20}
    cut = ncb.fit(ENERGY, sources, engine=Nuts(max_depth=1), noise="matched", **short)
    assert "of the trees of NUTS reached their limit" in " ".join(cut.warning_lines())
    assert "reached their limit" not in " ".join(apart.warning_lines())
    assert apart.data["sample_stats"]["reached_max_treedepth"].dtype == bool
