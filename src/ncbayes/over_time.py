"""From points and time stamps to a density that changes over time (the paper's section 4)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ncbayes import inputs
from ncbayes.base import FloatArray, InputError, Noise, Prior, Schedule, Space, shown
from ncbayes.contrast import Engine
from ncbayes.fields import Field
from ncbayes.fit import fitted
from ncbayes.models import RadialBasis
from ncbayes.models.radial import BASIS, Kernel
from ncbayes.noise import Adaptive, Auto, KernelDensity, Restricted
from ncbayes.periods import Periods, periods
from ncbayes.posterior import Posterior
from ncbayes.priors import RandomWalk
from ncbayes.progress import Progress
from ncbayes.spaces import Box, Projection, Reals, Region, as_points, column_count

# The box around the data is wider than their range by this share of it on each side.
MARGIN = 0.1
# Noise points for each data point where the user leaves it open.
NOISE_RATIO = 5.0
# The paper's alpha of adaptive noise in its section 4.
ALPHA = 0.2
# A time with fewer points than this has no noise of its own, but the common one.
FEWEST_FOR_NOISE = 10
LONGITUDE, LATITUDE = ("longitude", "long", "lon", "lng"), ("latitude", "lat")
WORDS = ("common", "per_time", "adaptive", "auto")


def fit_density_over_time(
    points: Any,
    times: Any,
    *,
    domain: Any = None,
    every: str | float | None = None,
    degrees: bool | None = None,
    outside: str = "error",
    basis: int = BASIS,
    bandwidth: float | None = None,
    kernel: Kernel = "exponential",
    noise: Noise | Mapping[str, Noise] | Schedule | Adaptive | Auto | str = "common",
    noise_ratio: float | None = None,
    prior: Prior | Mapping[str, Prior] | None = None,
    engine: str | Engine = "auto",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    seed: inputs.Seed = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Posterior:
    """Fit a density of points that changes over time: a radial basis with a random walk.

    ``log p_t(x) = sum_l theta_tl phi(|x - center_l| / bandwidth) - log Z_t`` at every time t, and
    theta_t a random walk. ``ncbayes.densities`` reads densities off the posterior.

    Parameters
    ----------
    points
        One row a point: an array or a data frame of coordinates.
    times
        One time stamp a point, in any order: dates, numbers, or labels (in order of appearance, or
        of the categories of a pandas Categorical).
    domain
        Where points can be: a ``Box``; a polygon (shapely, GeoJSON, the path of a GeoJSON file,
        corners, a ``Region``), outside of which the density is zero; None: a box a tenth
        wider than the data on each side.
    every
        How times are put together: "day", "week", "month", "quarter" or "year" for dates, a width
        for numbers. None: the shortest of these with 20 points a period and at most 60 periods;
        every number by itself. A period without points is carried by its neighbours.
    degrees
        Whether points (and domain) are longitude and latitude. They are then projected to km, and
        densities are per square kilometer. None: if the frame's columns say so by name.
    outside
        "error" or "drop": what to do with points outside the domain.
    basis, bandwidth, kernel
        The number of basis functions, and see ``models.RadialBasis.match``.
    noise
        "common": kernels at all points, for all times (the paper's N1); "per_time": kernels at
        the points of each time (N2); "adaptive": from common noise part of the way toward the
        fitted model (aN, alpha = 0.2); or what ``fit`` takes.
    noise_ratio
        Noise points for each data point; None: 5.
    prior
        Of theta; None: ``RandomWalk(initial="separate")`` at the times. ``RandomWalk()`` is the
        paper's.
    engine, draws, tune, chains, cores, seed, checkpoint, progress
        As in ``fit``.
    """
    options = (engine, draws, tune, chains, cores, seed, checkpoint, progress)
    axes, table, in_degrees = _table(points, degrees)
    found = periods(times, every, len(table))
    projection = Projection.around(table) if in_degrees else None
    if projection is not None:
        table = projection.forward(table)
    space = _space(domain, table, projection)
    table, found, dropped = _inside(table, found, space, axes, outside)
    model = RadialBasis.match(table, space, basis, bandwidth, kernel)
    groups = {label: table[found.index == g] for g, label in enumerate(found.labels)}
    field = Field(model, axes, found.starts, projection, dropped)
    if prior is None:
        places = None if found.places is None else tuple(found.places.tolist())
        prior = RandomWalk(times=places, initial="separate")
    if noise_ratio is None and not (isinstance(noise, Auto) or _is_word(noise, "auto")):
        noise_ratio = NOISE_RATIO
    return fitted(model, groups, _noise(noise, groups, space), prior, noise_ratio, options, field)


def _is_word(noise: object, word: str) -> bool:
    return isinstance(noise, str) and noise == word


def _table(points: Any, degrees: Any) -> tuple[tuple[str, ...], FloatArray, bool]:
    """Names of the axes, the coordinates, longitude first, and whether they are degrees."""
    if degrees not in (None, True, False):
        raise InputError(f"degrees must be True, False or None, got {shown(degrees)}")
    dimension = column_count(points)
    table = as_points(points, Reals(dimension), "fit_density_over_time")
    columns = getattr(points, "columns", None)
    if columns is None:
        axes = (
            ("longitude", "latitude") if degrees else tuple(f"x{k + 1}" for k in range(dimension))
        )
    else:
        axes = tuple(map(str, columns))
    low = [axis.lower() for axis in axes]
    named = len(low) == 2 and any(n in low for n in LONGITUDE) and any(n in low for n in LATITUDE)
    if degrees and dimension != 2:
        raise InputError(
            f"points in degrees need 2 columns, longitude and latitude, got {dimension}"
        )
    if named and degrees is not False:
        order = [1, 0] if low[0] in LATITUDE else [0, 1]
        return tuple(axes[k] for k in order), np.ascontiguousarray(table[:, order]), True
    return axes, table, bool(degrees)


def _space(domain: Any, table: FloatArray, projection: Projection | None) -> Space:
    if domain is None:
        low, high = table.min(axis=0), table.max(axis=0)
        if not (low < high).all():
            raise InputError(
                "points must differ in every column, or pass domain=ncbayes.spaces.Box(low, high)"
            )
        return Box(low - MARGIN * (high - low), high + MARGIN * (high - low))
    space = domain if isinstance(domain, Box | Region) else Region.of(domain)
    if space.dimension != table.shape[1]:
        raise InputError(
            f"domain has {space.dimension} dimensions and points have {table.shape[1]} columns; "
            "they must agree"
        )
    if projection is None:
        return space
    if isinstance(space, Box):
        return Box(*projection.forward(np.array(space.bounds)))
    return Region(tuple(projection.forward(ring) for ring in space.rings))


def _inside(
    table: FloatArray, found: Periods, space: Space, axes: Sequence[str], outside: str
) -> tuple[FloatArray, Periods, int]:
    """The points in the space, their groups, and how many were left out."""
    if outside not in ("error", "drop"):
        raise InputError(f'outside must be "error" or "drop", got {shown(outside)}')
    inside = space.contains(table)
    if outside == "error" or inside.all():
        if not inside.all():
            row = int(np.flatnonzero(~inside)[0])
            raise InputError(
                f"{int(np.sum(~inside))} of {len(table)} points lie outside the domain, the first "
                f'in row {row} (counted from 0): widen the domain, or pass outside="drop"'
            )
        return table, found, 0
    if not inside.any():
        raise InputError(
            "no point lies in the domain; check that domain and points have the same coordinates, "
            "longitude before latitude"
        )
    kept = Periods(found.labels, found.index[inside], found.starts, found.places)
    return np.ascontiguousarray(table[inside]), kept, int(np.sum(~inside))


def _noise(noise: Any, groups: Mapping[str, FloatArray], space: Space) -> Any:
    """Noise for ``fit``, by word."""
    if not isinstance(noise, str):
        return noise
    if noise not in WORDS:
        raise InputError(
            f"noise must be one of {', '.join(map(repr, WORDS))}, or what ncbayes.fit takes, got "
            f"{shown(noise)}"
        )
    if noise == "auto":
        return noise
    common = _kernels(np.concatenate(list(groups.values())), space)
    if noise == "common":
        return common
    if noise == "adaptive":
        return Adaptive(noise=common, alpha=ALPHA)
    return {
        label: _kernels(own, space) if _is_spread(own) else common for label, own in groups.items()
    }


def _is_spread(points: FloatArray) -> bool:
    return len(points) >= FEWEST_FOR_NOISE and bool(np.all(np.ptp(points, axis=0) > 0))


def _kernels(points: FloatArray, space: Space) -> Noise:
    if isinstance(space, Box):
        return KernelDensity.match(points, space)
    return Restricted.to(KernelDensity.match(points), space)
