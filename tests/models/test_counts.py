import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.models import ConwayMaxwell
from ncbayes.quadrature import quadrature
from ncbayes.testing import check_model

MODELS = [
    *(ConwayMaxwell(1), ConwayMaxwell(2, edges=[]), ConwayMaxwell(2, most=4)),
    ConwayMaxwell(3, most=3, dispersion=False),
    ConwayMaxwell(list("abc"), most=3, edges=[("c", "a")]),
]
MODEL = pytest.mark.parametrize("model", MODELS, ids=repr)
# theta_1, theta_2, nu_1, nu_2, J
THETA_2 = np.array([0.8, 0.3, 1.2, 0.6, -0.15])
PAIR = ConwayMaxwell(2, most=8)


def states(model, most=None):
    limit = model.most if model.most is not None else most
    return np.array(list(itertools.product(range(limit + 1), repeat=len(model.nodes))), float)


def plain_statistics(model, row):
    value = dict(zip(model.nodes, row, strict=True))
    shapes = [-math.log(math.factorial(int(each))) for each in row] if model.dispersion else []
    return [*row, *shapes, *(value[one] * value[other] for one, other in model.edges)]


def plain_log_base(model, row):
    return 0.0 if model.dispersion else -sum(math.log(math.factorial(int(each))) for each in row)


def log_weights(model, theta, x):
    return [np.dot(plain_statistics(model, r), theta) + plain_log_base(model, r) for r in x]


@MODEL
def test_statistics_are_the_formulas(model):
    x = states(model, most=5)
    assert model.statistics(x) == pytest.approx(np.array([plain_statistics(model, r) for r in x]))
    assert model.log_base(x) == pytest.approx([plain_log_base(model, r) for r in x])
    assert isinstance(model, Model)


def test_names_columns_repr_and_pickle():
    model = ConwayMaxwell(["a", "b", "c"], 9, [("c", "a")], dispersion=False)
    assert model.groups == {"rate": ("a", "b", "c"), "edge": ("a*c",)}
    assert model.edge_columns["coupling"].tolist() == [3]
    text = "ConwayMaxwell(['a', 'b', 'c'], most=9, edges=[('a', 'c')], dispersion=False)"
    assert repr(model) == text
    assert pickle.loads(pickle.dumps(model)) == model
    assert PAIR.edge_columns["coupling"].tolist() == [4]
    assert ConwayMaxwell(1).groups == {"rate": ("x1",), "dispersion": ("-log(x1!)",)}


@MODEL
def test_the_partition_is_the_sum_over_states(model, seed):
    rng = np.random.default_rng(seed)
    theta = 0.5 * rng.normal(size=sum(map(len, model.groups.values())))
    if model.most is None:
        theta[len(model.nodes) :] = 0.5 + rng.random(len(model.nodes))
    x = states(model, most=60)
    log_z = math.log(np.exp(log_weights(model, theta, x)).sum())
    assert model.log_partition(theta) == pytest.approx(log_z, rel=1e-12, abs=1e-12)


def test_poisson_and_geometric_are_special_cases():
    poisson = ConwayMaxwell(1, dispersion=False)
    assert poisson.log_partition([math.log(900.0)]) == pytest.approx(900.0, rel=1e-12)
    assert ConwayMaxwell(1).log_partition([math.log(7.0), 1.0]) == pytest.approx(7.0, rel=1e-12)
    geometric = ConwayMaxwell(1).log_partition([math.log(0.99), 0.0])
    assert geometric == pytest.approx(-math.log(0.01), rel=1e-12)
    # The pmf of lambda = 3, nu = 2 sums to the Bessel function I_0(2 sqrt(3)).
    from scipy.special import i0

    bessel = math.log(i0(2 * math.sqrt(3.0)))
    assert ConwayMaxwell(1).log_partition([math.log(3.0), 2.0]) == pytest.approx(bessel, rel=1e-12)


def test_the_partition_is_infinite_where_there_is_no_distribution():
    assert ConwayMaxwell(1).log_partition([0.1, 0.0]) == math.inf
    assert ConwayMaxwell(1).log_partition([-5.0, -0.1]) == math.inf
    assert ConwayMaxwell(1, most=9).log_partition([-5.0, -0.1]) < math.inf


