"""Several noise sets: their accidents taken out of the draws, and how far that is from exact."""

import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import several_sets
from ncbayes.models import VonMises

MODEL, THETA = VonMises(), np.array([1.0, 0.5])
OPTIONS = {"seed": 3, "chains": 2, "cores": 1, "progress": False, "verify": False, "tune": 300}


def fit(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(MODEL, data, prior=ncb.priors.Normal(3.0), **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def data():
    return MODEL.sample(THETA, 100, np.random.default_rng(2))


@pytest.fixture(scope="module")
def pooled(data):
    # Uniform noise is not from the model: information kept is not that of the ratio.
    noise = ncb.noise.Pooled(ncb.noise.Uniform(MODEL.space), sets=8)
    return fit(data, noise=noise, noise_ratio=2, draws=1600)


def test_draws_are_moved_to_one_mean_and_narrowed():
    rng = np.random.default_rng(1)
    sets = np.repeat([0, 1, 2], 50)
    values = rng.normal(size=(2, 150, 4)) + np.array([0.0, 5.0, -2.0])[sets][:, None]
    made = several_sets.moved(values, sets, 0.5)
    before = [values[:, sets == k] for k in range(3)]
    centre = np.mean([each.mean(axis=(0, 1)) for each in before], axis=0)
    for k in range(3):
        np.testing.assert_allclose(made[:, sets == k].mean(axis=(0, 1)), centre)
        ratio = made[:, sets == k].var(axis=(0, 1)) / before[k].var(axis=(0, 1))
        np.testing.assert_allclose(ratio, 0.5 + 0.5 / 3)


def test_recentred_draws_are_nearly_exact_where_pooled_ones_are_too_wide(data, pooled):
    exact = fit(data, engine="exact", draws=1600)
    sds = exact.theta.std(("chain", "draw")).to_numpy()
    freed = pooled.recentred()
    ratios = [each.theta.std(("chain", "draw")).to_numpy() / sds for each in (freed, pooled)]
    assert np.abs(ratios[0] - 1).max() < 0.15
    assert ratios[1].min() > 1.2
    off = freed.theta.mean(("chain", "draw")) - exact.theta.mean(("chain", "draw"))
    assert np.abs(off.to_numpy() / sds).max() < 0.6
    assert freed.log_z.std() < pooled.log_z.std()


def test_the_rest_of_the_posterior_stays_and_it_is_saved(pooled, tmp_path):
    freed = pooled.recentred()
    assert freed.data.attrs["recentred"] == 1
    np.testing.assert_allclose(
        freed.theta.mean(("chain", "draw")), pooled.theta.mean(("chain", "draw"))
    )
    assert "recentred" not in pooled.data.attrs
    assert pooled.verdict().grade == freed.verdict().grade
    freed.save(tmp_path / "freed.nc")
    np.testing.assert_array_equal(ncb.load(tmp_path / "freed.nc").theta, freed.theta)
    with pytest.raises(ncb.InputError, match="are recentred already"):
        freed.recentred()
    # In every set the same mean, so that nothing is left between them.
    assert freed.between_set_spread()["between_sd"].max() < 1e-9


def test_one_set_has_nothing_to_recentre(data):
    one = fit(data, noise="matched", draws=50)
    with pytest.raises(
        ncb.InputError, match="recentring noise sets needs a fit with several of them"
    ):
        one.recentred()
