"""Chains that go on by themselves where nobody said how long they should be."""

import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import chains, checkpoints, fitting, posterior
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


def test_minutes_are_an_end(short, never):
    assert fit(minutes=0).theta.sizes["draw"] == 200
    for wrong in (-1, float("nan"), "long", True):
        with pytest.raises(ncb.InputError, match="minutes must be a number, 0 or more"):
            fit(minutes=wrong)


class Own(VonMises):
    """A model that only this file knows."""


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_loaded_posterior_goes_on_from_its_checkpoint(tmp_path):
    options = {"noise": "matched", "tune": 60, "chains": 2, "seed": 5, "progress": False}
    first = ncb.fit(Own(), DATA, draws=50, checkpoint=tmp_path / "kept", **options)
    first.save(tmp_path / "fit.nc")
    whole = ncb.fit(Own(), DATA, draws=90, **options)
    again = ncb.load(tmp_path / "fit.nc", checkpoint=tmp_path / "kept")
    assert again.data.equals(ncb.load(tmp_path / "fit.nc").data)
    np.testing.assert_array_equal(again.extend(40).theta, whole.theta)
    # What it went on to is there for the next one.
    more = ncb.load(tmp_path / "fit.nc", checkpoint=tmp_path / "kept").extend(10)
    np.testing.assert_array_equal(more.theta, whole.extend(10).theta)


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path):
    fit(draws=20, checkpoint=tmp_path / "one").save(tmp_path / "one.nc")
    fit(draws=20, seed=6, checkpoint=tmp_path / "two")
    with pytest.raises(ncb.InputError, match=r"of another fit than .*: seed 6, not 5"):
        ncb.load(tmp_path / "one.nc", checkpoint=tmp_path / "two")
    with pytest.raises(ncb.InputError, match="holds no finished fit to go on with"):
        ncb.load(tmp_path / "one.nc", checkpoint=tmp_path)
    (tmp_path / "one" / "fit.pickle").write_bytes(b"other")
    with pytest.raises(
        ncb.InputError, match=r"can't be read here .* call fit with this checkpoint"
    ):
        ncb.load(tmp_path / "one.nc", checkpoint=tmp_path / "one")


def test_a_model_that_cannot_be_written_down_still_fits(tmp_path):
    class Locked(VonMises):
        def __reduce__(self):
            raise TypeError("it holds a lock")

    options = {"noise": "matched", "tune": 20, "draws": 20, "chains": 2, "cores": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        ncb.fit(Locked(), DATA, checkpoint=tmp_path, progress=False, seed=1, **options)
    assert not (tmp_path / "fit.pickle").exists()


def test_a_disk_without_room_for_it_does_not_cost_the_fit(tmp_path, monkeypatch):
    whole, write = fit(draws=20), checkpoints._write

    def no_room(path, *rest):
        if path.name == "fit.pickle":
            raise OSError(28, "No space left on device")
        write(path, *rest)

    monkeypatch.setattr(checkpoints, "_write", no_room)
    np.testing.assert_array_equal(fit(draws=20, checkpoint=tmp_path).theta, whole.theta)
    assert not (tmp_path / "fit.pickle").exists()


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
