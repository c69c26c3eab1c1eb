"""From points and time stamps to a density that changes over time (the paper's section 4)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ncbayes import inputs
from ncbayes.base import FloatArray, InputError, Noise, Prior, Schedule, Space, shown
from ncbayes.contrast import Engine, uses_noise
from ncbayes.fields import Field
from ncbayes.fit import fitted
from ncbayes.models import RadialBasis
from ncbayes.models.radial import BASIS, LEAST, MOST, Kernel
from ncbayes.noise import Adaptive, Auto, KernelDensity, Mixture, Restricted, Uniform
from ncbayes.periods import Periods, periods
from ncbayes.posterior import Posterior
from ncbayes.priors import RandomWalk
from ncbayes.progress import Progress
from ncbayes.spaces import Box, Projection, Reals, Region, as_points, column_count
from ncbayes.spaces.outlines import even_odd, shapely

# The box around the data is wider than their range by this share of it on each side.
MARGIN = 0.1
# Noise points for each data point where the user leaves it open.
NOISE_RATIO = 5.0
# The paper's alpha of adaptive noise in its section 4.
ALPHA = 0.2
# The share of noise points anywhere in the domain. Without them nothing would tell the density far
# from all points, and mass would leak there.
ANYWHERE = 0.1
# A time with fewer points than this has no noise of its own, but the common one.
FEWEST_FOR_NOISE = 10
LONGITUDE, LATITUDE = ("longitude", "long", "lon", "lng"), ("latitude", "lat")
# Words for noise that are made here, and those that ``fit`` knows.
WORDS = ("common", "per_time", "adaptive", "auto", "matched")
# Engines that do without noise.
NOISELESS = ("exact", "exchange", "hyvarinen", "pseudolikelihood")


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
        of the categories of a pandas Categorical). Dates are those of the clock on the wall; as
        text, 3/12/2022 begins with the month unless another of them can't.
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
        fitted model (aN, alpha = 0.2); each with a tenth of its points anywhere in the domain; or
        what ``fit`` takes.
    noise_ratio
        Noise points for each data point; None: 5.
    prior
        Of theta; None: ``RandomWalk(initial="separate")`` at the times. ``RandomWalk()`` is the
        paper's.
    engine, draws, tune, chains, cores, seed, checkpoint, progress
        As in ``fit``.
    """
    options = (engine, draws, tune, chains, cores, seed, checkpoint, progress)
    _check_engine(engine)
    axes, table, in_degrees = _table(points, degrees)
    found = periods(times, every, len(table))
    projection = None
    if in_degrees:
        # In the order of time, so that nothing depends on the order of the rows.
        projection = Projection.around(table[np.argsort(found.index, kind="stable")])
        table = projection.forward(table)
    space = _space(domain, table, axes, projection)
    table, found, dropped = _inside(table, found, space, outside)
    groups = {label: table[found.index == g] for g, label in enumerate(found.labels)}
    pooled = np.concatenate(list(groups.values()))
    model = RadialBasis.match(pooled, space, basis, bandwidth, kernel)
    field = Field(model, axes, found.starts, projection, dropped)
    if prior is None:
        places = None if found.places is None else tuple(found.places.tolist())
        prior = RandomWalk(times=places, initial="separate")
    if noise_ratio is None and not (isinstance(noise, Auto) or _is_word(noise, "auto")):
        noise_ratio = NOISE_RATIO
    made = _noise(noise, groups, pooled, space)
    return fitted(model, groups, made, prior, noise_ratio, options, field)


def _is_word(noise: object, word: str) -> bool:
    return isinstance(noise, str) and noise == word


def _check_engine(engine: Any) -> None:
    """Refuse engines that do without noise; others are checked by ``fit``."""
    if any(_is_word(engine, word) for word in NOISELESS) or not uses_noise(engine):
        raise InputError(
            'engine must be "auto", "gibbs" or one such as ncbayes.engines.Gibbs(): densities over '
            f"time are fitted by contrast with noise, which {shown(engine)} does not use"
        )


def _table(points: Any, degrees: Any) -> tuple[tuple[str, ...], FloatArray, bool]:
    """Names of the axes, the coordinates, longitude first, and whether they are degrees."""
    if not (degrees is None or isinstance(degrees, bool | np.bool_)):
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
    named = any(name in low for name in LONGITUDE) and any(name in low for name in LATITUDE)
    if dimension != 2 and (degrees or (named and degrees is None)):
        raise InputError(
            f"points in degrees must have 2 columns, longitude and latitude, got {dimension}: "
            "select these two, or pass degrees=False"
        )
    if named and degrees is not False:
        order = [1, 0] if low[0] in LATITUDE else [0, 1]
        return tuple(axes[k] for k in order), np.ascontiguousarray(table[:, order]), True
    return axes, table, bool(degrees)


