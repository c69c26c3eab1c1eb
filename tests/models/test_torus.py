import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.special import i0e, ndtri

import ncbayes as ncb
from ncbayes.base import Design, InputError, Model
from ncbayes.models import TorusGraph, VonMises, torus_design
from ncbayes.testing import check_model

FLAGS = list(itertools.product([True, False], repeat=3))[:-1]
SUBMODELS = [
    TorusGraph(nodes, *flags)
    for nodes in (1, 2, 5)
    for flags in FLAGS
    if nodes > 1 or flags[0]  # one node has marginal statistics only
]
SUBMODELS += [TorusGraph(5, edges=[(0, 3), (1, 2), (0, 1)]), TorusGraph(3, edges=[])]
SUBMODEL = pytest.mark.parametrize("model", SUBMODELS, ids=repr)

MARGINAL = [0.5, -0.3, 0.2, 0.4, -0.6, 0.1]
EDGE_12, EDGE_13, EDGE_23 = [0.7, -0.4, 0.3, 0.2], [-0.2, 0.6, 0.1, -0.5], [0.4, 0.3, -0.3, 0.6]
THETA_3 = np.array([*MARGINAL, *EDGE_12, *EDGE_13, *EDGE_23])


def plain_statistics(model, row):
    """The statistics of one point, written out."""
    found = []
    if model.marginal:
        for angle in row:
            found += [math.cos(angle), math.sin(angle)]
    for one, other in model.edges:
        j, k = model.nodes.index(one), model.nodes.index(other)
        if model.rotational:
            found += [math.cos(row[j] - row[k]), math.sin(row[j] - row[k])]
        if model.reflectional:
            found += [math.cos(row[j] + row[k]), math.sin(row[j] + row[k])]
    return found


def size(model):
    return sum(map(len, model.groups.values()))


def grid(nodes, points):
    axis = 2 * math.pi * np.arange(points) / points
    return np.stack(np.meshgrid(*[axis] * nodes, indexing="ij"), axis=-1).reshape(-1, nodes)


def integrated(model, theta, points=64):
    """log Z and the mean statistics by a grid over all angles."""
    statistics = model.statistics(grid(len(model.nodes), points))
    log_weights = statistics @ theta
    weights = np.exp(log_weights - log_weights.max())
    cell = len(model.nodes) * math.log(2 * math.pi / points)
    return (
        math.log(weights.sum()) + log_weights.max() + cell,
        weights @ statistics / weights.sum(),
    )


@SUBMODEL
def test_statistics_are_the_formulas(model, seed):
    x = model.space.uniform(7, np.random.default_rng(seed))
    expected = np.array([plain_statistics(model, row) for row in x])
    assert model.statistics(x) == pytest.approx(expected, abs=1e-14)
    assert model.statistics(x).flags.c_contiguous
    assert not model.log_base(x).any()
    assert isinstance(model, Model)


def test_statistics_are_named_in_the_order_of_the_paper():
    model = TorusGraph(3)
    assert list(model.groups) == ["marginal", "edge"]
    assert model.groups["marginal"] == (
        *("cos(x1)", "sin(x1)"),
        *("cos(x2)", "sin(x2)"),
        *("cos(x3)", "sin(x3)"),
    )
    assert model.groups["edge"] == (
        *("cos(x1 - x2)", "sin(x1 - x2)", "cos(x1 + x2)", "sin(x1 + x2)"),
        *("cos(x1 - x3)", "sin(x1 - x3)", "cos(x1 + x3)", "sin(x1 + x3)"),
        *("cos(x2 - x3)", "sin(x2 - x3)", "cos(x2 + x3)", "sin(x2 + x3)"),
    )
    assert model.edges == (("x1", "x2"), ("x1", "x3"), ("x2", "x3"))
    assert [part.tolist() for part in model.pairs] == [[0, 0, 1], [1, 2, 2]]
    assert size(TorusGraph(12)) == 2 * 12**2


