import numpy as np
import pytest
from jax import numpy as jnp
from scipy.special import logsumexp

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.models import VonMises
from ncbayes.scores import log_density_draws, log_score

pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
OPTIONS = {"noise": "matched", "seed": 1, "draws": 60, "tune": 60, "chains": 2, "progress": False}


def angle(params, x):
    return params["kappa"] * jnp.cos(x[:, 0] - params["inner"]["mean"])


ENERGY = ncb.Energy(
    angle,
    {"kappa": ncb.energies.Positive(), "inner": {"mean": ncb.priors.Normal(1.0)}},
    ncb.spaces.Torus(1),
)


@pytest.fixture(scope="module")
def angles():
    return VonMises().sample(np.array([1.0, 0.5]), 90, np.random.default_rng(2))


@pytest.fixture(scope="module")
def family(angles):
    return ncb.fit(VonMises(), {"a": angles[:40], "b": angles[40:80]}, **OPTIONS)


@pytest.fixture(scope="module")
def energy(angles):
    return ncb.fit(ENERGY, angles[:80], **OPTIONS)


def test_log_densities_of_a_family_are_the_formula(family, angles):
    found = log_density_draws(family, VonMises(), angles[80:], group="b")
    theta, log_z = family.theta.sel(group="b"), family.log_z.sel(group="b")
    wanted = [
        theta.to_numpy()[c, d] @ VonMises().statistics(angles[80:]).T - log_z.to_numpy()[c, d]
        for c in range(2)
        for d in range(60)
    ]
    assert found.dims == ("sample", "point")
    assert np.allclose(found, wanted, atol=1e-12)


def test_log_densities_of_an_energy_are_the_formula_from_a_file_too(energy, angles, tmp_path):
    energy.save(tmp_path / "angle.nc")
    for posterior in (energy, ncb.load(tmp_path / "angle.nc")):
        found = log_density_draws(posterior, ENERGY, angles[80:])
        tree = posterior.data["posterior"].to_dataset()
        kappa, mean, log_z = (
            tree[name].to_numpy().reshape(-1, 1) for name in ("kappa", "inner.mean", "log_z")
        )
        assert np.allclose(found, kappa * np.cos(angles[80:, 0] - mean) - log_z, atol=1e-12)


def test_the_score_is_the_mean_log_of_the_mean_density(energy, angles):
    draws = log_density_draws(energy, ENERGY, angles[80:]).to_numpy()
    score = log_score(energy, ENERGY, angles[80:], level=0.8)
    points = logsumexp(draws, axis=0) - np.log(120)
    assert np.allclose(score.pointwise, points)
    assert np.isclose(score.mean, points.mean())
    assert np.isclose(score.error, points.std(ddof=1) / np.sqrt(10))
    assert np.isclose(score.high - score.mean, 1.2815515655 * score.error)
    assert np.isclose(score.mean - score.low, 1.2815515655 * score.error)
    assert np.isclose(score.posterior_sd, draws.mean(axis=1).std())
    assert score.level == 0.8


def test_few_draws_are_evenly_chosen(family, angles):
    some = log_density_draws(family, VonMises(), angles[80:], group="a", draws=12)
    every = log_density_draws(family, VonMises(), angles[80:], group="a")
    assert np.array_equal(some, every[5::10])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"posterior": 3}, r"posterior must be what ncbayes\.fit or ncbayes\.load returns, got 3"),
        ({"model": ncb.models.Gaussian(1)}, r"the one that was fitted, VonMises\(\), got Gaussian"),
        ({"model": ENERGY}, r"the one that was fitted, VonMises\(\)"),
        ({"model": "VonMises"}, "the one that was fitted"),
        ({"model": VonMises}, "the one that was fitted, .* got the class VonMises"),
        ({"group": None}, r"group must be one of the posterior's groups \['a', 'b'\]"),
        ({"points": np.zeros((3, 2))}, "must have 1 column"),
        ({"points": [0.1]}, "at least 2 points"),
        ({"draws": 0}, "draws must be a whole number, 1 or more"),
        ({"level": 1.0}, "level must be between 0 and 1"),
    ],
)
def test_bad_input_is_named(change, words, family, angles):
    options = {"posterior": family, "model": VonMises(), "points": angles[80:], "group": "a"}
    options |= change
    with pytest.raises(InputError, match=words):
        log_score(**options)


def test_a_family_is_not_taken_for_an_energy(energy, angles):
    with pytest.raises(InputError, match="the one that was fitted, Energy"):
        log_score(energy, VonMises(), angles[80:])


def test_an_energy_of_other_shapes_is_refused(energy, angles):
    params = {"kappa": ncb.energies.Positive(shape=(2,)), "inner": {"mean": ncb.priors.Normal(1.0)}}
    with pytest.raises(InputError, match="model must be the one that was fitted"):
        log_score(energy, ncb.Energy(angle, params, ncb.spaces.Torus(1)), angles[80:])


def test_a_model_of_another_coding_is_refused():
    rows = np.random.default_rng(1).integers(0, 2, (40, 2)).astype(float)
    posterior = ncb.fit(ncb.models.Ising(2), rows, **OPTIONS)
    spins = ncb.models.Ising(2, coding="spins")
    with pytest.raises(
        InputError, match=r"fitted, Ising\(2\), got Ising\(2, coding='spins'\), whose"
    ):
        log_score(posterior, spins, 2 * rows - 1)
    with pytest.raises(InputError, match="does not hold the data that were fitted"):
        ncb.predictive.check(posterior, spins, data=2 * rows - 1)


def test_without_noise_there_is_no_log_z(angles):
    posterior = ncb.fit(VonMises(), angles, engine="hyvarinen", seed=1, draws=20, tune=20,
                        progress=False)  # fmt: skip
    with pytest.raises(InputError, match="there is no log_z"):
        log_score(posterior, VonMises(), angles)
