"""A fit that looks at itself: mass elsewhere, means, predictions, and what is stored of them."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.base import NoiseSet
from ncbayes.checks import records
from ncbayes.checks.verification import Fitted, Nearness, seen

SHORT = {"draws": 300, "tune": 200, "chains": 2, "cores": 1, "seed": 1, "progress": False}


def fit(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, **{**SHORT, **options})


def grade(posterior, kind):
    return {each.kind: each.grade for each in posterior.verdict().concerns}.get(kind)


def looked_at(rows, mean, rng, noise_sd=1.0):
    """A normal of this mean as if it had been fitted to rows, against normal noise."""
    model = ncb.models.Gaussian(1)
    theta = np.array([mean, 1.0])
    draws = theta + 0.05 * rng.standard_normal((64, 2))
    noise = ncb.noise.Normal(0.0, noise_sd**2)
    points = noise.sample(4000, rng)
    pairs = NoiseSet(points, noise.log_density(points), noise.log_density(rows))
    return seen(Fitted(model, rows, theta, draws, None, (noise, pairs)), rng)


def test_mass_where_there_are_neither_data_nor_noise_is_seen(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 1))
    right, wrong = looked_at(rows, 0.0, rng), looked_at(rows, 8.0, rng)
    assert right.strays < 0.05
    assert right.near > 0.95
    assert right.moments < 4
    assert wrong.strays > 0.9
    assert wrong.near < 0.1
    assert wrong.moments > 10
    # Noise that covers: the model is as wrong, and the contrast could have seen it.
    assert looked_at(rows, 8.0, rng, noise_sd=8.0).strays < 0.05


def test_nearness_is_by_chord_on_the_circle():
    near = Nearness.of(SimpleNamespace(space=ncb.spaces.Torus(1)), np.linspace(0, 1, 50)[:, None])
    assert near.share(np.array([[0.5], [2 * np.pi + 0.5]])) == 1
    assert near.share(np.array([[0.5 + np.pi]])) == 0


def case(share=0.1, kappa=15, seed=1):
    """Six concentrated angles: turning all of them by pi changes no pair term."""
    rng = np.random.default_rng(seed)
    common = rng.vonmises(0, kappa, 300)[:, None]
    x = common + rng.vonmises(0, kappa, (300, 6)) + np.linspace(-1, 1, 6)
    x[: int(300 * share)] = rng.uniform(0, 2 * np.pi, (int(300 * share), 6))
    return x % (2 * np.pi)


def test_a_fit_whose_mass_is_on_the_other_side_has_failed():
    model = ncb.models.TorusGraph(6)
    failed = fit(model, case(), noise="matched")
    verdict = failed.verdict()
    assert verdict.grade == "failed"
    assert not verdict.usable
    assert verdict.line.startswith("The fit has failed, do not use its answer: ")
    assert grade(failed, "elsewhere") == "failed"
    assert (ncb.graphs.edges(failed)["fit"] == "failed").all()
    assert repr(failed).startswith("The fit has failed")
    covered = fit(model, case(), noise=ncb.noise.Uniform(model.space), noise_ratio=10)
    assert covered.verdict().grade != "failed"
    assert grade(covered, "elsewhere") == "good"
    assert grade(covered, "predictions") == "poor"  # a tenth of the rows is not of the model
    assert "fit" not in ncb.graphs.edges(covered)


def bimodal(rng):
    side = np.where(rng.random(200) < 0.5, 0.0, np.pi)
    return (side + rng.vonmises(0, 4, 200))[:, None] % (2 * np.pi)


def sparse(rng):
    x = (rng.random((300, 5)) < 0.5).astype(float)
    x[:90] = 0
    return x


def exclusive(rng):
    x = (rng.random((300, 4)) < 0.5).astype(float)
    x[:, 2] = (x[:, 0] != x[:, 1]) ^ (rng.random(300) < 0.15)
    return x


def blocks(rng):
    groups = np.repeat([0, 1], 6)
    chance = np.where(groups[:, None] == groups, 0.6, 0.05)
    upper = np.triu(rng.random((20, 12, 12)) < chance, 1).astype(float)
    return upper + upper.transpose(0, 2, 1)


def tailed(rng):
    return np.where(rng.random((200, 1)) < 0.1, 12.0, rng.poisson(1, (200, 1)))


WRONG = {
    "two sides": (ncb.models.VonMises(), bimodal, "second harmonics"),
    "heavy tails": (ncb.models.Gaussian(2), lambda rng: rng.standard_t(2.5, (200, 2)), "margins"),
    "many zeros": (ncb.models.Ising(5), sparse, "ones in a row"),
    "three columns": (ncb.models.Ising(4), exclusive, "triples"),
    "blocks": (ncb.models.ERGM(12, ["edges"]), blocks, "shared partners"),
    "a tail of counts": (ncb.models.ConwayMaxwell(1, edges=[], most=30), tailed, "margins"),
}


# Chains are short, and local scales of edges are the slowest of all.
short_chains = pytest.mark.filterwarnings("ignore:there are fewer than 100 effective draws")


@short_chains
@pytest.mark.parametrize("name", WRONG)
def test_data_that_do_not_follow_the_model_are_told(name, seed):
    model, made, look = WRONG[name]
    with pytest.warns(ncb.FitWarning, match="do not look like the data"):
        posterior = ncb.fit(model, made(np.random.default_rng(seed)), **SHORT)
    assert grade(posterior, "predictions") == "poor"
    stored = posterior.data["verification"].to_dataset()
    p_values = dict(zip(stored["look_name"].values, stored["p_value"].values, strict=True))
    assert p_values[look] < 1e-4


def test_a_posterior_mean_that_is_no_distribution_has_failed(seed):
    model = ncb.models.ConwayMaxwell(1, edges=[])  # unlimited counts
    posterior = fit(model, tailed(np.random.default_rng(seed)))
    (concern,) = [each for each in posterior.verdict().concerns if each.kind == "improper"]
    assert concern.grade == "failed"
    assert "is no distribution of unlimited counts" in concern.line


RIGHT = {
    "angle": (ncb.models.VonMises(), np.array([1.2, 0.4]), 150),
    "binary": (ncb.models.Ising(4), np.full(10, 0.3), 200),
    "normal": (ncb.models.Gaussian(1), np.array([0.5, 1.5]), 200),
    "graphs": (ncb.models.ERGM(8, ["edges"]), np.array([-0.7]), 30),
}


@short_chains
@pytest.mark.parametrize("name", RIGHT)
def test_data_of_the_model_raise_no_alarm(name, seed):
    model, theta, rows = RIGHT[name]
    data = model.sample(theta, rows, np.random.default_rng(seed))
    posterior = ncb.fit(model, data, **SHORT)
    stored = posterior.data["verification"].to_dataset()
    # By chance once in ten thousand.
    assert stored["p_value"].min() * stored.sizes["look"] > 1e-4
    assert grade(posterior, "elsewhere") == "good"


def test_the_look_does_not_change_the_draws_nor_depend_on_the_machine():
    model = ncb.models.VonMises()
    data = model.sample(np.array([1.0, 0.0]), 80, np.random.default_rng(1))
    first, again, without = (fit(model, data, verify=verify) for verify in (True, True, False))
    assert first.theta.equals(without.theta)
    assert first.data["verification"].to_dataset().equals(again.data["verification"].to_dataset())
    assert "verification" not in without.data.children
    assert "verify=False was asked for" in without.verdict().of("verification")[-1].line
    assert grade(without, "unverified") == "fair"
    looked = ncb.predictive.verify(without, model, seed=1)
    assert grade(looked, "predictions") == "good"
    with pytest.raises(ncb.InputError, match="verify must be True or False, got 'no'"):
        fit(model, data, verify="no")


def test_a_verdict_is_saved_and_loaded(tmp_path):
    model = ncb.models.VonMises()
    data = {"a": bimodal(np.random.default_rng(1)), "b": bimodal(np.random.default_rng(2))}
    posterior = fit(model, data)
    posterior.save(tmp_path / "posterior.nc")
    loaded = ncb.load(tmp_path / "posterior.nc")
    assert loaded.verdict() == posterior.verdict()
    assert repr(loaded) == repr(posterior)
    assert "in group" in loaded.verdict().of("predictions")[0].line


def test_engines_without_noise_look_at_themselves_too(seed):
    model = ncb.models.Ising(4)
    data = model.sample(np.full(10, 0.3), 150, np.random.default_rng(seed))
    for engine in ("exact", "pseudolikelihood"):
        posterior = fit(model, data, engine=engine)
        assert grade(posterior, "predictions") == "good"
        assert grade(posterior, "elsewhere") is None


def test_a_model_without_a_sampler_is_looked_at_while_there_is_noise():
    class Mute:
        """Counts without a sampler."""

        groups = {"all": ("x", "x2")}  # noqa: RUF012

        def __init__(self, columns):
            self.space = ncb.spaces.Counts(columns)

        def statistics(self, x):
            return np.column_stack([x.sum(axis=1), -(x**2).sum(axis=1) / 10])

        def log_base(self, x):
            return np.zeros(len(x))

    rng = np.random.default_rng(1)
    counts = rng.poisson(3, (100, 6)).astype(float)
    posterior = fit(Mute(6), counts, noise=ncb.noise.NegativeBinomial.match(counts))
    assert grade(posterior, "predictions") == "good"  # by noise points, weighted
    with pytest.raises(ncb.InputError, match=r"Mute.* has neither sample nor sweep"):
        ncb.predictive.verify(posterior, Mute(6))
    # Zeros and ones can be summed over, and so be drawn from.
    model, rows = Mute(3), rng.integers(0, 2, (100, 3)).astype(float)
    model.space = ncb.spaces.Binary(3)
    model.groups = {"all": ("x",)}
    model.statistics = lambda x: x.sum(axis=1, keepdims=True)
    again = ncb.predictive.verify(fit(model, rows, noise="matched"), model, seed=1)
    assert grade(again, "predictions") == "good"


def test_a_mistake_in_a_model_loses_no_run(monkeypatch):
    def broken(fit, rng):
        raise KeyError("a mistake")

    monkeypatch.setattr(records, "seen", broken)
    model = ncb.models.VonMises()
    posterior = fit(model, model.sample(np.array([1.0, 0.0]), 60, np.random.default_rng(1)))
    assert posterior.theta.sizes["draw"] == SHORT["draws"]
    assert grade(posterior, "unverified") == "fair"
    assert "KeyError: 'a mistake'" in posterior.verdict().of("verification")[-1].line


@pytest.mark.parametrize(("ones", "far"), [(1, False), (40, True)])
def test_one_row_that_is_never_simulated_is_no_wonder(ones, far, seed):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.arange(200) < ones, rng.random(200) < 0.5]).astype(float)
    theta = np.array([-40.0, 0.0, 0.0])  # the first column is never one
    draws = theta + 0.01 * rng.standard_normal((64, 3))
    found = seen(Fitted(ncb.models.Ising(2), rows, theta, draws), rng)
    assert np.isfinite(found.moments)
    assert (found.moments > 5) == far
