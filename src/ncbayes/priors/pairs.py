"""Prior knowledge about pairs of nodes, as users write it: a matrix or a mapping from pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces import is_numeric


def by_edge(scales: Any, model: Any) -> FloatArray:
    """The scale of each statistic of a graph's model; 1 for those of nodes."""
    if not all(hasattr(model, name) for name in ("nodes", "edges", "groups", "pairs")):
        raise InputError(
            f"Horseshoe(edge_scales=...) is for models of graphs, such as TorusGraph, got "
            f"{shown(model)}"
        )
    matrix = _from_mapping(scales, model) if isinstance(scales, Mapping) else _matrix(scales, model)
    one, other = model.pairs
    of_edge = matrix[one, other]
    counts = {name: len(names) for name, names in model.groups.items()}
    each = counts.get("edge", 0) // max(len(model.edges), 1)
    if model.edges and not each:
        raise InputError(
            "Horseshoe(edge_scales=...) is for edges with coefficients of their own, got "
            f'{shown(model)}, where they share one; leave edge_scales out, or coupling="common"'
        )
    before = sum(counts.values()) - each * len(model.edges)
    return np.concatenate([np.ones(before), np.repeat(of_edge, each)])


def _matrix(scales: Any, model: Any) -> FloatArray:
    size = len(model.nodes)
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


def _from_mapping(scales: Mapping[Any, Any], model: Any) -> FloatArray:
    number = {name: j for j, name in enumerate(model.nodes)}
    known = {frozenset(edge) for edge in model.edges}
    matrix = np.ones((len(number), len(number)))
    for pair, value in scales.items():
        ends = list(pair) if isinstance(pair, tuple | list | frozenset) else []
        names = [model.nodes[end] if _is_index(end, number) else end for end in ends]
        if len(names) != 2 or frozenset(names) not in known:
            raise InputError(
                "Horseshoe(edge_scales=...) must name pairs of nodes that are edges of the model, "
                f"such as {shown(model.edges[0] if model.edges else ())}, got {shown(pair)}"
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
