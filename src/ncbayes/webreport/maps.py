"""Densities on a grid: means, intervals and changes, in whole numbers of their last decimal."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import densities
from ncbayes.base import FloatArray
from ncbayes.fields import Field, stored_field
from ncbayes.posterior import Posterior
from ncbayes.readout import labels_of, points_of
from ncbayes.sites import sites, user_coordinates
from ncbayes.spaces import Region
from ncbayes.webreport.packing import decimals_of, packed, plain, whole

# Cells along the longer side of a map, and points of a curve.
CELLS, CURVE = 60, 200
# Draws of the densities, and how many numbers they may be: 320 MB while the page is made.
MOST_DRAWS, MOST_VALUES = 500, 40_000_000
# What the numbers of the maps may take, in bytes before base64, which adds a third: of 5 MB.
MOST_BYTES = 3_000_000
# Two bytes each for mean, sd and both ends, and at least one for the probability of an increase.
CELL_BYTES = 9
# An increase is sure with this probability in percent, a decrease with 100 less this.
SURE = 95
# Added to the percents of an increase where it is open whether there is one.
OPEN = 128
# More points than this hide the map.
MOST_POINTS = 20_000
# Beyond this ratio of height and width a map is stretched.
LONGEST = 2.5


def density(posterior: Posterior, labels: list[str], level: float) -> dict[str, Any]:
    """The densities at these times; of one or two dimensions."""
    field = stored_field(posterior.data, "webreport.write")
    times = [labels_of(posterior).index(label) for label in labels]
    flat = len(field.axes) == 2
    usual = CELLS if flat else CURVE
    size = _size(field, usual, len(labels))
    cells = size ** len(field.axes) * len(labels_of(posterior))
    draws = max(2, min(MOST_DRAWS, MOST_VALUES // cells))
    values = densities.density_draws(posterior, size=size, draws=draws).isel(time=times)
    table = values.to_numpy().reshape(*values.shape[:2], -1)
    inside = np.flatnonzero(~np.isnan(table[0, 0]))
    table = np.ascontiguousarray(table[:, :, inside])
    found: dict[str, Any] = {
        "axes": list(field.axes),
        "times": labels,
        "level": level,
        "draws": len(table),
        "size": size,
        "usual": usual,
        "units": values.attrs["units"],
        "ticks": [[plain(tick, 9) for tick in values[name].to_numpy()] for name in _names(values)],
        "points": _points(posterior, field, labels),
        **_moments(table, level),
    }
    if flat:
        found |= _ground(field, values.shape[2:], inside)
        found |= _changes(table, level, found["decimals"])
    return found


def _size(field: Field, usual: int, times: int) -> int:
    """Cells along the longer side: the usual number, or about the most with room."""
    size = usual
    while size > 2:
        needed = CELL_BYTES * times * int(sites(field, None, size, "webreport.write").inside.sum())
        if needed <= MOST_BYTES:
            break
        size = max(2, min(size - 1, int(size * (MOST_BYTES / needed) ** (1 / len(field.axes)))))
    return size


def _names(values: Any) -> list[str]:
    """The axes of the grid, the first one first."""
    return [str(name) for name in values.dims[:1:-1]]


def _moments(table: FloatArray, level: float) -> dict[str, Any]:
    tail = (1 - level) / 2
    mean, sd = table.mean(axis=0), table.std(axis=0, ddof=1)
    low, high = np.quantile(table, [tail, 1 - tail], axis=0)
    decimals = decimals_of(float(max(high.max(), mean.max(), sd.max())))
    shown = {"mean": mean, "sd": sd, "low": low, "high": high}
    packs = {name: whole(each, decimals, "u2") for name, each in shown.items()}
    return {"decimals": decimals, **packs}


def _ground(field: Field, shape: tuple[int, ...], inside: NDArray[np.intp]) -> dict[str, Any]:
    """Which cells there are, the nearest one for each other, the outline and the sides."""
    from scipy.ndimage import distance_transform_edt

    space: Any = field.space
    low, high = user_coordinates(field, np.array(space.bounds))
    number = np.full(math.prod(shape), -1)
    number[inside] = np.arange(len(inside))
    rows, columns = distance_transform_edt(
        number.reshape(shape) < 0, return_distances=False, return_indices=True
    )
    turned = 1.0
    if field.projection is not None:
        turned = 1 / math.cos(math.radians((low[1] + high[1]) / 2))
    tall = turned * float((high[1] - low[1]) / (high[0] - low[0]))
    rings = space.rings if isinstance(space, Region) else []
    return {
        "shape": list(shape),
        "bounds": [[plain(each, 9) for each in end] for end in (low, high)],
        "tall": plain(min(max(tall, 1 / LONGEST), LONGEST)),
        "cells": packed(inside, "u2"),
        "nearest": packed(number.reshape(shape)[rows, columns], "u2"),
        "rings": [packed(user_coordinates(field, ring), "f4") for ring in rings],
    }


def _changes(table: FloatArray, level: float, decimals: int) -> dict[str, Any]:
    """The probability of an increase, and where there is room the interval, for pairs of times.

    Every pair of times if there is room, else pairs with a few times to compare with.
    """
    _, times, cells = table.shape
    left = MOST_BYTES - 8 * times * cells
    pairs, whole_story = list(combinations(range(times), 2)), True
    references = list(range(times))
    if 5 * len(pairs) * cells > left:
        whole_story = False
        count = min(times, max(1, left // (times * cells)))
        references = np.unique(np.linspace(0, times - 1, count).round().astype(int)).tolist()
        pairs = [(a, b) for a, b in pairs if a in references or b in references]
    tail = (1 - level) / 2
    rise = np.empty((len(pairs), cells), dtype=np.uint8)
    ends = np.empty((2, len(pairs), cells)) if whole_story else None
    for k, (a, b) in enumerate(pairs):
        step = table[:, b] - table[:, a]
        rise[k] = _percents((step > 0).sum(axis=0), len(step))
        if ends is not None:
            ends[:, k] = np.quantile(step, [tail, 1 - tail], axis=0)
    # Changes have a sign, which takes half of the whole numbers.
    fewer = decimals - 1
    found: dict[str, Any] = {
        "pairs": [list(pair) for pair in pairs],
        "references": references,
        "rise": packed(rise, "u1"),
        "sure": SURE,
        "open": OPEN,
        "change_decimals": fewer,
        "change_low": None,
        "change_high": None,
    }
    if ends is not None:
        found |= {"change_low": whole(ends[0], fewer, "i2")}
        found |= {"change_high": whole(ends[1], fewer, "i2")}
    return found


def _percents(risen: NDArray[np.intp], draws: int) -> NDArray[np.intp]:
    """Draws that rose, in whole percents; what is open is marked by the number before rounding."""
    open_ = (100 * risen > (100 - SURE) * draws) & (100 * risen < SURE * draws)
    return (200 * risen + draws) // (2 * draws) + OPEN * open_


def _points(posterior: Posterior, field: Field, labels: list[str]) -> dict[str, Any]:
    """The data of every time in the user's coordinates, thinned where there are too many."""
    stored = points_of(posterior)
    own = [user_coordinates(field, stored.get(label, np.zeros((0, len(field.axes)))))
           for label in labels]  # fmt: skip
    total = sum(map(len, own))
    every = math.ceil(total / MOST_POINTS) if total else 1
    return {
        "counts": [len(each) for each in own],
        "every": every,
        "places": [packed(each[::every], "f4") for each in own],
    }
