"""A checkpoint of another run is told from this one by content, and by no more than that."""

import json
from dataclasses import dataclass, field
from importlib.metadata import version

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import noise, priors
from ncbayes.fingerprints import as_is, by_column, by_entry, digest
from ncbayes.spaces import Box, Orthant, Reals

pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
X = np.random.default_rng(0).uniform(0.5, 2.0, size=(30, 1))
NOISE = noise.Normal(1.0, 2.0)


def zero(x):
    return np.zeros(len(x))


@dataclass
class Family:
    """A model with exchangeable parts, which its name does not tell."""

    log_base: object = zero
    factor: object = 1.0
    space: object = field(default_factory=lambda: Reals(1))
    groups = {"all": ("x", "x^2")}  # noqa: RUF012

    def __repr__(self):
        return "Family()"

    def statistics(self, x):
        return np.column_stack([x[:, 0], x[:, 0] ** 2]) * self.factor


def fit(folder, model=None, **options):
    few = {"draws": 8, "tune": 2, "chains": 1, "cores": 1, "seed": 1, "progress": False}
    settings = {"noise": NOISE, "prior": priors.Normal(1.0)}
    return ncb.fit(model or Family(), X, checkpoint=folder, **{**few, **settings, **options})


def refused(folder, named, *args, **options):
    with pytest.raises(ncb.InputError, match=f"holds a run that differs in: .*{named}"):
        fit(folder, *args, **options)


def test_a_log_base_that_differs_only_where_there_is_noise_is_refused(tmp_path):
    fit(tmp_path, Family(zero))
    far = Family(lambda x: -1.0 * (x[:, 0] < 0))
    assert not far.log_base(X).any()
    refused(tmp_path, "statistics of the model", far)


def test_statistics_that_differ_only_where_there_is_noise_are_refused(tmp_path):
    class Bent(Family):
        def statistics(self, x):
            return np.where(x < 0, 2.0, 1.0) * super().statistics(x)

    fit(tmp_path, Family())
    refused(tmp_path, "statistics of the model", Bent())


class Slow:
    """An engine with a setting and no repr of its own."""

    def __init__(self, repeats):
        self.repeats = repeats

    def start(self, target, rng):
        return ncb.engines.Gibbs().start(target, rng)

    def step(self, target, draw, rng):
        for _ in range(self.repeats):
            draw = ncb.engines.Gibbs().step(target, draw, rng)
        return draw


def test_an_engine_with_other_settings_is_refused(tmp_path):
    first = fit(tmp_path, engine=Slow(1))
    np.testing.assert_array_equal(fit(tmp_path, engine=Slow(1)).theta, first.theta)
    refused(tmp_path, "settings of the engine", engine=Slow(2))


class Holds(Slow):
    """An engine that holds an object without a repr of its own, whose address says nothing."""

    def __init__(self, repeats):
        super().__init__(repeats)
        self.inner = type("Inner", (), {})()


def test_the_address_of_a_part_of_an_engine_does_not_matter(tmp_path):
    kept = Holds(1)
    fit(tmp_path, engine=kept)
    assert fit(tmp_path, engine=Holds(1)).complete


def test_the_last_bit_of_statistics_does_not_matter(tmp_path):
    first = fit(tmp_path, Family(factor=1.0))
    other = Family(factor=1.0 + np.finfo(float).eps)
    assert not np.array_equal(other.statistics(X), Family().statistics(X))
    np.testing.assert_array_equal(fit(tmp_path, other).theta, first.theta)
    refused(tmp_path, "statistics of the model", Family(factor=1.0001))


def test_the_last_bit_of_the_data_matters(tmp_path):
    other = X * (1 + np.finfo(float).eps)
    assert digest("", [X], as_is) != digest("", [other], as_is)
    for rounded in (by_column, by_entry):
        assert digest("", [X], rounded) == digest("", [other], rounded)


@pytest.mark.parametrize("space", [Orthant(1), Box(0.0, 3.0)], ids=repr)
def test_another_space_is_refused_though_noise_and_prior_are_given(tmp_path, space):
    fit(tmp_path, Family())
    refused(tmp_path, "statistics of the model", Family(space=space))


def test_versions_are_recorded_and_compared(tmp_path):
    fit(tmp_path)
    path = tmp_path / "run.json"
    record = json.loads(path.read_text())
    names = {"ncbayes", "numba", "numpy", "polyagamma"}
    assert record["versions"] == {name: version(name) for name in names}
    record["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(record))
    refused(tmp_path, r"versions \(was .*'numpy': '1.0'.*, now ")


def test_a_prior_with_other_updates_is_refused(tmp_path):
    """Two priors that agree in draw and gaussian, and not in what they learn."""

    class Stuck(priors.HalfCauchyNormal):
        def update(self, state, theta, rng):
            return state

    fit(tmp_path, prior=priors.HalfCauchyNormal(1.0))
    refused(tmp_path, "prior of theta", prior=Stuck(1.0))


@pytest.mark.parametrize("prior", [priors.Normal(2.0), priors.Normal(1.0, mean=0.1)], ids=str)
def test_another_prior_is_refused(tmp_path, prior):
    fit(tmp_path)
    refused(tmp_path, "prior of theta", prior=prior)


@pytest.mark.parametrize("other", [priors.Normal([1e-4, 5.0]), {"normalizer": priors.Normal(3.0)}])
def test_a_small_precision_beside_a_large_one_is_not_lost(tmp_path, other):
    strong = priors.Normal([1e-4, 1.0])
    fit(tmp_path, prior=strong)
    if isinstance(other, dict):
        other = {"all": strong, **other}
    refused(tmp_path, "prior of theta", prior=other)


class Uneven(Family):
    def statistics(self, x):
        return np.column_stack([1e-5 * np.exp(self.factor * x[:, 0]), 1e5 * x[:, 0] ** 2])


def test_a_small_statistic_beside_a_large_one_is_not_lost(tmp_path):
    fit(tmp_path, Uneven(factor=1.0))
    refused(tmp_path, "statistics of the model", Uneven(factor=0.5))


@pytest.mark.parametrize("rounded", [as_is, by_column, by_entry])
def test_digests_tell_shapes_signs_and_names(rounded):
    values = np.arange(6.0)

    def found(array, text=""):
        return digest(text, [array], rounded)

    assert found(values.reshape(2, 3)) != found(values.reshape(3, 2))
    assert found(values) != found(-values)
    assert found(values) != found(2 * values)
    assert found(values, "a") != found(values, "b")
    assert found(np.array([0.0])) == found(np.array([-0.0]))
