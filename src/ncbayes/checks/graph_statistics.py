"""Statistics of whole graphs: degrees, shared partners, distances, ties in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray
from ncbayes.checks.look import Bins, Look, bins_of
from ncbayes.spaces import Graphs

# Rows and the adjacency matrices (graph, node, node) of graphs of one size.
Stacks = list[tuple[NDArray[np.intp], FloatArray]]


def graph_looks(
    stacks: Callable[[FloatArray], Stacks], simulated: FloatArray, space: Graphs
) -> Iterator[Look]:
    """Shares of nodes, ties and pairs of each graph with so many ties, partners and steps."""
    degrees = (lambda a: a.sum(axis=2), "nodes with few or many ties")
    kinds: dict[str, tuple[Callable[[FloatArray], FloatArray], str]] = {
        "degrees": degrees,
        "shared partners": (_shared, "ties whose ends have so many neighbours in common"),
        "distances": (_distances, "pairs of nodes so many steps apart"),
    }
    if space.directed:
        del kinds["degrees"]
        kinds |= {
            "out-degrees": degrees,
            "in-degrees": (lambda a: a.sum(axis=1), "nodes that few or many ties lead to"),
            "reciprocity": (_both_ways, "pairs with ties in both directions"),
        }
    first = stacks(simulated)
    for name, (of, words) in kinds.items():
        values = np.concatenate([of(matrices).ravel() for _, matrices in first])
        values = values[np.isfinite(values)]
        bins = bins_of(values if len(values) else np.zeros(1))
        yield Look(
            name,
            tuple(f"{name}: {label}" for label in bins.labels),
            partial(_shares_by_graph, stacks, of, bins),
            f"{words} are more or less frequent",
            partial(_of_all, stacks, of, name),
        )
    yield Look(
        "spread of degrees",
        ("variance of degrees",),
        partial(_spread_of_degrees, stacks),
        "nodes differ more or less in their number of ties",
    )


def _of_all(
    stacks: Callable[[FloatArray], Stacks],
    of: Callable[[FloatArray], FloatArray],
    name: str,
    k: int,
) -> tuple[str, Callable[[FloatArray], FloatArray]]:
    """Values of all nodes, ties or pairs of all graphs."""

    def values(x: FloatArray) -> FloatArray:
        found = np.concatenate([of(matrices).ravel() for _, matrices in stacks(x)])
        return np.asarray(found[np.isfinite(found)])

    return name, values


def _spread_of_degrees(stacks: Callable[[FloatArray], Stacks], x: FloatArray) -> FloatArray:
    found = np.zeros((len(x), 1))
    for rows, matrices in stacks(x):
        found[rows, 0] = matrices.sum(axis=2).var(axis=1)
    return found


def _shares_by_graph(
    stacks: Callable[[FloatArray], Stacks],
    of: Callable[[FloatArray], FloatArray],
    bins: Bins,
    x: FloatArray,
) -> FloatArray:
    """The share of each bin among the values of a graph that are numbers, (graph, bin)."""
    found = np.zeros((len(x), len(bins.labels)))
    for rows, matrices in stacks(x):
        values = of(matrices)
        known = np.isfinite(values)
        shares = bins.shares(np.where(known, values, 0.0)) * known[..., None]
        found[rows] = shares.sum(axis=1) / np.maximum(known.sum(axis=1), 1)[:, None]
    return found


def _shared(adjacency: FloatArray) -> FloatArray:
    """Two-paths between the ends of each tie, (graph, node * node); NaN where there is none."""
    paths = np.where(adjacency > 0, adjacency @ adjacency, np.nan)
    return paths.reshape(len(adjacency), -1)


def _both_ways(adjacency: FloatArray) -> FloatArray:
    one, other = np.triu_indices(adjacency.shape[1], 1)
    return np.asarray((adjacency * adjacency.transpose(0, 2, 1))[:, one, other])


def _distances(adjacency: FloatArray) -> FloatArray:
    """Steps from each node to each other; one more than there are nodes where there is no way."""
    size = adjacency.shape[1]
    steps = np.where(adjacency > 0, 1.0, size + 1.0)
    reached = ties = (adjacency > 0).astype(np.float32)
    for step in range(2, size):
        further = ((reached @ ties > 0) & (steps > size)) & ~np.eye(size, dtype=bool)
        if not further.any():
            break
        steps[further] = step
        reached = np.maximum(reached, further.astype(np.float32))
    return np.asarray(steps[:, ~np.eye(size, dtype=bool)])
