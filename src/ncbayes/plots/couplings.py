"""Pictures of the coefficients of edges, and of the scales that a horseshoe gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from ncbayes import graphs
from ncbayes.base import FloatArray, InputError, shown
from ncbayes.couplings import Graph, check_level, couplings, graph_in, group_label
from ncbayes.plots.networks import checked_edges
from ncbayes.plots.style import BLUE, GREY, ORANGE, check_most, check_posterior, failed_line, short
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORDS = {
    "cos_minus": "cos(first - second)",
    "sin_minus": "sin(first - second)",
    "cos_plus": "cos(first + second)",
    "sin_plus": "sin(first + second)",
}
# What a horseshoe does with an edge: word, colour, mark, filled.
KINDS = (
    ("let go", ORANGE, "o", True),
    ("in between", ORANGE, "o", False),
    ("shrunk", GREY, "s", True),
)
# So many names find room along the picture's foot.
MOST_NAMES = 66


def coefficients(
    posterior: Posterior,
    edges: Sequence[tuple[str, str]] | None = None,
    most: int = 12,
    level: float = 0.9,
    group: str | None = None,
) -> Figure:
    """Posterior medians and equal-tailed intervals of the coefficients of some edges.

    A row an edge, a panel for each of its coefficients. A filled mark: the interval of ``level``
    excludes zero. ``edges`` are pairs of nodes, from the top; None: the ``most`` strongest.
    """
    check_posterior("plots.coefficients", posterior)
    check_most(most)
    graph = graph_in(posterior.data)
    table = graphs.edges(posterior, level=level, group=group).set_index(["node1", "node2"])
    chosen = None if edges is None else checked_edges("edges", edges, graph)
    table = table.iloc[:most] if chosen is None else table.loc[chosen]
    if not len(table):
        raise InputError("plots.coefficients needs at least one edge to show, got none")
    names = [f"{short(one)}, {short(other)}" for one, other in table.index]
    width = 0.6 + 0.08 * max(map(len, names)) + 2.2 * len(graph.kinds)
    figure, axes = plt.subplots(
        1, len(graph.kinds), figsize=(max(5.0, width), 1.6 + 0.28 * len(table)),
        squeeze=False, layout="constrained", sharex=True, sharey=True,
    )  # fmt: skip
    for axis, kind in zip(axes[0], graph.kinds, strict=True):
        _draw_intervals(axis, table, kind)
        axis.set_title(WORDS.get(kind, kind), fontsize="medium")
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel(f"coefficient: posterior median and {100 * level:g} % interval", fontsize=10)
    if failed_line(posterior):
        figure.suptitle(failed_line(posterior).strip(), fontsize="medium")
    return figure


def shrinkage(posterior: Posterior, level: float = 0.9, group: str | None = None) -> Figure:
    """Which edges a horseshoe prior lets go and which it shrinks, the former on the left.

    Above: the local scale u of every edge (of a prior that is not grouped, the largest of those of
    its coefficients), posterior median and interval of ``level``, on a logarithmic axis. The band
    holds ``level`` of its prior, half-Cauchy. An edge is let go if the whole interval lies
    above the prior median, shrunk if even its own median does not. Below: the norm of the edge's
    coefficients, in the same order. Where ``edge_scales`` of the prior are 0 or ``inf``, a local
    scale does nothing and keeps its prior.
    """
    check_posterior("plots.shrinkage", posterior)
    check_level(level)
    found = couplings(posterior.data, group)
    local, runs = _local_scales(posterior, found.graph, group)
    tails = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    # The largest of k independent half-Cauchy scales has the distribution function F^k.
    low, middle, high = np.tan(np.pi / 2 * tails ** (1 / runs))
    scale = np.quantile(local, tails, axis=0)
    order = np.argsort(-scale[1], kind="stable")
    kinds = np.where(scale[0, order] > middle, 0, np.where(scale[1, order] > middle, 1, 2))
    width = min(14.0, max(7.5, 2.0 + 0.16 * len(order)))
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(width, 6.2), sharex=True, layout="constrained"
    )
    above.axhspan(low, high, color="0.92", zorder=0, label=f"{100 * level:g} % of the prior")
    above.axhline(middle, color="black", linewidth=1, linestyle=":", label="median of the prior")
    _draw_edges(above, scale[:, order], kinds)
    above.set(yscale="log", ylabel="local scale u")
    handles, labels = above.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=5, frameon=False,
                  fontsize="small")  # fmt: skip
    _draw_edges(below, np.quantile(found.norms, tails, axis=0)[:, order], kinds)
    below.set(ylabel="norm of the coefficients")
    below.set_ylim(bottom=0)
    below.set_xlim(-0.7, len(order) - 0.3)
    if len(order) <= MOST_NAMES:
        names = [", ".join(map(short, found.graph.edges[e])) for e in order]
        size = 8 if len(order) <= 40 else 6.5
        below.set_xticks(range(len(order)), names, rotation=90, fontsize=size)
    else:
        below.set_xlabel(f"{len(order)} edges, by local scale")
    above.set_title(failed_line(posterior).strip(), fontsize="medium")
    return figure


def _draw_intervals(axis: Axes, table: pd.DataFrame, kind: str) -> None:
    rows = np.arange(len(table))
    low, median, high = (table[f"{kind}{end}"].to_numpy() for end in ("_low", "", "_high"))
    clear = (low > 0) | (high < 0)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.hlines(rows, low, high, color=np.where(clear, BLUE, GREY).tolist(), linewidth=1.5)
    axis.scatter(median[clear], rows[clear], s=28, color=BLUE, zorder=3)
    axis.scatter(median[~clear], rows[~clear], s=28, facecolors="white", edgecolors=GREY, zorder=3)
    axis.tick_params(axis="y", length=0)


def _draw_edges(axis: Axes, values: FloatArray, kinds: Any) -> None:
    """Low, median and high of every edge, by column; ``kinds`` are positions in ``KINDS``."""
    for kind, (label, colour, marker, filled) in enumerate(KINDS):
        places = np.flatnonzero(kinds == kind)
        low, median, high = values[:, places]
        axis.vlines(places, low, high, color=colour, linewidth=1.2)
        axis.scatter(places, median, s=18, marker=marker, edgecolors=colour, zorder=3,
                     facecolors=colour if filled else "white",
                     label=f"{label} ({len(places)})")  # fmt: skip


def _local_scales(posterior: Posterior, graph: Graph, group: str | None) -> tuple[FloatArray, int]:
    """The draws of every edge's local scale, (draw, edge), and of how many it is the largest."""
    stored = posterior.data["posterior"].to_dataset()
    labels = [str(label) for label in stored["group"].to_numpy()]
    row = labels.index(group_label(posterior.data, group))
    total = stored.sizes["statistic"]
    blocks = stored["block"].to_numpy() if "block" in stored.coords else np.full(total, "theta")
    wanted = graph.columns.ravel()
    for name in (str(each) for each in stored.data_vars if str(each).endswith(".local")):
        part = name.removesuffix(".local")
        ours = np.flatnonzero((blocks == part) | (part == "theta"))
        if not len(wanted) or not set(wanted) <= set(ours):
            continue
        local = stored[name].to_numpy()[:, :, row]
        local = local.reshape(-1, local.shape[-1])
        runs = _runs(graph, ours, local.shape[1])
        return np.asarray(local[:, runs].max(axis=2)), runs.shape[1]
    raise InputError(
        "plots.shrinkage needs a fit whose edges have a horseshoe prior, and this one holds the "
        f"scales {shown([str(each) for each in stored.data_vars if '.' in str(each)])}; fit with "
        "prior=ncbayes.priors.Horseshoe()"
    )


def _runs(graph: Graph, ours: Any, count: int) -> Any:
    """The numbers of the local scales of every edge, (edge, scale).

    ``ours`` are the statistics that share ``count`` local scales: one each, or one for all of
    an edge's and one for each of the others.
    """
    if count == len(ours):
        return np.searchsorted(ours, graph.columns)
    first = graph.columns.min(axis=1)
    heads = np.setdiff1d(ours, np.setdiff1d(graph.columns, first))
    if len(heads) != count:
        raise InputError(
            f"plots.shrinkage can't tell which of {count} local scales belong to the "
            f"{len(graph.edges)} edges; it knows priors with one for each statistic or each edge"
        )
    return np.searchsorted(heads, first)[:, None]
