import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import ncbayes as ncb
from ncbayes import couplings
from ncbayes.contrast import statistic_names


@pytest.fixture(autouse=True)
def _agg():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture
def by_hand():
    """Makes a posterior with these draws, (draw, group, statistic), and scales."""

    def made(model, theta, groups=("all",), **scales):
        names = statistic_names(model)
        blocks = [block for block, own in model.groups.items() for _ in own]
        values = {"theta": (("chain", "draw", "group", "statistic"), theta[None])}
        for name, draws in scales.items():
            dims = ("chain", "draw", *(f"{name}_{k}" for k in range(draws.ndim - 1)))
            values[name] = (dims, draws[None])
        dataset = xr.Dataset(
            values,
            coords={
                "group": list(groups),
                "statistic": names,
                "block": ("statistic", np.array(blocks)),
            },
        )
        tree = {"posterior": dataset}
        if couplings.graph_of(model) is not None:
            tree["graph"] = couplings.graph_of(model).dataset()
        tree = xr.DataTree.from_dict(tree)
        tree.attrs = {"model": repr(model)}
        return ncb.Posterior(tree)

    return made


@pytest.fixture
def coupled(by_hand):
    """Makes a posterior of a torus graph whose edges have these couplings, give or take 0.01."""

    def made(model, links, groups=("all",), **scales):
        graph, rng = couplings.graph_of(model), np.random.default_rng(1)
        theta = np.zeros((200, len(groups), len(statistic_names(model))))
        for (one, other), values in links.items():
            theta[:, :, graph.columns[graph.edges.index((one, other))]] = values
        return by_hand(model, theta + 0.01 * rng.normal(size=theta.shape), groups, **scales)

    return made


@pytest.fixture
def drawn():
    """Draws a figure as saving it would, which is where text that can't be set is found out."""

    def draw(figure):
        figure.canvas.draw()
        return figure

    return draw
