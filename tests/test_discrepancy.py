"""The kernel Stein discrepancy: mean zero under the model, uniform p-values, power elsewhere."""

from typing import ClassVar

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtri
from scipy.stats import chisquare

import ncbayes as ncb
from ncbayes import predictive
from ncbayes.contrast import statistic_names
from ncbayes.models import Exponential, Gamma, Gaussian, Ising, TorusGraph, VonMises
from ncbayes.predictive.discrepancy import stein_kernel


def at(model, theta, x, draws=20):
    """A posterior that stands at theta, and holds the data x."""
    values = np.tile(np.asarray(theta, dtype=float), (1, draws, 1, 1))
    dims = ("chain", "draw", "group", "statistic")
    posterior = xr.Dataset(
        {"theta": (dims, values)}, coords={"group": ["all"], "statistic": statistic_names(model)}
    )
    rows = xr.Dataset({"points": (("row", "axis"), x)}, coords={"group": ("row", ["all"] * len(x))})
    parts = {"posterior": posterior, "observed_data": rows}
    return ncb.Posterior(xr.DataTree.from_dict(parts))


class Slope:
    """``log p(x) = theta x - log Z`` on the interval from 1 to 3."""

    space = ncb.spaces.Box(low=(1.0,), high=(3.0,))
    groups: ClassVar = {"slope": ("x",)}

    def statistics(self, x):
        return x

    def log_base(self, x):
        return np.zeros(len(x))

    def score_statistics(self, x, j):
        ones, none = np.ones_like(x), np.zeros_like(x)
        return np.hstack([ones, none]), np.hstack([none, none])


