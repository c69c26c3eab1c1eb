import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ncbayes.base import InputError, Space
from ncbayes.spaces import Binary, Graphs, GraphSets, as_points

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
ARROWS = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
BOTH = GraphSets((Graphs(3), Graphs(4)))


def test_dyads_stand_row_by_row():
    assert [each.tolist() for each in Graphs(4).pairs] == [[0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]]
    assert [each.tolist() for each in Graphs(3, directed=True).pairs] == [
        [0, 0, 1, 1, 2, 2],
        [1, 2, 0, 2, 0, 1],
    ]
    assert Graphs(20).dimension == 190
    assert Graphs(20, directed=True).log_volume == pytest.approx(380 * math.log(2))
    assert Graphs(3).points([PATH]).tolist() == [[1, 0, 1]]
    assert Graphs(3, directed=True).points([ARROWS]).tolist() == [[1, 0, 0, 1, 1, 0]]
    assert isinstance(Graphs(3), Space)
    assert isinstance(BOTH, Space)


@pytest.mark.parametrize("directed", [False, True])
def test_matrices_and_points_are_two_forms_of_one_thing(directed, seed):
    space = Graphs(6, directed)
    x = space.uniform(30, np.random.default_rng(seed))
    assert np.array_equal(space.points(space.adjacency(x)), x)
    assert space.contains(x).all()
    assert np.array_equal(space.contains(np.vstack([x[:1], x[:1] + 0.5])), [True, False])


@pytest.mark.parametrize(
    "graphs",
    [
        np.array([PATH, PATH]),
        [PATH.tolist(), PATH.tolist()],
        [PATH.astype(bool), PATH.astype(float)],
        [sparse.csr_array(PATH), sparse.csr_matrix(PATH)],
        [pd.DataFrame(PATH), pd.DataFrame(PATH)],
        [nx.path_graph(3), nx.path_graph(3)],
        [[1, 0, 1], [1, 0, 1]],
        pd.DataFrame([[1, 0, 1], [1, 0, 1]]),
    ],
    ids=["array", "lists", "kinds", "sparse", "frames", "networkx", "rows", "frame of rows"],
)
def test_data_come_in_many_forms(graphs):
    assert as_points(graphs, Graphs(3), "ERGM(3)").tolist() == [[1, 0, 1], [1, 0, 1]]


def test_nodes_of_networkx_graphs_are_ordered_by_name():
    graph = nx.Graph([("c", "a"), ("c", "b")])
    assert Graphs(3, names=("a", "b", "c")).points([graph]).tolist() == [[0, 1, 1]]
    arrows = nx.DiGraph([(2, 0), (0, 1)])
    assert Graphs(3, directed=True).points([arrows]).tolist() == [[1, 0, 0, 0, 1, 0]]


def other(j, k, value, matrix=PATH):
    changed = matrix.astype(float)
    changed[j, k] = value
    return changed


def weighted():
    graph = nx.path_graph(3)
    graph.add_edge(0, 1, weight=2.5)
    return graph


def looped(of=nx.Graph):
    return of([(0, 1), (1, 2), (2, 2)])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (other(1, 1, 1), r"^graph 1 \(counted from 0\) has an edge from x2 to itself; remove such"),
        (
            np.zeros((4, 4)),
            r"^graph 1 .* must be a matrix of 3 x 3 for 3 nodes, got shape \(4, 4\)",
        ),
        (
            other(0, 2, 1),
            r"^graph 1 .* must be symmetric, its entries differ between x1 and x3; say",
        ),
        (other(0, 1, 7), r"^graph 1 .* must hold 0 and 1, got 7.0 from x1 to x2; threshold"),
        (other(0, 1, np.nan), r"^graph 1 .* must hold 0 and 1, got nan from x1 to x2; threshold"),
        (PATH.astype(str), r"^graph 1 .* must hold 0 and 1, got '0' from x1 to x1; threshold"),
        (looped(), r"^graph 1 .* has an edge from 2 to itself; remove such loops"),
        (weighted(), r"^graph 1 .* has an edge of weight 2.5 from 0 to 1; edges are there or not"),
        (nx.DiGraph([(0, 1), (1, 2)]), r"^graph 1 .* is directed and the model's graphs are undir"),
        (nx.MultiGraph([(0, 1), (1, 2)]), r"^graph 1 .* is a multigraph, with repeated edges;"),
        (
            nx.Graph([("a", "b"), ("b", "c")]),
            r"^graph 1 .* must have the 3 nodes \['x1', 'x2', 'x3",
        ),
        (nx.path_graph(4), r"^graph 1 .* must have the 3 nodes .* or the numbers 0 to 2, got"),
    ],
)
def test_graphs_that_do_not_fit_are_refused_in_a_sentence(graph, message):
    with pytest.raises(InputError, match=message):
        as_points([PATH, graph], Graphs(3), "ERGM(3)")


