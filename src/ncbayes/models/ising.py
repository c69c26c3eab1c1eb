"""Ising models: zeros and ones, or spins of -1 and +1, with pairwise interactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.models.nodes import (
    EdgeNames,
    Edges,
    Nodes,
    Pairs,
    check_word,
    checked_theta,
    edge_names,
    node_names,
    positions,
    short_repr,
)
from ncbayes.models.scans import Scan
from ncbayes.notebooks import model_html
from ncbayes.spaces import Binary

Coding = Literal["01", "spins"]

# From a uniform start, the energy of a 10 x 10 grid at the critical coupling settles within about
# 50 sweeps. This is four times as many.
SWEEPS = 200
# Rows are swept in runs of so many entries (0.1 MB), which stay in cache: half the time of all at
# once for 1000 rows of 100 nodes. Very short runs would cost more than they gain.
IN_CACHE, FEWEST_ROWS = 2**14, 64
# 2^20 states are 8 MB and twenty milliseconds; each node more doubles both.
MOST_NODES_ENUMERATED = 20


@dataclass(frozen=True, init=False, repr=False)
class Ising:
    """Zeros and ones, ``log p(x) = sum_j h_j x_j + sum_{j<k} J_jk x_j x_k - log Z``.

    ``theta`` is h (unless ``fields`` is False), then J edge by edge. ``nodes`` is their number or
    their names; ``edges`` are the pairs that interact, by name or by number from 0 (None: all).
    Whatever their order in the call, an edge (j, k) has j before k, and edges are sorted.

    ``coding="spins"``: the states are -1 and +1, and the formula is the same. The models of both
    codings are the same family, with other h and J: ``J_01 = 4 J_spins``.
    ``fields="common"`` and ``coupling="common"``: one h for all nodes, one J for all edges, as for
    grids; their statistics are the sums of x_j and of x_j x_k.

    >>> Ising(3, edges=[(0, 1), (1, 2)]).groups
    {'field': ('x1', 'x2', 'x3'), 'edge': ('x1*x2', 'x2*x3')}
    >>> Ising(3, fields=False, coupling="common").groups
    {'edge': ('coupling',)}
    """

    nodes: tuple[str, ...]
    fields: bool | Literal["common"] = True
    edges: EdgeNames = ()
    coding: Coding = "01"
    coupling: Literal["each", "common"] = "each"

    def __init__(
        self,
        nodes: Nodes,
        fields: bool | Literal["common"] = True,
        edges: Edges | None = None,
        coding: Coding = "01",
        coupling: Literal["each", "common"] = "each",
    ) -> None:
        names = node_names("Ising", nodes)
        check_word("Ising", "fields", fields, (True, False, "common"))
        check_word("Ising", "coding", coding, ("01", "spins"))
        check_word("Ising", "coupling", coupling, ("each", "common"))
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "edges", edge_names("Ising", edges, names))
        object.__setattr__(self, "coding", coding)
        object.__setattr__(self, "coupling", coupling)
        if not self.groups:
            raise InputError(
                f"{shown(self)} has no statistics: keep fields=True, or have an edge between "
                "two nodes"
            )

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def space(self) -> Binary:
        return Binary(len(self.nodes), spins=self.coding == "spins")

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        each = {True: self.nodes, False: (), "common": ("field",)}
        products = tuple(f"{one}*{other}" for one, other in self.edges)
        shared = ("coupling",) if self.edges else ()
        blocks = {
            "field": each[self.fields],
            "edge": products if self.coupling == "each" else shared,
        }
        return {block: names for block, names in blocks.items() if names}

    @cached_property
    def pairs(self) -> Pairs:
        """The numbers j < k of the nodes of each edge, as two arrays."""
        return positions(self.edges, self.nodes)

    @property
    def field_scale(self) -> float:
        """The prior sd of a field where none is given: that of log odds of 5."""
        return 5.0 / (1 - self.space.lower)

    def edge_units(self, spread: FloatArray) -> FloatArray:
        """One for each edge: a coupling of this size is a log odds ratio of 1."""
        return np.full(len(self.edges), (1 - self.space.lower) ** -2.0)

    @property
    def edge_columns(self) -> Mapping[str, NDArray[np.intp]]:
        """The columns of the statistics of the edges, by kind: one an edge."""
        steps = 1 if self.coupling == "each" else 0
        return {"coupling": self._border + steps * np.arange(len(self.edges))}

    @property
    def _border(self) -> int:
        """How many statistics are those of fields: the first ones."""
        return len(self.groups.get("field", ()))

    @cached_property
    def _scan(self) -> Scan:
        return Scan.of(self.pairs, len(self.nodes))

    def check_data(self, x: FloatArray) -> None:
        """Refuse nodes that never change: no field or coupling would be large enough."""
        if self.fields is not True and np.ptp(x) == 0:
            raise InputError(
                f"all nodes are {x[0, 0]:.0f} in all rows: no finite field or coupling makes them "
                "so; look at how the data were coded"
            )
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0)
        if self.fields is True and len(constant):
            node = constant[0]
            raise InputError(
                f"the node {self.nodes[node]!r} (column {node}, counted from 0) is "
                f"{x[0, node]:.0f} in all rows: no finite field makes it so, and nothing is known "
                "about its couplings; leave this column and its node out"
            )

    def statistics(self, x: FloatArray) -> FloatArray:
        parts = []
        if self.fields:
            parts.append(x if self.fields is True else x.sum(axis=1, keepdims=True))
        one, other = self.pairs
        if self.coupling == "each":
            parts.append(x[:, one] * x[:, other])
        elif len(one):
            parts.append(self._sum_of_products(x)[:, None])
        return np.hstack(parts)

    def _sum_of_products(self, x: FloatArray) -> FloatArray:
        """The sum of x_j x_k over the edges, never holding all products."""
        columns = np.ascontiguousarray(x.T)
        one, other = self.pairs
        total = np.zeros(len(x))
        starts = np.flatnonzero(np.diff(one, prepend=-1))
        for node, others in zip(one[starts], np.split(other, starts[1:]), strict=True):
            total += columns[node] * columns[others].sum(axis=0)
        return total

    def change_statistics(self, x: FloatArray, j: int) -> FloatArray:
        gap = 1 - self.space.lower
        change = np.zeros((len(x), sum(map(len, self.groups.values()))))
        if self.fields:
            change[:, j if self.fields is True else 0] = gap
        one, other = self.pairs
        ours = np.flatnonzero((one == j) | (other == j))
        neighbours = gap * x[:, one[ours] + other[ours] - j]
        if self.coupling == "each":
            change[:, self._border + ours] = neighbours
        elif len(one):
            change[:, -1] = neighbours.sum(axis=1)
        return change

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep, which leaves ``p(. | theta)`` invariant.

        Every node is drawn from its full conditional, ``P(x_k = 1 | others) = 1 / (1 +
        exp(-gap (h_k + sum_j J_jk x_j)))``, with the gap 1 for zeros and ones, 2 for spins. Nodes
        without an edge between them are drawn together.
        """
        h, couplings = self.fields_and_couplings(theta)
        gap = 1 - self.space.lower
        fields = -gap * h[self._scan.order, None]
        blocks = list(self._scan.blocks(-gap * couplings))
        step = max(FEWEST_ROWS, IN_CACHE // len(h))
        moved = np.empty(x.shape)
        # Beyond double precision the odds are inf, and the node surely down.
        with np.errstate(over="ignore", divide="ignore"):
            for start in range(0, len(x), step):
                some = slice(start, start + step)
                moved[some] = self._swept(x[some], fields, blocks, rng)
        return moved

    def _swept(
        self,
        x: FloatArray,
        fields: FloatArray,
        blocks: Sequence[tuple[slice, Any]],
        rng: np.random.Generator,
    ) -> FloatArray:
        """A sweep of few rows; the log odds that a node is down are ``fields + block @ states``."""
        states = self._scan.arranged(x)
        # A node is up where u < 1 / (1 + odds), which is odds < 1 / u - 1.
        limits = 1 / rng.random(states.shape)
        limits -= 1
        for part, rows in blocks:
            odds = rows @ states
            odds += fields[part]
            np.exp(odds, out=odds)
            np.less(odds, limits[part], out=states[part])
            if self.coding == "spins":
                states[part] *= 2
                states[part] -= 1
        return self._scan.restored(states)

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent rows, each the end of its own Gibbs chain from a uniform start.

        Without couplings the rows follow the model exactly. With couplings they do up to what a
        chain still remembers of its start after 200 sweeps: nothing that can be measured for
        moderate couplings, much where they are so strong that all nodes freeze in one state.
        """
        _, couplings = self.fields_and_couplings(theta)
        x = self.space.uniform(size, rng)
        for _ in range(SWEEPS if couplings.any() else 1):
            x = self.sweep(theta, x, rng)
        return x

    def log_partition(self, theta: FloatArray) -> float:
        """``log Z`` by the sum over all states, for up to 20 nodes."""
        if len(self.nodes) > MOST_NODES_ENUMERATED:
            raise InputError(
                f"log_partition is computed for at most {MOST_NODES_ENUMERATED} nodes, got "
                f"{shown(self)}: take it from a fit, posterior.log_z, which estimates it with theta"
            )
        h, couplings = self.fields_and_couplings(theta)
        lower = self.space.lower
        log_weights = np.zeros(1)
        for k, row in enumerate(couplings):
            # What a unit of node k adds in each of the 2^k states of the nodes before it.
            added = h[k : k + 1]
            for coupling in row[:k]:
                added = np.concatenate([added + lower * coupling, added + coupling])
            log_weights = np.concatenate([log_weights + lower * added, log_weights + added])
        return float(logsumexp(log_weights))

    def fields_and_couplings(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The vector h and the symmetric matrix J, with a zero diagonal, in theta."""
        count = len(self.nodes)
        theta = checked_theta(self, sum(map(len, self.groups.values())), theta)
        fields, edges = np.split(theta, [self._border])
        h, couplings = np.zeros(count), np.zeros((count, count))
        one, other = self.pairs
        if self._border:
            h[:] = fields
        if len(one):
            couplings[one, other] = couplings[other, one] = edges
        return h, couplings

    _repr_html_ = model_html
