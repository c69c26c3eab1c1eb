import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.special import expit, ndtri

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.models import Ising, grid_edges
from ncbayes.models.scans import Scan
from ncbayes.testing import check_model

MODELS = [
    *(Ising(1), Ising(2), Ising(5), Ising(5, fields=False), Ising(3, edges=[])),
    Ising(5, edges=[(3, 0), (1, 2), (0, 1)]),
    Ising(list("abcd"), fields=False, edges=[("a", "d"), ("c", "b")]),
    *(Ising(1, coding="spins"), Ising(4, coding="spins"), Ising(3, edges=[], coding="spins")),
    Ising(5, fields=False, edges=[(3, 0), (1, 2), (0, 1)], coding="spins"),
    Ising(9, fields="common", edges=grid_edges(3, 3), coupling="common"),
    Ising(12, fields=False, edges=grid_edges(3, 4), coding="spins", coupling="common"),
    Ising(4, edges=grid_edges(2, 2), coding="spins", coupling="common"),
    Ising(3, fields="common"),
]
MODEL = pytest.mark.parametrize("model", MODELS, ids=repr)
THETA_4 = np.array([0.4, -0.6, 0.2, -0.3, 1.0, -0.8, 0.5, 0.7, -0.4, 0.9])


def size(model):
    return sum(map(len, model.groups.values()))


def states(model):
    lower = -1.0 if model.coding == "spins" else 0.0
    return np.array(list(itertools.product([lower, 1.0], repeat=len(model.nodes))))


def plain_statistics(model, row):
    value = dict(zip(model.nodes, row, strict=True))
    fields = list(value.values()) if model.fields else []
    products = [value[one] * value[other] for one, other in model.edges]
    if model.fields == "common":
        fields = [sum(fields)]
    return fields + ([sum(products)] if model.coupling == "common" else products)


def probabilities(model, theta):
    weights = np.exp([np.dot(plain_statistics(model, row), theta) for row in states(model)])
    return weights / weights.sum()


@MODEL
def test_statistics_are_the_formulas(model):
    x = states(model)
    assert model.statistics(x).tolist() == [plain_statistics(model, row) for row in x]
    assert not model.log_base(x).any()
    assert isinstance(model, Model)


def test_statistics_are_named_in_column_order():
    assert Ising(3).groups == {"field": ("x1", "x2", "x3"), "edge": ("x1*x2", "x1*x3", "x2*x3")}
    assert Ising(3, fields=False).groups == {"edge": ("x1*x2", "x1*x3", "x2*x3")}
    assert Ising(2, edges=[]).groups == {"field": ("x1", "x2")}
    assert Ising(3, "common", coupling="common").groups == {
        "field": ("field",),
        "edge": ("coupling",),
    }
    assert Ising(2, edges=[], coupling="common").groups == {"field": ("x1", "x2")}
    assert Ising(["a", "b", "c"], edges=[("c", "b"), (0, 1)]).groups["edge"] == ("a*b", "b*c")
    assert [part.tolist() for part in Ising(3).pairs] == [[0, 0, 1], [1, 2, 2]]


def test_models_compare_print_and_pickle():
    assert Ising(2) == Ising(["x1", "x2"], edges=[(1, 0)])
    assert repr(Ising(4)) == "Ising(4)"
    model = Ising(["a", "b", "c"], fields=False, edges=[("a", "b")])
    assert repr(model) == "Ising(['a', 'b', 'c'], fields=False, edges=[('a', 'b')])"
    assert pickle.loads(pickle.dumps(model)) == model
    grid = Ising(4, False, grid_edges(2, 2), "spins", "common")
    assert repr(grid) == (
        "Ising(4, fields=False, edges=[('x1', 'x2'), ('x1', 'x3'), ('x2', 'x4'), ('x3', 'x4')], "
        "coding='spins', coupling='common')"
    )


@MODEL
def test_the_partition_is_the_sum_over_states(model, seed):
    theta = np.random.default_rng(seed).normal(size=size(model))
    statistics = np.array([plain_statistics(model, row) for row in states(model)])
    log_z = math.log(np.exp(statistics @ theta).sum())
    assert model.log_partition(theta) == pytest.approx(log_z, rel=1e-13)
    units = 1e-5 * np.eye(len(theta))
    gradient = [model.log_partition(theta + e) - model.log_partition(theta - e) for e in units]
    mean = probabilities(model, theta) @ statistics
    assert np.array(gradient) / 2e-5 == pytest.approx(mean, abs=1e-8)


