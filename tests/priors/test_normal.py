"""The scales that priors take, and what they say of others."""

import re

import numpy as np
import pytest

from ncbayes import InputError, priors
from ncbayes.base import shown
from ncbayes.testing import check_prior

SHAPE = (2, 3)
ONE = {
    r"HalfCauchyNormal\(scale=...\)": priors.HalfCauchyNormal,
    r"RandomWalk\(shape=...\)": lambda value: priors.RandomWalk(shape=value),
    r"RandomWalk\(rate=...\)": lambda value: priors.RandomWalk(rate=value),
}


@pytest.mark.parametrize("value", [1e-200, 1e-101, 1e101, 1e200, [1.0, 1e-200]])
def test_scales_whose_squares_leave_double_precision_are_refused(value):
    with pytest.raises(
        InputError,
        match=r"^Normal\(scale=...\) must lie between 1e-100 and 1e\+100, got "
        + re.escape(f"{shown(value)}; rescale the data so that"),
    ):
        priors.Normal(value)


@pytest.mark.parametrize("value", ["a", "5", None, True, [], 0, -1, np.nan, np.inf, [1.0, "a"]])
def test_a_scale_is_positive_and_finite(value):
    with pytest.raises(
        InputError,
        match=r"^Normal\(scale=...\) must be positive and finite, got "
        + re.escape(f"{shown(value)}; to keep a statistic near zero use a small scale"),
    ):
        priors.Normal(value)


@pytest.mark.parametrize("value", ["a", None, np.nan, np.inf, -1e200, [0.0, np.inf]])
def test_a_mean_is_finite(value):
    with pytest.raises(
        InputError,
        match=r"^Normal\(mean=...\) must be finite, between -1e\+100 and 1e\+100, got "
        + re.escape(f"{shown(value)}; rescale the data"),
    ):
        priors.Normal(1.0, mean=value)


@pytest.mark.parametrize(("name", "make"), ONE.items(), ids=ONE)
@pytest.mark.parametrize("value", [1e-200, 1e200, 0, -1.0, np.inf])
def test_learned_scales_keep_to_the_same_range(name, make, value):
    with pytest.raises(
        InputError,
        match=f"^{name} must be positive, between 1e-100 and 1e\\+100, got "
        + re.escape(f"{value}; rescale the data so that the statistics are of the order of 1"),
    ):
        make(value)


@pytest.mark.parametrize(("name", "make"), ONE.items(), ids=ONE)
@pytest.mark.parametrize("value", ["a", "5", None, True, np.nan, [1.0, 2.0]])
def test_a_learned_scale_is_one_number(name, make, value):
    if value is None and "rate" in name:
        assert make(value) is not None  # in units of the data
        return
    with pytest.raises(
        InputError,
        match=f"^{name} must be one positive and finite number, got {re.escape(shown(value))}$",
    ):
        make(value)


@pytest.mark.parametrize(
    "prior",
    [
        priors.Normal(1e-100, mean=1e100),
        priors.Normal(1e100),
        priors.HalfCauchyNormal(1e-100),
        priors.HalfCauchyNormal(1e100),
        priors.RandomWalk(1.0, 1e-100, initial="walk"),
        priors.RandomWalk(1.0, 1e100, initial="walk"),
        priors.RandomWalk(0.001, 0.001, initial="walk"),
        priors.RandomWalk(1e-100, 1e100, initial="walk"),
    ],
    ids=str,
)
def test_priors_are_finite_to_the_ends_of_their_range(prior, seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        state = prior.draw(SHAPE, rng)
        state = prior.update(state, rng.standard_normal(SHAPE), rng)
        for each in (prior.draw(SHAPE, rng), state):
            precision, shift = prior.gaussian(each, SHAPE)
            assert np.all((precision.within > 0) & np.isfinite(precision.within))
            assert np.isfinite(shift).all()


def test_a_normal_needs_no_update(seed):
    check_prior(priors.Normal([1.0, 2.0, 3.0], mean=1.0), SHAPE, seed=seed)
