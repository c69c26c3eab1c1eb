"""Graphs of zeros and ones, of positive numbers and of counts: priors and read-outs for all."""

import os
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.models import ConwayMaxwell, Ising, TruncatedGaussian

SEED = int(os.environ.get("NCBAYES_TEST_SEED", "1"))
NAMES = ["a", "b", "c", "d"]


def theta(model, alone, **edges):
    """The same coefficients for all nodes, and edges by name such as ab=1."""
    of_edge = [edges.get(one + other, 0.0) for one, other in model.edges]
    return np.concatenate([np.repeat(alone, len(model.nodes)), of_edge])


# Model, truth with the edges a-b and c-d, and what its edge coefficient is called.
FAMILIES = {
    "zeros and ones": (Ising(NAMES), ([-0.5], 2.0, -2.0), "coupling"),
    "spins": (Ising(NAMES, coding="spins"), ([0.0], 0.6, -0.6), "coupling"),
    "positive": (TruncatedGaussian(NAMES), ([1.0, 1.5], 1.2, -0.8), "precision"),
    "counts": (ConwayMaxwell(NAMES, 15), ([1.2, 1.0], -0.3, 0.1), "coupling"),
}


@pytest.fixture(scope="module", params=FAMILIES, ids=str)
def fitted(request):
    """A short fit with a horseshoe prior on the edges."""
    model, (alone, ab, cd), kind = FAMILIES[request.param]
    truth = theta(model, alone, ab=ab, cd=cd)
    data = model.sample(truth, 800, np.random.default_rng(SEED))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model,
            data,
            prior={"edge": ncb.priors.Horseshoe(slab=3.0)},
            noise="matched",
            noise_ratio=5,
            seed=SEED,
            draws=150,
            tune=150,
            chains=2,
            progress=False,
        )
    return model, truth, kind, posterior


def test_a_horseshoe_finds_the_edges(fitted):
    model, truth, kind, posterior = fitted
    table = ncb.graphs.edges(posterior, rule="interval", level=0.9)
    strongest = table.iloc[:2]
    assert {*zip(strongest["node1"], strongest["node2"], strict=True)} == {("a", "b"), ("c", "d")}
    assert strongest["selected"].all()
    median = table.set_index(["node1", "node2"])[kind]
    columns = model.edge_columns[kind]
    for edge, column in zip(model.edges, columns, strict=True):
        if truth[column]:
            assert np.sign(median[edge]) == np.sign(truth[column])
    assert "edge.tau" in posterior.data["posterior"]


def test_matrices_networks_and_files(fitted, tmp_path):
    _, _, kind, posterior = fitted
    posterior.save(tmp_path / "posterior.nc")
    for each in (posterior, ncb.load(tmp_path / "posterior.nc")):
        matrix = ncb.graphs.adjacency(each, rule="interval", weight=None)
        assert list(matrix.index) == NAMES
        assert matrix.loc["a", "b"] == matrix.loc["d", "c"] == 1
        graph = ncb.graphs.to_networkx(each, rule="interval")
        assert {("a", "b"), ("c", "d")} <= {*graph.edges}
        assert graph.number_of_edges() == matrix.to_numpy().sum() / 2
        assert kind in graph.edges["a", "b"]


def test_pictures(fitted):
    mpl.use("agg")
    *_, posterior = fitted
    for picture in (ncb.plots.network, ncb.plots.adjacency, ncb.plots.coefficients):
        figure = picture(posterior)
        figure.canvas.draw()
        assert figure.axes
    plt.close("all")


def test_regions(fitted):
    *_, posterior = fitted
    table = ncb.graphs.regions(posterior, ["left", "left", "right", "right"])
    assert table["possible"].sum() == 6


def test_what_is_for_angles_says_so(fitted):
    model, *_, posterior = fitted
    with pytest.raises(ncb.InputError, match=r"no statistics of the difference of two angles"):
        ncb.graphs.phase_difference(posterior)
    with pytest.raises(ncb.InputError, match=r"needs the model of angles"):
        ncb.predictive.check_angles(posterior, model, np.ones((5, 4)))


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_knowledge_about_pairs(seed):
    model, data = Ising(NAMES), np.random.default_rng(seed).integers(0, 2, (200, 4))
    prior = {"edge": ncb.priors.Horseshoe(edge_scales={("a", "b"): 0.0})}
    options = {"draws": 100, "tune": 50, "chains": 1, "progress": False}
    posterior = ncb.fit(model, data, prior=prior, noise="matched", seed=seed, **options)
    couplings = np.abs(posterior.theta.values[..., 4:]).mean(axis=(0, 1, 2))
    assert couplings[0] < 1e-5 < couplings[1:].min()