def _space(
    domain: Any, table: FloatArray, axes: Sequence[str], projection: Projection | None
) -> Box | Region:
    if domain is None:
        low, high = table.min(axis=0), table.max(axis=0)
        _check_sizes("points", low, high)
        if not (low < high).all():
            k = int(np.argmin(low < high))
            raise InputError(
                f"points must differ in every column, got {low[k]:.6g} throughout {shown(axes[k])}:"
                " leave this column out, or pass domain=ncbayes.spaces.Box(low, high)"
            )
        return Box(low - MARGIN * (high - low), high + MARGIN * (high - low))
    space = domain if isinstance(domain, Box | Region) else Region.of(domain)
    _check_sizes("domain", *space.bounds)
    if space.dimension != table.shape[1]:
        raise InputError(
            f"domain has {space.dimension} dimensions and points have {table.shape[1]} columns; "
            "they must agree"
        )
    if projection is None:
        return space
    for ring in space.rings if isinstance(space, Region) else [np.array(space.bounds)]:
        _check_whole(ring, projection)
    if isinstance(space, Box):
        return Box(*projection.forward(np.array(space.bounds)))
    # Parts that end at the date line, as in GeoJSON, meet there and are joined.
    return Region.of(shapely().transform(even_odd(space.rings), projection.forward))


def _check_sizes(what: str, low: FloatArray, high: FloatArray) -> None:
    """Refuse coordinates whose squares would leave double precision."""
    with np.errstate(over="ignore"):
        sides = high - low
    largest = max(np.abs(low).max(), np.abs(high).max())
    if largest > MOST or ((sides > 0) & (sides < LEAST)).any():
        raise InputError(
            f"{what} must have coordinates of up to {MOST:g} that are {LEAST:g} or more apart, got "
            f"{shown(low.tolist())} to {shown(high.tolist())}: rescale them to ordinary units"
        )


def _check_whole(corners: FloatArray, projection: Projection) -> None:
    """Refuse corners that the projection tears apart, on the far side of the earth."""
    longitude = projection.longitude
    degree = projection.forward([[longitude + 1, projection.latitude]])[0, 0]
    away = projection.forward(corners)[:, 0] / degree
    if np.ptp(corners[:, 0] - away) > 180:
        raise InputError(
            "domain must lie within 180 degrees east and west of the points, which are around "
            f"longitude {longitude:.4g}, got longitudes from {corners[:, 0].min():.6g} to "
            f"{corners[:, 0].max():.6g}: cut it off nearer to the points"
        )


def _inside(
    table: FloatArray, found: Periods, space: Space, outside: str
) -> tuple[FloatArray, Periods, int]:
    """The points in the space, their groups, and how many were left out."""
    if not (isinstance(outside, str) and outside in ("error", "drop")):
        raise InputError(f'outside must be "error" or "drop", got {shown(outside)}')
    inside = space.contains(table)
    if not inside.any():
        raise InputError(
            "points must lie in the domain, got none that does: check that domain and points have "
            "the same coordinates, longitude before latitude"
        )
    dropped = int(np.sum(~inside))
    if dropped and outside == "error":
        row = int(np.argmin(inside))
        raise InputError(
            f"{dropped} of {len(table)} points lie outside the domain, the first in row {row} "
            '(counted from 0): widen the domain, or pass outside="drop"'
        )
    kept = Periods(found.labels, found.index[inside], found.starts, found.places)
    return table[inside], kept, dropped


def _noise(
    noise: Any, groups: Mapping[str, FloatArray], pooled: FloatArray, space: Box | Region
) -> Any:
    """Noise for ``fit``, by word."""
    if not isinstance(noise, str):
        return noise
    if noise not in WORDS:
        raise InputError(
            f"noise must be one of {', '.join(map(repr, WORDS))}, or what ncbayes.fit takes, got "
            f"{shown(noise)}"
        )
    if noise in ("auto", "matched"):
        return noise
    common = _kernels(pooled, space)
    if noise == "common":
        return common
    if noise == "adaptive":
        return Adaptive(noise=common, alpha=ALPHA)
    return {
        label: _kernels(own, space) if _is_spread(own) else common for label, own in groups.items()
    }


def _is_spread(points: FloatArray) -> bool:
    return len(points) >= FEWEST_FOR_NOISE and bool(np.all(np.ptp(points, axis=0) > 0))


def _kernels(points: FloatArray, space: Box | Region) -> Noise:
    if isinstance(space, Box):
        kernels: Any = KernelDensity.match(points, space)
    else:
        kernels = Restricted.to(KernelDensity.match(points), space)
    return Mixture((kernels, Uniform(space)), (1 - ANYWHERE, ANYWHERE))