LINE = np.linspace(-12, 12, 4001)[:, None]
CASES = {
    "torus": (VonMises(), [1.2, -0.5], np.linspace(0, 2 * np.pi, 2001)[:-1, None]),
    "reals": (Gaussian(1), [0.7, 1.3], LINE),
    "orthant": (Gamma(), [0.6, 1.5], np.exp(LINE)),
    "end": (Exponential(), [1.4], np.exp(LINE)),
    "box": (Slope(), [0.8], np.linspace(1, 3, 4001)[:, None]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_has_mean_zero_under_the_model(case):
    """By quadrature over x, for several y; under another theta it has not."""
    model, theta, grid = CASES[case]
    theta = np.array(theta)
    y = (
        model.space.check(grid[[1200, 1900]], ["x"])
        if case != "orthant"
        else np.array([[0.3], [2]])
    )
    cell = np.gradient(grid[:, 0])
    log = model.statistics(grid) @ theta + model.log_base(grid)
    weights = np.exp(log) * cell
    weights /= weights.sum()
    scale = np.array([0.8])
    size = weights @ np.abs(stein_kernel(model, theta, grid, y, scale)[0])
    mean = weights @ stein_kernel(model, theta, grid, y, scale)[0]
    assert np.all(np.abs(mean) < 2e-4 * size)
    other = weights @ stein_kernel(model, 1.3 * theta, grid, y, scale)[0]
    assert np.any(np.abs(other) > 1e-2 * size)


def test_derivatives_of_kernels_are_those_of_differences(seed):
    """Two coordinates, so that one's derivative knows of the other."""
    rng = np.random.default_rng(seed)
    for model, theta in ((TorusGraph(2), rng.normal(size=8)), (Gaussian(2), [0, 0, 1, 1, 0.3])):
        theta, x, y = np.array(theta, dtype=float), *rng.uniform(0, 3, (2, 4, 2))
        scale = np.array([0.7, 1.9])
        kernel = stein_kernel(model, theta, x, y, scale)
        assert kernel.shape == (2, 4, 4)
        np.testing.assert_allclose(
            kernel, np.swapaxes(stein_kernel(model, theta, y, x, scale), 1, 2), atol=1e-12
        )
        gram = stein_kernel(model, theta, x, x, scale).sum(axis=0)
        assert np.linalg.eigvalsh(gram).min() > -1e-9


def uniform(p_values, draws):
    counts = np.bincount(np.round(p_values * (draws + 1)).astype(int) - 1, minlength=draws + 1)
    return chisquare(counts).pvalue


def p_values(model, truth, fitted, seed, sets, rows=30):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(sets):
        posterior = at(model, fitted, model.sample(np.array(truth), rows, rng))
        found.append(predictive.stein(posterior, model, draws=9, seed=rng).p_value)
    return np.array(found)


@pytest.mark.parametrize(
    ("model", "truth", "other"),
    [
        (VonMises(), [1.5, 0.0], [0.2, 0.0]),
        (Gaussian(2), [0, 0, 1, 1, 0.5], [0, 0, 1, 1, -0.5]),
        (Gamma(), [2.0, 1.0], [4.0, 2.0]),
    ],
    ids=["torus", "reals", "orthant"],
)
def test_p_values_are_uniform_at_the_truth_and_small_elsewhere(model, truth, other, seed):
    right = p_values(model, truth, truth, seed, 200)
    assert uniform(right, 9) > 1e-6
    z = (right.mean() - 0.55) / (np.sqrt((10**2 - 1) / 12) / 10 / np.sqrt(200))
    assert abs(z) < -ndtri(1e-6 / 2)
    assert p_values(model, truth, other, seed, 30, rows=120).mean() < 0.25


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_fit_passes_and_a_wrong_one_is_named_by_its_coordinate(seed):
    """Two heaps in the second column, which no Gaussian has."""
    rng = np.random.default_rng(seed)
    heaps = rng.normal(0, 0.3, (300, 2)) + np.column_stack(
        [rng.normal(size=300), rng.choice([-1.5, 1.5], 300)]
    )
    normal = rng.normal(size=(300, 2))
    model, results = Gaussian(2), []
    for x in (normal, heaps):
        posterior = ncb.fit(
            model, x, engine="exact", draws=500, tune=100, chains=2, cores=1, seed=seed,
            progress=False,
        )  # fmt: skip
        results.append(predictive.stein(posterior, model, draws=50, seed=seed, most_rows=200))
    right, wrong = results
    # At the truth it is a sum of many squares: four times its mean is beyond chance.
    assert right.table["observed"][0] < 4 * right.table["replicated"][0]
    assert wrong.p_value == pytest.approx(1 / 51)
    table = wrong.table.set_index("coordinate")
    assert list(table.index) == ["all", "x1", "x2"]
    assert table.loc["x2", "p_value"] == pytest.approx(1 / 51)
    ratio = table["observed"] / table["replicated"]
    assert ratio["x2"] > 5 > 4 > ratio["x1"]
    assert wrong.method == "predictive"
    assert wrong.rows == 200
    assert wrong.observed.shape == wrong.replicated.shape == (50, 3)
    np.testing.assert_allclose(wrong.observed[:, 0], wrong.observed[:, 1:].sum(axis=1))


def test_without_a_sampler_signs_are_drawn(seed):
    """The wild bootstrap at the truth, and where the slope has the wrong sign."""
    rng = np.random.default_rng(seed)
    found = {}
    for sign in (1.0, -1.0):
        found[sign] = []
        for _ in range(100 if sign > 0 else 20):
            # Uniform draws through the inverse distribution function at theta = 1.
            x = 1 + np.log1p(rng.random((80, 1)) * np.expm1(2.0))
            check = predictive.stein(at(Slope(), [sign], x), Slope(), draws=19, seed=rng)
            assert check.method == "bootstrap"
            found[sign].append(check.p_value)
    mean = np.mean(found[1.0])
    # The bootstrap is valid for many rows; with eighty its p-values are uniform nearly.
    assert abs(mean - 0.525) / (np.sqrt(1 / 12 / 100)) < 5.5
    assert np.mean(found[-1.0]) < 0.1


def test_the_same_seed_gives_the_same_check(seed):
    x = VonMises().sample(np.array([1.0, 0.0]), 30, np.random.default_rng(seed))
    posterior = at(VonMises(), [1.0, 0.0], x)
    one, two = (predictive.stein(posterior, VonMises(), draws=5, seed=3) for _ in range(2))
    assert one.table.equals(two.table)


X = np.ones((4, 1))


@pytest.mark.parametrize(
    ("posterior", "model", "options", "message"),
    [
        (3, VonMises(), {}, "predictive.stein needs the posterior that ncbayes.fit"),
        (
            at(Ising(1), [1.0], X),
            Ising(1),
            {},
            r"Ising\(1\) has no score_statistics\(x, j\), the derivatives",
        ),
        (at(VonMises(), [1, 0], X), Gaussian(1), {}, "model must be the one that was fitted"),
        (at(VonMises(), [1, 0], X), VonMises(), {"draws": 0}, "draws must be a whole number, 1"),
        (at(VonMises(), [1, 0], X), VonMises(), {"most_rows": 1}, "most_rows must be a whole numb"),
    ],
)
def test_what_cannot_be_tested_is_refused(posterior, model, options, message):
    with pytest.raises(ncb.InputError, match=message):
        predictive.stein(posterior, model, **options)


def test_spaces_whose_ends_are_not_known_are_refused():
    class Somewhere(VonMises):
        space = ncb.spaces.Binary(1)

    with pytest.raises(ncb.InputError, match=r"needs continuous points .* on Binary\(.*; use pred"):
        predictive.stein(at(VonMises(), [1, 0], X), Somewhere())


@pytest.mark.parametrize("check", [predictive.check, predictive.stein])
def test_draws_where_the_model_does_not_exist_are_named(check):
    class Nowhere(Gaussian):
        def sample(self, theta, size, rng):
            raise ncb.InputError("K must be another")

    data = np.random.default_rng(1).normal(size=(30, 1))
    options = {"noise": "matched", "draws": 10, "tune": 10, "chains": 1, "progress": False}
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(Gaussian(1), data, seed=1, **options)
    message = r"can't be simulated at a draw of the posterior \(K must be another\): fit more data"
    with pytest.raises(ncb.InputError, match=message):
        check(posterior, Nowhere(1), draws=5, seed=1)
