"""Polya-Gamma sweeps for priors with local scales, such as the horseshoe: run by run.

A sweep is: the global scales; Polya-Gamma weights; every run of coefficients with its local scale
(linalg.clusters); the other coefficients. For noise that changes in every sweep, where nothing can
be learned about a target that is gone.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from ncbayes.base import BoolArray, Clusters, Design, Draw, FloatArray, State
from ncbayes.contrast import Target
from ncbayes.engines.starts import at_zero
from ncbayes.engines.weights import polya_gamma
from ncbayes.linalg.designs import rows as rows_of

# The global scale that chains begin at.
SMALL = 0.01
# Entries of a design whose columns are kept as rows, 128 MB; of larger ones they are made anew
# for every sweep, in blocks of 2 MB, which stay in cache.
KEPT_ENTRIES, BLOCK_ENTRIES = 2**24, 2**18
# Coefficients without a local scale are drawn jointly; more of them than this want another method.
MOST_FREE = 200


@dataclass(frozen=True, eq=False)
class Layout:
    """A target's points, one group after the other, and its columns as rows.

    ``points``: the slice of each group. ``free``: the columns outside all runs, ``free_rows`` (free
    column, point). ``rows``: all columns, one entry a group; None where they are too many to be
    kept, or used once only.
    """

    offset: FloatArray
    is_data: BoolArray
    points: tuple[slice, ...]
    bounds: NDArray[np.intp]
    free: NDArray[np.intp]
    free_rows: FloatArray
    rows: tuple[FloatArray | None, ...]


# By target, for as long as the target is in use; None where sweeps by run can't draw from it.
_LAYOUTS: WeakKeyDictionary[Target, Layout | None] = WeakKeyDictionary()


def layout_of(target: Target, scales: State) -> Layout | None:
    """Made once for a target; None if its prior has no runs, or couples groups or coefficients."""
    if target in _LAYOUTS:
        return _LAYOUTS[target]
    prior: Any = target.prior
    clusters = prior.clusters(scales, target.shape) if hasattr(prior, "clusters") else None
    made = None
    if clusters is not None:
        inside = np.zeros(target.shape[1], dtype=bool)
        for start, size in zip(clusters.starts, clusters.sizes, strict=True):
            inside[start : start + size] = True
        free = np.flatnonzero(~inside)
        precision, _ = prior.gaussian(scales, target.shape)
        if len(free) <= MOST_FREE and precision.between is None and precision.within.ndim == 2:
            bounds = np.cumsum([0, *(len(each.offset) for each in target.contrasts)])
            made = Layout(
                np.concatenate([each.offset for each in target.contrasts]),
                np.concatenate([each.is_data for each in target.contrasts]),
                tuple(slice(*each) for each in itertools.pairwise(bounds.tolist())),
                bounds,
                free,
                np.hstack([picked(each.design, None, free) for each in target.contrasts]),
                _kept([each.design for each in target.contrasts], target.lasting),
            )
    _LAYOUTS[target] = made
    return made


def _kept(designs: list[Design], lasting: bool) -> tuple[FloatArray | None, ...]:
    # Against new noise in every sweep the rows are used once: blocks of them that stay in cache.
    keep = lasting and sum(math.prod(each.shape) for each in designs) <= KEPT_ENTRIES
    return tuple(rows_of(each, 0, each.shape[1]) if keep else None for each in designs)


def blocks_of(clusters: Clusters, points: int) -> list[tuple[int, int]]:
    """Neighbouring runs in blocks of rows that stay in cache."""
    most = max(1, BLOCK_ENTRIES // points)
    blocks, first = [], 0
    for e in range(1, len(clusters.starts) + 1):
        if e < len(clusters.starts):
            adjacent = clusters.starts[e] == clusters.starts[e - 1] + clusters.sizes[e - 1]
            width = clusters.starts[e] + clusters.sizes[e] - clusters.starts[first]
            if adjacent and width <= most:
                continue
        blocks.append((first, e))
        first = e
    return blocks


def usable(target: Target, scales: State) -> bool:
    """Whether the target's prior has runs, and little else."""
    return layout_of(target, scales) is not None


