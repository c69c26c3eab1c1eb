import math

import numpy as np
import pytest
from scipy.special import k1e

import ncbayes as ncb
from ncbayes import normalizers
from ncbayes.base import InputError
from ncbayes.models import Gaussian, Ising, TorusGraph, VonMises
from ncbayes.noise import Normal, StudentT
from ncbayes.normalizers import normalizer

RNG = np.random.default_rng(5)


class Bare:
    """A model with the documented members only."""

    def __init__(self, model):
        self.space, self.groups = model.space, model.groups
        self.statistics, self.log_base = model.statistics, model.log_base


class Shifted:
    """Noise whose density is off by a factor."""

    def __init__(self, noise, by):
        self.noise, self.by = noise, by

    def sample(self, size, rng):
        return self.noise.sample(size, rng)

    def log_density(self, x):
        return self.noise.log_density(x) + self.by


def draws_of(size, count=30, spread=0.2):
    return spread * np.random.default_rng(2).standard_normal((count, size))


def exact(model, rows):
    return np.array([model.log_partition(row) for row in rows])


def test_a_model_that_knows_log_z_is_asked():
    rows = draws_of(2)
    found = normalizer(VonMises(), rows, 0, None, RNG)
    assert (found.way, found.error) == ("sum", 0.0)
    assert np.allclose(found.log_z, exact(VonMises(), rows), atol=1e-10)
    rows = np.array([[0.1, 0.5], [0.0, 0.6]])
    found = normalizer(Gaussian(1), rows, 0, None, RNG)
    assert (found.way, found.error) == ("exact", 0.0)
    assert np.array_equal(found.log_z, exact(Gaussian(1), rows))


def test_small_discrete_spaces_are_summed():
    rows = draws_of(15)
    found = normalizer(Ising(5), rows, 0, None, RNG)
    assert found.way == "sum"
    assert np.allclose(found.log_z, exact(Ising(5), rows), atol=1e-10)


def test_too_sharp_for_the_grid_is_not_summed():
    """One point of the grid holds all the mass: a sum over the grid would be wrong."""
    rows = np.array([[1e7, 0.0]])
    found = normalizer(VonMises(), rows, 0, None, RNG)
    assert found.way == "exact"


def test_annealing_by_conditionals_is_right(monkeypatch, seed):
    model, rows = Ising(7), draws_of(28, spread=0.3)
    wanted = exact(model, rows)
    monkeypatch.setattr(normalizers, "MOST_ENTRIES", 0)
    rng = np.random.default_rng(seed)
    found = normalizer(model, rows, 0, None, rng)
    assert found.way == "annealing"
    assert 0 < found.error < 0.1
    assert np.all(np.abs(found.log_z - wanted) < 6 * found.error)
    # The broken twin: particles that are not weighted.
    monkeypatch.setattr(normalizers, "anneal", unweighted)
    broken = normalizer(model, rows, 0, None, rng)
    assert not np.all(np.abs(broken.log_z - wanted) < 6 * broken.error)


def unweighted(model, theta, steps, size, rng, start=None):
    from ncbayes.noise.tempered import anneal

    points, path = anneal(model, theta, steps, size, rng, start)
    return points, np.full_like(path, model.space.log_volume)


@pytest.mark.parametrize("noise", ["student", "normal"])
def test_annealing_from_noise_is_right(noise, seed):
    model = Gaussian(4)
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((100, 4)) @ np.diag([1.0, 2.0, 0.5, 1.0])
    theta = model.guess(data) if hasattr(model, "guess") else natural(data)
    rows = theta + 0.03 * rng.standard_normal((20, len(theta)))
    start = StudentT.match(data) if noise == "student" else Normal.match(2 * data)
    found = normalizer(Bare(model), rows, 0, start, rng)
    wanted = exact(model, rows)
    assert found.way == "noise"
    assert 0 < found.error < 0.1
    assert np.all(np.abs(found.log_z - wanted) < 6 * found.error)
    broken = normalizer(Bare(model), rows, 0, Shifted(start, 1.0), rng)
    assert not np.all(np.abs(broken.log_z - wanted) < 6 * broken.error)


def natural(data):
    """Natural parameters of Gaussian(4) at the data's moments, by its own statistics."""
    model = Gaussian(4)
    names = [name for names in model.groups.values() for name in names]
    precision, mean = np.linalg.inv(np.cov(data, rowvar=False)), data.mean(axis=0)
    # Found by regression: log density is linear in the statistics.
    points = np.random.default_rng(0).standard_normal((200, 4))
    log_density = -np.einsum("ni,ij,nj->n", points - mean, precision, points - mean) / 2
    table = np.column_stack([model.statistics(points), np.ones(200)])
    return np.linalg.lstsq(table, log_density, rcond=None)[0][: len(names)]


def test_a_draw_far_from_the_reference_counts_as_lost(monkeypatch):
    monkeypatch.setattr(normalizers, "MOST_ENTRIES", 0)
    rows = np.zeros((10, 66))
    rows[5:] = 3.0
    found = normalizer(Ising(11), rows, 0, None, np.random.default_rng(1))
    assert found.lost == 0.5


