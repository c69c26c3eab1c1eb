"""Exponential random graphs, for populations of graphs: each data point is one graph."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.models.degeneracy import (
    DegenerateWarning,
    data_lines,
    degenerate_line,
    fixed_choice_lines,
)
from ncbayes.models.ergm_form import Form, form_of
from ncbayes.models.nodes import Nodes, check_flags, checked_theta, node_names
from ncbayes.models.terms import SIMPLE, Dyads, Term
from ncbayes.notebooks import model_html
from ncbayes.spaces import Graphs

# From Bernoulli graphs of about the right density: counts in 20 nodes settle within 10 sweeps at
# mild theta, within 50 to 100 close to where the model degenerates.
SWEEPS = 100
# 2^15 graphs, all of 6 nodes, take a tenth of a second; each dyad more doubles that.
MOST_DYADS_ENUMERATED = 15
# Entries of adjacency matrices held at once, 16 MB.
MOST_ENTRIES = 2_000_000
# Graphs and sweeps that tell the density of the model, and the seed of their random numbers:
# where a path of noise begins must not depend on whose turn it is.
PILOT_GRAPHS, PILOT_SWEEPS, PILOT_SEED = 60, 30, 1
MOST_ANCHORS = 100
# Graphs that are enough for a quick estimate, and the work that it may take: some seconds.
MOST_GUESSED, MOST_WORK = 200, 2e9
# Newton's steps toward the Bernoulli graphs of a given density; five are usual.
NEWTON_STEPS = 50


@dataclass(frozen=True, init=False, repr=False)
class ERGM:
    """Graphs, ``log p(x) = sum of theta_t count_t(x) over terms t - log Z``.

    ``nodes`` is their number or their names. ``terms`` are what is counted: "edges", "triangles",
    "two_stars", "isolates", "reciprocity", those made by ``models.terms`` such as
    ``terms.gwesp(0.5)``, or any object with a ``name`` and ``count(adjacency) -> (n,)``. Data may
    be adjacency matrices (n, node, node), NetworkX graphs, or rows of dyads.

    >>> ERGM(20, ["edges", "triangles"]).groups
    {'edges': ('edges',), 'triangles': ('triangles',)}
    """

    nodes: tuple[str, ...]
    terms: tuple[Term, ...]
    directed: bool = False

    def __init__(self, nodes: Nodes, terms: Sequence[str | Term], directed: bool = False) -> None:
        names = node_names("ERGM", nodes)
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "directed", directed)
        check_flags(self, "directed")
        if len(names) < 2:
            raise InputError(f"ERGM(nodes) needs at least 2 nodes, got {shown(nodes)}")
        object.__setattr__(self, "terms", resolved(terms, names, bool(directed)))

    def __repr__(self) -> str:
        default = self.nodes == node_names("", len(self.nodes))
        nodes = repr(len(self.nodes)) if default else repr(list(self.nodes))
        names = [term.name for term in self.terms]
        return f"ERGM({nodes}, {names}{', directed=True' if self.directed else ''})"

    @cached_property
    def space(self) -> Graphs:
        return Graphs(len(self.nodes), bool(self.directed), self.nodes)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return blocks(self.terms)

    def statistics(self, x: FloatArray) -> FloatArray:
        rows = max(1, MOST_ENTRIES // len(self.nodes) ** 2)
        parts = [np.zeros((0, len(self.terms)))]
        for start in range(0, len(x), rows):
            adjacency = self.space.adjacency(x[start : start + rows])
            parts.append(np.column_stack([counted(term, adjacency) for term in self.terms]))
        return np.concatenate(parts)

    def change_statistics(self, x: FloatArray, j: int) -> FloatArray:
        """Statistics with dyad j there less those without it, (n, p), whatever x_j is."""
        adjacency = self.space.adjacency(x)
        one, other = (int(ends[j]) for ends in self.space.pairs)
        return np.column_stack(
            [changed(term, adjacency, one, other, self.directed) for term in self.terms]
        )

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep, which leaves ``p(. | theta)`` invariant.

        Dyad after dyad is drawn from its full conditional,
        ``P(x_j = 1 | others) = 1 / (1 + exp(-theta . change_statistics_j))``.
        """
        return self._swept(checked_theta(self, len(self.terms), theta), x, 1, rng)

    def _swept(
        self, theta: FloatArray, x: FloatArray, sweeps: int, rng: np.random.Generator
    ) -> FloatArray:
        form = form_of(self.terms, self.space, theta, self._dyad_weights @ theta)
        for _ in range(sweeps):
            uniforms = rng.random(x.shape)
            if form is None:
                x = self._plain_sweep(theta, x, uniforms)
            else:
                x = swept(form, self.space, x, uniforms)
        return x

    def _plain_sweep(self, theta: FloatArray, x: FloatArray, uniforms: FloatArray) -> FloatArray:
        """The same for terms that are not compiled."""
        adjacency, (one, other) = self.space.adjacency(x), self.space.pairs
        for d, (j, k) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
            log_odds = np.zeros(len(x))
            for term, weight in zip(self.terms, theta, strict=True):
                log_odds += weight * changed(term, adjacency, j, k, self.directed)
            adjacency[:, j, k] = uniforms[:, d] < expit(log_odds)
            if not self.directed:
                adjacency[:, k, j] = adjacency[:, j, k]
        return adjacency[:, one, other]

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent graphs, each the end of its own Gibbs chain of 100 sweeps.

        Chains start at Bernoulli graphs of the model's density (fewer than 30 graphs: of the terms
        of single dyads, and by 130 sweeps); where only terms of single dyads
        ("edges", homophily) have a theta, those are exact. A warning tells of a theta
        at which nearly all graphs are empty or complete.
        """
        theta = checked_theta(self, len(self.terms), theta)
        # To find that density takes a pilot, which few graphs do better without.
        few = size < PILOT_GRAPHS // 2 and not self.is_dyadic(theta)
        start = np.where(self._dyadic, theta, 0.0) if few else self.anchor(theta)
        x = self._bernoulli(start, size, rng)
        if self.is_dyadic(theta):
            return x
        x = self._swept(theta, x, SWEEPS + few * PILOT_SWEEPS, rng)
        line = degenerate_line(self, theta, x)
        if line:
            warnings.warn(line, DegenerateWarning, stacklevel=2)
        return x

    def log_partition(self, theta: FloatArray) -> float:
        """``log Z``: in closed form where dyads are independent, else the sum over all graphs.

        The sum is for up to 15 dyads: 6 nodes, or 4 if directed.
        """
        theta = checked_theta(self, len(self.terms), theta)
        if self.is_dyadic(theta):
            return float(np.logaddexp(0.0, self._dyad_weights @ theta).sum())
        if self.space.dimension > MOST_DYADS_ENUMERATED:
            raise InputError(
                f"log_partition is computed for at most {MOST_DYADS_ENUMERATED} dyads, got "
                f"{self.space.dimension} in {shown(self)}: take it from a fit, posterior.log_z, "
                "which estimates it with theta"
            )
        return float(logsumexp(self._enumerated @ theta))

    def path(self, theta: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Where annealing begins, and ``alpha`` of the way from there to theta.

        It begins at Bernoulli graphs with the expected dyads of the model at theta, which can be
        drawn and normalized exactly, not at graphs with half of all edges.
        """
        theta = checked_theta(self, len(self.terms), theta)
        start = self.anchor(theta)
        return start, start + alpha * (theta - start)

    def anchor(self, theta: FloatArray) -> FloatArray:
        """The Bernoulli graphs with about the expected dyads of the model at theta."""
        if self.is_dyadic(theta) or not self._dyadic.any():
            return np.where(self._dyadic, theta, 0.0)
        key = theta.tobytes()
        if key not in self._anchors:
            if len(self._anchors) == MOST_ANCHORS:
                self._anchors.clear()
            self._anchors[key] = self._matched(theta)
        return self._anchors[key]

    def guess(self, x: FloatArray) -> FloatArray:
        """The maximum pseudolikelihood estimate: dyads regressed on their change statistics."""
        work = self.space.dimension * len(self.nodes) ** 2
        most = int(np.clip(MOST_WORK / work, 2, MOST_GUESSED))
        some = x[:: -(-len(x) // most)]
        changes = [self.change_statistics(some, j) for j in range(self.space.dimension)]
        return logistic_regression(np.concatenate(changes), some.T.ravel())

    def concerns(self, theta: FloatArray, x: FloatArray) -> list[str]:
        """What is wrong with a fit of the data x whose posterior mean is theta, one line each."""
        lines = data_lines(self, x)
        lines += fixed_choice_lines(self.space.adjacency(x), self.space.directed)
        if self.is_dyadic(theta):
            return lines
        line = degenerate_line(self, theta, self.pilot(theta, np.random.default_rng(PILOT_SEED)))
        return lines + ([line] if line else [])

    def pilot(self, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """A few graphs of the model, from Bernoulli graphs of the terms of single dyads."""
        x = self._bernoulli(np.where(self._dyadic, theta, 0.0), PILOT_GRAPHS, rng)
        return self._swept(theta, x, PILOT_SWEEPS, rng)

    def _matched(self, theta: FloatArray) -> FloatArray:
        """Logistic regression of the pilot's dyads on the weights of the dyads, by Newton."""
        share = self.pilot(theta, np.random.default_rng(PILOT_SEED)).mean(axis=0)
        # Half an observation of either kind keeps it finite where all graphs are alike.
        share = (share * PILOT_GRAPHS + 0.5) / (PILOT_GRAPHS + 1)
        weights = self._dyad_weights[:, self._dyadic]
        start = np.zeros(len(theta))
        start[self._dyadic] = logistic_regression(weights, share)
        return start

    def _bernoulli(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        chance = expit(self._dyad_weights @ theta)
        return np.asarray(rng.random((size, len(chance))) < chance, dtype=np.float64)

    def is_dyadic(self, theta: FloatArray) -> bool:
        """Whether dyads are independent at theta."""
        return not np.any(theta[~self._dyadic])

    @cached_property
    def _dyadic(self) -> Any:
        """Which terms are sums over single dyads."""
        return np.array([isinstance(term, Dyads) for term in self.terms])

    @cached_property
    def _dyad_weights(self) -> FloatArray:
        """What each dyad adds to each term of single dyads, (dyad, term); 0 for other terms."""
        weights = np.zeros((self.space.dimension, len(self.terms)))
        for t, term in enumerate(self.terms):
            if isinstance(term, Dyads):
                weights[:, t] = term.weights(len(self.nodes))[self.space.pairs]
        return weights

    @cached_property
    def _enumerated(self) -> FloatArray:
        """The statistics of all graphs."""
        count = self.space.dimension
        numbers = np.arange(2**count)
        return self.statistics((numbers[:, None] >> np.arange(count) & 1).astype(np.float64))

    @cached_property
    def _anchors(self) -> dict[bytes, FloatArray]:
        return {}

    _repr_html_ = model_html


def swept(form: Form, space: Graphs, x: FloatArray, uniforms: FloatArray) -> FloatArray:
    """The rows after a compiled sweep."""
    from ncbayes.models.ergm_sweep import sweep

    moved = np.array(x, dtype=np.float64, order="C")
    sweep(moved, uniforms, *space.pairs, space.nodes, space.directed, *form)
    return moved


def logistic_regression(weights: FloatArray, share: FloatArray) -> FloatArray:
    """b with ``weights' (share - 1 / (1 + exp(-weights b))) = 0``, a little shrunk."""
    ridge = 1e-6 * np.eye(weights.shape[1]) * max(1.0, float((weights**2).sum()))
    b = np.zeros(weights.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = expit(weights @ b)
        curvature = (weights.T * (chance * (1 - chance))) @ weights + ridge
        step = np.linalg.solve(curvature, weights.T @ (share - chance) - ridge @ b)
        # A step that moves no log odds by more than 1 never overshoots far.
        step /= max(1.0, float(np.abs(weights @ step).max()))
        b = b + step
        if np.abs(step).max() < 1e-10:
            break
    return b


def resolved(
    terms: Any, names: tuple[str, ...], directed: bool, owner: str = "ERGM"
) -> tuple[Term, ...]:
    """The terms for these nodes, checked."""
    listed = terms if isinstance(terms, Sequence) and not isinstance(terms, str) else []
    if not listed:
        raise InputError(
            f"{owner}(terms) needs a list of terms, such as ['edges', 'triangles'], got "
            f"{shown(terms)}"
        )
    found = [_term(each, names, directed, owner) for each in listed]
    repeated = [name for name, times in Counter(t.name for t in found).items() if times > 1]
    if repeated:
        raise InputError(
            f"{owner}(terms) needs terms of different names, got {shown(repeated[0])} more than "
            "once; attributes have names, as in homophily(values, 'sex')"
        )
    return tuple(found)


def _term(each: Any, names: tuple[str, ...], directed: bool, owner: str) -> Term:
    if isinstance(each, str) and each in SIMPLE:
        each = SIMPLE[each]()
    fine = isinstance(each, Term) and not isinstance(each, type) and isinstance(each.name, str)
    if not fine:
        raise InputError(
            f"{owner}(terms) must hold some of {shown(list(SIMPLE), 80)}, terms of "
            "ncbayes.models.terms, such as gwesp(0.5), or objects with a name and "
            f"count(adjacency), got {shown(each)}"
        )
    at = getattr(each, "at", None)
    term: Term = each if at is None else at(names, directed)
    return term


def blocks(terms: Sequence[Term]) -> dict[str, Sequence[str]]:
    """A block for each term: its name up to a parenthesis, where that says which it is."""
    # A block's name is part of a file's paths.
    full = [term.name.replace(".", "_").replace("/", "_") for term in terms]
    short = [name.split("(")[0] for name in full]
    chosen = [
        one if one and short.count(one) == 1 else other
        for one, other in zip(short, full, strict=True)
    ]
    if len(set(chosen)) < len(chosen):
        chosen = [f"term{t + 1}" for t in range(len(terms))]
    return {block: (term.name,) for block, term in zip(chosen, terms, strict=True)}


def counted(term: Term, adjacency: FloatArray) -> FloatArray:
    """A term's counts, checked."""
    values = np.asarray(term.count(adjacency), dtype=np.float64)
    if values.shape != (len(adjacency),):
        raise InputError(
            f"count(adjacency) of the term {term.name!r} must return one number a graph, shape "
            f"({len(adjacency)},), got shape {values.shape}"
        )
    return values


def changed(term: Any, adjacency: FloatArray, j: int, k: int, directed: bool) -> FloatArray:
    """A term's change by the edge from j to k: its own, or two counts."""
    if hasattr(term, "change"):
        return np.asarray(term.change(adjacency, j, k), dtype=np.float64)
    with_edge, without = adjacency.copy(), adjacency.copy()
    with_edge[:, j, k], without[:, j, k] = 1, 0
    if not directed:
        with_edge[:, k, j], without[:, k, j] = 1, 0
    return counted(term, with_edge) - counted(term, without)
