"""Prior knowledge about pairs of nodes, as users write it: a matrix or a mapping from pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.couplings import Graph, graph_of
from ncbayes.spaces import is_numeric


def by_edge(scales: Any, model: Any, start: int, stop: int) -> FloatArray:
    """The scale of each of the statistics ``start`` to ``stop`` of a graph's model.

    1 for those that ``model.edge_columns`` does not name: they belong to no edge.
    """
    graph = graph_of(model)
    if graph is None:
        raise InputError(
            "Horseshoe(edge_scales=...) is for models of graphs, such as TorusGraph, or your own "
            f"with nodes, edges and edge_columns, got {shown(model)}"
        )
    if not graph.columns.size:
        raise InputError(
            f"Horseshoe(edge_scales=...) is for models with edges, got {shown(model)}, which has "
            "none; leave edge_scales out"
        )
    given = isinstance(scales, Mapping)
    matrix = _from_mapping(scales, graph) if given else _matrix(scales, graph)
    owner = _owners(graph, model)[start:stop]
    if not (owner >= 0).any():
        raise InputError(
            "Horseshoe(edge_scales=...) is for the statistics of edges, but it is the prior of a "
            f"block of {shown(model)} without any; pass it for the block of the edges"
        )
    one, other = graph.ends.T
    return np.where(owner >= 0, matrix[one, other][owner], 1.0)


def _owners(graph: Graph, model: Any) -> NDArray[np.intp]:
    """The number of each statistic's edge; -1 for statistics that belong to none."""
    owner = np.full(sum(len(names) for names in model.groups.values()), -1, dtype=np.intp)
    for edge, columns in enumerate(graph.columns):
        if not np.isin(owner[columns], (-1, edge)).all():
            raise InputError(
                "Horseshoe(edge_scales=...) is for edges with coefficients of their own, got "
                f"{shown(model)}, where they share one; leave edge_scales out, or give every edge "
                "its own"
            )
        owner[columns] = edge
    return owner


def _matrix(scales: Any, graph: Graph) -> FloatArray:
    size = len(graph.nodes)
    matrix = np.array(scales, dtype=float) if is_numeric(scales) else np.zeros(0)
    if matrix.shape != (size, size):
        raise InputError(
            f"Horseshoe(edge_scales=...) must be a {size} x {size} matrix of numbers, one row and "
            f"column a node, or a mapping from pairs of nodes to numbers, got {shown(scales)}"
        )
    above, below = matrix[np.triu_indices(size, 1)], matrix.T[np.triu_indices(size, 1)]
    if not np.array_equal(above, below, equal_nan=True):
        raise InputError("Horseshoe(edge_scales=...) must be a symmetric matrix")
    bad = above[np.isnan(above) | (above < 0)]
    if len(bad):
        raise InputError(
            "Horseshoe(edge_scales=...) must hold numbers from 0 (forced out) to inf (not shrunk), "
            f"got {bad[0]}"
        )
    return matrix


def _from_mapping(scales: Mapping[Any, Any], graph: Graph) -> FloatArray:
    number = {name: j for j, name in enumerate(graph.nodes)}
    known = {frozenset(edge) for edge in graph.edges}
    matrix = np.ones((len(number), len(number)))
    for pair, value in scales.items():
        ends = list(pair) if isinstance(pair, tuple | list | frozenset) else []
        names = [graph.nodes[end] if _is_index(end, number) else end for end in ends]
        if len(names) != 2 or frozenset(names) not in known:
            raise InputError(
                "Horseshoe(edge_scales=...) must name pairs of nodes that are edges of the model, "
                f"such as {shown(graph.edges[0])}, got {shown(pair)}"
            )
        if not is_numeric(value) or np.ndim(value) or not value >= 0:
            raise InputError(
                "Horseshoe(edge_scales=...) must hold numbers from 0 (forced out) to inf (not "
                f"shrunk), got {shown(value)} for {shown(pair)}"
            )
        j, k = (number[name] for name in names)
        matrix[j, k] = matrix[k, j] = float(value)
    return matrix


def _is_index(end: Any, number: Mapping[str, int]) -> bool:
    whole = isinstance(end, int | np.integer) and not isinstance(end, bool)
    return whole and 0 <= end < len(number)