def test_without_a_way_the_reason_is_given():
    class Odd(Bare):
        pass

    with pytest.raises(InputError, match=r"log Z of Odd can't be worked out: there is no noise on"):
        normalizer(Odd(Gaussian(3)), np.zeros((2, 9)), 0, None, RNG)


def test_the_error_is_in_the_spread_of_the_draws():
    found = normalizers.Normalizer(np.zeros(4000), 0.1, "noise")
    drawn = found.drawn(np.random.default_rng(1))
    assert abs(drawn.std() - 0.1) < 0.01


class Hyperbolic:
    """``-a sum sqrt(1 + x^2) + t . x``, whose exact log Z is ``sum log(2 a K_1(g) / g)``."""

    def __init__(self, dimension):
        self.space = ncb.spaces.Reals(dimension)
        self.groups = {"shape": ("a",), "tilt": tuple(f"t{j}" for j in range(dimension))}

    def statistics(self, x):
        return np.column_stack([-np.sqrt(1 + x**2).sum(axis=1), x])

    def log_base(self, x):
        return np.zeros(len(x))

    @staticmethod
    def log_z(theta):
        a = theta[..., :1]
        g = np.sqrt(a**2 - theta[..., 1:] ** 2)
        return (np.log(2 * a * k1e(g) / g) - g).sum(axis=-1)


def hyperbolic(dimension, size, seed):
    grid = np.linspace(-40, 40, 40_001)
    total = np.cumsum(np.exp(-1.5 * np.sqrt(1 + grid**2)))
    u = np.random.default_rng(seed).random((size, dimension))
    return np.interp(u * total[-1], total, grid)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_log_z_of_a_fit_is_that_of_its_draws(seed):
    """12 columns, 80 rows, 90 numbers fitted to these rows: -c is off by many errors."""
    data = hyperbolic(12, 80, seed)
    posterior = ncb.fit(
        Hyperbolic(12), data, noise=StudentT.match(data), noise_ratio=5, seed=seed, draws=150,
        tune=100, chains=2, cores=1, progress=False,
    )  # fmt: skip
    theta = posterior.theta.to_numpy()
    inside = theta[..., 0] > np.abs(theta[..., 1:]).max(axis=-1)  # elsewhere there is no log Z
    wanted = Hyperbolic.log_z(theta[inside])
    off = posterior.log_z.to_numpy()[inside] - wanted
    error = float(posterior.data["normalizer"]["error"][0])
    assert posterior.data["normalizer"]["way"].item() == "noise"
    assert abs(off.mean()) < 5 * error
    own = posterior.data["normalizer"]["contrast_log_z"].to_numpy()[inside] - wanted
    assert own.mean() < -5 * error


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_where_log_z_cannot_be_worked_out_it_is_the_contrasts_own(monkeypatch):
    from ncbayes import assembly

    monkeypatch.setattr(assembly, "LARGEST_ERROR", 0.0)
    data = hyperbolic(3, 40, 1)
    posterior = ncb.fit(
        Hyperbolic(3), data, noise="matched", seed=1, draws=20, tune=20, chains=1, progress=False
    )
    assert posterior.data["normalizer"]["way"].item() == "contrast"
    assert math.isnan(posterior.data["normalizer"]["error"].item())
    own = posterior.data["normalizer"]["contrast_log_z"]
    assert np.array_equal(own, posterior.log_z)
    assert math.isnan(posterior.data["normalizer"]["typical_gap"].item())


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_where_draws_are_too_far_apart_it_is_still_known_at_their_mean(monkeypatch):
    from ncbayes import assembly

    options = {"noise": "matched", "seed": 1, "draws": 100, "tune": 100, "chains": 1}
    data = hyperbolic(3, 80, 1)
    usual = ncb.fit(Hyperbolic(3), data, progress=False, **options).data
    monkeypatch.setattr(assembly, "MOST_LOST", -1.0)
    stored = ncb.fit(Hyperbolic(3), data, progress=False, **options).data["normalizer"]
    assert stored["way"].item() == "contrast"
    gap = (stored["contrast_log_z"] - usual["posterior"]["log_z"]).mean().item()
    # The mean of log Z over draws, less that of their mean, is some p / 2n.
    assert abs(stored["typical_gap"].item() - gap) < 4 / 80 + 4 * stored["typical_error"].item()


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_log_z_is_the_same_for_any_number_of_cores_and_from_a_file(tmp_path):
    model = TorusGraph(4)
    angles = np.random.default_rng(1).random((60, 4)) * 2 * np.pi
    options = {"noise": "matched", "seed": 1, "draws": 20, "tune": 20, "chains": 2}
    one, two = (ncb.fit(model, angles, cores=k, progress=False, **options) for k in (1, 2))
    assert one.data["normalizer"]["way"].item() == "annealing"
    assert np.array_equal(one.log_z, two.log_z)
    one.save(tmp_path / "fit.nc")
    loaded = ncb.load(tmp_path / "fit.nc")
    assert np.array_equal(loaded.log_z, one.log_z)
    assert loaded.data["normalizer"]["way"].item() == "annealing"
