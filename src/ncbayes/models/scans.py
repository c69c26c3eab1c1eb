"""In which order Gibbs visits the nodes of a graph, and which of them it can draw at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray
from ncbayes.models.nodes import Pairs

# A class of nodes with a smaller share of all possible neighbours is multiplied sparsely.
SPARSE = 0.2


@dataclass(frozen=True, eq=False)
class Class:
    """Nodes of one colour: ``part`` of the order, and their neighbours as a sparse matrix.

    The neighbours of the k-th of them, by position in the order, are
    ``neighbours[ends[k] : ends[k + 1]]``; ``rows`` and ``columns`` are the nodes of each such pair.
    """

    part: slice
    ends: NDArray[np.intp]
    neighbours: NDArray[np.intp]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Scan:
    """Nodes colour by colour; nodes of one colour share no edge, so one draw serves them all.

    ``order`` are the nodes as they are visited. Where all pairs interact every node has a colour
    of its own, and the order is that of the nodes; a grid has two colours.
    """

    order: NDArray[np.intp]
    classes: tuple[Class, ...]

    @staticmethod
    def of(pairs: Pairs, count: int) -> Scan:
        """The scan of a graph with these edges between ``count`` nodes."""
        near: list[list[int]] = [[] for _ in range(count)]
        for one, other in zip(*(ends.tolist() for ends in pairs), strict=True):
            near[one].append(other)
            near[other].append(one)
        colour = _colours(near)
        order = np.argsort(colour, kind="stable")
        place = np.argsort(order)
        ends = np.cumsum(np.bincount(colour)).tolist()
        parts = map(slice, [0, *ends[:-1]], ends)
        return Scan(order, tuple(_class(part, order, place, near) for part in parts))

    def blocks(self, couplings: FloatArray) -> Iterator[tuple[slice, Any]]:
        """Each class's part of the order, with its rows of the couplings, columns in the order.

        The rows times the states (node, point), in this order too, are the sums over neighbours.
        """
        count = len(self.order)
        turned = couplings[np.ix_(self.order, self.order)]
        for each in self.classes:
            size = each.part.stop - each.part.start
            if len(each.neighbours) >= SPARSE * size * count:
                yield each.part, turned[each.part]
                continue
            from scipy.sparse import csr_array

            values = couplings[each.rows, each.columns]
            yield each.part, csr_array((values, each.neighbours, each.ends), shape=(size, count))

    def arranged(self, x: FloatArray) -> FloatArray:
        """The points x (n, node) as a new array (node, n), the nodes in this order."""
        return np.ascontiguousarray(x.T[self.order])

    def restored(self, states: FloatArray) -> FloatArray:
        """The inverse of ``arranged``."""
        x = np.empty(states.shape[::-1])
        x[:, self.order] = states.T
        return x


def _colours(near: list[list[int]]) -> NDArray[np.intp]:
    """Node after node gets the first colour that no neighbour before it has."""
    colour = np.full(len(near), -1, dtype=np.intp)
    for node, others in enumerate(near):
        taken = set(colour[others].tolist())
        colour[node] = next(each for each in range(len(near)) if each not in taken)
    return colour


def _class(
    part: slice, order: NDArray[np.intp], place: NDArray[np.intp], near: list[list[int]]
) -> Class:
    nodes = order[part]
    sizes = [len(near[node]) for node in nodes]
    columns = np.array([other for node in nodes for other in near[node]], dtype=np.intp)
    ends = np.cumsum([0, *sizes], dtype=np.intp)
    return Class(part, ends, place[columns], np.repeat(nodes, sizes), columns)
