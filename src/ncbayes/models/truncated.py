"""Truncated Gaussian graphical models: positive or bounded numbers with pairwise interactions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.models.nodes import (
    EdgeNames,
    Edges,
    Nodes,
    Pairs,
    checked_theta,
    edge_names,
    node_names,
    positions,
    settled_means,
    short_repr,
)
from ncbayes.models.segments import inverse_cdf, log_mass
from ncbayes.notebooks import model_html
from ncbayes.spaces import Box, Orthant, is_numeric

# As for the other graphs; with partial correlations of 0.9 a chain forgets its start in about 40.
SWEEPS = 200
MOST_NODES_INTEGRATED = 2
# Beyond what is so many times exp(1) below the peak there is nothing that counts.
NEGLIGIBLE = 45.0
# On the orthant the integral ends where the log density is surely this far below that at 0.
SURELY_NOTHING = 800.0
# Points of the grid that finds where the mass is, and of a Gauss-Legendre rule on a panel.
SEARCH, PANEL_POINTS, MOST_PANELS = 2001, 20, 4096
PRECISE = 1e-12


@dataclass(frozen=True, init=False, repr=False)
class TruncatedGaussian:
    """``log p(x) = h . x - x' K x / 2 - log Z`` for x >= 0, or in a box.

    ``theta`` is h, the diagonal of K, then K edge by edge; of pairs without an edge it is zero.
    K_jk is a conditional dependence: negative where two nodes rise together given all others.
    ``nodes`` is their number or their names; ``edges`` are the pairs that interact, by name or by
    number from 0 (None: all). ``bounds=(low, high)``, two numbers or two lists with one a node:
    the box ``low <= x <= high``; None: no bound but 0.

    The statistics have the units of the data and their squares. With columns of very different
    sizes divide each by its standard deviation first: then coefficients can be compared, and a
    prior with one scale for all edges makes sense.

    >>> TruncatedGaussian(["acid", "sugar"]).groups["edge"]
    ('-acid*sugar',)
    """

    nodes: tuple[str, ...]
    bounds: tuple[Any, Any] | None = None
    edges: EdgeNames = ()

    def __init__(
        self,
        nodes: Nodes,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        edges: Edges | None = None,
    ) -> None:
        names = node_names("TruncatedGaussian", nodes)
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "bounds", _checked_bounds(bounds, len(names)))
        object.__setattr__(self, "edges", edge_names("TruncatedGaussian", edges, names))

    def __repr__(self) -> str:
        return short_repr(self)

    @cached_property
    def space(self) -> Orthant | Box:
        count = len(self.nodes)
        if self.bounds is None:
            return Orthant(count)
        low, high = (np.broadcast_to(np.asarray(end, float), count) for end in self.bounds)
        return Box(tuple(low.tolist()), tuple(high.tolist()))

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        blocks = {
            "linear": self.nodes,
            "precision": tuple(f"-{name}^2/2" for name in self.nodes),
            "edge": tuple(f"-{one}*{other}" for one, other in self.edges),
        }
        return {block: names for block, names in blocks.items() if names}

    @cached_property
    def pairs(self) -> Pairs:
        """The numbers j < k of the nodes of each edge, as two arrays."""
        return positions(self.edges, self.nodes)

    def edge_units(self, spread: FloatArray) -> FloatArray:
        """One for each edge: what moves the log density by 1 where both nodes move by their sd.

        ``spread`` are the sds of the statistics, of which the first are the nodes themselves.
        """
        one, other = self.pairs
        return np.asarray(1 / (spread[one] * spread[other]))

    @property
    def edge_columns(self) -> Mapping[str, NDArray[np.intp]]:
        """The columns of the statistics of the edges, by kind: one an edge."""
        return {"precision": 2 * len(self.nodes) + np.arange(len(self.edges))}

    def check_data(self, x: FloatArray) -> None:
        """Refuse a node that never changes."""
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0)
        if len(constant):
            node = constant[0]
            raise InputError(
                f"the node {self.nodes[node]!r} (column {node}, counted from 0) is "
                f"{x[0, node]:.6g} in all rows: no finite precision makes it so; leave this column "
                "and its node out"
            )

    def statistics(self, x: FloatArray) -> FloatArray:
        one, other = self.pairs
        return np.hstack([x, -(x**2) / 2, -x[:, one] * x[:, other]])

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def score_statistics(self, x: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        count = len(self.nodes)
        one, other = self.pairs
        first, second = np.zeros((2, len(x), 2 * count + len(one) + 1))
        first[:, j], first[:, count + j], second[:, count + j] = 1.0, -x[:, j], -1.0
        ours = np.flatnonzero((one == j) | (other == j))
        first[:, 2 * count + ours] = -x[:, one[ours] + other[ours] - j]
        return first, second

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep, which leaves ``p(. | theta)`` invariant.

        Node after node is drawn from its full conditional, by the inverse of its distribution
        function: normal with mean ``(h_k - sum_j K_jk x_j) / K_kk`` and variance 1 / K_kk, cut to
        its bounds; in a box K_kk need not be positive.
        """
        linear, precision = self.linear_and_precision(theta)
        self._check_conditionals(precision)
        states = np.array(x.T, dtype=np.float64, order="C")
        uniforms = rng.random(states.shape)
        for k, (low, high) in enumerate(self._ends()):
            row = precision[k].copy()
            row[k] = 0.0
            near = np.flatnonzero(row)
            slope = linear[k] - row[near] @ states[near]
            states[k] = inverse_cdf(uniforms[k], slope, precision[k, k], low, high)
        return np.ascontiguousarray(states.T)

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent rows, each the end of its own Gibbs chain of 200 sweeps.

        The chains start as if there were no edges; if there are none, that is exact. A theta that
        is no distribution is refused if it can be told from pairs: on the orthant each needs
        ``K_jj > 0`` and ``K_jk > -sqrt(K_jj K_kk)``. For more than two nodes that is necessary, not
        sufficient; a positive definite K always is.
        """
        linear, precision = self.linear_and_precision(theta)
        if not self._is_copositive_by_pairs(precision):
            raise InputError(
                f"theta is no distribution of {shown(self)}: K must have a positive diagonal and "
                "K_jk > -sqrt(K_jj K_kk) for every pair, got K="
                f"{shown(precision.round(6).tolist())}"
            )
        alone = np.concatenate([linear, np.diag(precision), np.zeros(len(self.edges))])
        x = self.sweep(alone, np.zeros((size, len(self.nodes))), rng)
        for _ in range(SWEEPS if precision[self.pairs].any() else 0):
            x = self.sweep(theta, x, rng)
        return x

    def log_partition(self, theta: FloatArray) -> float:
        """``log Z``: in closed form without edges, else for up to two nodes, one by quadrature.

        Infinite on the orthant unless ``K_jj > 0`` and ``K_12 > -sqrt(K_11 K_22)``: then K is
        strictly copositive, and the integral exists for every h.
        """
        count = len(self.nodes)
        linear, precision = self.linear_and_precision(theta)
        if not precision[self.pairs].any():
            return self._log_mass_alone(linear, np.diag(precision))
        if count > MOST_NODES_INTEGRATED:
            raise InputError(
                f"log_partition is computed for at most {MOST_NODES_INTEGRATED} nodes, got "
                f"{shown(self)}: take it from a fit, posterior.log_z, which estimates it with theta"
            )
        if not self._is_copositive_by_pairs(precision):
            return math.inf
        ends = self._ends()

        def log_density(x: FloatArray) -> FloatArray:
            inner = log_mass(linear[1] - precision[0, 1] * x, precision[1, 1], *ends[1])
            return np.asarray(linear[0] * x - precision[0, 0] * x**2 / 2 + inner)

        low, high = ends[0]
        high = high if self.bounds is not None else _reach(linear, precision)
        return _log_integral(log_density, low, high)

    def _log_mass_alone(self, linear: FloatArray, diagonal: FloatArray) -> float:
        """log Z of independent nodes; infinite where one has no distribution."""
        if self.bounds is None and not np.all(diagonal > 0):
            return math.inf
        nodes = zip(linear, diagonal, self._ends(), strict=True)
        return float(sum(log_mass(np.array([h]), k, *ends)[0] for h, k, ends in nodes))

    def path(self, theta: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Where annealing begins, and ``alpha`` of the way from there to theta.

        It begins at independent nodes, which can be drawn and normalized exactly: each as it is
        given the others at their means, which are found by going round.
        """
        linear, precision = self.linear_and_precision(theta)
        self._check_conditionals(precision)
        diagonal, ends = np.diag(precision), self._ends()
        between = precision - np.diag(diagonal)

        def mean(k: int, others: FloatArray) -> float:
            slope = linear[k] - between[k] @ others
            step = 1e-4 * max(1.0, abs(slope))
            low, high = log_mass(np.array([slope - step, slope + step]), diagonal[k], *ends[k])
            return float((high - low) / (2 * step))

        means = settled_means(mean, len(linear))
        alone = np.concatenate([linear - between @ means, diagonal, np.zeros(len(self.edges))])
        return alone, alone + alpha * (np.asarray(theta, dtype=float) - alone)

    def linear_and_precision(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The vector h and the symmetric matrix K in theta."""
        count = len(self.nodes)
        theta = checked_theta(self, 2 * count + len(self.edges), theta)
        linear, diagonal, pairs = np.split(theta, [count, 2 * count])
        precision = np.diag(diagonal)
        one, other = self.pairs
        precision[one, other] = precision[other, one] = pairs
        return linear, precision

    def _ends(self) -> list[tuple[float, float]]:
        """The ends of each node's segment."""
        if isinstance(self.space, Box):
            low, high = self.space.bounds
            return list(zip(low.tolist(), high.tolist(), strict=True))
        return [(0.0, math.inf)] * len(self.nodes)

    def _check_conditionals(self, precision: FloatArray) -> None:
        diagonal = np.diag(precision)
        wrong = np.flatnonzero(diagonal <= 0)
        if self.bounds is None and len(wrong):
            raise InputError(
                f"theta must hold a positive K_jj for each node of {shown(self)}, got "
                f"{diagonal[wrong[0]]:.6g} for {self.nodes[wrong[0]]!r}: without an upper bound "
                "its conditional is no distribution"
            )

    def _is_copositive_by_pairs(self, precision: FloatArray) -> bool:
        """Whether no node and no pair of nodes by itself has an infinite integral."""
        if self.bounds is not None:
            return True
        diagonal = np.diag(precision)
        if not np.all(diagonal > 0):
            return False
        one, other = self.pairs
        least = -np.sqrt(diagonal[one]) * np.sqrt(diagonal[other])
        return bool(np.all(precision[one, other] > least))

    _repr_html_ = model_html


def _checked_bounds(bounds: Any, count: int) -> tuple[Any, Any] | None:
    """Low and high, each a number or a tuple with one a node."""
    if bounds is None:
        return None
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2 and all(map(is_numeric, bounds))
    ends = [np.asarray(end, dtype=np.float64) for end in bounds] if pair else []
    if pair and all(end.shape in ((), (count,)) for end in ends):
        low, high = ends
        if np.isfinite(low).all() and np.isfinite(high).all() and np.all(low < high):
            return _plain(low), _plain(high)
    raise InputError(
        "TruncatedGaussian(bounds=...) must be (low, high), two finite numbers or two lists with "
        f"one for each of the {count} nodes, with low < high, got {shown(bounds)}"
    )


def _plain(end: FloatArray) -> Any:
    return float(end) if end.ndim == 0 else tuple(end.tolist())


def _reach(linear: FloatArray, precision: FloatArray) -> float:
    """Where the first of two nodes on the orthant has no mass beyond.

    With both scaled to K_jj = 1, ``h . x - x' K x / 2 <= |h| r - least r^2 / 2`` at radius r.
    """
    roots = np.sqrt(np.diag(precision))
    slope = float(np.hypot(*(linear / roots)))
    least = 1 + min(0.0, float(precision[0, 1] / roots[0] / roots[1]))
    least = max(least, np.finfo(float).eps)
    radius = (slope + math.sqrt(slope**2 + 2 * SURELY_NOTHING * least)) / least
    return float(radius / roots[0])


def _log_integral(log_density: Any, low: float, high: float) -> float:
    """Log of the integral of exp(log_density), to about 12 digits."""
    while True:
        grid = np.linspace(low, high, SEARCH)
        values = log_density(grid)
        peak = float(values.max())
        counts = np.flatnonzero(values > peak - NEGLIGIBLE)
        first, last = max(counts[0] - 1, 0), min(counts[-1] + 1, SEARCH - 1)
        narrowed = last - first < (SEARCH - 1) / 2
        low, high = float(grid[first]), float(grid[last])
        if not narrowed:
            break
    nodes, weights = np.polynomial.legendre.leggauss(PANEL_POINTS)
    before, panels = math.nan, 64
    while True:
        edges = np.linspace(low, high, panels + 1)
        half = (high - low) / panels / 2
        x = (edges[:-1, None] + half * (1 + nodes)).ravel()
        total = float(np.exp(log_density(x) - peak) @ np.tile(weights * half, panels))
        if abs(total - before) <= PRECISE * total or panels >= MOST_PANELS:
            return peak + math.log(total)
        before, panels = total, 2 * panels
