"""Pictures of graphs: what is drawn where, and how wide."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

import ncbayes as ncb
from ncbayes import graphs, plots
from ncbayes.models import Ising, TorusGraph, VonMises

NODES = ("a", "b", "c", "d", "e")
MODEL = TorusGraph(NODES)
LINKS = {("a", "b"): (2.0, 1.0, 0, 0), ("b", "c"): (0.75, 0, -0.75, 0), ("a", "d"): (0.3, 0, 0, 0)}
REGIONS = {"a": "left", "b": "right", "c": "left", "d": "right", "e": "left"}


@pytest.fixture
def posterior(coupled):
    return coupled(MODEL, LINKS)


def lines(figure):
    return [each for each in figure.axes[0].collections if isinstance(each, LineCollection)]


def nodes(figure):
    found = [each for each in figure.axes[0].collections if isinstance(each, PathCollection)]
    return np.concatenate([np.asarray(each.get_offsets()) for each in found])


def places(figure):
    return {text.get_text(): tuple(text.xy) for text in figure.axes[0].texts}


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_edges_are_those_of_the_rule_as_wide_as_strong(posterior, drawn):
    figure = drawn(plots.network(posterior))
    table = graphs.edges(posterior).query("selected")
    found = lines(figure)[0]
    segments, at = found.get_segments(), places(figure)
    assert len(segments) == len(table) == 3
    # The strongest last, on top.
    for segment, width, shade, (_, row) in zip(
        segments, found.get_linewidths(), found.get_array(), table[::-1].iterrows(), strict=True
    ):
        assert np.allclose(segment[[0, -1]], [at[row["node1"]], at[row["node2"]]])
        assert width == pytest.approx(max(0.8, 6 * row["strength"] / table["strength"].max()))
        assert shade == row["probability"]
    assert found.norm.vmin == 0
    assert found.norm.vmax == 1
    assert figure.axes[1].get_xlabel() == "posterior probability that the norm exceeds 0.1"
    assert figure.get_suptitle() == "3 of 10 edges selected: 90 % interval excludes 0"
    assert legend(figure) == ["strength 3", "strength 1.5"]


def test_nodes_stand_on_a_circle_in_their_order_those_without_an_edge_as_well(posterior):
    figure = plots.network(posterior)
    turns = 2 * np.pi * np.arange(5) / 5
    assert np.allclose(nodes(figure), np.column_stack([np.sin(turns), np.cos(turns)]))
    assert tuple(places(figure)) == NODES
    axis = figure.axes[0]
    assert axis.get_xlim()[0] < -1.1
    assert axis.get_ylim()[1] > 1.1


@pytest.mark.parametrize("regions", [REGIONS, list(REGIONS.values())])
def test_regions_are_arcs_with_colours_and_a_legend(posterior, regions):
    figure = plots.network(posterior, regions=regions)
    at = places(figure)
    turn = {node: np.arctan2(x, y) % (2 * np.pi) for node, (x, y) in at.items()}
    assert sorted(turn, key=turn.get) == ["a", "c", "e", "b", "d"]
    # Five nodes and two gaps of one node each.
    assert turn["c"] == pytest.approx(2 * np.pi / 7)
    assert turn["b"] - turn["e"] == pytest.approx(2 * 2 * np.pi / 7)
    left, right = (each for each in figure.axes[0].collections if isinstance(each, PathCollection))
    assert len(left.get_offsets()) == 3
    assert not np.array_equal(left.get_facecolors(), right.get_facecolors())
    assert legend(figure)[-2:] == ["left", "right"]
    circular = plots.network(posterior, regions=regions, layout="circular")
    assert tuple(places(circular)) == NODES
    assert legend(circular)[-2:] == ["left", "right"]


def test_more_regions_than_colours_get_other_marks(coupled):
    model = TorusGraph(18)
    figure = plots.network(coupled(model, {}), regions=[f"r{j // 2}" for j in range(18)])
    found = [each for each in figure.axes[0].collections if isinstance(each, PathCollection)]
    looks = {
        (tuple(each.get_facecolors()[0]), each.get_paths()[0].vertices.tobytes()) for each in found
    }
    assert len(looks) == len(found) == 9


def test_given_places_are_kept_with_straight_edges(posterior, drawn):
    spots = {node: (10.0 * j, float(j % 2)) for j, node in enumerate(NODES)}
    figure = drawn(plots.network(posterior, layout=spots))
    assert places(figure) == spots
    assert all(len(segment) == 2 for segment in lines(figure)[0].get_segments())


def test_true_edges_tell_what_is_wrong_and_what_was_missed(posterior, drawn):
    true = [("b", "a"), ("b", "c"), ("c", "e"), ("d", "e")]
    figure = drawn(plots.network(posterior, true_edges=true))
    right, wrong, missed = lines(figure)
    assert [len(each.get_segments()) for each in (right, wrong, missed)] == [2, 1, 2]
    assert legend(figure)[2:] == ["true, found (2)", "not true (1)", "missed (2)"]
    assert wrong.get_linestyles() != right.get_linestyles()


def test_no_edge_at_all_is_a_picture_of_nodes(posterior, drawn):
    figure = drawn(plots.network(posterior, rule="median", threshold=9))
    assert len(figure.axes) == 1
    assert not figure.legends
    assert len(nodes(figure)) == 5
    assert figure.get_suptitle() == "0 of 10 edges selected: |median| > 9"
    model = TorusGraph(3, edges=[])
    figure = drawn(plots.network(ncb.Posterior(without_edges(model))))
    assert figure.get_suptitle() == "0 of 0 edges selected: 90 % interval excludes 0"


def without_edges(model):
    import xarray as xr

    from ncbayes.couplings import graph_of

    theta = xr.Dataset(
        {"theta": (("chain", "draw", "group", "statistic"), np.zeros((1, 3, 1, 6)))},
        coords={"group": ["all"], "statistic": list(model.groups["marginal"])},
    )
    return xr.DataTree.from_dict({"posterior": theta, "graph": graph_of(model).dataset()})


def test_sixty_nodes_have_labels_that_do_not_overlap(coupled, drawn):
    model = TorusGraph([f"channel {j}" for j in range(60)])
    links = {(f"channel {j}", f"channel {j + 1}"): (1.0, 0, 0, 0) for j in range(0, 58, 2)}
    regions = [f"region {j // 12}" for j in range(60)]
    posterior = coupled(model, links)
    for options in ({}, {"regions": regions}):
        figure = drawn(plots.network(posterior, **options))
        assert len(lines(figure)[0].get_segments()) == 29
        texts = figure.axes[0].texts
        assert len(texts) == 60
        size = texts[0].get_fontsize()
        assert size >= 7
        spots = figure.axes[0].transData.transform([text.xy for text in texts])
        order = np.argsort(np.arctan2(*(spots - spots.mean(axis=0)).T))
        gaps = np.linalg.norm(np.diff(spots[order], axis=0), axis=1) * 72 / figure.dpi
        assert gaps.min() > size  # the labels point outward, so that their height is what counts
        edge = figure.bbox
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= edge.x0
            assert box.x1 <= edge.x1


def test_the_interval_rule_and_groups_are_passed_on(coupled):
    posterior = coupled(MODEL, LINKS, groups=("task", "rest"))
    figure = plots.network(posterior, rule="interval", level=0.99, group="rest")
    assert figure.get_suptitle().startswith("3 of 10 edges selected: 99 % interval excludes 0")
    with pytest.raises(ncb.InputError, match=r"^group must be one of"):
        plots.network(posterior)


def test_an_ising_model_has_a_network(by_hand, drawn):
    model = Ising(3)
    theta = np.zeros((20, 1, 6))
    theta[..., 3] = 0.5
    assert len(lines(drawn(plots.network(by_hand(model, theta))))[0].get_segments()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "ring"}, 'layout must be "circular", "regions" or a mapping from nodes to '
         "places (x, y), got 'ring'"),
        ({"layout": 3}, 'layout must be "circular", "regions" or a mapping from nodes to places '
         "(x, y), got 3"),
        ({"layout": "regions"}, 'layout="regions" needs regions, a mapping from nodes to regions '
         "such as {'a': 'left'}"),
        ({"layout": {"a": (0, 0)}}, "layout must hold a place for each of the nodes; it lacks "
         "['b', 'c', 'd', 'e']"),
        ({"layout": dict.fromkeys("abcdef", (0, 0))}, "layout must hold a place for each of the "
         "nodes; it names ['f'], which are none"),
        ({"layout": {**dict.fromkeys("abcd", (0, 0)), "e": "here"}}, "layout must map nodes to two "
         "finite numbers (x, y), got 'here' for 'e'"),
        ({"true_edges": [("a", "z")]}, "true_edges must name edges of the model, pairs of the "
         "nodes ['a', 'b', 'c', 'd', 'e'], got ('a', 'z')"),
        ({"true_edges": "ab"}, "true_edges must be a list of pairs of nodes, such as "
         "[('a', 'e')], got 'ab'"),
        ({"true_edges": 3}, "true_edges must be a list of pairs of nodes, such as [('a', 'e')], "
         "got 3"),
        ({"rule": "best"}, "rule must be \"interval\" or \"median\", got 'best'"),
    ],
)  # fmt: skip
def test_what_a_network_cannot_show_is_said(posterior, options, message):
    with pytest.raises(ncb.InputError, match=f"^{re.escape(message)}$"):
        plots.network(posterior, **options)


@pytest.mark.parametrize("picture", [plots.network, plots.adjacency, plots.coefficients])
def test_a_posterior_without_a_graph_is_refused(by_hand, picture):
    posterior = by_hand(VonMises(), np.zeros((5, 1, 2)))
    with pytest.raises(ncb.InputError, match=r"^VonMises\(\) has no graph; this read-out is for"):
        picture(posterior)
    name = f"plots.{picture.__name__}"
    with pytest.raises(ncb.InputError, match=f"^{name} needs the posterior that .* got 3$"):
        picture(3)


def test_the_matrix_holds_strengths_in_the_order_of_the_regions(posterior, drawn):
    figure = drawn(plots.adjacency(posterior, regions=REGIONS))
    axis, bar = figure.axes
    order = ["a", "c", "e", "b", "d"]
    assert [text.get_text() for text in axis.get_xticklabels()] == order
    assert [text.get_text() for text in axis.get_yticklabels()] == order
    expected = graphs.adjacency(posterior, only_selected=False).loc[order, order].to_numpy()
    shown = axis.images[0].get_array()
    assert np.allclose(shown[~np.eye(5, dtype=bool)], expected[~np.eye(5, dtype=bool)])
    assert np.ma.getmaskarray(shown).tolist() == np.eye(5, dtype=bool).tolist()
    assert bar.get_ylabel() == "strength"
    dots = sum(len(each.get_offsets()) for each in axis.collections)
    assert dots == 2 * 3
    assert [line.get_xdata()[0] for line in axis.lines] == [0, 2.5]
    assert [text.get_text() for text in axis.texts] == ["left", "right"]


def test_the_matrix_of_probabilities_goes_from_zero_to_one(posterior):
    figure = plots.adjacency(posterior, weight="probability", threshold=0.2, rule="interval")
    axis, bar = figure.axes
    assert axis.images[0].get_clim() == (0, 1)
    assert bar.get_ylabel() == "posterior probability that the norm exceeds 0.2"
    assert axis.get_title() == "dot: selected by the interval rule"
    with pytest.raises(ncb.InputError, match=r'^weight must be "strength" or "probability", got'):
        plots.adjacency(posterior, weight=None)


def test_pairs_that_the_model_leaves_out_are_masked(coupled):
    model = TorusGraph(NODES, edges=[("a", "b"), ("b", "c")])
    figure = plots.adjacency(coupled(model, {("a", "b"): (1.0, 0, 0, 0)}))
    assert int((~np.ma.getmaskarray(figure.axes[0].images[0].get_array())).sum()) == 4


def test_the_matrix_of_sixty_nodes_is_drawn(coupled, drawn):
    model = TorusGraph(60)
    figure = drawn(plots.adjacency(coupled(model, {("x1", "x2"): (1.0, 0, 0, 0)})))
    labels = figure.axes[0].get_xticklabels()
    assert len(labels) == 60
    assert labels[0].get_fontsize() >= 6
