"""Fits of groups with a common population, end to end."""

import numpy as np
import pytest

import ncbayes as ncb

MODEL, TRUTH = ncb.models.VonMises(), np.array([1.0, 0.5])
SIZES = (2, 5, 300)
OPTIONS = {"draws": 200, "tune": 100, "chains": 1, "cores": 1, "seed": 1, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")


def groups(seed):
    rng = np.random.default_rng(seed)
    return {f"{n} rows": MODEL.sample(TRUTH, n, rng) for n in SIZES}


def noises(name):
    if name == "mapping":
        wide = [ncb.noise.VonMises([0.0], [each]) for each in (0.2, 0.5, 1.0)]
        return {f"{n} rows": each for n, each in zip(SIZES, wide, strict=True)}
    return ncb.noise.Adaptive(batch=20, updates=3) if name == "adaptive" else name


@pytest.mark.parametrize("name", ["matched", "mapping", "adaptive", "auto"])
def test_groups_of_very_different_sizes_share_a_fit(name, seed):
    data = groups(seed)
    posterior = ncb.fit(MODEL, data, noise=noises(name), prior=ncb.priors.Hierarchical(), **OPTIONS)
    theta = posterior.theta.to_numpy()[0]
    assert np.isfinite(theta).all()
    # Ten standard errors: 300 rows leave 0.1, and as much noise half as much again.
    assert np.abs(theta[:, 2].mean(axis=0) - TRUTH).max() < 1.5
    noise = posterior.data["noise"]
    counts = [int((noise["row_group"] == label).sum()) for label in data]
    ratio = posterior.data.attrs["noise_ratio"]
    assert counts == [round(ratio * n) for n in SIZES]
    if name == "mapping":
        assert str(posterior.noises) == str(noises(name))


def test_a_population_survives_a_checkpoint_and_a_file(seed, tmp_path):
    call = {"noise": "matched", "prior": ncb.priors.Hierarchical(), **OPTIONS}
    first = ncb.fit(MODEL, groups(seed), checkpoint=tmp_path / "run", **call)
    again = ncb.fit(MODEL, groups(seed), checkpoint=tmp_path / "run", **call)
    longer = ncb.fit(MODEL, groups(seed), **{**call, "draws": 250})
    first.save(tmp_path / "file.nc")
    loaded = ncb.load(tmp_path / "file.nc")
    for name, values in first.data["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, again.data["posterior"][name], err_msg=name)
        np.testing.assert_array_equal(values, loaded.data["posterior"][name], err_msg=name)
    extended = first.extend(draws=50).data["posterior"]["theta.covariance"]
    np.testing.assert_array_equal(extended, longer.data["posterior"]["theta.covariance"])


def test_a_checkpoint_of_another_population_is_refused(seed, tmp_path):
    call = {"noise": "matched", "checkpoint": tmp_path / "run", **OPTIONS}
    ncb.fit(MODEL, groups(seed), prior=ncb.priors.Hierarchical(), **call)
    with pytest.raises(ncb.InputError, match="prior of theta"):
        ncb.fit(MODEL, groups(seed), prior=ncb.priors.Hierarchical(scale=0.5), **call)


def test_a_tight_population_is_complete_pooling(seed):
    """With Sigma held near zero all groups have mu for their theta."""
    prior = ncb.priors.Hierarchical(df=1e6, scale=1.0)
    posterior = ncb.fit(MODEL, groups(seed), noise="matched", prior=prior, **OPTIONS)
    theta = posterior.theta.to_numpy()[0]
    mean = posterior.data["posterior"]["theta.mean"].to_numpy()[0]
    # Sigma is 1e-6: six standard deviations of 0.001.
    assert np.abs(theta - mean[:, None]).max() < 0.01