@pytest.mark.parametrize("flags", FLAGS)
def test_submodels_drop_their_columns(flags, seed):
    full, part = TorusGraph(4), TorusGraph(4, *flags)
    marginal, rotational, reflectional = flags
    kept = [
        (marginal if " " not in name else rotational if "-" in name else reflectional)
        for names in full.groups.values()
        for name in names
    ]
    x = full.space.uniform(5, np.random.default_rng(seed))
    assert np.array_equal(part.statistics(x), full.statistics(x)[:, kept])
    names = [name for names in full.groups.values() for name in names]
    assert [name for names in part.groups.values() for name in names] == [
        name for name, keep in zip(names, kept, strict=True) if keep
    ]
    assert all(part.groups.values())


def test_nodes_and_edges_may_be_named():
    model = TorusGraph(["a", "b", "c"], marginal=False, edges=[("c", "a"), (1, 0)])
    assert model.edges == (("a", "b"), ("a", "c"))
    assert model.groups["edge"][4] == "cos(a - c)"
    assert TorusGraph(np.array(["a", "b"])) == TorusGraph(("a", "b"))
    assert TorusGraph(2) == TorusGraph(["x1", "x2"], edges=np.array([[1, 0]]))
    assert hash(TorusGraph(2)) == hash(TorusGraph(["x1", "x2"]))
    assert dataclasses.replace(model, marginal=True).groups["marginal"][0] == "cos(a)"
    assert pickle.loads(pickle.dumps(model)) == model


def test_the_repr_is_what_one_would_write():
    assert repr(TorusGraph(12)) == "TorusGraph(12)"
    assert repr(TorusGraph(3, reflectional=False)) == "TorusGraph(3, reflectional=False)"
    named = TorusGraph(["a", "b", "c"], edges=[("a", "b")])
    assert repr(named) == "TorusGraph(['a', 'b', 'c'], edges=[('a', 'b')])"
    assert eval(repr(named)) == named


@SUBMODEL
@pytest.mark.parametrize("sliced", [False, True])
def test_the_design_is_the_matrix_of_statistics(model, sliced, seed, monkeypatch):
    if sliced:
        monkeypatch.setattr(torus_design, "KEPT_ENTRIES", 0)
        monkeypatch.setattr(torus_design, "SLICE_ENTRIES", 7 * size(model))
        monkeypatch.setattr(torus_design, "MIRROR_BLOCK", 4)
        monkeypatch.setattr(torus_design, "PART_ENTRIES", 35)
    rng = np.random.default_rng(seed)
    x = model.space.uniform(40, rng)
    matrix = np.array([plain_statistics(model, row) for row in x])
    design = model.design(x)
    coef, values, weights = rng.normal(size=size(model)), rng.normal(size=40), rng.random(40)
    assert isinstance(design, Design)
    assert design.shape == matrix.shape
    assert design.dense() == pytest.approx(matrix, abs=1e-13)
    assert design.matvec(coef) == pytest.approx(matrix @ coef, abs=1e-12)
    assert design.rmatvec(values) == pytest.approx(values @ matrix, abs=1e-12)
    assert design.gram(weights) == pytest.approx((matrix.T * weights) @ matrix, abs=1e-12)
    assert design.gram_diagonal(weights) == pytest.approx(weights @ matrix**2, abs=1e-12)


def test_a_statistic_that_is_always_zero_has_no_square(seed):
    rng = np.random.default_rng(seed)
    x = np.repeat(rng.uniform(0, 2 * math.pi, (3000, 1)), 2, axis=1)
    diagonal = TorusGraph(2).design(x).gram_diagonal(rng.random(3000))
    assert TorusGraph(2).groups["edge"][1] == "sin(x1 - x2)"
    assert diagonal[5] == 0
    assert diagonal[np.arange(8) != 5].min() > 1


def test_matvec_needs_far_less_than_the_matrix():
    design = TorusGraph(30).design(np.zeros((10, 30)))
    assert 10 * 30**2 < design.matvec_flops < 10 * 30**2 * 8
    assert design.matvec_flops != 2 * 10 * 1800  # this would be taken for a dense matrix