def test_the_partition_of_twenty_nodes_is_that_of_a_chain():
    model = Ising(20, edges=[(j, j + 1) for j in range(19)])
    theta = np.array([10.0] * 20 + [3.0] * 19)
    # Sums of weights by the state of the last node, 0 or 1, as the chain grows.
    zero, one = 1.0, math.exp(10.0)
    for _ in range(19):
        zero, one = zero + one, math.exp(10.0) * (zero + one * math.exp(3.0))
    assert model.log_partition(theta) == pytest.approx(math.log(zero + one), rel=1e-13)
    # All ones outweigh the rest, and their weight is beyond double precision.
    assert model.log_partition(100 * theta) == pytest.approx(100 * theta.sum(), rel=1e-13)


class Recorder:
    """A random source whose uniforms are given."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        assert shape == self.uniforms.shape
        return self.uniforms


@MODEL
def test_a_sweep_draws_each_node_from_its_conditional(model, seed):
    rng = np.random.default_rng(seed)
    theta, nodes = rng.normal(size=size(model)), len(model.nodes)
    x = model.space.uniform(64, rng)
    uniforms = rng.random((nodes, 64))
    before, expected = x.copy(), x.copy()
    lower = states(model).min()
    for uniform, k in zip(uniforms, Scan.of(model.pairs, nodes).order, strict=True):
        low, one = expected.copy(), expected.copy()
        low[:, k], one[:, k] = lower, 1
        weights = [np.exp(model.statistics(each) @ theta) for each in (low, one)]
        up = uniform < weights[1] / (weights[0] + weights[1])
        expected[:, k] = np.where(up, 1.0, lower)
    assert np.array_equal(model.sweep(theta, x, Recorder(uniforms)), expected)
    assert np.array_equal(x, before)


def test_a_sweep_survives_fields_beyond_double_precision(seed):
    rng = np.random.default_rng(seed)
    model, theta = Ising(3, edges=[]), np.array([1e4, -1e4, 0.0])
    with np.errstate(over="raise", invalid="raise"):
        x = model.sweep(theta, model.space.uniform(50, rng), rng)
    assert x[:, 0].all()
    assert not x[:, 1].any()


@pytest.mark.parametrize(
    ("pairs", "count", "colours"),
    [
        (grid_edges(10, 10), 100, 2),
        (grid_edges(4, 4, periodic=True), 16, 2),
        (list(itertools.combinations(range(6), 2)), 6, 6),
        ([(0, 1), (1, 2), (0, 2), (2, 3)], 4, 3),
        ([], 5, 1),
    ],
)
def test_nodes_of_one_colour_share_no_edge(pairs, count, colours):
    scan = Scan.of(Ising(count, edges=pairs).pairs, count)
    assert sorted(scan.order) == list(range(count))
    assert len(scan.classes) == colours
    colour = {}
    for number, each in enumerate(scan.classes):
        colour |= dict.fromkeys(scan.order[each.part].tolist(), number)
    assert all(colour[one] != colour[other] for one, other in pairs)
    x = np.arange(3.0 * count).reshape(3, count)
    assert np.array_equal(scan.restored(scan.arranged(x)), x)


def test_all_pairs_are_visited_in_the_order_of_the_nodes():
    assert Scan.of(Ising(7).pairs, 7).order.tolist() == list(range(7))


@MODEL
def test_change_statistics_are_differences_of_statistics(model, seed):
    x = np.random.default_rng(seed).choice(states(model), 20)
    for j in range(len(model.nodes)):
        high, low = x.copy(), x.copy()
        high[:, j], low[:, j] = 1, states(model).min()
        expected = model.statistics(high) - model.statistics(low)
        assert np.array_equal(model.change_statistics(x, j), expected)


def test_the_neighbours_of_a_grid():
    assert grid_edges(1, 1) == []
    assert grid_edges(1, 3) == [(0, 1), (1, 2)]
    assert grid_edges(2, 3) == [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]
    assert grid_edges(1, 3, periodic=True) == [(0, 1), (0, 2), (1, 2)]
    assert grid_edges(2, 2, periodic=True) == grid_edges(2, 2)
    assert len(grid_edges(3, 4, periodic=True)) == 2 * 12
    with pytest.raises(InputError, match=r"grid_edges\(columns=...\) must be a whole number .* 0$"):
        grid_edges(2, 0)


def test_codings_are_one_family(seed):
    """x = (1 + s) / 2: h and J of zeros and ones from those of spins."""
    spins, bits = Ising(4, coding="spins"), Ising(4)
    h, couplings = spins.fields_and_couplings(THETA_4)
    moved = 2 * h - 2 * couplings.sum(axis=0)
    theta = np.concatenate([moved, 4 * THETA_4[4:]])
    assert probabilities(spins, THETA_4) == pytest.approx(probabilities(bits, theta), rel=1e-12)
    constant = -h.sum() + couplings.sum() / 2
    log_z = bits.log_partition(theta) + constant
    assert spins.log_partition(THETA_4) == pytest.approx(log_z, rel=1e-12)


def sign_flipped(model, theta, x, rng):
    """A sweep with the couplings' signs turned."""
    return model.sweep(np.where(np.arange(len(theta)) < len(model.nodes), 1, -1) * theta, x, rng)