def test_rows_and_other_things_are_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"^rows of dyads must hold 0 and 1, got 1 such value in"):
        as_points([[0, 1, 2], [0, 0, 1]], Graphs(3), "ERGM(3)")
    with pytest.raises(InputError, match=r"^data must have 3 columns \(ERGM\(3\)\), got shape"):
        as_points([[0, 1], [0, 0]], Graphs(3), "ERGM(3)")
    with pytest.raises(InputError, match=r"^data must have at least 2 rows"):
        as_points(nx.path_graph(3), Graphs(3), "ERGM(3)")
    with pytest.raises(InputError, match=r"^graphs must be a list of adjacency matrices or of"):
        Graphs(3).points([1, 0, 1])
    with pytest.raises(
        InputError, match=r"^graph 0 .* is undirected and the model's graphs are dir"
    ):
        Graphs(3, directed=True).points([nx.path_graph(3)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Graphs(1), r"Graphs\(nodes\) needs a whole number of at least 2, got 1$"),
        (lambda: Graphs(3, names=("a",)), r"Graphs\(names=...\) must hold 3 names, .* got \('a',"),
        (lambda: GraphSets((Graphs(3),)), r"GraphSets\(sets\) needs two or more different spaces"),
        (lambda: GraphSets((Graphs(3), Graphs(3))), r"needs two or more different spaces of graph"),
        (lambda: GraphSets((Graphs(3), Graphs(4, True))), r"all directed, or all not$"),
        (lambda: BOTH.points("graphs"), r"graphs must be a list of adjacency matrices or of Net"),
    ],
)
def test_spaces_that_cannot_be_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_graphs_of_several_sizes_are_one_space(seed):
    x = BOTH.uniform(4000, np.random.default_rng(seed))
    assert BOTH.contains(x).all()
    # Each set has half: 4.9 standard errors.
    assert abs(x[:, -1].mean() - 0.5) < 4.9 * 0.5 / math.sqrt(4000)
    assert not x[x[:, -1] == 0, 3:6].any()
    bad = np.array([[0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 2], [0.5, 0, 0, 0, 0, 0, 1]])
    assert not BOTH.contains(bad).any()
    for rows, dyads in BOTH.split(x):
        assert np.array_equal(x[rows, : dyads.shape[1]], dyads)


def test_a_named_graph_finds_its_set_among_those_of_its_size():
    space = GraphSets((Graphs(3, names=("a", "b", "c")), Graphs(3, names=("a", "b", "d"))))
    graphs = [nx.Graph([("a", "d"), ("d", "b")]), nx.Graph([("a", "c"), ("b", "c")])]
    assert space.points(graphs).tolist() == [[0, 1, 1, 1], [0, 1, 1, 0]]
    with pytest.raises(InputError, match=r"has 3 nodes and fits more than one of the sets"):
        space.points([PATH])


def test_other_spaces_do_not_read_graphs():
    with pytest.raises(InputError, match=r"got 3 dimensions"):
        as_points(np.array([PATH, PATH]), Binary(3), "Ising(3)")
