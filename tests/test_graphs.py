"""Read-outs of graphs, checked against brute force on posteriors made by hand."""

import itertools
import math
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ncbayes as ncb
from ncbayes import couplings, graphs
from ncbayes.contrast import statistic_names
from ncbayes.graphs import evidence
from ncbayes.models import Ising, TorusGraph

KINDS = ("cos_minus", "sin_minus", "cos_plus", "sin_plus")
NODES = ["a", "b", "c", "d"]
TORUS = TorusGraph(NODES, edges=[("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])
ISING = Ising(NODES, edges=[(0, 1), (1, 3)])


def by_hand(model, theta, groups=("all",)):
    """A posterior with these draws, (chain, draw, group, statistic)."""
    tree = {
        "posterior": xr.Dataset(
            {"theta": (("chain", "draw", "group", "statistic"), theta)},
            coords={"group": list(groups), "statistic": statistic_names(model)},
        )
    }
    graph = couplings.graph_of(model)
    if graph is not None:
        tree["graph"] = graph.dataset()
    tree = xr.DataTree.from_dict(tree)
    tree.attrs = {"model": repr(model), "ncbayes_version": ncb.__version__}
    return ncb.Posterior(tree)


def random(model, seed, chains=2, draws=25, groups=("all",)):
    """Draws with a mean of their own for every statistic."""
    rng = np.random.default_rng(seed)
    shape = (chains, draws, len(groups), len(statistic_names(model)))
    center = rng.normal(0, 0.3, shape[2:])
    return by_hand(model, center + 0.2 * rng.normal(size=shape), groups)


def test_conditional_intervals_are_those_of_draws_that_have_the_edge():
    posterior = random(TORUS, 3, draws=45)
    # Half of the edges exceed it in fewer than 45 of 90 draws.
    size = float(graphs.edges(posterior)["norm"].median())
    plain, given = (graphs.edges(posterior, threshold=size, conditional=c) for c in (False, True))
    assert [table.attrs["conditional"] for table in (plain, given)] == [False, True]
    ends = [f"{kind}_{end}" for kind in KINDS for end in ("low", "high")]
    pd.testing.assert_frame_equal(plain.drop(columns=ends), given.drop(columns=ends))
    for row in given.to_dict("records"):
        kinds = of_edge(posterior, TORUS, row["node1"], row["node2"])
        kept = sum(each**2 for each in kinds.values()) > size**2
        for kind, each in kinds.items():
            wanted = np.quantile(each[kept], [0.05, 0.95]) if kept.sum() >= 50 else [np.nan] * 2
            np.testing.assert_allclose([row[f"{kind}_low"], row[f"{kind}_high"]], wanted)
    assert 0 < given["cos_minus_low"].isna().sum() < len(given)
    with pytest.raises(ncb.InputError, match="conditional must be True or False"):
        graphs.edges(posterior, conditional="yes")


def of_edge(posterior, model, one, other, group=0):
    """The draws of one edge by kind, found by the names of its statistics."""
    names = statistic_names(model)
    if isinstance(model, Ising):
        wanted = {"coupling": f"{one}*{other}"}
    else:
        forms = ("cos({} - {})", "sin({} - {})", "cos({} + {})", "sin({} + {})")
        wanted = {kind: form.format(one, other) for kind, form in zip(KINDS, forms, strict=True)}
    theta = posterior.theta.values.reshape(-1, *posterior.theta.shape[2:])[:, group]
    return {kind: theta[:, names.index(name)] for kind, name in wanted.items() if name in names}


@pytest.fixture(params=[TORUS, TorusGraph(3, marginal=False, rotational=False), ISING], ids=repr)
def case(request, seed):
    return request.param, random(request.param, seed)


@pytest.mark.parametrize(
    ("rule", "threshold", "level"),
    [("median", 0.1, 0.9), ("median", 0.3, 0.5), ("interval", 0.2, 0.9), ("interval", 0.0, 0.5)],
)
def test_edges_are_brute_force(case, rule, threshold, level):
    model, posterior = case
    table = graphs.edges(posterior, rule, threshold, level)
    assert sorted(zip(table["node1"], table["node2"], strict=True)) == sorted(model.edges)
    assert (np.diff(table["strength"]) <= 0).all()
    assert list(table.index) == list(range(len(model.edges)))
    false = []
    for _, row in table.iterrows():
        draws = of_edge(posterior, model, row["node1"], row["node2"])
        medians = {kind: np.median(each) for kind, each in draws.items()}
        tail = (1 - level) / 2
        ends = {kind: np.quantile(each, [tail, 1 - tail]) for kind, each in draws.items()}
        norms = [math.hypot(*each) for each in zip(*draws.values(), strict=True)]
        for kind in draws:
            found = row[[kind, f"{kind}_low", f"{kind}_high"]].tolist()
            assert found == pytest.approx([medians[kind], *ends[kind]], abs=1e-14)
        assert row["strength"] == pytest.approx(sum(map(abs, medians.values())))
        assert row["norm"] == pytest.approx(np.median(norms))
        assert row["probability"] == np.mean([norm > threshold for norm in norms])
        if rule == "median":
            selected = any(abs(each) > threshold for each in medians.values())
        else:
            selected = any(low > 0 or high < 0 for low, high in ends.values())
        assert row["selected"] == selected
        false += [1 - row["probability"]] * selected
    assert table.attrs["expected_fdr"] == pytest.approx(np.mean(false) if false else 0.0)
    assert (table.attrs["rule"], table.attrs["level"]) == (rule, level)
    assert table.attrs["threshold"] == threshold


def test_edges_has_documented_columns(seed):
    table = graphs.edges(random(ISING, seed))
    assert list(table.columns) == [
        *("node1", "node2", "selected", "strength", "norm", "probability"),
        *("coupling", "coupling_low", "coupling_high"),
    ]
    assert table["selected"].dtype == bool


def test_nothing_selected_has_no_false_discoveries(seed):
    table = graphs.edges(random(ISING, seed), rule="median", threshold=50.0)
    assert not table["selected"].any()
    assert table.attrs["expected_fdr"] == 0.0


def test_a_group_is_chosen_by_its_label(seed):
    both = random(TORUS, seed, groups=("rest", "2"))
    for position, label in enumerate(("rest", "2")):
        alone = by_hand(TORUS, both.theta.values[:, :, [position]])
        pd.testing.assert_frame_equal(graphs.edges(both, group=label), graphs.edges(alone))
    assert graphs.edges(both, group=2).equals(graphs.edges(both, group="2"))
    for group in (None, "task"):
        with pytest.raises(ncb.InputError, match=r"one of the posterior's groups \['rest', '2'\]"):
            graphs.edges(both, group=group)


@pytest.mark.parametrize("only_selected", [True, False])
@pytest.mark.parametrize("weight", ["strength", "probability", None])
def test_adjacency_and_networkx_hold_the_edges(case, weight, only_selected):
    model, posterior = case
    kinds = list(of_edge(posterior, model, *model.edges[0]))
    largest = graphs.edges(posterior)[kinds].abs().max(axis=1)
    options = {"threshold": (largest.min() + largest.max()) / 2, "only_selected": only_selected}
    table = graphs.edges(posterior, threshold=options["threshold"])
    assert table["selected"].nunique() == 2
    matrix = graphs.adjacency(posterior, weight=weight, **options)
    graph = graphs.to_networkx(posterior, **options)
    assert list(matrix.index) == list(matrix.columns) == list(graph) == list(model.nodes)
    expected = pd.DataFrame(0.0, index=model.nodes, columns=model.nodes)
    kept = table[table["selected"] | (not only_selected)]
    for _, row in kept.iterrows():
        one, other = row["node1"], row["node2"]
        value = 1 if weight is None else row[weight]
        expected.loc[one, other] = expected.loc[other, one] = value
        attributes = graph.edges[one, other]
        names = {"strength", "norm", "probability", *of_edge(posterior, model, one, other)}
        assert set(attributes) == names
        assert attributes == {name: row[name] for name in names}
        assert all(type(value) is float for value in attributes.values())
    assert graph.number_of_edges() == len(kept)
    pd.testing.assert_frame_equal(matrix, expected, check_dtype=False)
    assert matrix.equals(matrix.T)


def test_adjacency_without_weight_is_whole_numbers_and_networkx_agrees(seed):
    posterior = random(TORUS, seed)
    matrix = graphs.adjacency(posterior, weight=None)
    assert matrix.to_numpy().dtype.kind == "i"
    graph = graphs.to_networkx(posterior)
    assert np.array_equal(nx.to_numpy_array(graph, weight=None), matrix)


def waves(a, b, kind="difference", nodes=2):
    """A posterior of a graph with one edge and these coefficients of cos and sin."""
    flags = {"rotational": kind == "difference", "reflectional": kind == "sum"}
    model = TorusGraph(nodes, marginal=False, edges=[(0, 1)], **flags)
    return by_hand(model, np.stack([a, b], axis=-1)[None, :, None])


def shortest_arc(angles, center, level):
    """By trying all pairs of ends: the least (low, high) around the center that hold enough."""
    turned = [math.remainder(angle - center, 2 * math.pi) for angle in angles]
    best = (math.inf, 0.0, 0.0)
    for low, high in itertools.product([*turned, 0.0], repeat=2):
        held = sum(low <= angle <= high for angle in turned)
        if low <= 0 <= high and held >= level * len(turned) - 1e-9:
            best = min(best, (high - low, center + low, center + high))
    return best


@pytest.mark.parametrize("kind", ["difference", "sum"])
@pytest.mark.parametrize("level", [0.9, 0.5, 0.05])
@pytest.mark.parametrize("center", [0.4, math.pi, -math.pi + 0.01])
def test_lags_are_brute_force_also_across_pi(seed, kind, level, center):
    rng = np.random.default_rng(seed)
    angles, sizes = center + 2.4 * rng.beta(1.0, 3.0, size=40), rng.gamma(3.0, size=40)
    posterior = waves(sizes * np.cos(angles), sizes * np.sin(angles), kind)
    (_, row), *rest = graphs.phase_difference(posterior, level, 2.0, kind).iterrows()
    assert not rest
    mean = math.atan2(np.sin(angles).sum(), np.cos(angles).sum())
    width, low, high = shortest_arc(angles, mean, level)
    assert -math.pi < row["angle"] <= math.pi
    assert row["angle"] == pytest.approx(mean)
    assert row["angle_high"] - row["angle_low"] == pytest.approx(width)
    assert [row["angle_low"], row["angle_high"]] == pytest.approx([low, high])
    assert row["angle_low"] <= row["angle"] <= row["angle_high"]
    assert math.remainder(row["angle_median"] - np.median(angles), 2 * math.pi) == pytest.approx(
        0.0, abs=1e-12
    )
    tail = (1 - level) / 2
    expected = np.quantile(sizes, [0.5, tail, 1 - tail])
    names = ["concentration", "concentration_low", "concentration_high"]
    assert row[names].tolist() == pytest.approx(expected)
    assert row["probability"] == np.mean(sizes > 2.0)


def test_a_lag_near_pi_has_a_short_arc_where_plain_quantiles_have_a_long_one(seed):
    angles = math.pi + np.random.default_rng(seed).normal(0, 0.1, 200)
    row = graphs.phase_difference(waves(np.cos(angles), np.sin(angles))).iloc[0]
    assert row["angle_high"] - row["angle_low"] < 1
    plain = np.quantile(np.arctan2(np.sin(angles), np.cos(angles)), [0.05, 0.95])
    assert plain[1] - plain[0] > 5


def test_the_lag_is_where_the_density_of_the_difference_peaks():
    """A lag of 0.7: the first node is ahead of the second by 0.7."""
    posterior = waves(np.full(3, 2 * math.cos(0.7)), np.full(3, 2 * math.sin(0.7)))
    row = graphs.phase_difference(posterior).iloc[0]
    assert row[["angle", "angle_low", "angle_high"]].tolist() == pytest.approx([0.7] * 3)
    model = TorusGraph(2, marginal=False, reflectional=False)
    first = np.linspace(0, 2 * math.pi, 1001)
    points = np.column_stack([first, np.zeros_like(first)])
    log_density = model.statistics(points) @ posterior.theta.values[0, 0, 0]
    assert first[np.argmax(log_density)] == pytest.approx(row["angle"], abs=0.01)
    assert log_density.max() == pytest.approx(row["concentration"], abs=1e-4)


def test_phase_difference_takes_its_own_two_of_four_statistics(seed):
    posterior = random(TORUS, seed)
    for kind, (cos, sin) in {"difference": KINDS[:2], "sum": KINDS[2:]}.items():
        table = graphs.phase_difference(posterior, kind=kind)
        assert list(zip(table["node1"], table["node2"], strict=True)) == list(TORUS.edges)
        for _, row in table.iterrows():
            draws = of_edge(posterior, TORUS, row["node1"], row["node2"])
            assert row["concentration"] == pytest.approx(
                np.median(np.hypot(draws[cos], draws[sin]))
            )


@pytest.mark.parametrize("as_mapping", [True, False])
def test_regions_are_brute_force(seed, as_mapping):
    posterior = random(TORUS, seed)
    names = ["left", "right", "left", "right"]
    given = dict(zip(NODES[::-1], names[::-1], strict=True)) if as_mapping else names
    table = graphs.regions(posterior, given, "interval", 0.4, 0.8)
    edges = graphs.edges(posterior, "interval", 0.4, 0.8)
    region = dict(zip(NODES, names, strict=True))
    pairs = [("left", "left"), ("left", "right")]
    assert list(zip(table["region1"], table["region2"], strict=True)) == pairs
    for (_, row), pair in zip(table.iterrows(), pairs, strict=True):
        ends = zip(edges["node1"], edges["node2"], strict=True)
        ours = edges[[sorted((region[one], region[other])) == [*pair] for one, other in ends]]
        counts = np.zeros(50)
        for one, other in zip(ours["node1"], ours["node2"], strict=True):
            draws = np.array(list(of_edge(posterior, TORUS, one, other).values()))
            counts += np.linalg.norm(draws, axis=0) > 0.4
        counts.sort()
        assert row["possible"] == len(ours)
        assert row["selected"] == ours["selected"].sum()
        assert row["share"] == pytest.approx(ours["selected"].mean())
        assert row["strength"] == pytest.approx(ours["strength"].mean())
        # The least counts that 10, 50 and 90 % of the 50 draws do not exceed.
        ends = [row["count_low"], row["count"], row["count_high"]]
        assert ends == [counts[4], counts[24], counts[44]]


def test_regions_may_be_a_series_and_follow_its_labels(seed):
    posterior = random(TORUS, seed)
    series = pd.Series({"d": "q", "c": "q", "b": "p", "a": "p"})
    plain = graphs.regions(posterior, ["p", "p", "q", "q"])
    pd.testing.assert_frame_equal(graphs.regions(posterior, series), plain)
    assert plain["possible"].tolist() == [1, 2, 1]


def differences(first, second):
    """By kind, (draw, kind), and along what both share, (draw,)."""
    before, after = np.array(list(first.values())).T, np.array(list(second.values())).T
    change = before - after
    return change, change @ evidence.shared_direction(before[:, None], change[:, None])[0]


def check_contrast(change, strength, row, level, threshold):
    tail = (1 - level) / 2
    low, median, high = np.quantile(change, [tail, 0.5, 1 - tail], axis=0)
    for k, kind in enumerate(KINDS):
        found = row[[f"{kind}_low", kind, f"{kind}_high"]].tolist()
        assert found == pytest.approx([low[k], median[k], high[k]])
    assert row["norm"] == pytest.approx(np.median(np.linalg.norm(change, axis=1)))
    assert row["p_value"] == pytest.approx(evidence.tail_mass(change[:, None], threshold)[0])
    assert row["probability_stronger"] == np.mean(strength > 0)
    names = [f"strength_difference{end}" for end in ("_low", "", "_high")]
    assert row[names].tolist() == pytest.approx(np.quantile(strength, [tail, 0.5, 1 - tail]))


# Posteriors made by hand have no model for a test without the prior.
draws_alone = pytest.mark.filterwarnings("ignore:the p values of graphs.contrast rest on the draws")


@draws_alone
def test_contrast_of_groups_is_of_joint_draws(seed):
    both = random(TORUS, seed, groups=("rest", "task"))
    table = graphs.contrast(both, groups=("task", "rest"), level=0.8, threshold=0.2)
    assert len(table) == 4
    assert (np.diff(table["p_value"]) >= 0).all()
    for _, row in table.iterrows():
        ends = row["node1"], row["node2"]
        task, rest = (of_edge(both, TORUS, *ends, group) for group in (1, 0))
        change, strength = differences(task, rest)
        check_contrast(change, strength, row, 0.8, 0.2)
    again = graphs.contrast(both, both, groups=("task", "rest"), level=0.8, threshold=0.2)
    pd.testing.assert_frame_equal(again, table)


@draws_alone
def test_contrast_of_posteriors_thins_the_longer_and_turns_the_second(seed):
    long, short = random(TORUS, seed, draws=50), random(TORUS, seed + 1, chains=1, draws=40)
    table = graphs.contrast(long, short)
    for _, row in table.iterrows():
        ends = row["node1"], row["node2"]
        first, second = of_edge(long, TORUS, *ends), of_edge(short, TORUS, *ends)
        first = {kind: x[[5 * i // 2 for i in range(40)]] for kind, x in first.items()}
        second = {kind: np.concatenate([x[20:], x[:20]]) for kind, x in second.items()}
        change, strength = differences(first, second)
        check_contrast(change, strength, row, 0.9, 0.0)


@draws_alone
def test_contrast_of_fits_with_the_same_random_numbers_is_not_too_narrow(seed):
    """Two posteriors with the same draws: paired as they come, they would differ by nothing."""
    one = random(TORUS, seed, draws=4000)
    two = by_hand(TORUS, one.theta.values.copy())
    table = graphs.contrast(one, two)
    sd = (table["cos_minus_high"] - table["cos_minus_low"]).to_numpy() / (2 * 1.645)
    # The sd of the difference is 0.2 sqrt 2; that of a 90 % interval's width from 8000 draws
    # is below 2 %.
    assert sd == pytest.approx(0.2 * math.sqrt(2), rel=0.1)
    joint = graphs.contrast(one, one, groups=("all", "all"))
    assert (joint["cos_minus_high"] - joint["cos_minus_low"]).max() == 0
    assert (joint["p_value"] == 1).all()


@draws_alone
def test_contrast_takes_one_group_of_each_posterior(seed):
    both, other = random(TORUS, seed, groups=("rest", "task")), random(TORUS, seed + 1)
    alone = by_hand(TORUS, both.theta.values[:, :, [1]])
    table = graphs.contrast(both, other, groups=("task", "all"))
    pd.testing.assert_frame_equal(table, graphs.contrast(alone, other))


def test_the_graph_outlives_a_file(seed, tmp_path):
    for number, model in enumerate([TORUS, ISING, TorusGraph(3, edges=[]), TorusGraph(1)]):
        posterior = random(model, seed)
        posterior.save(tmp_path / f"{number}.nc")
        loaded = ncb.load(tmp_path / f"{number}.nc")
        pd.testing.assert_frame_equal(graphs.edges(loaded), graphs.edges(posterior))
        assert list(graphs.to_networkx(loaded)) == list(model.nodes)
        assert graphs.adjacency(loaded).shape == (len(model.nodes),) * 2


def test_a_graph_without_edges_has_empty_read_outs(seed):
    for model in (TorusGraph(3, edges=[]), TorusGraph(3, rotational=False, reflectional=False)):
        posterior = random(model, seed)
        assert len(graphs.edges(posterior)) == 0
        assert graphs.edges(posterior).attrs["expected_fdr"] == 0.0
        assert not graphs.adjacency(posterior).to_numpy().any()
        assert len(graphs.regions(posterior, ["p", "p", "q"])) == 0
    assert len(graphs.phase_difference(random(TorusGraph(3, edges=[]), seed))) == 0


def test_a_fit_stores_its_graph(tmp_path, seed):
    model = TorusGraph(["left", "mid", "right"], reflectional=False)
    truth = np.zeros(12)
    truth[6] = 2.0  # cos(left - mid)
    x = model.sample(truth, 200, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model, x, draws=200, tune=100, chains=2, cores=1, seed=seed, progress=False
        )
    assert "graph" in posterior.data.children
    assert posterior.data["graph"].attrs["inference_library"] == "ncbayes"
    posterior.save(tmp_path / "fit.nc")
    loaded = ncb.load(tmp_path / "fit.nc")
    table = graphs.edges(loaded)
    pd.testing.assert_frame_equal(table, graphs.edges(posterior))
    assert table.loc[0, ["node1", "node2"]].tolist() == ["left", "mid"]
    assert table.loc[0, "selected"]
    assert table.loc[0, "cos_minus_low"] > 0


class Potts:
    """A model of one's own with a graph: two nodes, one edge, its statistic first."""

    space = ncb.spaces.Box((0.0, 0.0), (1.0, 1.0))
    groups = {"pair": ("xy",), "single": ("x", "y")}  # noqa: RUF012
    nodes = ("x", "y")
    edges = (("x", "y"),)
    edge_columns = {"product": [0]}  # noqa: RUF012

    def statistics(self, x):
        return np.column_stack([x[:, 0] * x[:, 1], x])

    def log_base(self, x):
        return np.zeros(len(x))


def test_a_model_of_ones_own_has_a_graph_by_three_members(seed):
    theta = np.random.default_rng(seed).normal(size=(1, 9, 1, 3))
    table = graphs.edges(by_hand(Potts(), theta))
    assert table["product"].tolist() == [np.median(theta[..., 0])]


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("edges", ((0, 1),), r"edges of .* must be pairs of names of its nodes \['x', 'y'\]"),
        ("edges", (("x", "y", "x"),), r"edges of .* must be pairs of names"),
        ("edge_columns", {"product": [0, 1]}, r"must map each kind .* to 1 columns, one an edge"),
        ("edge_columns", {"product": [3]}, r"from 0 to 2, got \{'product': \[3\]\}"),
        ("edge_columns", {"product": [0.5]}, r"from 0 to 2, got \{'product': \[0.5\]\}"),
    ],
)
def test_a_graph_that_cannot_be_is_refused_before_the_fit(member, value, message):
    model = Potts()
    setattr(model, member, value)
    with pytest.raises(ncb.InputError, match=message):
        ncb.fit(model, np.full((5, 2), 0.5), progress=False)


POSTERIOR = random(TORUS, 1)
TWO = random(TORUS, 1, groups=("rest", "task"))
NO_GRAPH = by_hand(ncb.models.VonMises(), np.zeros((1, 4, 1, 2)))
ROTATIONAL = random(TorusGraph(NODES, reflectional=False), 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: graphs.edges(NO_GRAPH), r"VonMises\(\) has no graph; .*TorusGraph and Ising"),
        (lambda: graphs.edges(3), "graphs.edges needs the posterior that ncbayes.fit"),
        (lambda: graphs.adjacency(3), "graphs.adjacency needs the posterior"),
        (lambda: graphs.to_networkx(3), "graphs.to_networkx needs the posterior"),
        (lambda: graphs.regions(3, {}), "graphs.regions needs the posterior"),
        (lambda: graphs.phase_difference(3), "graphs.phase_difference needs the posterior"),
        (lambda: graphs.contrast(3), "graphs.contrast needs the posterior"),
        (lambda: graphs.contrast(POSTERIOR, 3), "graphs.contrast needs the posterior"),
        (lambda: graphs.edges(POSTERIOR, "mean"), r'rule must be "interval" or "median", got \'me'),
        (lambda: graphs.edges(POSTERIOR, ["median"]), r"rule must be .*, got \['median'\]"),
        (lambda: graphs.contrast(POSTERIOR, ROTATIONAL), "their edges differ"),
        (lambda: graphs.contrast(POSTERIOR, random(TorusGraph(4), 1)), "their nodes differ"),
        (
            lambda: graphs.contrast(ROTATIONAL, random(TorusGraph(NODES), 1)),
            r"the same graph, their edge statistics differ: \['cos_minus', 'sin_minus'\] and",
        ),
        (lambda: graphs.contrast(POSTERIOR), r"needs two posteriors of one group each, or groups="),
        (lambda: graphs.contrast(POSTERIOR, TWO), r"has \['all'\], the second \['rest', 'task'\]"),
        (lambda: graphs.contrast(POSTERIOR, groups="ab"), "groups must be the labels of two"),
        (lambda: graphs.contrast(POSTERIOR, groups=("a",)), "groups must be the labels of two"),
        (lambda: graphs.contrast(POSTERIOR, groups=("all", "b")), r"groups \['all'\].* is 'b'"),
        (lambda: graphs.contrast(TWO, groups=("rest", "task"), rule="interval"), '"strength", got'),
        (lambda: graphs.contrast(TWO, groups=("rest", "task"), control=3), '"fdr" or "edge", got'),
        (lambda: graphs.contrast(TWO, groups=("rest", "task"), model=3), "the one that was fitted"),
        (
            lambda: graphs.contrast(TWO, groups=("rest", "task"), model=TorusGraph(3)),
            "the same graph, their nodes differ",
        ),
        (lambda: graphs.adjacency(POSTERIOR, weight="norm"), r'weight must be "strength", "prob'),
        (lambda: graphs.phase_difference(POSTERIOR, kind="lag"), r'kind must be "difference" or'),
        (lambda: graphs.phase_difference(ROTATIONAL, kind="sum"), r"reflectional=True"),
        (lambda: graphs.phase_difference(random(ISING, 1)), r"no statistics of the difference"),
        (lambda: graphs.regions(POSTERIOR, {"a": "p", "b": "p"}), r"it lacks \['c', 'd'\]"),
        (
            lambda: graphs.regions(POSTERIOR, dict.fromkeys([*NODES, "e"], "p")),
            r"hold each of the nodes .*; it names \['e'\], which are none",
        ),
        (lambda: graphs.regions(POSTERIOR, ["p"]), r"must list 4 regions, .* got 1"),
        (lambda: graphs.regions(POSTERIOR, "pppp"), r"regions must map every node to its region"),
        (lambda: graphs.regions(POSTERIOR, None), r"regions must map every node to its region"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ncb.InputError, match=message):
        call()


READ_OUTS = [
    graphs.edges,
    graphs.adjacency,
    graphs.to_networkx,
    graphs.phase_difference,
    lambda posterior, **options: graphs.regions(posterior, NODES, **options),
    lambda posterior, **options: graphs.contrast(posterior, groups=("all", "all"), **options),
]


@pytest.mark.parametrize("read_out", READ_OUTS)
def test_levels_and_thresholds_are_checked_everywhere(read_out):
    for level in (0, 1, 90, "0.9", True, math.nan):
        with pytest.raises(ncb.InputError, match="level must be between 0 and 1, such as"):
            read_out(POSTERIOR, level=level)
    for threshold in (-0.1, math.inf, math.nan, "1", True, None):
        with pytest.raises(ncb.InputError, match="threshold must be a finite number, 0 or more"):
            read_out(POSTERIOR, threshold=threshold)
