"""Pictures of coefficients and of the horseshoe's scales."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

import ncbayes as ncb
from ncbayes import graphs, plots
from ncbayes.models import Ising, TorusGraph

NODES = ("a", "b", "c", "d")
MODEL = TorusGraph(NODES)
LINKS = {("a", "b"): (2.0, 1.0, 0, 0), ("c", "d"): (0, 0, -0.75, 0)}


@pytest.fixture
def posterior(coupled):
    return coupled(MODEL, LINKS)


def marks(axis):
    found = [each for each in axis.collections if isinstance(each, PathCollection)]
    return [np.asarray(each.get_offsets()) for each in found]


def bars(axis):
    found = [each for each in axis.collections if isinstance(each, LineCollection)]
    return np.array([segment for each in found for segment in each.get_segments()])


def names(labels):
    return [text.get_text() for text in labels]


def test_each_panel_holds_medians_and_intervals_of_the_strongest(posterior, drawn):
    figure = drawn(plots.coefficients(posterior, most=3, level=0.8))
    table = graphs.edges(posterior, level=0.8).iloc[:3]
    assert len(figure.axes) == 4
    assert names(figure.axes[0].get_yticklabels()) == [
        f"{one}, {other}" for one, other in zip(table["node1"], table["node2"], strict=True)
    ]
    assert [axis.get_title() for axis in figure.axes] == [
        "cos(first - second)", "sin(first - second)", "cos(first + second)", "sin(first + second)",
    ]  # fmt: skip
    for axis, kind in zip(figure.axes, ("cos_minus", "sin_minus", "cos_plus", "sin_plus"),
                          strict=True):  # fmt: skip
        ends = table[[f"{kind}_low", f"{kind}_high"]].to_numpy()
        assert np.allclose(bars(axis)[:, :, 0], ends)
        clear, unclear = marks(axis)
        excludes = (ends[:, 0] > 0) | (ends[:, 1] < 0)
        assert np.allclose(clear, np.column_stack([table[kind], range(3)])[excludes])
        assert len(unclear) == 3 - excludes.sum()
        assert axis.lines[0].get_xdata()[0] == 0
        assert axis.get_ylim() == (2.5, -0.5)
    assert figure.get_supxlabel() == "coefficient: posterior median and 80 % interval"


def test_edges_can_be_chosen_in_any_order(posterior):
    figure = plots.coefficients(posterior, edges=[("d", "c"), ("a", "b")], most=1)
    assert names(figure.axes[0].get_yticklabels()) == ["c, d", "a, b"]


def test_an_ising_model_has_one_panel(by_hand):
    figure = plots.coefficients(by_hand(Ising(3), np.zeros((5, 1, 6))))
    assert [axis.get_title() for axis in figure.axes] == ["coupling"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": [("a", "z")]}, "edges must name edges of the model, pairs of the nodes "
         "['a', 'b', 'c', 'd'], got ('a', 'z')"),
        ({"edges": ["ab"]}, "edges must name edges of the model, pairs of the nodes "
         "['a', 'b', 'c', 'd'], got 'ab'"),
        ({"edges": []}, "plots.coefficients needs at least one edge to show, got none"),
        ({"most": 0}, "most must be a whole number, 1 or more, got 0"),
        ({"level": 1}, "level must be between 0 and 1, such as 0.9, got 1"),
    ],
)  # fmt: skip
def test_what_coefficients_cannot_show_is_said(posterior, options, message):
    with pytest.raises(ncb.InputError, match=f"^{re.escape(message)}$"):
        plots.coefficients(posterior, **options)


def scales(columns, seed=1, draws=200):
    """Local scales near these values."""
    rng = np.random.default_rng(seed)
    return np.array(columns) * np.exp(0.1 * rng.normal(size=(draws, 1, len(columns))))


# Eight node statistics, then the edges ab, ac, ad, bc, bd, cd.
GROUPED = scales([1.0] * 8 + [30.0, 0.2, 0.3, 0.1, 0.4, 20.0])


def test_edges_are_sorted_by_their_local_scale_and_told_apart(coupled, drawn):
    posterior = coupled(MODEL, LINKS, **{"theta.local": GROUPED})
    figure = drawn(plots.shrinkage(posterior, level=0.8))
    above, below = figure.axes
    assert names(below.get_xticklabels()) == ["a, b", "c, d", "b, d", "a, d", "a, c", "b, c"]
    go, between, shrunk = marks(above)
    edges = GROUPED[:, 0, 8:]
    order = [0, 5, 4, 2, 1, 3]
    assert np.allclose(go, np.column_stack([[0, 1], np.median(edges, axis=0)[order[:2]]]))
    assert len(between) == 0
    assert np.allclose(shrunk[:, 1], np.median(edges, axis=0)[order[2:]])
    assert np.allclose(bars(above)[:, :, 1], np.quantile(edges, [0.1, 0.9], axis=0).T[order])
    assert above.get_yscale() == "log"
    table = graphs.edges(posterior).set_index(["node1", "node2"])["norm"]
    assert marks(below)[0][:, 1] == pytest.approx([table["a", "b"], table["c", "d"]])
    legend = names(figure.legends[0].get_texts())
    assert legend == ["80 % of the prior", "median of the prior", "let go (2)", "in between (0)",
                      "shrunk (4)"]  # fmt: skip


def test_the_band_is_the_prior_of_the_scale(coupled, seed):
    """Also of the largest of four, where every coefficient has its own."""
    rng = np.random.default_rng(seed)
    local = np.abs(rng.standard_cauchy((200, 1, 32)))
    for name, runs, draws in (("theta.local", 1, GROUPED), ("theta.local", 4, local)):
        posterior = coupled(MODEL, LINKS, **{name: draws})
        band = plots.shrinkage(posterior, level=0.8).axes[0].patches[0]
        low, high = band.get_y(), band.get_y() + band.get_height()
        largest = np.abs(rng.standard_cauchy((400_000, runs))).max(axis=1)
        for end, share in ((low, 0.1), (high, 0.9)):
            error = np.sqrt(share * (1 - share) / len(largest))
            assert abs(np.mean(largest < end) - share) < 4.9 * error
            # The broken twin: the band of another number of scales.
            other = np.abs(rng.standard_cauchy((400_000, 5 - runs))).max(axis=1)
            assert abs(np.mean(other < end) - share) > 4.9 * error


def test_scales_are_found_by_block_and_group_and_one_for_each_coefficient(coupled):
    edge = scales([30.0, 0.2, 0.3, 0.1, 0.4, 20.0])
    figure = plots.shrinkage(coupled(MODEL, LINKS, **{"marginal.local": scales([1.0] * 8),
                                                      "edge.local": edge}))  # fmt: skip
    assert len(marks(figure.axes[0])[0]) == 2
    own = np.tile(np.repeat([50.0, 0.2, 0.2, 0.2, 0.2, 50.0], 4), (200, 1, 1))
    own[:, :, 1] = 60.0
    figure = plots.shrinkage(coupled(MODEL, LINKS, **{"edge.local": own}))
    assert marks(figure.axes[0])[0][:, 1].tolist() == [60.0, 50.0]
    both = np.concatenate([edge, edge[:, :, ::-1]], axis=1)
    posterior = coupled(MODEL, LINKS, groups=("one", "two"), **{"edge.local": both})
    figure = plots.shrinkage(posterior, group="two")
    assert names(figure.axes[1].get_xticklabels())[:2] == ["c, d", "a, b"]


def test_the_true_edges_of_a_real_fit_come_first(drawn, seed):
    chain = ncb.datasets.torus_chain(200, nodes=4, seed=seed)
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(
            chain.model, chain.data, noise_ratio=5, noise="matched", draws=300, tune=200, chains=2,
            cores=1, seed=seed, progress=False,
        )  # fmt: skip
    figure = drawn(plots.shrinkage(posterior))
    order = names(figure.axes[1].get_xticklabels())
    assert set(order[:3]) == {"x1, x2", "x2, x3", "x3, x4"}


def test_very_many_edges_go_without_names(coupled, drawn):
    model = TorusGraph(60)
    figure = drawn(plots.shrinkage(coupled(model, {}, **{"edge.local": scales([1.0] * 1770)})))
    assert figure.axes[1].get_xlabel() == "1770 edges, by local scale"


def test_fits_without_a_horseshoe_are_refused(coupled):
    message = (
        r"^plots.shrinkage needs a fit whose edges have a horseshoe prior, and this one holds the "
        r"scales {}; fit with prior=ncbayes.priors.Horseshoe\(\)$"
    )
    with pytest.raises(ncb.InputError, match=message.format(r"\[\]")):
        plots.shrinkage(coupled(MODEL, LINKS))
    only_nodes = {"marginal.local": scales([1.0] * 8)}
    with pytest.raises(ncb.InputError, match=message.format(r"\['marginal.local'\]")):
        plots.shrinkage(coupled(MODEL, LINKS, **only_nodes))
    with pytest.raises(
        ncb.InputError,
        match=r"^plots.shrinkage can't tell which of 5 local scales belong to the 6 edges; it knows"
        r" priors with one for each statistic or each edge$",
    ):
        plots.shrinkage(coupled(MODEL, LINKS, **{"edge.local": scales([1.0] * 5)}))
    with pytest.raises(ncb.InputError, match=r"^plots.shrinkage needs the posterior that"):
        plots.shrinkage(None)
