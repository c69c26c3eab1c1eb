"""Normalizing constants of densities on a bounded space, worked out numerically.

    log Z(theta) = log sum_i weight_i exp(theta . statistics(node_i))

for many theta at once. The nodes are made finer until log Z no longer depends on them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ncbayes.base import FloatArray, Space
from ncbayes.diagnostics import FitWarning
from ncbayes.models import RadialBasis
from ncbayes.spaces import Box, Region
from ncbayes.spaces.outlines import even_odd, shapely

# Cells along the longest side by dimension: to begin with, and at most (1 to 2 million nodes).
FIRST, MOST = {1: 256, 2: 48, 3: 16}, {1: 2**16, 2: 1024, 3: 128}
# Sobol points in more dimensions, as powers of two: to begin with, and at most.
FIRST_POWER, MOST_POWER = 13, 17
# Corrections of the weights at the ends of the midpoint rule: (2 d1 - d2) / 24 with the differences
# d1 of the last two values and d2 of those before.
END = np.array([2.0, -3.0, 1.0]) / 24
# However thin a box, so many cells across it.
FEWEST = 4
# Halving the step must change log Z by less than this for the theta that are tried...
TOLERANCE = 4e-4
# ...and if it changes by more than this with the finest nodes, the user is told.
ALARM = 1e-2
# The step is at most the bandwidth by this: bumps of the density are that wide, or are seen.
PER_BANDWIDTH = 2.0
# How many theta are tried.
TRIED = 64
# Nodes and theta taken at a time: their table of values holds 32 MB.
ROWS, COLUMNS = 2048, 2048


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points (n, dimension) and weights (n,) that sum to the volume of the space."""

    points: FloatArray
    weights: FloatArray


def log_integrals(model: RadialBasis, nodes: Nodes, theta: FloatArray) -> FloatArray:
    """log Z of every row of theta by these nodes; memory does not grow with their number."""
    top, total = np.full(len(theta), -np.inf), np.zeros(len(theta))
    for start in range(0, len(nodes.points), ROWS):
        statistics = model.statistics(nodes.points[start : start + ROWS])
        weights = nodes.weights[start : start + ROWS]
        for first in range(0, len(theta), COLUMNS):
            part = slice(first, first + COLUMNS)
            values = statistics @ theta[part].T
            peak = np.maximum(top[part], values.max(axis=0))
            values -= peak
            np.exp(values, out=values)
            total[part] = total[part] * np.exp(top[part] - peak) + weights @ values
            top[part] = peak
    # With nodes too coarse for a peak, weights below zero may win; the next ones are finer.
    return np.asarray(top + np.log(np.maximum(total, np.finfo(float).tiny)))


