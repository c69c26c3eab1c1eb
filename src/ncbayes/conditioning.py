"""What the data say about the statistics: their centre, their scale, and a prior on that scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Prior
from ncbayes.contrast import Contrast
from ncbayes.priors import Horseshoe, MultivariateNormal, Normal

# Beyond this many statistics, or with fewer than twice as many rows, a covariance says little.
MOST_CORRELATED = 500
# How many standard deviations of the log density over the data the default prior allows.
DEFAULT_SPREAD = 10.0
# The slab of edges, in units: two of these are a log odds ratio of 5, and few are beyond.
SLAB = 2.5
# Spreads beyond this, or below its inverse, have squares and products that leave double precision.
LARGEST = 1e70


def data_mean(contrasts: Sequence[Contrast]) -> FloatArray:
    """The mean of the statistics over the data of all groups."""
    rows = sum(int(each.is_data.sum()) for each in contrasts)
    total = np.sum([each.design.rmatvec(each.is_data.astype(float)) for each in contrasts], axis=0)
    return np.asarray(total[:-1] / rows)


def default_prior(model: Any, contrasts: Sequence[Contrast], start: int, stop: int) -> Prior:
    """The prior of what has none: a horseshoe for edges, else a weak normal.

    Edges are many, and most of them do not matter. Where statistics come in runs, as those of the
    edges of a torus graph, runs share a scale. Edges of one statistic are in the units that the
    model tells (``edge_units``), so that the slab allows log odds ratios, or their like, up to 5.
    ``field_scale``: the prior sd of the statistics of nodes, where the model has one.
    """
    if hasattr(model, "clusters"):
        return Horseshoe()
    if hasattr(model, "edge_units"):
        edges = np.concatenate([np.ravel(each) for each in model.edge_columns.values()])
        # A model made from ours may have one statistic for all edges.
        if np.array_equal(np.arange(start, stop), edges):
            return Horseshoe(slab=SLAB, units=model.edge_units(deviations(contrasts)))
        if hasattr(model, "field_scale"):
            return Normal(model.field_scale)
    return weak_normal(contrasts, start, stop)


def weak_normal(contrasts: Sequence[Contrast], start: int, stop: int) -> Prior:
    """``theta ~ N(0, 100 C^-1)`` with C the covariance of these statistics over the data.

    The log density ``theta . statistics`` then has a standard deviation of about 10 over the
    data: weak, and the same whatever the units and the origin of the data. Where there are too many
    statistics for a covariance, ``theta_k ~ N(0, (10 / sd_k)^2)``.
    """
    count = stop - start
    spread = deviations(contrasts)[start:stop]
    rows = sum(int(each.is_data.sum()) for each in contrasts)
    if count > MOST_CORRELATED or rows < 2 * count:
        return Normal(DEFAULT_SPREAD / spread)
    matrix = np.concatenate([each.design.dense()[each.is_data, start:stop] for each in contrasts])
    covariance = np.atleast_2d(np.cov(matrix / spread, rowvar=False))
    # The ridge keeps it positive definite where the data do not vary, or not independently.
    np.einsum("ii->i", covariance)[...] += 1e-8
    constant = np.ptp(matrix, axis=0) == 0
    covariance[constant, constant] = 1.0
    return MultivariateNormal(covariance / np.outer(1 / spread, 1 / spread) / DEFAULT_SPREAD**2)


def units(model: Any, contrasts: Sequence[Contrast]) -> FloatArray:
    """How much of theta moves the log density by one sd over the data, by statistic.

    The geometric mean of these where statistics are ``alike``: those of a basis, of which some are
    where there are no data.
    """
    own = 1 / deviations(contrasts)
    alike = getattr(model, "alike", False)
    return np.full(len(own), np.exp(np.mean(np.log(own)))) if alike else own


def deviations(contrasts: Sequence[Contrast]) -> FloatArray:
    """Standard deviations of the statistics over the data; over all points where those are zero."""
    of_data = _deviation(contrasts, [each.is_data.astype(float) for each in contrasts])
    of_all = _deviation(contrasts, [np.ones(len(each.offset)) for each in contrasts])
    spread = np.where(of_data > 0, of_data, of_all)
    extreme = np.flatnonzero(~np.isfinite(spread) | (spread > LARGEST) | (of_all < 1 / LARGEST))
    extreme = extreme[of_all[extreme] != 0]
    if len(extreme):
        raise InputError(
            f"statistic number {extreme[0]} has a standard deviation of {spread[extreme[0]]:.3g}, "
            "beyond what double precision can square; rescale the data to ordinary units"
        )
    return np.where(spread > 0, spread, 1.0)


def _deviation(contrasts: Sequence[Contrast], weights: Sequence[FloatArray]) -> FloatArray:
    pairs = list(zip(contrasts, weights, strict=True))
    points = sum(float(weight.sum()) for weight in weights)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        mean = np.sum([each.design.rmatvec(w) for each, w in pairs], axis=0)[:-1] / points
        square = np.sum([each.design.gram_diagonal(w) for each, w in pairs], axis=0)[:-1] / points
        # Round-off leaves a share of 1e-15 of the square where a statistic does not vary.
        varies = ~(square - mean**2 <= 1e-13 * square)
        return np.asarray(np.sqrt(np.where(varies, square - mean**2, 0)))
