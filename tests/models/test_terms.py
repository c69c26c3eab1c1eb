"""Counts and changes against plain loops over the nodes, and networkx where it counts the same."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from ncbayes.base import InputError
from ncbayes.models import ERGM, terms

NODES = 6
CLASSES, NUMBERS = list("aabbbc"), [1.0, 2.5, 0.0, 2.5, -1.0, 3.0]
BOTH = [
    *("edges", "triangles", "two_stars", "isolates"),
    *(terms.degree(0), terms.degree(2), terms.gwdegree(0.7), terms.gwdegree(0.0)),
    *(terms.gwesp(0.5), terms.gwesp(0.0), terms.gwesp(2.0)),
    *(terms.homophily(CLASSES, "class"), terms.difference(NUMBERS, "number")),
]
DIRECTED = [
    "reciprocity",
    *(terms.two_stars("in"), terms.two_stars("out"), terms.degree(1, "in"), terms.degree(2, "out")),
    *(terms.gwdegree(0.3, "in"), terms.gwdegree(1.1, "out")),
]
CASES = [(term, False) for term in BOTH] + [(term, True) for term in [*BOTH, *DIRECTED]]


def label(value):
    return getattr(value, "name", str(value))


CASE = pytest.mark.parametrize(("term", "directed"), CASES, ids=label)


def geometric(m, decay):
    return math.exp(decay) * (1 - (1 - math.exp(-decay)) ** m)


def plain(name, matrix, directed):
    """The count of a term by its definition, over sets of edges."""
    n = len(matrix)
    there = {(j, k) for j, k in itertools.product(range(n), repeat=2) if matrix[j][k]}
    edges = there if directed else {(j, k) for j, k in there if j < k}
    out = [sum(j == i for j, _ in there) for i in range(n)]
    into = [sum(k == i for _, k in there) for i in range(n)]
    degree = [a + b for a, b in zip(out, into, strict=True)] if directed else out
    if name.endswith("_in"):
        degree, name = into, name.removesuffix("_in")
    if name.endswith("_out"):
        degree, name = out, name.removesuffix("_out")
    partners = {
        (j, k): sum((j, h) in there and (h, k) in there for h in range(n)) for j, k in edges
    }
    kind, _, rest = name.partition("(")
    number = float(rest.rstrip(")")) if kind in ("degree", "gwdegree", "gwesp") else None
    return {
        "edges": lambda: len(edges),
        "triangles": lambda: sum(partners.values()) / (1 if directed else 3),
        "two_stars": lambda: sum(math.comb(d, 2) for d in degree),
        "isolates": lambda: degree.count(0),
        "degree": lambda: degree.count(number),
        "gwdegree": lambda: sum(geometric(d, number) for d in degree),
        "gwesp": lambda: sum(geometric(s, number) for s in partners.values()),
        "homophily": lambda: sum(CLASSES[j] == CLASSES[k] for j, k in edges),
        "difference": lambda: sum(abs(NUMBERS[j] - NUMBERS[k]) for j, k in edges),
        "reciprocity": lambda: sum((k, j) in there for j, k in there) / 2,
    }[kind]()


def random_graphs(space, count, rng):
    """Sparse ones, dense ones, the empty and the complete one."""
    density = rng.random((count, 1))
    x = (rng.random((count, space.dimension)) < density).astype(float)
    x[0], x[1] = 0, 1
    return x


@CASE
def test_counts_are_the_definitions(term, directed, seed):
    model = ERGM(NODES, [term], directed)
    x = random_graphs(model.space, 60, np.random.default_rng(seed))
    expected = [plain(model.terms[0].name, a, directed) for a in model.space.adjacency(x)]
    assert model.statistics(x)[:, 0] == pytest.approx(expected, abs=1e-12)


@CASE
def test_changes_are_differences_of_counts(term, directed, seed):
    model = ERGM(NODES, [term], directed)
    x = random_graphs(model.space, 60, np.random.default_rng(seed))
    for j in range(model.space.dimension):
        ones, zeros = x.copy(), x.copy()
        ones[:, j], zeros[:, j] = 1, 0
        expected = model.statistics(ones) - model.statistics(zeros)
        assert model.change_statistics(x, j) == pytest.approx(expected, abs=1e-12)


def test_networkx_counts_the_same(seed):
    model = ERGM(9, ["edges", "triangles", "isolates", "two_stars"])
    x = random_graphs(model.space, 30, np.random.default_rng(seed))
    for row, adjacency in zip(model.statistics(x), model.space.adjacency(x), strict=True):
        graph = nx.from_numpy_array(adjacency)
        triangles = sum(nx.triangles(graph).values()) / 3
        stars = sum(math.comb(d, 2) for _, d in graph.degree)
        assert row.tolist() == [
            graph.number_of_edges(),
            triangles,
            nx.number_of_isolates(graph),
            stars,
        ]


def test_a_large_decay_counts_triangles_three_times():
    """With weights near 1 each triangle counts on each of its edges."""
    model = ERGM(5, ["triangles", terms.gwesp(20.0)])
    x = random_graphs(model.space, 40, np.random.default_rng(1))
    triangles, weighted = model.statistics(x).T
    assert weighted == pytest.approx(3 * triangles, rel=1e-6)


def test_attributes_are_by_order_or_by_name():
    by_name = terms.homophily({"c": 1, "a": 1, "b": 0, "d": 0}, "sex")
    one = ERGM(["a", "b", "c"], [by_name])
    other = ERGM(["a", "b", "c"], [terms.homophily(np.array([1, 0, 1]), "sex")])
    assert one == other
    assert one.statistics(np.eye(3))[:, 0].tolist() == [0, 1, 0]
    assert one.terms[0].name == "homophily(sex)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: terms.gwesp(-1), r"decay must be a number from 0 up to 50, .* got -1$"),
        (lambda: terms.gwdegree("a"), r"decay must be a number from 0 up to 50, .* got 'a'$"),
        (lambda: terms.degree(1.5), r"degree\(count\) needs a whole number, 0 or more, got 1.5$"),
        (lambda: terms.two_stars("left"), r'side must be "all", "in" or "out", got \'left\'$'),
        (lambda: terms.homophily("abc"), r"homophily\(attribute\) needs a value for each node"),
        (lambda: terms.difference(["a", 1]), r"needs a finite number for each node, got 'a'; for"),
        (lambda: terms.difference([1, np.nan]), r"needs a finite number for each node, got nan"),
        (
            lambda: ERGM(3, [terms.homophily([1, 2])]),
            r"attribute of 'homophily' must have a value for each of the 3 nodes .* has 2 values;",
        ),
        (
            lambda: ERGM(["a", "b"], [terms.homophily({"a": 1, "c": 1})]),
            r"each of the 2 nodes \['a', 'b'\], and lacks \['b'\]; pass a list",
        ),
        (lambda: ERGM(3, ["reciprocity"]), r"'reciprocity' is for directed graphs; leave it out"),
        (lambda: ERGM(3, [terms.degree(1, "in")]), r"'degree\(1\)_in' is for directed graphs;"),
    ],
)
def test_terms_that_cannot_be_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_sociality_counts_the_edges_of_a_node(seed):
    for directed in (False, True):
        model = ERGM(list("abcd"), terms.sociality(["b", "d"]), directed)
        x = random_graphs(model.space, 20, np.random.default_rng(seed))
        matrices = model.space.adjacency(x)
        degrees = matrices.sum(axis=2) + directed * matrices.sum(axis=1)
        assert np.array_equal(model.statistics(x), degrees[:, [1, 3]])
    assert list(model.groups) == ["degree of b", "degree of d"]
    with pytest.raises(InputError, match=r"sociality\(nodes\) needs a list of names of nodes"):
        terms.sociality("abc")
    with pytest.raises(InputError, match="needs a list of names of nodes, got None"):
        terms.sociality(None)
