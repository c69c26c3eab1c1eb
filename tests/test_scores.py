import numpy as np
import pytest
from jax import numpy as jnp
from scipy.special import i0e, logsumexp

import ncbayes as ncb
from ncbayes import normalizers, scores
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
    found = log_density_draws(family, angles[80:], group="b")
    theta = family.theta.sel(group="b").to_numpy().reshape(-1, 2)
    wanted = [
        row @ VonMises().statistics(angles[80:]).T - VonMises().log_partition(row) for row in theta
    ]
    assert found.dims == ("sample", "point")
    assert found.attrs["log_z_error"] == 0.0
    assert np.allclose(found, wanted, atol=1e-10)


def test_log_densities_of_an_energy_are_the_formula_from_a_file_too(energy, angles, tmp_path):
    energy.save(tmp_path / "angle.nc")
    for posterior in (energy, ncb.load(tmp_path / "angle.nc")):
        found = log_density_draws(posterior, angles[80:], model=ENERGY)
        tree = posterior.data["posterior"].to_dataset()
        kappa, mean = (tree[name].to_numpy().reshape(-1, 1) for name in ("kappa", "inner.mean"))
        log_z = np.log(2 * np.pi * i0e(kappa)) + kappa
        assert np.allclose(found, kappa * np.cos(angles[80:, 0] - mean) - log_z, atol=1e-10)


def test_the_score_is_the_mean_log_of_the_mean_density(energy, angles):
    draws = log_density_draws(energy, angles[80:]).to_numpy()
    score = log_score(energy, angles[80:], level=0.8)
    points = logsumexp(draws, axis=0) - np.log(120)
    assert np.allclose(score.pointwise, points)
    assert np.isclose(score.mean, points.mean())
    assert np.isclose(score.error, points.std(ddof=1) / np.sqrt(10))
    assert np.isclose(score.high - score.mean, 1.2815515655 * score.error)
    assert np.isclose(score.mean - score.low, 1.2815515655 * score.error)
    assert np.isclose(score.posterior_sd, draws.mean(axis=1).std())
    assert score.level == 0.8


def test_few_draws_are_evenly_chosen(family, angles):
    some = log_density_draws(family, angles[80:], group="a", draws=12)
    every = log_density_draws(family, angles[80:], group="a")
    assert np.array_equal(some, every[5::10])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"posterior": 3},
            r"posterior must be what ncbayes\.fit, ncbayes\.load or .* returns, got 3",
        ),
        ({"model": ncb.models.Gaussian(1)}, r"the one that was fitted, VonMises\(\), got Gaussian"),
        ({"model": ENERGY}, r"the one that was fitted, VonMises\(\)"),
        ({"model": "VonMises"}, "the one that was fitted"),
        ({"model": VonMises}, "the one that was fitted, .* got the class VonMises"),
        ({"group": None}, r"group must be one of the posterior's groups \['a', 'b'\]"),
        ({"points": np.zeros((3, 2))}, "must have 1 column"),
        ({"times": [1] * 10}, r"times are for densities over time, and this is a fit of VonMises"),
        ({"draws": 0}, "draws must be a whole number, 1 or more"),
        ({"level": 1.0}, "level must be between 0 and 1"),
    ],
)
def test_bad_input_is_named(change, words, family, angles):
    options = {"posterior": family, "model": VonMises(), "points": angles[80:], "group": "a"}
    options |= change
    with pytest.raises(InputError, match=words):
        log_score(**options)


def test_one_point_has_a_score_without_an_error(family, angles):
    score = log_score(family, angles[80:81], group="a")
    assert np.isfinite(score.mean)
    assert np.isnan(score.error)


def test_a_posterior_from_a_file_needs_its_model(family, angles, tmp_path):
    family.save(tmp_path / "fit.nc")
    loaded = ncb.load(tmp_path / "fit.nc")
    with pytest.raises(InputError, match=r"does not hold its model: pass model=\.\.\., VonMises"):
        log_score(loaded, angles[80:], group="a")
    score = log_score(loaded, angles[80:], model=VonMises(), group="a")
    assert score.mean == log_score(family, angles[80:], group="a").mean


