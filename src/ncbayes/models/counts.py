"""Counts: Conway-Maxwell-Poisson and Poisson models with pairwise interactions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, softmax

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
    settled_means,
    short_repr,
)
from ncbayes.notebooks import model_html
from ncbayes.spaces import Counts

# As for the other graphs.
SWEEPS = 200
# States that log_partition sums over; a table of their statistics is tens of megabytes.
MOST_STATES = 2**18
# Where there is no limit, terms are summed until those left out have less than this share of all.
LEFT_OUT = 1e-16
MOST_TERMS = 2**22
# Entries of a table of conditional probabilities held at a time: 8 MB.
CHUNK = 1_000_000


@dataclass(frozen=True, init=False, repr=False)
class ConwayMaxwell:
    """Counts, ``log p(x) = sum_j theta_j x_j - nu_j log x_j! + sum_{j<k} J_jk x_j x_k - log Z``.

    ``theta`` is theta_j, then nu_j (unless ``dispersion`` is False), then J edge by edge. At
    nu_j = 1 a node is Poisson given the others; above 1 its counts vary less, below 1 more.
    ``dispersion=False``: all nu_j are 1, and without edges theta_j is the log of the mean.

    ``nodes`` is their number or their names; ``edges`` are the pairs that interact, by name or by
    number from 0 (None: all). Edges need ``most``, the largest count there can be: without a limit
    there is no distribution with a positive J, because x_j x_k outgrows every log x!.

    >>> ConwayMaxwell(2, most=20).groups
    {'rate': ('x1', 'x2'), 'dispersion': ('-log(x1!)', '-log(x2!)'), 'edge': ('x1*x2',)}
    """

    nodes: tuple[str, ...]
    most: int | None = None
    edges: EdgeNames = ()
    dispersion: bool = True

    def __init__(
        self,
        nodes: Nodes,
        most: int | None = None,
        edges: Edges | None = None,
        dispersion: bool = True,
    ) -> None:
        names = node_names("ConwayMaxwell", nodes)
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "edges", edge_names("ConwayMaxwell", edges, names))
        object.__setattr__(self, "dispersion", dispersion)
        check_flags(self, "dispersion")
        Counts(len(names), most)
        if most is None and self.edges:
            raise InputError(
                "ConwayMaxwell with edges needs most=..., the largest count there can be, such as "
                "twice the largest in the data; without a limit there is no distribution where a "
                "coupling is positive: pass most, or edges=[] for independent counts"
            )

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def space(self) -> Counts:
        return Counts(len(self.nodes), self.most)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        shapes = tuple(f"-log({name}!)" for name in self.nodes)
        blocks = {
            "rate": self.nodes,
            "dispersion": shapes if self.dispersion else (),
            "edge": tuple(f"{one}*{other}" for one, other in self.edges),
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
        return {"coupling": self._border + np.arange(len(self.edges))}

    @property
    def _border(self) -> int:
        """How many statistics are those of nodes: the first ones."""
        return len(self.nodes) * (2 if self.dispersion else 1)

    def check_data(self, x: FloatArray) -> None:
        """Refuse a node that never changes."""
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0)
        if len(constant):
            node = constant[0]
            raise InputError(
                f"the node {self.nodes[node]!r} (column {node}, counted from 0) is "
                f"{x[0, node]:.0f} in all rows, which says nothing about its couplings and too "
                "little about the rest; leave this column and its node out"
            )

    def statistics(self, x: FloatArray) -> FloatArray:
        one, other = self.pairs
        shapes = [-gammaln(x + 1)] if self.dispersion else []
        return np.hstack([x, *shapes, x[:, one] * x[:, other]])

    def log_base(self, x: FloatArray) -> FloatArray:
        if self.dispersion:
            return np.zeros(len(x))
        return np.asarray(-gammaln(x + 1).sum(axis=1))

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep, which leaves ``p(. | theta)`` invariant.

        Node after node is drawn from its full conditional, whose probabilities are summed over
        all counts up to the limit; without one, until those left out have a share of 1e-16.
        """
        rates, shapes, couplings = self.rates_shapes_and_couplings(theta)
        states = np.array(x.T, dtype=np.float64, order="C")
        uniforms = rng.random(states.shape)
        for k, row in enumerate(couplings):
            near = np.flatnonzero(row)
            last = self._last(rates[k], shapes[k])
            falls = shapes[k] * gammaln(np.arange(last + 1.0) + 1)
            if not len(near):  # one table serves all rows
                states[k] = _drawn(uniforms[k], rates[k : k + 1], falls)
                continue
            slopes = rates[k] + row[near] @ states[near]
            for part in _parts(len(slopes), len(falls)):
                states[k, part] = _drawn(uniforms[k, part], slopes[part], falls)
        return np.ascontiguousarray(states.T)

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent rows, each the end of its own Gibbs chain from a uniform start.

        Without couplings the rows follow the model exactly. With couplings they do up to what a
        chain still remembers of its start after 200 sweeps: much where couplings are so strong that
        counts are either all low or all at their limit.
        """
        *_, couplings = self.rates_shapes_and_couplings(theta)
        start = np.zeros((size, len(self.nodes)))
        x = start if self.most is None else self.space.uniform(size, rng)
        for _ in range(SWEEPS if couplings.any() else 1):
            x = self.sweep(theta, x, rng)
        return x

    def log_partition(self, theta: FloatArray) -> float:
        """``log Z``: by node where there are no edges, else by the sum over all states, if few.

        Infinite without a limit where some nu_j < 0, or nu_j = 0 and theta_j >= 0.
        """
        rates, shapes, couplings = self.rates_shapes_and_couplings(theta)
        if not couplings.any():
            return sum(map(self._log_mass, rates, shapes))
        count, states = len(self.nodes), float(self.most or 0) + 1
        if states**count > MOST_STATES:
            raise InputError(
                f"log_partition sums over at most {MOST_STATES} states, got {shown(self)} with "
                f"{states:.0f}^{count}: take it from a fit, posterior.log_z, which estimates it "
                "with theta"
            )
        x = np.indices((int(states),) * count).reshape(count, -1).T.astype(np.float64)
        return float(logsumexp(self.statistics(x) @ np.asarray(theta, float) + self.log_base(x)))

    def path(self, theta: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Where annealing begins, and ``alpha`` of the way from there to theta.

        It begins at independent counts, which can be drawn and normalized exactly: each as it is
        given the others at their means, which are found by going round.
        """
        rates, shapes, couplings = self.rates_shapes_and_couplings(theta)

        def mean(k: int, others: FloatArray) -> float:
            rate = rates[k] + couplings[k] @ others
            counts = np.arange(self._last(rate, shapes[k]) + 1.0)
            return float(softmax(rate * counts - shapes[k] * gammaln(counts + 1)) @ counts)

        alone = np.array(theta, dtype=float)
        if couplings.any():
            alone[: len(rates)] = rates + couplings @ settled_means(mean, len(rates))
        alone[self._border :] = 0.0
        return alone, alone + alpha * (np.asarray(theta, dtype=float) - alone)

    def rates_shapes_and_couplings(
        self, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The vectors theta_j and nu_j, and the symmetric matrix J with a zero diagonal."""
        count = len(self.nodes)
        theta = checked_theta(self, self._border + len(self.edges), theta)
        shapes = theta[count : self._border] if self.dispersion else np.ones(count)
        couplings = np.zeros((count, count))
        one, other = self.pairs
        couplings[one, other] = couplings[other, one] = theta[self._border :]
        return theta[:count], shapes, couplings

    def _log_mass(self, rate: float, shape: float) -> float:
        try:
            counts = np.arange(self._last(rate, shape) + 1.0)
        except InputError:
            return math.inf
        return float(logsumexp(rate * counts - shape * gammaln(counts + 1)))

    def _last(self, rate: float, shape: float) -> int:
        """The largest count to consider: the limit, or where nothing is left."""
        if self.most is not None:
            return int(self.most)
        terms = 16
        while terms <= MOST_TERMS and (shape > 0 or (shape == 0 and rate < 0)):
            # Ratios of terms fall, so that those left out are below a geometric series.
            log_ratio = rate - shape * math.log(terms + 1)
            mode = min(math.exp(min(rate / shape, 50.0)), terms) if shape > 0 else 0.0
            highest = rate * math.floor(mode) - shape * math.lgamma(math.floor(mode) + 1)
            if log_ratio < 0:
                last = rate * terms - shape * math.lgamma(terms + 1)
                rest = last + log_ratio - math.log(-math.expm1(log_ratio))
                if rest < highest + math.log(LEFT_OUT):
                    return terms
            terms *= 2
        raise InputError(
            f"theta_j={rate:.6g} with nu_j={shape:.6g} is no distribution of unlimited counts, or "
            "one of counts beyond a million; nu_j must be positive (or 0 with theta_j below 0): "
            "pass most=..., a largest count"
        )

    _repr_html_ = model_html


def _parts(rows: int, terms: int) -> Iterator[slice]:
    step = max(1, CHUNK // terms)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def _drawn(uniforms: FloatArray, slopes: FloatArray, falls: FloatArray) -> FloatArray:
    """Counts with probabilities proportional to ``exp(slope x - falls_x)``, one for each uniform.

    One slope for all, or one for each.
    """
    logs = slopes[:, None] * np.arange(len(falls)) - falls
    logs -= logs.max(axis=1, keepdims=True)
    sums = np.cumsum(np.exp(logs), axis=1)
    wanted = uniforms * sums[:, -1]
    if len(sums) == 1:
        found = np.searchsorted(sums[0], wanted, side="right")
    else:
        found = (sums <= wanted[:, None]).sum(axis=1)
    return np.asarray(np.minimum(found, len(falls) - 1), dtype=np.float64)
