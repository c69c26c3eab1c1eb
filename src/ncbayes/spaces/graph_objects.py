"""Graphs as users have them, NetworkX graphs and adjacency matrices, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces.columns import column_labels, column_order, default_names


def graph_list(data: Any) -> list[Any] | None:
    """The graphs in the data; None where the data are none, such as rows of dyads."""
    if _is_network(data):
        return [data]
    if isinstance(data, np.ndarray):
        return list(data) if data.ndim == 3 else None
    if not isinstance(data, list | tuple) or not data:
        return None
    listed = [each.toarray() if hasattr(each, "toarray") else each for each in data]
    if all(_is_network(each) or _is_table(each) for each in listed):
        return listed
    return None


def _is_network(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("nodes", "edges", "is_directed"))


def _is_table(value: Any) -> bool:
    try:
        return not _is_network(value) and np.ndim(value) == 2
    except ValueError:  # rows of unequal length
        return False


def adjacency_matrix(graph: Any, names: Sequence[str], directed: bool, what: str) -> FloatArray:
    """The matrix (node, node) of 0 and 1, nodes in the order of the names; ``what`` is its name."""
    what = f"{what} (counted from 0)"
    if _is_network(graph):
        return _network_matrix(graph, names, directed, what)
    size = len(names)
    values = _ordered(graph, names, what)
    if values.shape != (size, size):
        raise InputError(
            f"{what} must be a matrix of {size} x {size} for {size} nodes, got shape "
            f"{values.shape}; for graphs of several sizes use ncbayes.models.VaryingERGM"
        )
    numeric = values.dtype.kind in "biuf"
    wrong = (values != 0) & (values != 1) if numeric else np.ones_like(values, dtype=bool)
    if wrong.any():
        j, k = np.argwhere(wrong)[0]
        raise InputError(
            f"{what} must hold 0 and 1, got {shown(values[j, k].item())} from {names[j]} to "
            f"{names[k]}; threshold weights first, as in (matrix > 0)"
        )
    matrix = values.astype(np.float64)
    loops = np.flatnonzero(np.diag(matrix))
    if len(loops):
        raise InputError(_loop(what, names[loops[0]], "np.fill_diagonal(matrix, 0)"))
    if not directed and not np.array_equal(matrix, matrix.T):
        j, k = np.argwhere(matrix != matrix.T)[0]
        raise InputError(
            f"{what} must be symmetric, its entries differ between {names[j]} and {names[k]}; "
            "say directed=True, or pass np.maximum(matrix, matrix.T)"
        )
    return matrix


def _ordered(graph: Any, names: Sequence[str], what: str) -> NDArray[Any]:
    """The entries of a matrix; those of a frame by the names of its rows and columns."""
    values, counted = np.asarray(graph), list(range(len(names)))
    columns = column_labels(graph)
    # A list has an index, too, which is a method.
    framed = hasattr(graph, "columns") and hasattr(graph, "index")
    if values.shape != (len(names),) * 2 or not framed or columns == counted:
        return values
    rows = list(graph.index)
    if rows != columns and rows != counted:
        raise InputError(
            f"{what} has rows {shown(rows)} and columns {shown(columns)}; both must be its nodes, "
            "in the same order"
        )
    binding = tuple(names) != default_names(len(names))
    order = column_order(graph, names, f"the model ({what})", binding=binding)
    return values if order is None else values[np.ix_(order, order)]


def _network_matrix(graph: Any, names: Sequence[str], directed: bool, what: str) -> FloatArray:
    if graph.is_directed() != directed:
        said, other = ("undirected", "directed")[:: 1 if directed else -1]
        remedy = "graph.to_undirected()" if said == "directed" else "graph.to_directed()"
        raise InputError(
            f"{what} is {said} and the model's graphs are {other}; pass {remedy}, or change "
            "directed=... of the model"
        )
    if graph.is_multigraph():
        raise InputError(f"{what} is a multigraph, with repeated edges; pass networkx.Graph(graph)")
    order = node_order(graph, names)
    if order is None:
        raise InputError(
            f"{what} must have the {len(names)} nodes {shown(list(names))}, or the numbers 0 to "
            f"{len(names) - 1}, got {shown(list(graph.nodes))}; name the nodes in the model, as in "
            "ERGM(['a', 'b', 'c'], ...)"
        )
    matrix = np.zeros((len(names), len(names)))
    for one, other, weight in graph.edges(data="weight"):
        if one == other:
            raise InputError(_loop(what, one, "networkx.selfloop_edges"))
        if weight is not None and weight != 1:
            raise InputError(
                f"{what} has an edge of weight {shown(weight)} from {one} to {other}; edges are "
                "there or not: drop those below a threshold, and the attribute 'weight'"
            )
        matrix[order[one], order[other]] = 1
        if not directed:
            matrix[order[other], order[one]] = 1
    return matrix


def node_order(graph: Any, names: Sequence[str]) -> dict[Any, int] | None:
    """The number of each node of a NetworkX graph, by name or by number; None if others."""
    nodes = list(graph.nodes)
    number = {name: j for j, name in enumerate(names)}
    if len(nodes) == len(names) and {str(node) for node in nodes} == set(names):
        return {node: number[str(node)] for node in nodes}
    if set(nodes) == set(range(len(names))):
        return {node: int(node) for node in nodes}
    return None


def _loop(what: str, node: object, remedy: str) -> str:
    return f"{what} has an edge from {node} to itself; remove such loops, as by {remedy}"