def test_a_wrong_log_z_of_the_contrast_is_not_rewarded(family, angles):
    """The broken twin: densities with the contrast's own c, some of it much too large."""
    tree = family.data.copy(deep=True)
    own = tree["posterior"]["log_z"]
    tree["posterior"]["log_z"] = own - 30.0 * (np.arange(60) == 7)[:, None]
    spoiled = ncb.Posterior(tree, family.run)
    honest = log_score(family, angles[80:], group="a").mean
    assert log_score(spoiled, angles[80:], group="a").mean == honest
    theta, log_z = (
        spoiled.data["posterior"][n].sel(group="a").to_numpy() for n in ("theta", "log_z")
    )
    values = theta.reshape(-1, 2) @ VonMises().statistics(angles[80:]).T - log_z.reshape(-1, 1)
    assert (logsumexp(values, axis=0) - np.log(120)).mean() > honest + 20


def test_without_a_log_z_there_is_no_score(monkeypatch, energy, angles):
    monkeypatch.setattr(scores, "LARGEST_ERROR", -1.0)
    with pytest.raises(
        InputError, match=r"can't be worked out well enough for a score: .* there is"
    ):
        log_score(energy, angles[80:])


def test_scores_of_simulated_log_z_state_its_error(seed, monkeypatch):
    """Ising(8), annealed, against the sum over all states; the truth is not beaten."""
    monkeypatch.setattr(normalizers, "MOST_ENTRIES", 0)
    model = ncb.models.Ising(8)
    rng = np.random.default_rng(seed)
    theta = 0.3 * rng.standard_normal(36)
    rows = model.sample(theta, 260, rng)
    posterior = ncb.fit(model, rows[:200], **OPTIONS, noise_ratio=3)
    score = log_score(posterior, rows[200:])
    assert 0 < score.log_z_error < 0.1
    draws = log_density_draws(posterior, rows[200:], draws=5)
    chosen = posterior.theta.to_numpy().reshape(-1, 36)[12::24]
    exact = [model.statistics(rows[200:]) @ t - model.log_partition(t) for t in chosen]
    assert np.all(np.abs(draws - exact) < 6 * draws.attrs["log_z_error"])
    truth = (model.statistics(rows[200:]) @ theta).mean() - model.log_partition(theta)
    assert score.mean < truth + 3 * np.hypot(score.error, score.log_z_error)


def test_a_family_is_not_taken_for_an_energy(energy, angles):
    with pytest.raises(InputError, match="the one that was fitted, Energy"):
        log_score(energy, angles[80:], model=VonMises())


def test_an_energy_of_other_shapes_is_refused(energy, angles):
    params = {"kappa": ncb.energies.Positive(shape=(2,)), "inner": {"mean": ncb.priors.Normal(1.0)}}
    with pytest.raises(InputError, match="model must be the one that was fitted"):
        log_score(energy, angles[80:], model=ncb.Energy(angle, params, ncb.spaces.Torus(1)))


def test_a_model_of_another_coding_is_refused():
    rows = np.random.default_rng(1).integers(0, 2, (40, 2)).astype(float)
    posterior = ncb.fit(ncb.models.Ising(2), rows, **OPTIONS)
    spins = ncb.models.Ising(2, coding="spins")
    with pytest.raises(
        InputError, match=r"fitted, Ising\(2\), got Ising\(2, coding='spins'\), whose"
    ):
        log_score(posterior, 2 * rows - 1, model=spins)
    with pytest.raises(InputError, match="does not hold the data that were fitted"):
        ncb.predictive.check(posterior, spins, data=2 * rows - 1)


def test_engines_without_noise_are_scored_too(angles):
    posterior = ncb.fit(VonMises(), angles, engine="hyvarinen", seed=1, draws=20, tune=20,
                        progress=False)  # fmt: skip
    assert "log_z" not in posterior.data["posterior"]
    score = log_score(posterior, angles)
    assert np.isfinite(score.mean)
    assert score.log_z_error == 0.0
