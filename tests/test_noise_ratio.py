"""One rule for the noise ratio, whatever the noise and the model."""

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import noise
from ncbayes.inputs import settled_ratio

pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
X = np.random.default_rng(0).normal(size=(40, 1))
SHORT = {"draws": 6, "tune": 4, "chains": 1, "cores": 1, "seed": 1, "progress": False}
NORMAL = noise.Normal(0.0, 2.0)
NOISES = {
    "matched": "matched",
    "a distribution": NORMAL,
    "recommended": noise.gaussian_mixture(X),
    "by group": {"all": NORMAL},
    "fixed": noise.Fixed(NORMAL),
    "fresh": noise.Fresh(NORMAL),
    "pooled": noise.Pooled(NORMAL, sets=2),
}
FAMILY = ncb.models.Gaussian(1)


def bump(params, x):
    return -((x[:, 0] - params["mean"]) ** 2) / 2


ENERGY = ncb.Energy(bump, {"mean": ncb.priors.Normal(3.0)}, ncb.spaces.Reals(1))


def ratio(posterior):
    """As stored, once the points have been counted."""
    stored, points = posterior.data.attrs["noise_ratio"], posterior.data["noise"]["noise_points"]
    assert np.all(points == round(stored * len(X)))
    return stored


@pytest.mark.parametrize("name", NOISES)
def test_a_family_has_five_points_for_each_row(name):
    assert ratio(ncb.fit(FAMILY, X, noise=NOISES[name], **SHORT)) == 5


def test_adaptive_noise_too():
    made = ncb.fit(FAMILY, X, noise=noise.Adaptive(batch=4, updates=1), **SHORT)
    assert ratio(made) == 5
    # The noise that a fit made, passed on.
    assert ratio(ncb.fit(FAMILY, X, noise=made.noises, **SHORT)) == 5


@pytest.mark.parametrize("name", ["matched", "recommended"])
def test_an_energy_too(name):
    assert ratio(ncb.fit(ENERGY, X, noise=NOISES.get(name, name), **SHORT)) == 5


@pytest.mark.parametrize("name", ["common", "matched"])
def test_a_density_over_time_too(name):
    made = ncb.fit_density_over_time(X, np.arange(40) // 20, basis=3, noise=name, **SHORT)
    assert made.data.attrs["noise_ratio"] == 5


def test_what_is_given_and_what_is_chosen_stay():
    assert ratio(ncb.fit(FAMILY, X, noise=NORMAL, noise_ratio=2, **SHORT)) == 2
    assert settled_ratio(2.5, None) == 2.5
    assert settled_ratio(3.0, noise.Auto()) == 3.0
    assert settled_ratio(None, noise.Auto()) is None
    assert settled_ratio(None, noise.Adaptive()) == 5
