"""What is compared on each space: labels and columns, and graphs against NetworkX."""

import networkx as nx
import numpy as np
import pytest

from ncbayes import spaces
from ncbayes.checks.row_statistics import looks
from ncbayes.checks.stein import stein_look
from ncbayes.models import Gaussian, VaryingERGM, VonMises, terms

RNG = np.random.default_rng(0)
SPACES = {
    "one angle": (spaces.Torus(1), RNG.uniform(0, 6, (300, 1))),
    "angles": (spaces.Torus(3), RNG.uniform(0, 6, (300, 3))),
    "many angles": (spaces.Torus(40), RNG.uniform(0, 6, (30, 40))),
    "binary": (spaces.Binary(4), RNG.integers(0, 2, (300, 4)).astype(float)),
    "spins": (spaces.Binary(4, spins=True), 2.0 * RNG.integers(0, 2, (300, 4)) - 1),
    "counts": (spaces.Counts(3), RNG.poisson(3, (300, 3)).astype(float)),
    "reals": (spaces.Reals(3), RNG.normal(size=(300, 3))),
    "one number": (spaces.Orthant(1), RNG.gamma(2, 1, (300, 1))),
    "constant": (spaces.Reals(2), np.ones((50, 2))),
    "graphs": (spaces.Graphs(6), RNG.integers(0, 2, (80, 15)).astype(float)),
    "directed": (spaces.Graphs(5, directed=True), RNG.integers(0, 2, (80, 20)).astype(float)),
    "empty graphs": (spaces.Graphs(5), np.zeros((10, 10))),
}


@pytest.mark.parametrize("name", SPACES)
def test_there_is_a_number_for_every_label(name):
    space, points = SPACES[name]
    found = looks(space, points)
    assert found
    for look in found:
        values = look.values(points[:10])
        assert values.shape == (10, len(look.labels))
        assert np.isfinite(values).all()
        assert len(set(look.labels)) == len(look.labels)
        for k in (0, len(look.labels) - 1):
            words, of = look.shown(k)
            assert words
            assert np.isfinite(of(points)).all()


@pytest.mark.parametrize("name", ["binary", "counts", "reals", "graphs", "directed"])
def test_bins_share_everything_out(name):
    space, points = SPACES[name]
    for look in looks(space, points):
        if look.name in ("ones in a row", "totals", "degrees", "out-degrees", "distances"):
            np.testing.assert_allclose(look.values(points).sum(axis=1), 1)
        if look.name == "margins":
            np.testing.assert_allclose(look.values(points).sum(axis=1), points.shape[1])


def test_harmonics_are_means_of_waves():
    x = RNG.uniform(0, 6, (50, 2))
    found = {look.name: look.values(x).mean(axis=0) for look in looks(spaces.Torus(2), x)}
    wave = np.exp(2j * (x[:, 0] - x[:, 1])).mean()
    np.testing.assert_allclose(
        found["second harmonics of differences"], [wave.real, wave.imag], atol=1e-12
    )
    wave = np.exp(1j * (x[:, 0] + x[:, 1])).mean()
    np.testing.assert_allclose(found["sums"], [wave.real, wave.imag], atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_have_the_numbers_of_networkx(directed):
    space = spaces.Graphs(7, directed=directed)
    points = (RNG.random((20, space.dimension)) < 0.25).astype(float)
    by_name = {look.name: look for look in looks(space, points)}
    kind = nx.DiGraph if directed else nx.Graph
    graphs = [nx.from_numpy_array(a, create_using=kind) for a in space.adjacency(points)]

    def pictured(name):
        return np.sort(by_name[name].shown(0)[1](points))

    degrees = [d for g in graphs for _, d in (g.in_degree() if directed else g.degree())]
    assert np.array_equal(pictured("in-degrees" if directed else "degrees"), np.sort(degrees))
    steps = []
    for g in graphs:
        known = dict(nx.all_pairs_shortest_path_length(g))
        steps += [known[a].get(b, 8) for a in g for b in g if a != b]
    assert np.array_equal(pictured("distances"), np.sort(steps))
    pairs = [(g, a, b) for g in graphs for a, b in g.edges]
    if directed:
        shared = [len(set(g.successors(a)) & set(g.predecessors(b))) for g, a, b in pairs]
        both = [g.has_edge(a, b) and g.has_edge(b, a) for g in graphs
                for a in g for b in g if a < b]  # fmt: skip
        assert np.array_equal(pictured("reciprocity"), np.sort(np.array(both, float)))
    else:  # each tie is seen from both ends
        shared = 2 * [len(list(nx.common_neighbors(g, a, b))) for g, a, b in pairs]
    assert np.array_equal(pictured("shared partners"), np.sort(shared))


def test_graphs_of_several_sizes_are_looked_at_together():
    model = VaryingERGM([4, 6], [terms.edges()])
    points = model.sample(np.array([-0.5, 0.0]), 60, np.random.default_rng(1))
    for look in looks(model.space, points):
        assert look.values(points).shape == (60, len(look.labels))


MODELS = {
    "von Mises": (VonMises(), np.array([1.0, 0.5])),
    "Gaussian": (Gaussian(1), np.array([0.3, 1.5])),
}


@pytest.mark.parametrize("name", ["von Mises", "Gaussian"])
def test_stein_features_have_mean_zero_under_the_model(name, seed):
    model, theta = MODELS[name]
    rng = np.random.default_rng(seed)
    x = model.sample(theta, 40_000, rng)
    names = tuple(f"x{j}" for j in range(x.shape[1]))
    look = stein_look(model, theta, x[:1000], names)
    values = look.values(x)
    z = values.mean(axis=0) / values.std(axis=0) * np.sqrt(len(x))
    assert np.abs(z).max() < 5
    # The broken twin: at another theta they are not.
    other = stein_look(model, theta * 1.3, x[:1000], names).values(x)
    assert np.abs(other.mean(axis=0) / other.std(axis=0) * np.sqrt(len(x))).max() > 10
