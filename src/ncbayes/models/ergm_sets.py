"""Random graphs on several sets of nodes, such as graphs of several sizes, in one model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.models.ergm import ERGM, MOST_DYADS_ENUMERATED, blocks
from ncbayes.models.nodes import Nodes, checked_theta, node_names
from ncbayes.models.terms import Term
from ncbayes.notebooks import model_html
from ncbayes.spaces import GraphSets, is_whole

LOG_2 = math.log(2)
# Annealing that tells how Z differs between sets: enough for shares within a few percent.
STEPS, PARTICLES, SEED = 40, 200, 1


@dataclass(frozen=True, init=False, repr=False)
class VaryingERGM:
    """Graphs x on a set s of nodes, ``log p(x, s) = theta . counts(x) + gamma_s - log Z``.

    theta is common to all sets; gamma_s (0 for the first set) lets each have its own normalizer and
    its own share of the graphs, about which nothing is assumed. ``node_sets`` are sizes,
    or lists of names; attributes of terms are mappings from names (x1, x2, ... for sizes).
    The density is relative to uniform graphs, as in ``spaces.GraphSets``. ``at(5)``
    is the model of the graphs on 5 nodes, with theta without the gammas.

    >>> VaryingERGM([4, 5], ["edges", "triangles"]).groups["node_set"]
    ('nodes=5',)
    """

    node_sets: tuple[tuple[str, ...], ...]
    models: tuple[ERGM, ...]

    def __init__(
        self,
        node_sets: Sequence[Nodes],
        terms: Sequence[str | Term],
        directed: bool = False,
    ) -> None:
        if isinstance(node_sets, str) or not isinstance(node_sets, Sequence) or len(node_sets) < 2:
            raise InputError(
                "VaryingERGM(node_sets) needs two or more sizes or lists of names, such as "
                f"[18, 20], got {shown(node_sets)}; for one set use ERGM"
            )
        models = tuple(ERGM(nodes, terms, directed) for nodes in node_sets)
        object.__setattr__(self, "node_sets", tuple(each.nodes for each in models))
        object.__setattr__(self, "models", models)
        if len(set(self.node_sets)) < len(models):
            raise InputError(
                f"VaryingERGM(node_sets) needs sets that differ, got {shown(node_sets)}"
            )

    def __repr__(self) -> str:
        names = [term.name for term in self.models[0].terms]
        sizes = [len(each) for each in self.node_sets]
        directed = ", directed=True" if self.models[0].directed else ""
        return f"VaryingERGM({sizes}, {names}{directed})"

    @cached_property
    def space(self) -> GraphSets:
        return GraphSets(tuple(each.space for each in self.models))

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return {**blocks(self.models[0].terms), "node_set": self.labels[1:]}

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each set: its size, and its number from 1 where sizes are equal."""
        sizes = [len(each) for each in self.node_sets]
        distinct = len(set(sizes)) == len(sizes)
        return tuple(f"nodes={size}" if distinct else f"set{k + 1}" for k, size in enumerate(sizes))

    def at(self, nodes: Nodes) -> ERGM:
        """The model of the graphs of one set, by its size or its names."""
        names = () if is_whole(nodes) else node_names("VaryingERGM.at", nodes)
        fitting = [each for each in self.models if nodes == len(each.nodes) or names == each.nodes]
        if len(fitting) != 1:
            raise InputError(
                f"at(nodes) needs the size of one of the sets of {shown(self)}, or its names where "
                f"sizes are equal, got {shown(nodes)}"
            )
        return fitting[0]

    def statistics(self, x: FloatArray) -> FloatArray:
        values = np.zeros((len(x), self._terms + len(self.models) - 1))
        for k, (rows, dyads) in enumerate(self.space.split(x)):
            values[rows, : self._terms] = self.models[k].statistics(dyads)
            if k:
                values[rows, self._terms + k - 1] = 1.0
        return values

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of x moved by one Gibbs sweep over its dyads; it keeps its set."""
        theta, _ = self._parts(theta)
        moved = np.array(x, dtype=np.float64)
        for model, (rows, dyads) in zip(self.models, self.space.split(x), strict=True):
            moved[rows, : model.space.dimension] = model.sweep(theta, dyads, rng)
        return moved

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Graphs with their sets; the sets' chances are exact where log_partition is.

        For larger graphs they are estimated; ``at(size).sample`` draws graphs without them.
        """
        theta, gamma = self._parts(theta)
        chance = softmax(gamma + self._log_means(theta))
        number = rng.choice(len(chance), size, p=chance)
        draws = []
        for k, model in enumerate(self.models):
            dyads = np.zeros((size, model.space.dimension))
            rows = np.flatnonzero(number == k)
            dyads[rows] = model.sample(theta, len(rows), rng)
            draws.append(dyads)
        return self.space.joined(number, draws)

    def log_partition(self, theta: FloatArray) -> float:
        """``log sum_s exp(gamma_s) Z_s(theta) / 2^(dyads of s)``, as in ``ERGM.log_partition``."""
        theta, gamma = self._parts(theta)
        sums = [model.log_partition(theta) for model in self.models]
        return float(logsumexp(gamma + np.array(sums) - self._dyads * LOG_2))

    def log_partitions(self, theta: FloatArray, log_z: FloatArray, x: FloatArray) -> FloatArray:
        """log Z of each set, (..., set), of draws theta (..., statistic) and log_z (...).

        ``log Z_s = log_z - gamma_s + log(share of s in the data x) + dyads_s log 2``
        """
        shares = np.bincount(x[:, -1].astype(np.intp), minlength=len(self.models)) / len(x)
        none = np.zeros((*np.shape(theta)[:-1], 1))
        gamma = np.concatenate([none, theta[..., self._terms :]], axis=-1)
        known = np.log(shares) + self._dyads * LOG_2
        return np.asarray(np.asarray(log_z)[..., None] - gamma + known)

    def path(self, theta: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Where annealing begins, Bernoulli graphs, and ``alpha`` of the way from there to theta.

        At both ends sets have equal shares: a tempered gamma would leave some without noise.
        """
        theta, _ = self._parts(theta)
        starts = np.array([model.anchor(theta) for model in self.models])
        start = np.average(starts, axis=0, weights=self._dyads)
        end = start + alpha * (theta - start)
        return self._balanced(start), self._balanced(end)

    def guess(self, x: FloatArray) -> FloatArray:
        """The maximum pseudolikelihood estimates of the sets, averaged; without gammas."""
        parts = [(k, dyads) for k, (_, dyads) in enumerate(self.space.split(x)) if len(dyads)]
        estimates = [self.models[k].guess(dyads) for k, dyads in parts]
        theta = np.average(estimates, axis=0, weights=[dyads.size for _, dyads in parts])
        return np.append(theta, np.zeros(len(self.models) - 1))

    def concerns(self, theta: FloatArray, x: FloatArray) -> list[str]:
        """What is wrong with a fit of the data x whose posterior mean is theta, one line each."""
        theta, _ = self._parts(theta)
        parts = zip(self.models, self.labels, self.space.split(x), strict=True)
        lines = []
        for model, label, (_, dyads) in parts:
            if not len(dyads):
                lines.append(f"no graph has {label}; leave this set out of node_sets")
            else:
                lines += [
                    f"in graphs with {label}: {each}" for each in model.concerns(theta, dyads)
                ]
        return lines

    def _balanced(self, theta: FloatArray) -> FloatArray:
        """theta with gammas that give all sets equal shares."""
        log_means = self._log_means(theta)
        return np.concatenate([theta, log_means[0] - log_means[1:]])

    def _log_means(self, theta: FloatArray) -> FloatArray:
        """``log(Z_s / 2^(dyads of s))`` of each set; by annealing where it is not exact."""
        found = []
        for model in self.models:
            exact = model.is_dyadic(theta) or model.space.dimension <= MOST_DYADS_ENUMERATED
            log_z = model.log_partition(theta) if exact else _annealed_log_z(model, theta)
            found.append(log_z - model.space.dimension * LOG_2)
        return np.array(found)

    def _parts(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """theta of the terms, and gamma of all sets."""
        size = self._terms + len(self.models) - 1
        theta = checked_theta(self, size, theta)
        return theta[: self._terms], np.append(0.0, theta[self._terms :])

    @property
    def _terms(self) -> int:
        return len(self.models[0].terms)

    @cached_property
    def _dyads(self) -> Any:
        return np.array([each.space.dimension for each in self.models])

    _repr_html_ = model_html


def _annealed_log_z(model: ERGM, theta: FloatArray) -> float:
    """log Z from its Bernoulli graphs, by annealed importance sampling, the same at every call."""
    rng = np.random.default_rng(SEED)
    start = model.anchor(theta)
    x = model.sample(start, PARTICLES, rng)
    weight = np.zeros(PARTICLES)
    for k in range(1, STEPS + 1):
        weight += model.statistics(x) @ (theta - start) / STEPS
        x = model.sweep(start + (theta - start) * (k / STEPS), x, rng)
    return model.log_partition(start) + float(logsumexp(weight)) - math.log(PARTICLES)