def parallel(model, theta, x, rng):
    """A sweep that draws every node given the old values of the others."""
    h, couplings = model.fields_and_couplings(theta)
    lower = states(model).min()
    up = rng.random(x.shape) < expit((1 - lower) * (h + x @ couplings))
    return np.where(up, 1.0, lower)


def other_coding(model, theta, x, rng):
    """A sweep that takes the gap between the two states for that of the other coding."""
    factor = 2.0 if model.coding == "01" else 0.5
    return model.sweep(factor * theta, x, rng)


def largest_z(model, theta, x):
    """The largest z-score of the mean statistics, and its limit at a false-alarm rate of 1e-6."""
    mean = probabilities(model, theta) @ model.statistics(states(model))
    statistics = model.statistics(x)
    error = statistics.std(axis=0) / math.sqrt(len(x))
    z = (statistics.mean(axis=0) - mean) / error
    return np.abs(z).max(), -ndtri(1e-6 / 2 / len(z))


def exact_draws(model, theta, count, rng):
    return rng.choice(states(model), count, p=probabilities(model, theta))


@pytest.mark.parametrize("coding", ["01", "spins"])
def test_a_sweep_leaves_the_model_invariant_and_broken_ones_do_not(coding, seed):
    model, rng = Ising(4, coding=coding), np.random.default_rng(seed)
    x = exact_draws(model, THETA_4, 60_000, rng)
    worst, limit = largest_z(model, THETA_4, x)
    assert worst < limit
    worst, limit = largest_z(model, THETA_4, model.sweep(THETA_4, x, rng))
    assert worst < limit
    for broken in (sign_flipped, parallel, other_coding):
        worst, limit = largest_z(model, THETA_4, broken(model, THETA_4, x, rng))
        assert worst > limit


def test_samples_without_couplings_are_independent(seed):
    model, rng = Ising(4), np.random.default_rng(seed)
    theta = np.where(np.arange(10) < 4, THETA_4, 0.0)
    worst, limit = largest_z(model, theta, model.sample(theta, 40_000, rng))
    assert worst < limit
    worst, limit = largest_z(model, theta, model.sample(1.5 * theta, 40_000, rng))
    assert worst > limit


@pytest.mark.parametrize(
    ("model", "theta"),
    [
        (Ising(4), THETA_4),
        (Ising(3, fields=False), [0.8, -0.5, 0.3]),
        (Ising(4, edges=[(0, 1), (1, 2)]), THETA_4[:6]),
        (Ising(30), None),
        (Ising(4, coding="spins"), 0.5 * THETA_4),
        (Ising(6, "common", grid_edges(2, 3), coupling="common"), [-0.5, 0.6]),
        (Ising(9, False, grid_edges(3, 3), "spins", "common"), [0.3]),
    ],
    ids=["full", "no fields", "chain", "30 nodes", "spins", "common", "spins on a grid"],
)
def test_the_models_keep_the_contract(model, theta, seed):
    check_model(model, theta, seed=seed)


def test_fields_and_couplings_are_read_off_theta():
    h, couplings = Ising(3).fields_and_couplings(np.arange(1.0, 7.0))
    assert h.tolist() == [1, 2, 3]
    assert couplings.tolist() == [[0, 4, 5], [4, 0, 6], [5, 6, 0]]
    h, couplings = Ising(3, fields=False, edges=[(0, 2)]).fields_and_couplings(np.array([4.0]))
    assert h.tolist() == [0, 0, 0]
    assert couplings.tolist() == [[0, 0, 4], [0, 0, 0], [4, 0, 0]]
    common = Ising(3, "common", edges=[(0, 2), (0, 1)], coupling="common")
    h, couplings = common.fields_and_couplings(np.array([5.0, 4.0]))
    assert h.tolist() == [5, 5, 5]
    assert couplings.tolist() == [[0, 4, 4], [4, 0, 0], [4, 0, 0]]
    assert common.edge_columns["coupling"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 0}, r"Ising\(nodes\) needs a whole number of at least 1, .* got 0$"),
        ({"nodes": ["a", "a"]}, r"Ising\(nodes\) needs names that differ, got 'a' more than once$"),
        ({"nodes": 2, "fields": 1}, r"Ising\(fields=...\) must be True, False or 'common', got 1$"),
        ({"nodes": 2, "coding": 0}, r"Ising\(coding=...\) must be '01' or 'spins', got 0$"),
        (
            {"nodes": 2, "coupling": "one"},
            r"\(coupling=...\) must be 'each' or 'common', got 'one'$",
        ),
        ({"nodes": 1, "fields": False}, r"^Ising\(1, fields=False\) has no statistics: keep"),
        ({"nodes": 2, "edges": [(0, 2)]}, r"Ising\(edges=...\) must hold pairs .* got \(0, 2\)"),
        ({"nodes": 2, "edges": 3}, r"Ising\(edges=...\) must be a list of pairs .* got 3$"),
    ],
)
def test_models_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Ising(**arguments)


