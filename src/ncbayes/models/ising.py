"""Ising models: zeros and ones with pairwise interactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.models.nodes import (
    EdgeNames,
    Edges,
    Nodes,
    Pairs,
    check_flags,
    checked_theta,
    edge_names,
    node_names,
    positions,
    short_repr,
)
from ncbayes.spaces import Binary

# From a uniform start, the energy of a 10 x 10 grid at the critical coupling settles within about
# 50 sweeps. This is four times as many.
SWEEPS = 200
# 2^20 states are 8 MB and twenty milliseconds; each node more doubles both.
MOST_NODES_ENUMERATED = 20


@dataclass(frozen=True, init=False, repr=False)
class Ising:
    """Zeros and ones, ``log p(x) = sum_j h_j x_j + sum_{j<k} J_jk x_j x_k - log Z``.

    ``theta`` is h (unless ``fields`` is False), then J edge by edge. ``nodes`` is their number or
    their names; ``edges`` are the pairs that interact, by name or by number from 0 (None: all).
    Whatever their order in the call, an edge (j, k) has j before k, and edges are sorted.

    >>> Ising(3, edges=[(0, 1), (1, 2)]).groups
    {'field': ('x1', 'x2', 'x3'), 'edge': ('x1*x2', 'x2*x3')}
    """

    nodes: tuple[str, ...]
    fields: bool = True
    edges: EdgeNames = ()

    def __init__(self, nodes: Nodes, fields: bool = True, edges: Edges | None = None) -> None:
        names = node_names("Ising", nodes)
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "edges", edge_names("Ising", edges, names))
        check_flags(self, "fields")
        if not self.groups:
            raise InputError(
                f"{shown(self)} has no statistics: keep fields=True, or have an edge between "
                "two nodes"
            )

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def space(self) -> Binary:
        return Binary(len(self.nodes))

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        blocks = {
            "field": self.nodes if self.fields else (),
            "edge": tuple(f"{one}*{other}" for one, other in self.edges),
        }
        return {block: names for block, names in blocks.items() if names}

    @cached_property
    def pairs(self) -> Pairs:
        """The numbers j < k of the nodes of each edge, as two arrays."""
        return positions(self.edges, self.nodes)

    @property
    def edge_columns(self) -> Mapping[str, NDArray[np.intp]]:
        """The columns of the statistics of the edges, by kind: one an edge."""
        fields = len(self.nodes) if self.fields else 0
        return {"coupling": fields + np.arange(len(self.edges))}

    def statistics(self, x: FloatArray) -> FloatArray:
        one, other = self.pairs
        products = x[:, one] * x[:, other]
        return np.hstack([x, products]) if self.fields else products

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def change_statistics(self, x: FloatArray, j: int) -> FloatArray:
        """Statistics of every row with node j at 1 less those with node j at 0, (n, p).

        They are 1 for its field, and for each of its edges the state of the other end.
        """
        one, other = self.pairs
        change = np.zeros((len(x), len(self.nodes) * bool(self.fields) + len(self.edges)))
        if self.fields:
            change[:, j] = 1.0
        first = change.shape[1] - len(self.edges)
        for ends, others in ((one, other), (other, one)):
            own = np.flatnonzero(ends == j)
            change[:, first + own] = x[:, others[own]]
        return change

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep, which leaves ``p(. | theta)`` invariant.

        Node after node is drawn from its full conditional,
        ``P(x_k = 1 | others) = 1 / (1 + exp(-h_k - sum_j J_jk x_j))``.
        """
        h, couplings = self.fields_and_couplings(theta)
        states = np.array(x.T, dtype=np.float64, order="C")
        uniforms = rng.random(states.shape)
        for k, row in enumerate(couplings):
            # Of a grid's hundred nodes four are neighbours.
            near = np.flatnonzero(row)
            states[k] = uniforms[k] < expit(h[k] + row[near] @ states[near])
        return np.ascontiguousarray(states.T)

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent rows, each the end of its own Gibbs chain from a uniform start.

        Without couplings the rows follow the model exactly. With couplings they do up to what a
        chain still remembers of its start after 200 sweeps: nothing that can be measured for
        moderate couplings, much where they are so strong that all nodes freeze at 0 or at 1.
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
        log_weights = np.zeros(1)
        for k, row in enumerate(couplings):
            # What node k adds, if one, in each of the 2^k states of the nodes before it.
            added = h[k : k + 1]
            for coupling in row[:k]:
                added = np.concatenate([added, added + coupling])
            log_weights = np.concatenate([log_weights, log_weights + added])
        return float(logsumexp(log_weights))

    def fields_and_couplings(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The vector h and the symmetric matrix J, with a zero diagonal, in theta."""
        count = len(self.nodes)
        size = count * bool(self.fields) + len(self.edges)
        theta = checked_theta(self, size, theta)
        h, pairs = np.split(theta, [count]) if self.fields else (np.zeros(count), theta)
        couplings = np.zeros((count, count))
        one, other = self.pairs
        couplings[one, other] = couplings[other, one] = pairs
        return h, couplings
