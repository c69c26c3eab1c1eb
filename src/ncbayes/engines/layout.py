"""The points and columns of a target, laid out for sweeps run by run."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, Clusters, Design, FloatArray, State
from ncbayes.contrast import Target
from ncbayes.linalg.designs import rows as rows_of

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


def picked(design: Design, kept: FloatArray | None, columns: NDArray[np.intp]) -> FloatArray:
    """Some columns of a design as rows."""
    if kept is not None:
        return np.asarray(kept[columns])
    out = np.empty((len(columns), design.shape[0]))
    breaks = np.flatnonzero(np.diff(columns) > 1) + 1
    for part in np.split(np.arange(len(columns)), breaks) if len(columns) else ():
        out[part] = rows_of(design, int(columns[part[0]]), int(columns[part[-1]]) + 1)
    return out