def test_the_partition_of_many_nodes_is_refused():
    with pytest.raises(InputError, match=r"at most 20 nodes, got Ising\(21\): take it from a fit"):
        Ising(21).log_partition(np.zeros(231))


@pytest.mark.parametrize("call", ["sweep", "sample", "log_partition"])
def test_a_theta_that_does_not_fit_is_refused(call):
    model, rng = Ising(2), np.random.default_rng(0)
    rest = {"sweep": (np.zeros((1, 2)), rng), "sample": (1, rng), "log_partition": ()}[call]
    with pytest.raises(InputError, match=r"3 numbers, .* of Ising\(2\), got shape \(1, 3\)$"):
        getattr(model, call)(np.zeros((1, 3)), *rest)
    with pytest.raises(InputError, match=r"finite numbers, got inf at position 1 \(counted"):
        getattr(model, call)(np.array([0.0, np.inf, 0.0]), *rest)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_fit_finds_the_couplings(seed):
    data = exact_draws(Ising(4), THETA_4, 1500, np.random.default_rng(seed))
    posterior = ncb.fit(
        Ising(4), data, noise="matched", seed=seed, draws=200, tune=200, chains=2, progress=False
    )
    theta = posterior.theta.values.reshape(400, 10)
    z = (theta.mean(axis=0) - THETA_4) / theta.std(axis=0)
    assert np.abs(z).max() < 5
    assert np.abs(theta.mean(axis=0) / theta.std(axis=0)).max() > 5  # zero is no such truth


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("noise", ["matched", "auto"])
def test_a_fit_finds_the_coupling_of_a_grid_of_spins(noise, seed):
    model = Ising(16, False, grid_edges(4, 4), "spins", "common")
    data = model.sample(np.array([0.3]), 400, np.random.default_rng(seed))
    posterior = ncb.fit(
        model, data, noise=noise, seed=seed, draws=200, tune=200, chains=2, progress=False
    )
    theta = posterior.theta.values.ravel()
    assert abs(theta.mean() - 0.3) < 5 * theta.std()
    assert theta.mean() > 5 * theta.std()
    # The same coupling stands on every edge.
    table = ncb.graphs.edges(posterior)
    assert len(table) == 24
    assert table["coupling"].nunique() == 1


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (Ising(2), [[1, -1], [-1, 1]], r"^data must be 0 or 1, .*: -1: pass \(data \+ 1\) / 2, or"),
        (Ising(2), [[1, -1], [-1, 1]], r'ask for spins, as in Ising\(\.\.\., coding="spins"\)$'),
        (Ising(2), [[1, 2], [0, 1]], r"^data must be 0 or 1, .*: 2: recode the data as 0 and 1$"),
        (
            Ising(2, coding="spins"),
            [[1, 0], [0, 1]],
            r'^data must be -1 or 1, .*: 0: pass 2 \* data - 1, or ask for .* coding="01"\)$',
        ),
        (
            Ising(2, coding="spins"),
            [[1, 2], [0, 1]],
            r"^data must be -1 or 1, .*: recode the data as -1 and 1$",
        ),
        (
            Ising(["a", "b"]),
            [[1, 0], [0, 0], [1, 0]],
            r"^the node 'b' \(column 1, counted from 0\) is 0 in all rows: .* leave this column",
        ),
        (
            Ising(2, fields=False, coding="spins", coupling="common"),
            [[1, 1], [1, 1]],
            r"^all nodes are 1 in all rows: no finite field or coupling",
        ),
    ],
)
def test_data_of_another_coding_or_without_change_are_refused(model, data, message):
    with pytest.raises(InputError, match=message):
        ncb.fit(model, data, progress=False)


def test_a_constant_column_is_welcome_where_other_nodes_or_groups_tell(seed):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2, (50, 3)).astype(float)
    still = data.copy()
    still[:, 1] = 1.0
    Ising(3).check_data(np.concatenate([data, still]))
    Ising(3, fields="common", coupling="common").check_data(still)
    Ising(3, fields=False).check_data(still)
    with pytest.raises(InputError, match=r"the node 'x2' .* is 1 in all rows"):
        ncb.fit(Ising(3), {"one": still, "other": still}, progress=False)