@pytest.mark.parametrize("model", [TorusGraph(n, *flags) for n in (2, 3) for flags in FLAGS])
def test_the_partition_is_the_integral(model, seed):
    theta = 0.8 * np.random.default_rng(seed).normal(size=size(model))
    log_z, mean = integrated(model, theta)
    assert model.log_partition(theta) == pytest.approx(log_z, rel=1e-11)
    units = 1e-5 * np.eye(len(theta))
    gradient = [model.log_partition(theta + e) - model.log_partition(theta - e) for e in units]
    assert np.array(gradient) / 2e-5 == pytest.approx(mean, abs=1e-8)


def test_the_partition_of_one_angle_is_that_of_von_mises():
    theta = np.array([3.0, -4.0])
    expected = VonMises().log_partition(theta)
    assert TorusGraph(1).log_partition(theta) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("strength", [0.0, 1.0, 30.0, 300.0])
def test_the_partition_of_a_chain_is_a_product_of_bessel_functions(strength):
    # With couplings of differences only, x1 - x2 and x2 - x3 are independent von Mises angles.
    model = TorusGraph(3, marginal=False, reflectional=False, edges=[(0, 1), (1, 2)])
    theta = np.array([strength, 0.0, 0.0, -strength])
    each = math.log(2 * math.pi * i0e(strength)) + strength
    assert model.log_partition(theta) == pytest.approx(2 * each + math.log(2 * math.pi), rel=1e-12)


def test_the_partition_is_right_where_strong_couplings_cancel_out():
    # Three angles that would each be opposite to the two others.
    model = TorusGraph(3, marginal=False, reflectional=False)
    theta = np.array([-20.0, 0.0] * 3)
    assert model.log_partition(theta) == pytest.approx(integrated(model, theta, 100)[0], rel=1e-11)


