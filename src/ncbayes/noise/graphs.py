"""Noise for graphs: edges that come independently with one probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.noise.checks import row
from ncbayes.spaces import Graphs, GraphSets, as_points, check_numbers


@dataclass(frozen=True, eq=False)
class BernoulliGraphs:
    """Independent edges: ``log q(x) = e log p + (d - e) log(1 - p)`` for e edges on d dyads.

    On ``GraphSets`` a graph has set s with probability ``shares[s]``, and the density is relative
    to uniform graphs, as that space has it: there is a factor 2^d.
    """

    space: Graphs | GraphSets
    probability: float
    shares: ArrayLike = (1.0,)

    def __post_init__(self) -> None:
        if not isinstance(self.space, Graphs | GraphSets):
            raise InputError(
                f"BernoulliGraphs(space, ...) needs a space of graphs, such as spaces.Graphs(20), "
                f"got {shown(self.space)}"
            )
        check_numbers("BernoulliGraphs", probability=self.probability, shares=self.shares)
        if not 0 < float(self.probability) < 1:
            raise InputError(
                "BernoulliGraphs(probability=...) must lie above 0 and below 1, got "
                f"{shown(self.probability)}"
            )
        shares = row(self.shares)
        sets = len(self._sets)
        if len(shares) != sets or np.any(shares <= 0) or not math.isclose(shares.sum(), 1):
            raise InputError(
                f"BernoulliGraphs(shares=...) must be {sets} positive numbers with sum 1, one for "
                f"each set of nodes, got {shown(shares.tolist())}"
            )

    @classmethod
    def match(cls, space: Graphs | GraphSets, data: object) -> BernoulliGraphs:
        """The density of the data's graphs, and their sets' shares; each with a bit added."""
        points = as_points(data, space, "BernoulliGraphs.match")
        if isinstance(space, Graphs):
            return cls(space, float((points.sum() + 1) / (points.size + 2)))
        rows = np.bincount(points[:, -1].astype(np.intp), minlength=len(space.sets))
        dyads = sum(n * each.dimension for n, each in zip(rows, space.sets, strict=True))
        density = float((points[:, :-1].sum() + 1) / (dyads + 2))
        return cls(space, density, (rows + 1) / (rows + 1).sum())

    @property
    def dimension(self) -> int:
        return self.space.dimension

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        if isinstance(self.space, Graphs):
            return self._dyads(size, self.space.dimension, rng)
        number = rng.choice(len(self._sets), size, p=row(self.shares))
        draws = [self._dyads(size, each.dimension, rng) for each in self._sets]
        return self.space.joined(number, draws)

    def log_density(self, x: FloatArray) -> FloatArray:
        inside = self.space.contains(x)
        log_share: Any = 0.0
        if isinstance(self.space, Graphs):
            edges, dyads = x.sum(axis=1), np.full(len(x), self.space.dimension)
        else:
            number: NDArray[np.intp] = np.where(inside, x[:, -1], 0).astype(np.intp)
            edges = x[:, :-1].sum(axis=1)
            dyads = np.array([each.dimension for each in self._sets])[number]
            log_share = np.log(row(self.shares))[number] + dyads * math.log(2)
        p = float(self.probability)
        value = log_share + edges * math.log(p) + (dyads - edges) * math.log1p(-p)
        return np.where(inside, value, -np.inf)

    def _dyads(self, size: int, dyads: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.random((size, dyads)) < float(self.probability), dtype=np.float64)

    @property
    def _sets(self) -> Sequence[Graphs]:
        return (self.space,) if isinstance(self.space, Graphs) else self.space.sets
