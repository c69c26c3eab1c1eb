"""Are points where a density is? Counts in cells of its domain, time by time.

A cell is what is nearest to one center of the basis; for all times together there are also finer
ones, spread as the points should be, with some points in each. Expected shares are integrals of the
density of a draw over the cell. The statistic is that of Freeman and Tukey, ``sum over cells of
(sqrt(count) - sqrt(expected))^2``, of the data and of data drawn from the same draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ncbayes.base import FloatArray
from ncbayes.checks.comparisons import Compared
from ncbayes.checks.look import Look
from ncbayes.checks.verification import Picture, Seen
from ncbayes.fields import Field
from ncbayes.integration import Bins, bins_of, nodes_of
from ncbayes.sites import user_coordinates

if TYPE_CHECKING:
    import xarray as xr

# Draws of the posterior whose shares are worked out, and data sets drawn from them at each time.
DRAWS, REPLICATIONS = 100, 4000
REPLICATIONS_EACH = 300
# Nodes of the domain that a cell must hold; smaller ones go to their neighbours.
FEWEST_NODES = 4
# Points that a fine cell holds, and how many cells there are.
POINTS_A_CELL, MAX_CELLS = 6, 300
# Nodes along the longest side by dimension, and as a power of two in more; densities by draw, time
# and node (80 MB), and the fewest draws.
SIZES, POWER, MOST_ENTRIES, FEWEST_DRAWS = {1: 512, 2: 64, 3: 16}, 12, 10_000_000, 10
ALL_TIMES = "all times"
SAYS = "there are more or fewer points in some places"
SAYS_FINE = (
    "points crowd in places that are smaller than the basis can follow, or are missing there"
)


def cell_counts(tree: xr.DataTree, field: Field, rng: np.random.Generator) -> dict[str, Seen]:
    """What counts in cells say: of the basis time by time, and in finer ones of all times."""
    theta = tree["posterior"]["theta"].to_numpy()
    flat = theta.reshape(-1, *theta.shape[2:])
    masses = Masses.of(field, flat)
    points = tree["observed_data"]["points"].to_numpy()
    owners = tree["observed_data"]["group"].to_numpy().astype(str)
    times = tree["posterior"]["group"].to_numpy().astype(str).tolist()
    cells = masses.cells(field.model.table, FEWEST_NODES)
    look = Look("points in cells", cells.labels(field), lambda x: x, SAYS)
    found = {}
    for time, label in enumerate(times):
        own = points[owners == label]
        if len(own):
            compared = _compared(cells.counts(own), cells.shares[:, time], len(times) + 1, rng)
            found[label] = _seen(own, [(look, compared)])
    weights = np.array([np.sum(owners == label) for label in times], dtype=float)
    fine = masses.cells(masses.centers(weights, rng), 1)
    look = Look("points in fine cells", fine.labels(field), lambda x: x, SAYS_FINE)
    shares = np.tensordot(fine.shares, weights / weights.sum(), axes=(1, 0))
    together = _seen(points, [(look, _compared(fine.counts(points), shares, len(times) + 1, rng))])
    if len(times) == 1:
        return {times[0]: _seen(points, [*found[times[0]].compared, *together.compared])}
    return {**found, ALL_TIMES: together} if found else {}


def _seen(points: FloatArray, compared: list[tuple[Look, Compared]]) -> Seen:
    pictures = tuple(Picture.cells(each.observed, each.expected) for _, each in compared)
    return Seen(
        np.nan, np.nan, np.nan, np.nan, float(REPLICATIONS), np.nan, "", len(points),
        tuple(compared), pictures, np.zeros((0, points.shape[1])),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Cells:
    """Parts of the domain, each around its center, and their shares by draw and time.

    They are made of ``bins``, of which ``owners`` tells the cell: points and shares are then parted
    at the same borders, however few bins a cell has. Without bins points go to the nearest center.
    """

    centers: FloatArray
    shares: FloatArray
    bins: Bins | None
    owners: NDArray[np.intp]

    def counts(self, points: FloatArray) -> FloatArray:
        """How many points are in each."""
        if self.bins is None:
            near = cKDTree(self.centers).query(points)[1]
        else:
            near = self.owners[self.bins.holding(points)]
        return np.bincount(near, minlength=len(self.centers)).astype(float)

    def labels(self, field: Field) -> tuple[str, ...]:
        """Where they are, in the user's coordinates."""
        places = user_coordinates(field, self.centers)
        return tuple(f"near {', '.join(f'{value:.5g}' for value in each)}" for each in places)


@dataclass(frozen=True, eq=False)
class Masses:
    """Shares of draws at nodes of the domain, (draw, time, node), which stand for bins or for none.

    There are bins in up to 3 dimensions.
    """

    points: FloatArray
    mass: FloatArray
    bins: Bins | None

    @classmethod
    def of(cls, field: Field, theta: FloatArray) -> Masses:
        """Of some of the draws (draw, time, coefficient), as many as memory is meant for."""
        model = field.model
        space: Any = model.space
        bins = bins_of(space, SIZES[space.dimension]) if space.dimension in SIZES else None
        nodes = bins or nodes_of(space, POWER)
        weights = nodes.volumes if isinstance(nodes, Bins) else nodes.weights
        count = MOST_ENTRIES // (theta.shape[1] * len(nodes.points))
        count = int(np.clip(count, FEWEST_DRAWS, DRAWS))
        chosen = theta[np.arange(count) * len(theta) // count]
        values = chosen @ model.statistics(nodes.points).T
        mass = weights * np.exp(values - values.max(axis=-1, keepdims=True))
        return cls(nodes.points, mass / mass.sum(axis=-1, keepdims=True), bins)

    def centers(self, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Centers of cells that hold some points each, spread as the points should be."""
        count = int(np.clip(weights.sum() // POINTS_A_CELL, 2, MAX_CELLS))
        mean = np.tensordot(weights / weights.sum(), self.mass.mean(axis=0), axes=(0, 0))
        chosen = rng.choice(len(mean), min(count, int((mean > 0).sum())), False, mean / mean.sum())
        return self.points[chosen]

    def cells(self, centers: FloatArray, fewest: int) -> Cells:
        """Cells around centers with enough nodes of their own."""
        owned = np.bincount(cKDTree(centers).query(self.points)[1], minlength=len(centers))
        centers = centers[owned >= min(fewest, owned.max())]
        cell = cKDTree(centers).query(self.points)[1]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(len(centers)))
        shares = np.add.reduceat(self.mass[..., order], starts, axis=-1)
        return Cells(centers, shares, self.bins, np.asarray(cell))


def _compared(
    counts: FloatArray, shares: FloatArray, comparisons: int, rng: np.random.Generator
) -> Compared:
    """Counts beside those of data drawn from draws; as many as tell p-values of so many apart."""
    total, size = int(counts.sum()), max(REPLICATIONS, REPLICATIONS_EACH * comparisons)
    chosen = shares[np.arange(size) * len(shares) // size]
    expected = total * chosen
    drawn = rng.multinomial(total, chosen)
    ours, theirs = (
        ((np.sqrt(each) - np.sqrt(expected)) ** 2).sum(axis=1) for each in (counts, drawn)
    )
    p_value = float((1 + (theirs >= ours).sum()) / (1 + len(ours)))
    mean = expected.mean(axis=0)
    spread = np.sqrt(np.maximum(drawn.var(axis=0), 1 / size))
    return Compared((counts - mean) / spread, counts, mean, p_value)