def step(target: Target, draw: Draw, rng: np.random.Generator) -> tuple[Draw, FloatArray]:
    """One sweep: the draw, and the log odds of all points there."""
    layout = layout_of(target, draw.scales)
    if layout is None:
        raise TypeError("the prior of this target has no runs")
    prior: Any = target.prior
    scales = prior.update_global(draw.scales, draw.coef, rng)
    clusters = prior.clusters(scales, target.shape)
    precision, shift = prior.gaussian(scales, target.shape)
    coef, log_local, psi = np.array(draw.coef), np.array(clusters.log_local), layout.offset.copy()
    for g, (contrast, points) in enumerate(zip(target.contrasts, layout.points, strict=True)):
        rows = layout.rows[g]
        psi[points] += contrast.design.matvec(coef[g]) if rows is None else coef[g] @ rows
    weights, half = polya_gamma(psi, rng), np.where(layout.is_data, 0.5, -0.5)
    for g, (contrast, points) in enumerate(zip(target.contrasts, layout.points, strict=True)):
        own, rows = (weights[points], half[points], psi[points]), layout.rows[g]
        _sweep_runs(contrast.design, rows, clusters, own, coef[g], log_local[g], rng)
        free_rows, free = layout.free_rows[:, points], layout.free
        _draw_free(free_rows, free, own, coef[g], (precision.within[g], shift[g]), rng)
    return Draw(coef, prior.relocated(scales, log_local)), psi


def _sweep_runs(
    design: Design,
    kept: FloatArray | None,
    clusters: Clusters,
    points: tuple[FloatArray, FloatArray, FloatArray],
    coef: FloatArray,
    log_local: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Every run of one group; psi (the last of ``points``), coef and log_local change in place."""
    from ncbayes.linalg.clusters import sweep

    whole = [(0, len(clusters.starts))]
    for first, last in whole if kept is not None else blocks_of(clusters, design.shape[0]):
        start = int(clusters.starts[first])
        stop = int(clusters.starts[last - 1] + clusters.sizes[last - 1])
        sweep(
            kept[start:stop] if kept is not None else rows_of(design, start, stop),
            clusters.starts[first:last] - start,
            clusters.sizes[first:last],
            *points,
            coef[start:stop],
            log_local[first:last],
            clusters.multiplier[first:last],
            clusters.slab[first:last],
            clusters.fictitious[first:last],
            rng,
        )


def _draw_free(
    rows: FloatArray,
    free: NDArray[np.intp],
    points: tuple[FloatArray, FloatArray, FloatArray],
    coef: FloatArray,
    prior: tuple[FloatArray, FloatArray],
    rng: np.random.Generator,
) -> None:
    """The coefficients outside all runs, jointly; psi and coef change in place."""
    if not len(free):
        return
    (weights, half, psi), (precision, shift) = points, prior
    gram = (rows * weights) @ rows.T
    right = rows @ (half - weights * psi) + gram @ coef[free] + shift[free]
    np.einsum("ii->i", gram)[...] += precision[free]
    factor, failed = dpotrf(gram, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the precision of coef is not positive definite")
    half_way, _ = dtrtrs(factor, right, lower=1)
    new, _ = dtrtrs(factor, half_way + rng.standard_normal(len(free)), lower=1, trans=1)
    psi += (new - coef[free]) @ rows
    coef[free] = new


def shrunk(target: Target, rng: np.random.Generator) -> Draw:
    """Where sweeps find the posterior soon: theta zero and its scales small, c fitted to that.

    From small scales coefficients enter as the data ask for them; from large ones they all have
    to find their way back to zero.
    """
    prior: Any = target.prior
    scales = prior.draw(target.shape, rng)
    return Draw(at_zero(target), prior.rescaled(scales, SMALL))


def picked(design: Design, kept: FloatArray | None, columns: NDArray[np.intp]) -> FloatArray:
    """Some columns of a design as rows."""
    if kept is not None:
        return np.asarray(kept[columns])
    out = np.empty((len(columns), design.shape[0]))
    breaks = np.flatnonzero(np.diff(columns) > 1) + 1
    for part in np.split(np.arange(len(columns)), breaks) if len(columns) else ():
        out[part] = rows_of(design, int(columns[part[0]]), int(columns[part[-1]]) + 1)
    return out
