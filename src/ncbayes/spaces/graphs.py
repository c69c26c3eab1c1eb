"""Spaces of graphs: a point is the row of a graph's dyads, 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.spaces.columns import default_names
from ncbayes.spaces.graph_objects import adjacency_matrix, graph_list, node_order
from ncbayes.spaces.points import is_whole, offenders


@dataclass(frozen=True)
class Graphs:
    """Graphs on one set of nodes, without loops; the volume is their number, 2^dimension.

    A point is the row of a graph's dyads, 1 for an edge: the pairs j < k row by row (the upper
    triangle of the adjacency matrix), or, if ``directed``, all pairs j != k row by row. ``names``
    are those of the nodes, which order the nodes of NetworkX graphs; x1, x2, ... if left out.

    >>> Graphs(3).points([[[0, 1, 0], [1, 0, 1], [0, 1, 0]]])
    array([[1., 0., 1.]])
    """

    nodes: int
    directed: bool = False
    names: tuple[str, ...] = ()
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_whole(self.nodes) or self.nodes < 2:
            raise InputError(
                f"Graphs(nodes) needs a whole number of at least 2, got {shown(self.nodes)}"
            )
        if self.names and len(self.names) != self.nodes:
            raise InputError(
                f"Graphs(names=...) must hold {self.nodes} names, one for each node, got "
                f"{shown(self.names)}"
            )
        object.__setattr__(self, "names", self.names or default_names(self.nodes))

    @property
    def dimension(self) -> int:
        return self.nodes * (self.nodes - 1) // (1 if self.directed else 2)

    @property
    def log_volume(self) -> float:
        return self.dimension * math.log(2)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The numbers j and k of the nodes of each dyad, as two arrays."""
        some = np.ones((self.nodes, self.nodes), dtype=bool)
        one, other = np.nonzero(np.triu(some, 1) | (np.tril(some, -1) & self.directed))
        return one, other

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        other = (points != 0) & (points != 1)
        if other.any():
            raise InputError(
                "rows of dyads must hold 0 and 1, got "
                f"{offenders(other, points, columns)}: threshold weights first, as in data > 0"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return np.asarray(((points == 0) | (points == 1)).all(axis=1), dtype=np.bool_)

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.integers(0, 2, (size, self.dimension)).astype(np.float64)

    def adjacency(self, points: FloatArray) -> FloatArray:
        """The adjacency matrices (n, nodes, nodes) of the points (n, dimension)."""
        matrices = np.zeros((len(points), self.nodes, self.nodes))
        one, other = self.pairs
        matrices[:, one, other] = points
        if not self.directed:
            matrices[:, other, one] = points
        return matrices

    def points(self, graphs: Any) -> FloatArray:
        """Graphs as points: adjacency matrices, (n, nodes, nodes) or a list, or NetworkX graphs.

        Matrices hold 0 and 1 without loops, symmetric unless ``directed``. The nodes of NetworkX
        graphs are the names, or the numbers from 0.
        """
        listed = graph_list(graphs)
        if listed is None:
            raise InputError(
                "graphs must be a list of adjacency matrices or of NetworkX graphs, or an array "
                f"(graph, node, node), got {shown(graphs)}"
            )
        one, other = self.pairs
        rows = [self.matrix(graph, number)[one, other] for number, graph in enumerate(listed)]
        return np.array(rows).reshape(-1, self.dimension)

    def matrix(self, graph: Any, number: int = 0) -> FloatArray:
        """The adjacency matrix of a graph, checked; ``number`` is what messages call it."""
        return adjacency_matrix(graph, self.names, self.directed, f"graph {number}")

    def from_objects(self, data: Any) -> Any:
        """Graphs as points, and one adjacency matrix as one point; anything else as it is.

        Of three nodes without directions a matrix looks like three rows of dyads, which it is then.
        """
        size = np.shape(data) if hasattr(data, "shape") else ()
        if size == (self.nodes, self.nodes) and self.nodes != self.dimension:
            return self.points([data])
        return data if graph_list(data) is None else self.points(data)


@dataclass(frozen=True)
class GraphSets:
    """Graphs on several sets of nodes: a point is (dyads, number of its set, from 0).

    A graph's dyads are those of ``sets[number]``, followed by zeros up to the largest set's.
    Every set has volume 1: a uniform graph has a set with equal chances, then
    each of its dyads is there or not with equal chances.
    """

    sets: tuple[Graphs, ...]
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len(self.sets) < 2 or len(set(self.sets)) < len(self.sets):
            raise InputError(
                f"GraphSets(sets) needs two or more different spaces of graphs, got "
                f"{shown(self.sets)}"
            )
        if len({each.directed for each in self.sets}) > 1:
            raise InputError("GraphSets(sets) needs graphs that are all directed, or all not")

    @property
    def dimension(self) -> int:
        return max(each.dimension for each in self.sets) + 1

    @property
    def log_volume(self) -> float:
        return math.log(len(self.sets))

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        outside = np.flatnonzero(~self.contains(points))
        if len(outside):
            raise InputError(
                f"row {outside[0]} (counted from 0) is no graph of these sets: its last column "
                f"must be the number of its set, from 0 to {len(self.sets) - 1}, and its dyads 0 "
                "or 1, and 0 beyond its set; pass adjacency matrices or NetworkX graphs instead"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        dyads, number = points[:, :-1], points[:, -1]
        fine = np.isin(number, np.arange(len(self.sets))) & ((dyads == 0) | (dyads == 1)).all(1)
        for k, each in enumerate(self.sets):
            fine &= (number != k) | ~dyads[:, each.dimension :].any(axis=1)
        return np.asarray(fine, dtype=np.bool_)

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        number = rng.integers(0, len(self.sets), size)
        return self.joined(number, [each.uniform(size, rng) for each in self.sets])

    def joined(self, number: NDArray[Any], dyads: Sequence[FloatArray]) -> FloatArray:
        """Points with these sets; row i has the dyads of row i in its own set's array."""
        points = np.zeros((len(number), self.dimension))
        for k, each in enumerate(self.sets):
            rows = np.flatnonzero(number == k)
            points[rows, : each.dimension] = dyads[k][rows]
        points[:, -1] = number
        return points

    def split(self, points: FloatArray) -> list[tuple[NDArray[np.intp], FloatArray]]:
        """For each set, which rows are its graphs, and their dyads."""
        parts = []
        for k, each in enumerate(self.sets):
            rows = np.flatnonzero(points[:, -1] == k)
            parts.append((rows, points[rows, : each.dimension]))
        return parts

    def points(self, graphs: Any) -> FloatArray:
        """Graphs as points: a list of adjacency matrices or of NetworkX graphs.

        A NetworkX graph belongs to the set with its names, a matrix to the one of its size.
        """
        rows = []
        for number, graph in enumerate(graph_list(graphs) or []):
            k = self._set(graph, number)
            one, other = self.sets[k].pairs
            dyads = self.sets[k].matrix(graph, number)[one, other]
            rows.append([*dyads, *np.zeros(self.dimension - 1 - len(dyads)), k])
        if not rows:
            raise InputError(
                "graphs must be a list of adjacency matrices or of NetworkX graphs, got "
                f"{shown(graphs)}"
            )
        return np.array(rows)

    def _set(self, graph: Any, number: int) -> int:
        named = hasattr(graph, "nodes")
        size = len(graph.nodes) if named else len(graph)
        fitting = [k for k, each in enumerate(self.sets) if each.nodes == size]
        if named and len(fitting) > 1:
            fitting = [k for k in fitting if node_order(graph, self.sets[k].names) is not None]
        if len(fitting) != 1:
            sizes = [each.nodes for each in self.sets]
            what = "none" if not fitting else "more than one"
            raise InputError(
                f"graph {number} (counted from 0) has {size} nodes and fits {what} of the sets, "
                f"which have {shown(sizes)} nodes; name its set of nodes in the model, and where "
                "sizes are equal pass NetworkX graphs with the names of the nodes"
            )
        return fitting[0]

    def from_objects(self, data: Any) -> Any:
        """Graphs as points; anything else as it is."""
        return data if graph_list(data) is None else self.points(data)