class Recorder:
    """A random source whose uniforms are given."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        assert shape == self.uniforms.shape
        return self.uniforms


@MODEL
def test_a_sweep_draws_each_node_from_its_conditional(model, seed, monkeypatch):
    from ncbayes.models import counts

    monkeypatch.setattr(counts, "CHUNK", 30)  # a few rows at a time
    rng = np.random.default_rng(seed)
    theta = 0.3 * rng.normal(size=sum(map(len, model.groups.values())))
    if model.most is None:
        theta[len(model.nodes) :] = 0.5 + rng.random(len(model.nodes))
    limit = model.most or 60
    x = rng.integers(0, limit + 1, (20, len(model.nodes))).astype(float)
    uniforms = rng.random((len(model.nodes), 20))
    before, expected = x.copy(), x.copy()
    for k in range(len(model.nodes)):
        for i, row in enumerate(expected):
            rows = np.tile(row, (limit + 1, 1))
            rows[:, k] = np.arange(limit + 1)
            weights = np.exp(log_weights(model, theta, rows))
            sums = np.cumsum(weights / weights.sum())
            expected[i, k] = np.argmax(sums > uniforms[k, i])
    assert np.array_equal(model.sweep(theta, x, Recorder(uniforms)), expected)
    assert np.array_equal(x, before)


def exact_draws(model, theta, count, rng):
    weights = np.exp(log_weights(model, theta, states(model)))
    return rng.choice(states(model), count, p=weights / weights.sum())


def largest_z(before, after):
    """The largest z-score of the mean change, and its limit at a false-alarm rate of 1e-6."""
    change = after - before
    z = change.mean(axis=0) / change.std(axis=0) * math.sqrt(len(change))
    return np.abs(z).max(), -ndtri(1e-6 / 2 / len(z))


def parallel(model, theta, x, rng):
    """A sweep that draws every node given the old values of the others."""
    columns = [
        model.sweep(theta, x, rng)[:, 0],
        model.sweep(theta[[1, 0, 3, 2, 4]], x[:, ::-1], rng),
    ]
    return np.column_stack([columns[0], columns[1][:, 0]])


def poisson(model, theta, x, rng):
    """A sweep that forgets the dispersion."""
    return model.sweep(np.where(np.arange(5) // 2 == 1, 1.0, theta), x, rng)


def test_a_sweep_leaves_the_model_invariant_and_broken_ones_do_not(seed):
    rng = np.random.default_rng(seed)
    x = exact_draws(PAIR, THETA_2, 60_000, rng)
    before = PAIR.statistics(x)
    worst, limit = largest_z(before, PAIR.statistics(PAIR.sweep(THETA_2, x, rng)))
    assert worst < limit
    for broken in (parallel, poisson):
        worst, limit = largest_z(before, PAIR.statistics(broken(PAIR, THETA_2, x, rng)))
        assert worst > limit


@pytest.mark.parametrize(
    ("model", "theta"),
    [
        (PAIR, THETA_2),
        (ConwayMaxwell(2, most=6, dispersion=False), [0.5, 0.2, 0.1]),
        (ConwayMaxwell(2, edges=[]), [1.0, 0.4, 1.3, 0.5]),
        (ConwayMaxwell(3, edges=[], dispersion=False), None),
    ],
    ids=["pair", "Poisson", "independent", "no theta"],
)
def test_the_models_keep_the_contract(model, theta, seed, monkeypatch):
    from ncbayes.models import counts

    monkeypatch.setattr(counts, "SWEEPS", 30)  # these couplings are weak
    check_model(model, theta, seed=seed)


def test_samples_without_edges_are_those_of_scipy(seed):
    model, rng = ConwayMaxwell(1, dispersion=False), np.random.default_rng(seed)
    x = model.sample([math.log(4.0)], 50_000, rng)[:, 0]
    expected = 50_000 * stats.poisson(4.0).pmf(np.arange(12))
    observed = np.bincount(x.astype(int), minlength=12)[:12]
    z = (observed - expected) / np.sqrt(expected)
    assert np.abs(z).max() < 5.5
    other = np.bincount(model.sample([math.log(4.3)], 50_000, rng)[:, 0].astype(int), minlength=12)
    assert np.abs((other[:12] - expected) / np.sqrt(expected)).max() > 5.5


def test_expectations_sum_over_counts():
    points, weights, _ = quadrature(PAIR, THETA_2)
    exact = np.exp(np.array(log_weights(PAIR, THETA_2, points)) - PAIR.log_partition(THETA_2))
    assert len(points) == 81
    assert weights == pytest.approx(exact, rel=1e-9)
    with pytest.raises(InputError, match="a million bounded counts"):
        quadrature(ConwayMaxwell(1), np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 0}, r"ConwayMaxwell\(nodes\) needs a whole number of at least 1, .* got 0$"),
        ({"nodes": 2}, r"^ConwayMaxwell with edges needs most=..., .* edges=\[\] for independent"),
        (
            {"nodes": 1, "most": 0},
            r"Counts\(most=...\) must be a whole number of at least 1, .* 0$",
        ),
        ({"nodes": 1, "dispersion": 2}, r"\(dispersion=...\) must be True or False, got 2$"),
        ({"nodes": 2, "most": 9, "edges": 3}, r"\(edges=...\) must be a list of pairs .* got 3$"),
    ],
)
def test_models_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        ConwayMaxwell(**arguments)


def test_thetas_that_cannot_be_are_refused(seed):
    rng = np.random.default_rng(seed)
    with pytest.raises(InputError, match=r"nu_j=-1 is no distribution of unlimited counts, or one"):
        ConwayMaxwell(1).sample([0.0, -1.0], 3, rng)
    with pytest.raises(InputError, match=r"beyond a million; .* pass most=..., a largest count"):
        ConwayMaxwell(1, dispersion=False).sample([20.0], 3, rng)
    with pytest.raises(InputError, match=r"at most 262144 states, got .* with 101\^3: take it"):
        ConwayMaxwell(3, most=100).log_partition(np.ones(9))
    with pytest.raises(InputError, match=r"5 numbers, .* got shape \(4,\)$"):
        PAIR.log_partition(np.ones(4))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            [[1, -1], [2, 2]],
            r"^data must be counts, whole numbers from 0 up, got 1 such value .* -1",
        ),
        ([[1, 0.5], [2, 2]], r"^data must be counts, .*: 0.5: drop these rows or use a model of"),
        ([[1, 9], [2, 2]], r"^data must be counts up to 8, .*: 9: raise the limit most=... to 9"),
        ([[1, 3], [2, 3]], r"^the node 'x2' \(column 1, counted from 0\) is 3 in all rows"),
    ],
)
def test_data_that_cannot_be_are_refused(data, message):
    with pytest.raises(InputError, match=message):
        ncb.fit(PAIR, data, progress=False)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize(
    "noise", ["auto", "matched", ncb.noise.Adaptive()], ids=["auto", "matched", "adaptive"]
)
def test_a_fit_finds_the_couplings(noise, seed):
    model = ConwayMaxwell(3, most=12)
    truth = np.array([1.5, 1.0, 0.5, 1.0, 1.0, 0.7, -0.15, 0.05, 0.0])
    data = model.sample(truth, 600, np.random.default_rng(seed))
    posterior = ncb.fit(
        model, data, noise=noise, seed=seed, draws=200, tune=200, chains=2, progress=False
    )
    theta = posterior.theta.values.reshape(400, 9)
    assert np.abs((theta.mean(axis=0) - truth) / theta.std(axis=0)).max() < 5
    strongest = ncb.graphs.edges(posterior, rule="interval").iloc[0]
    assert (strongest["node1"], strongest["node2"], strongest["selected"]) == ("x1", "x2", True)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("noise", ["auto", ncb.noise.Adaptive()], ids=["auto", "adaptive"])
def test_a_fit_of_unlimited_counts_finds_rate_and_dispersion(noise, seed):
    model, truth = ConwayMaxwell(1), np.array([2.0, 1.4])
    data = model.sample(truth, 800, np.random.default_rng(seed))
    posterior = ncb.fit(
        model, data, noise=noise, seed=seed, draws=200, tune=200, chains=2, progress=False
    )
    theta = posterior.theta.values.reshape(400, 2)
    assert np.abs((theta.mean(axis=0) - truth) / theta.std(axis=0)).max() < 5
