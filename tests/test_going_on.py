"""Chains that go on by themselves where nobody said how long they should be."""

import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import chains, fitting, posterior
from ncbayes.models import VonMises

DATA = VonMises().sample(np.array([1.0, 0.5]), 60, np.random.default_rng(1))


def fit(**options):
    given = {"noise": "matched", "tune": 60, "chains": 2, "seed": 5, "cores": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(VonMises(), DATA, **{**given, **options})


@pytest.fixture
def short(monkeypatch):
    """Chains of 200, and of 800 at most."""
    monkeypatch.setattr(fitting, "DRAWS", 200)
    monkeypatch.setattr(fitting, "MOST_DRAWS", 800)


@pytest.fixture
def never(monkeypatch):
    """No number of effective draws is enough."""
    monkeypatch.setattr(posterior, "ENOUGH", 10**9)


def test_chains_that_agree_stay_as_they_are(short, monkeypatch):
    monkeypatch.setattr(posterior, "ENOUGH", 10)
    assert fit().theta.sizes["draw"] == 200


def test_chains_that_do_not_agree_go_on_to_the_limit_and_are_one_longer_fit(short, never):
    found = fit()
    assert found.theta.sizes["draw"] == 800
    assert found.data.attrs["draws"] == 800
    assert found.data.attrs["complete"] == 1
    np.testing.assert_array_equal(found.theta, fit(draws=800).theta)
    np.testing.assert_array_equal(found.theta, fit(draws=200).extend(600).theta)


def test_a_number_that_is_asked_for_is_what_there_is(short, never):
    assert fit(draws=200).theta.sizes["draw"] == 200
    assert fit().extend(50).theta.sizes["draw"] == 850


def test_they_stop_as_soon_as_it_is_enough(short, monkeypatch):
    """Where 200 draws are too few, and 800 more than enough."""
    monkeypatch.setattr(posterior, "ENOUGH", 200)
    assert 200 < fit().theta.sizes["draw"] < 800


def test_memory_that_holds_no_more_is_an_end(short, never, monkeypatch):
    monkeypatch.setattr(posterior, "is_affordable", lambda size, draws, *rest: draws <= 400)
    assert fit().theta.sizes["draw"] == 400


def test_a_checkpoint_holds_what_they_went_on_to(short, never, tmp_path, monkeypatch):
    monkeypatch.setattr(chains, "SAVE_SECONDS", 0.0)
    whole = fit(checkpoint=tmp_path)
    np.testing.assert_array_equal(fit(checkpoint=tmp_path).theta, whole.theta)


def test_without_noise_and_for_densities_too(short, never):
    assert fit(engine="hyvarinen", noise="auto").theta.sizes["draw"] == 800
    points = np.random.default_rng(1).normal(size=(80, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        found = ncb.fit_density_over_time(
            points,
            np.repeat([0, 1], 40),
            basis=5,
            tune=50,
            chains=2,
            cores=1,
            progress=False,
            seed=1,
        )
    assert found.theta.sizes["draw"] == 800
