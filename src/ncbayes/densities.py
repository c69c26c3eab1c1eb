"""Read-outs of densities: normalized, with intervals, over space and time.

The density of a draw is ``p_t(x) = exp(theta_t . statistics(x)) / Z_t`` inside the domain and zero
outside, with Z_t worked out numerically for every draw: the log_z of the fit is not used.

All functions take a posterior of ``ncbayes.fit_density_over_time`` or of a fit of
``ncbayes.models.RadialBasis``, also one from a file. ``density`` and ``change`` also
take kernels of ``ncbayes.baselines.kde_over_time``, whose results have ``mean`` only. They share
these arguments, of which ``draws``, ``interval`` and ``level`` mean nothing to kernels:

``at``        points (n, d) in the coordinates of the data (degrees, if these were degrees; the
              density is then per square kilometer), or None for a grid over the domain, with NaN
              outside a polygon
``size``      cells of that grid along the longer side
``draws``     how many draws are used at most, evenly chosen from all chains
``interval``  "quantile" (equal tails), "hpd" (the shortest) or "normal" (mean +- z sd, which may
              reach below zero), each at every point by itself, of probability ``level``
``time``      by label, by date or number, or by position from 0, where a number that is a time
              comes before a position

Results are xarray objects with the dimensions (time, point), or for a grid (time, second axis,
first axis); ``.to_netcdf(path)`` writes them to a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.couplings import check_level
from ncbayes.exports import to_geojson, to_geotiff
from ncbayes.inputs import Seed, checked_count, checked_entropy
from ncbayes.posterior import Posterior
from ncbayes.readout import (
    DENSITY,
    Density,
    Fitted,
    Source,
    check_draws,
    check_interval,
    described,
    fitted,
    ground,
    reduced,
    source,
    thinned,
)
from ncbayes.sites import Sites, sites, units
from ncbayes.spaces import is_numeric
from ncbayes.stamps import chosen, later, position

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "change",
    "density",
    "density_draws",
    "exceedance",
    "forecast",
    "to_geojson",
    "to_geotiff",
]

# An array of draws larger than this (4 GB) is most likely a mistake.
MOST_VALUES = 500_000_000
# Steps ahead beyond which a forecast says nothing.
MOST_STEPS = 1000
# What the variance of a random walk's steps is called among the draws.
STEPS = ("theta.variance", "basis.variance")


def density(
    posterior: Density,
    at: Any = None,
    *,
    times: Sequence[Any] | None = None,
    interval: str = "quantile",
    level: float = 0.9,
    size: int = 60,
    draws: int = 1000,
) -> xr.Dataset:
    """The density at every time, or at these: ``mean``, ``sd``, and the ends ``low``, ``high``.

    Of kernels: ``mean``, the estimate.
    """
    found, where = _opened("densities.density", posterior, at, size, draws)
    if times is not None:
        found = found.at(chosen(times, found.field.times, found.labels, found.field.style))
    return _summary(found, where, interval, level)


def density_draws(
    posterior: Posterior, at: Any = None, *, size: int = 60, draws: int = 1000
) -> xr.DataArray:
    """The density of every draw, (sample, time, ...); it integrates to one over the domain."""
    import xarray as xr

    found, where = _drawn("densities.density_draws", posterior, at, size, draws)
    shape = (*found.theta.shape[:2], len(where.points))
    count = math.prod(shape)
    if count > MOST_VALUES:
        raise InputError(
            f"densities.density_draws would hold {count:.2g} numbers, {8e-9 * count:.2g} GB: ask "
            "for fewer draws or points, or for a summary by densities.density"
        )
    values = np.full(shape, where.beyond)
    rows = np.flatnonzero(where.inside)
    for part, some in found.pieces(where.points[rows]):
        values[:, :, rows[part]] = some
    return xr.DataArray(
        values.reshape(*shape[:2], *where.shape),
        dims=("sample", "time", *where.dims),
        coords={**found.coords, **where.coords},
        name="density",
        attrs={"long_name": "density", "units": units(found.field)},
    )


def change(
    posterior: Density,
    start: Any,
    end: Any,
    at: Any = None,
    *,
    interval: str = "quantile",
    level: float = 0.9,
    size: int = 60,
    draws: int = 1000,
) -> xr.Dataset:
    """The density at time ``end`` minus that at ``start``: mean, sd, low, high.

    ``probability`` is the posterior probability that the density increased. Of kernels: ``mean``,
    the difference.
    """
    found, where = _opened("densities.change", posterior, at, size, draws)
    check_interval(interval)
    check_level(level)
    times, labels, style = found.field.times, found.labels, found.field.style
    named = {"start": start, "end": end}
    ends = [position(time, times, labels, name, style) for name, time in named.items()]
    if ends[0] == ends[1]:
        raise InputError(f"start and end must be different times, got {labels[ends[0]]!r} twice")

    def reduce(values: FloatArray) -> Mapping[str, FloatArray]:
        step = values[:, 1:] - values[:, :1]
        rises = {"probability": (step > 0).mean(axis=0)} if isinstance(found, Fitted) else {}
        return {**found.moments(step, interval, level), **rises}

    both = found.at(ends)
    data = reduced(both, where, reduce).isel(time=0)
    if "probability" in data:
        data["probability"].attrs = {"long_name": "probability of an increase", "units": "1"}
    first, last = both.labels
    what = f"change of the density from {first} to {last}"
    return described(data, both, interval, level, what, start=first, end=last)


def exceedance(
    posterior: Posterior, threshold: float, at: Any = None, *, size: int = 60, draws: int = 1000
) -> xr.DataArray:
    """The posterior probability that the density exceeds the threshold, at every time."""
    found, where = _drawn("densities.exceedance", posterior, at, size, draws)
    unit = units(found.field)
    fine = is_numeric(threshold) and np.ndim(threshold) == 0 and math.isfinite(threshold)
    if not fine or threshold < 0:
        raise InputError(
            f"threshold must be a density, a finite number of 0 or more ({unit}), got "
            f"{shown(threshold)}"
        )
    shares = reduced(found, where, lambda p: {"probability": (p > threshold).mean(axis=0)})
    words = f"probability that the density exceeds {threshold:g} {unit}"
    return (
        shares["probability"]
        .assign_coords(found.coords)
        .assign_attrs(long_name=words, units="1", threshold=float(threshold))
    )


def forecast(
    posterior: Posterior,
    steps: int = 1,
    at: Any = None,
    *,
    interval: str = "quantile",
    level: float = 0.9,
    size: int = 60,
    draws: int = 1000,
    seed: Seed = 0,
) -> xr.Dataset:
    """The density ``steps`` steps after the last time: mean, sd, low, high.

    By the random walk: ``theta_T + N(0, steps lambda)`` for every draw of theta_T and lambda. Where
    times are not equally spaced, a step is the median gap between them.
    """
    found, where = _drawn("densities.forecast", posterior, at, size, draws)
    count = checked_count("steps", steps, 1)
    if count > MOST_STEPS:
        raise InputError(f"steps must be {MOST_STEPS} or less, got {shown(steps)}")
    rng = np.random.default_rng(checked_entropy(seed, None))
    variance = _step_variance(posterior, len(found.theta))
    last = found.theta[:, -1]
    moved = (last + np.sqrt(count * variance) * rng.standard_normal(last.shape))[:, None]
    time, label = later(count, found.field.times, found.labels)
    ahead = Fitted(found.field, moved, np.array([time]), (label,))
    return _summary(ahead, where, interval, level).assign_attrs(steps=count)


def _opened(asker: str, posterior: Density, at: Any, size: Any, draws: Any) -> tuple[Source, Sites]:
    where = sites(ground(asker, posterior), at, size, asker)
    return source(asker, posterior, draws), where


def _drawn(
    asker: str, posterior: Posterior, at: Any, size: Any, draws: Any
) -> tuple[Fitted, Sites]:
    """The same for what kernels can't tell."""
    check_draws(asker, posterior, "use densities.density")
    where = sites(ground(asker, posterior), at, size, asker)
    return fitted(asker, posterior, draws), where


def _summary(found: Source, where: Sites, interval: str, level: float) -> xr.Dataset:
    check_interval(interval)
    check_level(level)
    data = reduced(found, where, lambda values: found.moments(values, interval, level))
    return described(data.assign_coords(found.coords), found, interval, level, DENSITY)


def _step_variance(posterior: Posterior, draws: int) -> FloatArray:
    """lambda of the random walk for the draws in use, (sample, 1 or statistic)."""
    data = posterior.data["posterior"].to_dataset()
    names = [name for name in STEPS if name in data]
    if not names:
        raise InputError(
            "densities.forecast needs the variance of a random walk, and the prior of this fit has "
            "none; fit with prior=ncbayes.priors.RandomWalk(), as fit_density_over_time does"
        )
    values = data[names[0]].to_numpy()
    return thinned(values.reshape(-1, values.shape[-1]), draws)