class Recorder:
    """A random source that notes what it is asked for, and answers with fixed angles."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def vonmises(self, direction, concentration):
        self.asked.append((direction, concentration))
        return self.answers[:, len(self.asked) - 1]


@SUBMODEL
def test_a_sweep_draws_each_angle_from_its_normalized_conditional(model, seed):
    rng = np.random.default_rng(seed)
    theta, nodes = rng.normal(size=size(model)), len(model.nodes)
    x, new = model.space.uniform(4, rng), rng.uniform(-math.pi, math.pi, (4, nodes))
    recorder = Recorder(new)
    before = x.copy()
    assert model.sweep(theta, x, recorder) == pytest.approx(new % (2 * math.pi), abs=1e-15)
    assert np.array_equal(x, before)
    axis = 2 * math.pi * np.arange(256) / 256
    for k, (direction, concentration) in enumerate(recorder.asked):
        for i in range(len(x)):
            # Nodes before k are new already, those after it are old.
            points = np.tile(np.concatenate([new[i, :k], x[i, k:]]), (256, 1))
            points[:, k] = axis
            kernel = np.exp(model.statistics(points) @ theta)
            expected = kernel / (kernel.mean() * 2 * math.pi)
            asked = np.exp(concentration[i] * (np.cos(axis - direction[i]) - 1))
            asked /= 2 * math.pi * i0e(concentration[i])
            assert asked == pytest.approx(expected, rel=1e-9)


def exact_draws(model, theta, count, rng):
    """Draws by rejection of uniform points."""
    bound = (model.statistics(grid(3, 48)) @ theta).max() + 0.05
    found = []
    while sum(map(len, found)) < count:
        x = model.space.uniform(200_000, rng)
        log_ratio = model.statistics(x) @ theta - bound
        assert log_ratio.max() <= 0
        found.append(x[rng.random(len(x)) < np.exp(log_ratio)])
    return np.concatenate(found)[:count]


def sign_flipped(model, theta, x, rng):
    """A sweep that takes sin(xj - xk) for sin(xk - xj)."""
    signs = [-1 if name.startswith("sin") and " - " in name else 1 for name in all_names(model)]
    return model.sweep(theta * np.array(signs), x, rng)


def parallel(model, theta, x, rng):
    """A sweep that draws every angle given the old values of the others."""
    moved = []
    for k in range(x.shape[1]):
        # The energy is a cos xk + b sin xk + rest: read off at four values of xk.
        energy = []
        for angle in (0.0, math.pi / 2, math.pi, 3 * math.pi / 2):
            y = x.copy()
            y[:, k] = angle
            energy.append(model.statistics(y) @ theta)
        a, b = (energy[0] - energy[2]) / 2, (energy[1] - energy[3]) / 2
        moved.append(rng.vonmises(np.arctan2(b, a), np.hypot(a, b)) % (2 * math.pi))
    return np.column_stack(moved)


def all_names(model):
    return [name for names in model.groups.values() for name in names]


def largest_z(model, theta, x):
    """The largest z-score of the mean statistics, and its limit at a false-alarm rate of 1e-6."""
    statistics = model.statistics(x)
    error = statistics.std(axis=0) / math.sqrt(len(x))
    z = (statistics.mean(axis=0) - integrated(model, theta)[1]) / error
    return np.abs(z).max(), -ndtri(1e-6 / 2 / len(z))


def test_a_sweep_leaves_the_model_invariant_and_broken_ones_do_not(seed):
    model, rng = TorusGraph(3), np.random.default_rng(seed)
    x = exact_draws(model, THETA_3, 40_000, rng)
    worst, limit = largest_z(model, THETA_3, x)
    assert worst < limit
    worst, limit = largest_z(model, THETA_3, model.sweep(THETA_3, x, rng))
    assert worst < limit
    for broken in (sign_flipped, parallel):
        worst, limit = largest_z(model, THETA_3, broken(model, THETA_3, x, rng))
        assert worst > limit


def test_samples_without_couplings_are_independent_angles(seed):
    model, rng = TorusGraph(3), np.random.default_rng(seed)
    theta = np.where(np.arange(18) < 6, THETA_3, 0.0)
    worst, limit = largest_z(model, theta, model.sample(theta, 40_000, rng))
    assert worst < limit
    worst, limit = largest_z(model, theta, model.sample(1.15 * theta, 40_000, rng))
    assert worst > limit


@pytest.mark.parametrize(
    ("model", "theta"),
    [
        (TorusGraph(1), [1.0, -0.5]),
        (TorusGraph(2, marginal=False), None),
        pytest.param(TorusGraph(3), THETA_3, marks=pytest.mark.slow),
        (TorusGraph(5), None),
    ],
    ids=["1 node", "2 nodes", "3 nodes", "5 nodes"],
)
def test_the_models_keep_the_contract(model, theta, seed):
    check_model(model, theta, seed=seed)


def test_samples_lie_on_the_torus_and_repeat_with_the_seed():
    model = TorusGraph(4)
    theta = np.linspace(-1, 1, 32)
    draws = [model.sample(theta, 6, np.random.default_rng(3)) for _ in range(2)]
    assert model.space.contains(draws[0]).all()
    assert np.array_equal(*draws)
    assert draws[0].flags.c_contiguous


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 0}, r"TorusGraph\(nodes\) needs a whole number of at least 1, .* got 0$"),
        ({"nodes": 2.0}, r"needs a whole number .*, got 2.0$"),
        ({"nodes": True}, r"needs a whole number .*, got True$"),
        ({"nodes": "abc"}, r"or a list of names .* got 'abc'$"),
        ({"nodes": []}, r"or a list of names .* got \[\]$"),
        ({"nodes": ["a", ""]}, r"names that are not empty, .* got \['a', ''\]$"),
        ({"nodes": ["a", 1]}, r"got \['a', 1\]$"),
        ({"nodes": {"a"}}, r"a list of names .* got \{'a'\}$"),
        ({"nodes": ["a", "b", "a"]}, r"names that differ, got 'a' more than once$"),
        ({"nodes": 2, "marginal": 1}, r"TorusGraph\(marginal=...\) must be True or False, got 1$"),
        ({"nodes": 2, "rotational": "no"}, r"rotational=...\) must be True or False, got 'no'$"),
        ({"nodes": 1, "marginal": False}, r"^TorusGraph\(1, marginal=False\) has no statistics: "),
        ({"nodes": 2, "edges": [], "marginal": False}, r"has no statistics: keep marginal=True"),
        ({"nodes": 2, "edges": 1}, r"list of pairs of nodes, such as \[\('x1', 'x2'\)\] .* got 1$"),
        ({"nodes": 2, "edges": "ab"}, r"must be a list of pairs of nodes, .* got 'ab'$"),
        ({"nodes": 2, "edges": ["ab"]}, r"pairs of two different nodes, .* got 'ab'; the nodes"),
        ({"nodes": 2, "edges": [(0, 2)]}, r"from 0 to 1, got \(0, 2\); the nodes are \['x1', 'x2'"),
        ({"nodes": 2, "edges": [(0, -1)]}, r"by number from 0 to 1, got \(0, -1\)"),
        ({"nodes": 2, "edges": [(1, 1)]}, r"two different nodes, .* got \(1, 1\)"),
        ({"nodes": 2, "edges": [(0, 1, 1)]}, r"pairs of two different nodes, .* got \(0, 1, 1\)"),
        ({"nodes": 2, "edges": [("x1", "y")]}, r"got \('x1', 'y'\); the nodes are"),
        ({"nodes": 2, "edges": [(0, 1), (1, 0)]}, r"each edge once, got \('x1', 'x2'\) more than"),
    ],
)
def test_graphs_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        TorusGraph(**arguments)


def test_the_partition_of_many_angles_is_refused():
    with pytest.raises(InputError, match=r"at most 3 nodes, got TorusGraph\(4\): take it from a"):
        TorusGraph(4).log_partition(np.zeros(32))


@pytest.mark.parametrize("call", ["sweep", "sample", "log_partition"])
def test_a_theta_that_does_not_fit_is_refused(call):
    model, rng = TorusGraph(2), np.random.default_rng(0)
    rest = {"sweep": (np.zeros((1, 2)), rng), "sample": (1, rng), "log_partition": ()}[call]
    with pytest.raises(InputError, match=r"8 numbers, .* of TorusGraph\(2\), got shape \(7,\)$"):
        getattr(model, call)(np.zeros(7), *rest)
    with pytest.raises(InputError, match=r"finite numbers, got nan at position 3 \(counted"):
        getattr(model, call)(np.where(np.arange(8) == 3, np.nan, 0.0), *rest)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_fit_finds_the_couplings(seed):
    data = exact_draws(TorusGraph(3), THETA_3, 800, np.random.default_rng(seed))
    posterior = ncb.fit(
        TorusGraph(3),
        data,
        noise="matched",
        seed=seed,
        draws=200,
        tune=200,
        chains=2,
        progress=False,
    )
    theta = posterior.theta.values.reshape(400, 18)
    z = (theta.mean(axis=0) - THETA_3) / theta.std(axis=0)
    assert np.abs(z).max() < 5
    assert np.abs(theta.mean(axis=0) / theta.std(axis=0)).max() > 5  # zero is no such truth
    truth = TorusGraph(3).log_partition(THETA_3)
    log_z = posterior.log_z.values
    assert abs(log_z.mean() - truth) < 5 * log_z.std()


@pytest.mark.parametrize(
    "options", [{}, {"marginal": False}, {"reflectional": False}, {"edges": [(0, 1), (1, 3)]}]
)
def test_rows_are_the_columns_of_the_matrix(options):
    """Bit for bit, wherever they begin and end; and the waves lie in memory node by node."""
    model = ncb.models.TorusGraph(4, **options)
    design = model.design(np.random.default_rng(1).uniform(0, 6, (7, 4)))
    assert design.waves.flags["C_CONTIGUOUS"]
    columns = design.dense().T
    for start in range(len(columns)):
        for stop in range(start + 1, len(columns) + 1):
            np.testing.assert_array_equal(design.rows(start, stop), columns[start:stop])
