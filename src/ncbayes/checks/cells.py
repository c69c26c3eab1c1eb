"""Are points where a density is? Counts in cells of its domain, time by time.

A cell is what is nearest to one center of the basis. Expected shares are integrals of the density
of a draw over the cell. The statistic is that of Freeman and Tukey, ``sum over cells of
(sqrt(count) - sqrt(expected))^2``, of the data and of data drawn from the same draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from ncbayes.base import FloatArray
from ncbayes.checks.comparisons import Compared
from ncbayes.checks.row_statistics import Look
from ncbayes.checks.verification import Picture, Seen
from ncbayes.fields import Field
from ncbayes.integration import fine_nodes
from ncbayes.sites import user_coordinates

if TYPE_CHECKING:
    import xarray as xr

# Draws of the posterior whose shares are worked out, and data sets drawn from them at each time.
DRAWS, REPLICATIONS = 100, 4000
# Nodes of the domain that a cell must hold; smaller ones go to their neighbours.
FEWEST_NODES = 4
SAYS = "there are more or fewer points in some places"


def cell_counts(tree: xr.DataTree, field: Field, rng: np.random.Generator) -> dict[str, Seen]:
    """What counts in cells say, by time."""
    theta = tree["posterior"]["theta"].to_numpy()
    flat = theta.reshape(-1, *theta.shape[2:])
    flat = flat[np.arange(DRAWS) * len(flat) // DRAWS]
    centers, shares = _shares(field, flat)
    tree_of_centers = cKDTree(centers)
    labels = tuple(f"near {_place(field, center)}" for center in centers)
    look = Look("points in cells", labels, lambda x: x, SAYS)
    points = tree["observed_data"]["points"].to_numpy()
    groups = tree["observed_data"]["group"].to_numpy().astype(str)
    found = {}
    for time, label in enumerate(tree["posterior"]["group"].to_numpy().astype(str)):
        own = points[groups == label]
        if not len(own):
            continue
        counts = np.bincount(tree_of_centers.query(own)[1], minlength=len(centers)).astype(float)
        compared = _compared(counts, shares[:, time], rng)
        found[str(label)] = Seen(
            np.nan, np.nan, np.nan, float(REPLICATIONS), np.nan, "", len(own), ((look, compared),),
            (Picture.cells(compared.observed, compared.expected),),
            np.zeros((0, points.shape[1])),
        )  # fmt: skip
    return found


def _shares(field: Field, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centers with cells of their own, and their shares of each density, (draw, time, cell)."""
    model, rows = field.model, theta.reshape(-1, theta.shape[-1])
    nodes = fine_nodes(model, rows)
    centers = model.table
    owned = np.bincount(cKDTree(centers).query(nodes.points)[1], minlength=len(centers))
    centers = centers[owned >= min(FEWEST_NODES, owned.max())]
    cell = cKDTree(centers).query(nodes.points)[1]
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(len(centers)))
    statistics = model.statistics(nodes.points[order])
    # Weights at the ends of a midpoint rule may be below zero; as parts of a sum they do no harm.
    weights = nodes.weights[order]
    shares = np.empty((len(rows), len(centers)))
    for k, row in enumerate(rows):
        values = statistics @ row
        mass = weights * np.exp(values - values.max())
        shares[k] = np.maximum(np.add.reduceat(mass, starts), 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    return centers, shares.reshape(*theta.shape[:2], -1)


def _compared(counts: FloatArray, shares: FloatArray, rng: np.random.Generator) -> Compared:
    total = int(counts.sum())
    chosen = shares[np.arange(REPLICATIONS) * len(shares) // REPLICATIONS]
    expected = total * chosen
    drawn = rng.multinomial(total, chosen)
    ours, theirs = (
        ((np.sqrt(each) - np.sqrt(expected)) ** 2).sum(axis=1) for each in (counts, drawn)
    )
    p_value = float((1 + (theirs >= ours).sum()) / (1 + len(ours)))
    mean = expected.mean(axis=0)
    spread = np.sqrt(np.maximum(drawn.var(axis=0), 1 / REPLICATIONS))
    return Compared((counts - mean) / spread, counts, mean, p_value)


def _place(field: Field, center: FloatArray) -> str:
    at = user_coordinates(field, center[None])[0]
    return ", ".join(f"{value:.5g}" for value in at)