def nodes_of(space: Space, cells: int) -> Nodes:
    """Midpoints of so many cells along the longest side, with weights that sum to the volume.

    The midpoint rule is wrong by ``step^2 / 24`` times the slopes across the border. In a box they
    are taken from the outermost three cells, whose weights put this right. In a region, grids of
    one step and of two steps are combined so that it cancels. In more than 3 dimensions: 2^cells
    Sobol points of equal weights.
    """
    if not isinstance(space, Box | Region):
        raise TypeError(f"no nodes for {space!r}")
    if space.dimension > 3:
        return _sobol(space, cells)
    sides = space.bounds[1] - space.bounds[0]
    if isinstance(space, Box):
        return _boxed(space, cell_counts(sides, cells, FEWEST))
    counts = cell_counts(sides, cells // 2, FEWEST)
    (fine, _), (coarse, _) = _clipped(space, 2 * counts), _clipped(space, counts)
    return Nodes(
        np.concatenate([fine.points, coarse.points]),
        np.concatenate([4 * fine.weights, -coarse.weights]) / 3,
    )


@dataclass(frozen=True, eq=False)
class Bins:
    """Boxes of a grid, or the part of each that lies in a region: middles and volumes of these.

    For what lies in a bin, where ``Nodes`` are for integrals. ``rows`` are those of the bins by
    place in the grid, -1 where there is none.
    """

    points: FloatArray
    volumes: FloatArray
    low: FloatArray
    side: FloatArray
    rows: NDArray[np.intp]

    def holding(self, x: FloatArray) -> NDArray[np.intp]:
        """The row of each point's bin; by rounding on the border, that of the nearest."""
        places = np.floor((x - self.low) / self.side).astype(np.intp)
        places = np.clip(places, 0, np.array(self.rows.shape) - 1)
        found = self.rows[tuple(places.T)]
        lost = np.flatnonzero(found < 0)
        found[lost] = cKDTree(self.points).query(x[lost])[1] if len(lost) else 0
        return np.asarray(found, dtype=np.intp)


def bins_of(space: Box | Region, longest: int) -> Bins:
    """Bins of a box or a region of up to 3 dimensions, so many along the longest side."""
    counts = cell_counts(space.bounds[1] - space.bounds[0], longest, FEWEST)
    corners, side = _corners(space, counts)
    if isinstance(space, Region):
        nodes, places = _clipped(space, counts)
    else:
        nodes = Nodes(corners + side / 2, np.full(len(corners), side.prod()))
        places = np.arange(len(corners))
    rows = np.full(counts.prod(), -1, dtype=np.intp)
    rows[places] = np.arange(len(places))
    return Bins(nodes.points, nodes.weights, space.bounds[0], side, rows.reshape(counts))


def cell_counts(sides: FloatArray, longest: int, fewest: int = 1) -> NDArray[np.intp]:
    """How many cells, about as long as wide, make up each side."""
    counts = np.rint(longest * sides / sides.max())
    return np.asarray(np.maximum(counts, fewest), dtype=np.intp)


def _corners(space: Box | Region, counts: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """The lower corners of all cells, and the sides of a cell."""
    low, high = space.bounds
    side = (high - low) / counts
    steps = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1)
    return low + steps.reshape(-1, len(low)) * side, side


def _boxed(box: Box, counts: NDArray[np.intp]) -> Nodes:
    corners, side = _corners(box, counts)
    weights = np.ones(1)
    for count, length in zip(counts, side, strict=True):
        along = np.ones(count)
        along[:3] += END
        along[-3:] += END[::-1]
        weights = np.multiply.outer(weights, along * length)
    return Nodes(corners + side / 2, weights.ravel())


def _clipped(region: Region, counts: NDArray[np.intp]) -> tuple[Nodes, NDArray[np.intp]]:
    """Cells that the border cuts count with the area and the center of what is inside.

    Also the place of each in the grid.
    """
    corners, side = _corners(region, counts)
    module = shapely()
    whole = even_odd(region.rings)
    module.prepare(whole)
    boxes = module.box(*corners.T, *(corners + side).T)
    meets, within = module.intersects(whole, boxes), module.covers(whole, boxes)
    cut = module.intersection(whole, boxes[meets & ~within])
    areas = module.area(cut)
    kept = areas > 0
    centers = module.get_coordinates(module.centroid(cut[kept]))
    points = np.concatenate([corners[within] + side / 2, centers])
    places = np.concatenate([np.flatnonzero(within), np.flatnonzero(meets & ~within)[kept]])
    weights = np.append(np.full(int(within.sum()), side.prod()), areas[kept])
    return Nodes(points, weights), places


def _sobol(space: Box | Region, power: int) -> Nodes:
    from scipy.stats import qmc

    low, high = space.bounds
    # The same points in every call: densities must not change from one look to the next.
    points = qmc.Sobol(space.dimension, rng=np.random.default_rng(0)).random_base2(power)
    weight = (high - low).prod() / len(points)
    return Nodes(low + points * (high - low), np.full(len(points), weight))


def fine_nodes(model: RadialBasis, theta: FloatArray) -> Nodes:
    """Nodes for which halving the step hardly changes log Z of any row of theta (k, p)."""
    space, theta = model.space, _sharpest(theta)
    many = space.dimension > 3
    size, most = (FIRST_POWER, MOST_POWER) if many else _sizes(model, space)
    nodes = nodes_of(space, size)
    found = log_integrals(model, nodes, theta)
    while True:
        size = size + 1 if many else 2 * size
        finer = nodes_of(space, size)
        again = log_integrals(model, finer, theta)
        change = float(np.abs(again - found).max())
        if change < TOLERANCE:
            return nodes
        nodes, found = finer, again
        if size >= most:
            break
    if change > ALARM:
        _warn(f"its log normalizer still changes by {change:.2g} with the finest grid")
    return nodes


def _sizes(model: RadialBasis, space: Any) -> tuple[int, int]:
    """Cells along the longest side: to begin with, so that no bump falls between, and at most."""
    low, high = space.bounds
    first, most = FIRST[space.dimension], MOST[space.dimension]
    needed = int(np.ceil(PER_BANDWIDTH * np.max(high - low) / model.bandwidth))
    if needed > most:
        _warn(f"its bandwidth of {model.bandwidth:.3g} is finer than the finest grid")
    return min(max(first, needed), most // 2), most


def _warn(what: str) -> None:
    warnings.warn(
        f"the density is too concentrated to be normalized well: {what}; use a smaller domain",
        FitWarning,
        stacklevel=2,
    )


def _sharpest(theta: FloatArray) -> FloatArray:
    """A few of the rows: the largest ones, whose densities are the sharpest, and others."""
    order = np.argsort(np.einsum("kp,kp->k", theta, theta))[::-1]
    even = np.linspace(0, len(order) - 1, TRIED // 2).astype(int)
    chosen = np.unique(np.concatenate([order[: TRIED // 2], order[even]]))
    return np.asarray(theta[chosen])
