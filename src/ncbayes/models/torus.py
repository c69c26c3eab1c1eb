"""Torus graphs: angles with pairwise interactions (the paper's section 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, logsumexp

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
from ncbayes.models.torus_design import KINDS, Layout, TorusDesign
from ncbayes.notebooks import model_html
from ncbayes.spaces import TWO_PI, Torus, wrapped

# From a uniform start, the energy of a 12-node chain with couplings of 2, or of 12 nodes all
# coupled by 0.5, settles within 20 to 50 sweeps. This is four times as many.
SWEEPS = 200
MOST_NODES_INTEGRATED = 3
# With K the sum of the amplitudes in theta, the error of the trapezoid rule with P points an axis
# is about exp(K cosh y - P y) for every y: with P = 64 + 2 K below exp(-0.65 K - 92).
POINTS, POINTS_PER_AMPLITUDE = 64, 2
# A million points of a 2-D grid; unless strong couplings cancel out, that is enough for any K
# up to 10 000.
MOST_POINTS = 1024


@dataclass(frozen=True, init=False, repr=False)
class TorusGraph:
    """Angles on the nodes of a graph: ``log p(x) = theta . statistics(x) - log Z``.

    The statistics, in the order of the paper (Klein et al. 2020), are ``cos xj, sin xj`` for each
    node (``marginal``), then for each edge ``cos(xj - xk), sin(xj - xk)`` (``rotational``) and
    ``cos(xj + xk), sin(xj + xk)`` (``reflectional``).

    ``nodes`` is their number or their names; ``edges`` are the pairs that interact, by name or by
    number from 0 (None: all). Whatever their order in the call, an edge (j, k) has j before k
    among the nodes, and edges are sorted.

    >>> TorusGraph(["left", "right"], reflectional=False).groups["edge"]
    ('cos(left - right)', 'sin(left - right)')
    """

    nodes: tuple[str, ...]
    marginal: bool = True
    rotational: bool = True
    reflectional: bool = True
    edges: EdgeNames = ()

    def __init__(
        self,
        nodes: Nodes,
        marginal: bool = True,
        rotational: bool = True,
        reflectional: bool = True,
        edges: Edges | None = None,
    ) -> None:
        names = node_names("TorusGraph", nodes)
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "marginal", marginal)
        object.__setattr__(self, "rotational", rotational)
        object.__setattr__(self, "reflectional", reflectional)
        object.__setattr__(self, "edges", edge_names("TorusGraph", edges, names))
        check_flags(self, "marginal", "rotational", "reflectional")
        if self._layout.size == 0:
            raise InputError(
                f"{shown(self)} has no statistics: keep marginal=True, or have an edge between "
                "two nodes and rotational=True or reflectional=True"
            )

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def space(self) -> Torus:
        return Torus(len(self.nodes))

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        blocks: dict[str, Sequence[str]] = {}
        if self.marginal:
            blocks["marginal"] = tuple(
                f"{wave}({name})" for name in self.nodes for wave in ("cos", "sin")
            )
        forms = ("cos({} - {})", "sin({} - {})", "cos({} + {})", "sin({} + {})")
        kept = [forms[kind] for kind in self._layout.kinds]
        if kept and self.edges:
            blocks["edge"] = tuple(form.format(*edge) for edge in self.edges for form in kept)
        return blocks

    @cached_property
    def pairs(self) -> Pairs:
        """The numbers j < k of the nodes of each edge, as two arrays."""
        return positions(self.edges, self.nodes)

    @property
    def clusters(self) -> NDArray[np.intp]:
        """For each statistic the number of its run: its own for nodes, one for each edge."""
        border, kinds = self._layout.border, len(self._layout.kinds)
        return np.concatenate(
            [np.arange(border), border + np.repeat(np.arange(len(self.edges)), kinds)]
        )

    @property
    def edge_columns(self) -> Mapping[str, NDArray[np.intp]]:
        """The columns of the statistics of the edges, by kind: one an edge."""
        kinds = self._layout.kinds
        first = self._layout.border + len(kinds) * np.arange(len(self.edges))
        return {KINDS[kind]: first + position for position, kind in enumerate(kinds)}

    def check_data(self, x: FloatArray) -> None:
        """Refuse an angle that never changes, where single angles have statistics."""
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0)
        if self.marginal and len(constant):
            node = constant[0]
            raise InputError(
                f"the node {self.nodes[node]!r} (column {node}, counted from 0) is "
                f"{x[0, node]:.6g} in all rows: no finite concentration makes it so; leave this "
                "column and its node out"
            )

    @cached_property
    def _layout(self) -> Layout:
        kinds = (0, 1) * bool(self.rotational) + (2, 3) * bool(self.reflectional)
        return Layout(len(self.nodes), self.pairs, bool(self.marginal), kinds)

    def statistics(self, x: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self.design(x).dense())

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def design(self, x: FloatArray) -> TorusDesign:
        return TorusDesign.at(self._layout, x)

    def score_statistics(self, x: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        first, second = np.zeros((2, len(x), self._layout.size + 1))
        columns, *derivatives = self._layout.derivatives(x, j)
        first[:, columns], second[:, columns] = derivatives
        return first, second

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep, which leaves ``p(. | theta)`` invariant.

        Node after node is drawn from its full conditional: von Mises with log density
        ``a cos xk + b sin xk``, where a and b are linear in cos and sin of the other nodes.
        """
        linear, form = self._fields(theta)
        count = len(self.nodes)
        angles = np.array(x.T, dtype=np.float64, order="C")
        waves = np.empty((2 * count, len(x)))
        np.cos(angles, out=waves[:count])
        np.sin(angles, out=waves[count:])
        for k in range(count):
            a, b = linear[0, k] + form[k] @ waves, linear[1, k] + form[count + k] @ waves
            angles[k] = wrapped(rng.vonmises(np.arctan2(b, a), np.sqrt(a * a + b * b)))
            np.cos(angles[k], out=waves[k])
            np.sin(angles[k], out=waves[count + k])
        return np.ascontiguousarray(angles.T)

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent rows, each the end of its own Gibbs chain from a uniform start.

        Without couplings the rows follow the model exactly. With couplings they do up to what a
        chain still remembers of its start after 200 sweeps: nothing that can be measured for
        couplings of the size seen in data, something where they are so strong that the angles
        lock into patterns from which single angles cannot move to others.
        """
        _, form = self._fields(theta)
        x = self.space.uniform(size, rng)
        for _ in range(SWEEPS if form.any() else 1):
            x = self.sweep(theta, x, rng)
        return x

    def log_partition(self, theta: FloatArray) -> float:
        """``log Z`` for up to three nodes: the last angle by Bessel's I_0, the others on a grid."""
        count = len(self.nodes)
        if count > MOST_NODES_INTEGRATED:
            raise InputError(
                f"log_partition is computed for at most {MOST_NODES_INTEGRATED} nodes, got "
                f"{shown(self)}: take it from a fit, posterior.log_z, which estimates it with theta"
            )
        linear, form = self._fields(theta)
        amplitude = np.abs(linear).sum() + np.abs(form).sum() / 2
        points = int(min(MOST_POINTS, POINTS + POINTS_PER_AMPLITUDE * math.ceil(amplitude)))
        others = count - 1
        grid = np.indices((points,) * others).reshape(others, points**others) * (TWO_PI / points)
        # The last angle has neither cosine nor sine yet: what is left belongs to the others.
        none = np.zeros((1, grid.shape[1]))
        waves = np.vstack([np.cos(grid), none, np.sin(grid), none])
        log_others = linear.ravel() @ waves + np.einsum("an,an->n", form @ waves, waves) / 2
        a, b = linear[0, -1] + form[others] @ waves, linear[1, -1] + form[-1] @ waves
        concentration = np.hypot(a, b)
        log_last = np.log(TWO_PI * i0e(concentration)) + concentration
        cell = others * math.log(TWO_PI / points)
        return float(logsumexp(log_others + log_last)) + cell

    def _fields(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The linear part (2, d) and the symmetric matrix F (2d, 2d) of ``theta . statistics``,

        which is ``linear . V + V' F V / 2`` for ``V = (cos x, sin x)``.
        """
        linear, cc, cs, ss = self._layout.forms(checked_theta(self, self._layout.size, theta))
        return linear, np.block([[cc + cc.T, cs], [cs.T, ss + ss.T]])

    _repr_html_ = model_html
