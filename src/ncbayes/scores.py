"""Predictive power: normalized log densities of held-out points, by families, energies, densities.

A score needs log Z. That of a contrast is free: draws whose log Z is too small have densities that
are too large, and a mean of densities is made of these. So log Z is worked out here for the theta
of each draw (``ncbayes.normalizers``), its standard error is part of the score's, and where it
can't be worked out there is no score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp, ndtri

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.baselines import KDEOverTime
from ncbayes.contrast import model_name, statistic_names
from ncbayes.couplings import check_level, check_space, group_label
from ncbayes.energies import Energy
from ncbayes.inputs import Seed, checked_count, checked_entropy, later_points
from ncbayes.noise import matched
from ncbayes.normalizers import Normalizer, kernels, normalizer
from ncbayes.posterior import Posterior
from ncbayes.readout import KERNELS, Density, Fitted, Source, points_of, source, thinned
from ncbayes.sites import axis_names, checked_points, units
from ncbayes.spaces.rows import match_rows
from ncbayes.stamps import positions
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["LogScore", "log_density_draws", "log_score"]

# A score whose log Z is known less well than this, or not at all at more than this share of the
# draws, says nothing about the points.
LARGEST_ERROR, MOST_LOST = 0.5, 0.01
ASKER = "scores.log_score"


@dataclass(frozen=True, eq=False)
class LogScore:
    """The log score of held-out points: larger is better.

    ``pointwise`` holds the log of the posterior mean density of each point (of kernels, their log
    density), ``mean`` their mean and ``error`` its standard error over the points; ``log_z_error``
    is the standard error of the log Z behind all of them, 0 where it is exact. ``low`` to ``high``
    is the normal interval ``mean -+ z sqrt(error^2 + log_z_error^2)`` at this ``level``.
    ``posterior_sd`` is how much the mean log density varies over the draws (NaN for densities over
    time), and ``by_time`` the mean at each time that has points (None without times).
    """

    mean: float
    error: float
    log_z_error: float
    low: float
    high: float
    level: float
    posterior_sd: float
    pointwise: xr.DataArray
    by_time: xr.DataArray | None = None

    @property
    def total(self) -> float:
        """The sum over the points."""
        return float(self.pointwise.sum())


def log_score(
    posterior: Density,
    points: Any,
    *,
    model: Model | Energy | None = None,
    times: Any = None,
    group: str | None = None,
    draws: int = 1000,
    level: float = 0.9,
    seed: Seed = 0,
) -> LogScore:
    """How well a posterior, or kernels, predict held-out points: the log of the mean density there.

    Parameters
    ----------
    posterior
        Of any fit; or what ``ncbayes.baselines.kde_over_time`` returns.
    points
        Rows like the data.
    model
        The model that was fitted. A posterior that ``fit`` returned knows it; one from a file does
        not, unless it is that of a density.
    times
        Of densities over time: one for each point, dates, numbers or labels, read and matched to
        the points as in the fit.
    group
        Which group of a fit of several the points belong to.
    draws
        How many draws are used at most, evenly chosen from all chains.
    level
        Of the interval.
    seed
        For log Z where it has to be simulated.
    """
    check_level(level)
    if isinstance(posterior, KDEOverTime) or _is_density(posterior):
        return _density_score(posterior, points, times, draws, level)
    if times is not None:
        raise InputError(
            f"times are for densities over time, and this is a fit of {_fitted_model(posterior)}; "
            "leave times out"
        )
    values, found = _log_densities(posterior, points, model, group, draws, seed)
    scores = np.asarray(logsumexp(values, axis=0) - math.log(len(values)))
    spread = float(values.mean(axis=1).std())
    return _summary(scores, found.error, level, spread, _named(scores))


def log_density_draws(
    posterior: Posterior,
    points: Any,
    *,
    model: Model | Energy | None = None,
    group: str | None = None,
    draws: int = 1000,
    seed: Seed = 0,
) -> xr.DataArray:
    """``theta . statistics + log_base - log Z(theta)`` of every draw, (sample, point).

    Of an Energy ``log_density(params, x) - log Z(params)``. The arguments are those of
    ``log_score``; the attribute ``log_z_error`` is the standard error of log Z.
    """
    import xarray as xr

    values, found = _log_densities(posterior, points, model, group, draws, seed)
    facts = {"log_z_error": found.error, "log_z_way": found.way}
    return xr.DataArray(values, dims=("sample", "point"), name="log_density", attrs=facts)


def _log_densities(
    posterior: Posterior, points: Any, model: Any, group: Any, draws: Any, seed: Seed
) -> tuple[FloatArray, Normalizer]:
    most = checked_count("draws", draws, 1)
    chosen = _model(posterior, model)
    label = group_label(posterior.data, group)
    table = later_points(posterior.data, chosen, points)
    params = _parameters(posterior, chosen, label, most)
    rng = np.random.default_rng(checked_entropy(seed, None))
    with single_threaded(), np.errstate(all="ignore"):
        found = normalizer(chosen, params, 0, _start(posterior, chosen, label), rng)
        _check_known(found, chosen)
        values = kernels(chosen, params[1:], table) - found.log_z[1:, None]
    return values, found


def _check_known(found: Normalizer, model: Any) -> None:
    """Refuse a score that would rest on a log Z that is not known."""
    if found.error <= LARGEST_ERROR and found.lost <= MOST_LOST:
        return
    why = f"at the posterior's estimate it has a standard error of {found.error:.2g}"
    if found.lost > MOST_LOST:
        why = f"at {100 * found.lost:.0f} % of the draws too few simulated points are near"
    raise InputError(
        f"log Z of {model_name(model)} can't be worked out well enough for a score: {why}; a score "
        "with the log_z of the contrast would reward a wrong one, so there is none: give the model "
        "log_partition(theta) or sweep(theta, x, rng), or fit with noise closer to it"
    )


def _parameters(posterior: Posterior, model: Any, label: str, most: int) -> FloatArray:
    """Rows of parameters: a typical one, then at most so many draws of all chains."""
    data = posterior.data["posterior"].to_dataset().sel(group=label)
    if not isinstance(model, Energy):
        theta = _flat(data["theta"].to_numpy())
        return np.concatenate([theta.mean(axis=0)[None], thinned(theta, most)])
    values = {leaf.name: _flat(data[leaf.name].to_numpy()) for leaf in model.leaves}
    rows = model.row(values)
    # A mean of several modes is like none of them: the likeliest draw stands for all.
    best = int(np.argmax(posterior.data["sample_stats"]["log_likelihood"].to_numpy().ravel()))
    return np.concatenate([rows[best][None], thinned(rows, most)])


def _flat(values: FloatArray) -> FloatArray:
    """Draws of all chains one after the other."""
    return values.reshape(-1, *values.shape[2:])


def _start(posterior: Posterior, model: Any, label: str) -> Any:
    """Noise to start annealing from: the fit's, or for a posterior from a file one like it."""
    if posterior.run is not None and posterior.run.problem.noises:
        return posterior.run.problem.noises[label]
    try:
        return matched(model.space, points_of(posterior)[label])
    except InputError:
        return None


def _is_density(posterior: object) -> bool:
    return isinstance(posterior, Posterior) and "field" in posterior.data.children


def _fitted_model(posterior: object) -> str:
    if not isinstance(posterior, Posterior):
        raise InputError(
            "posterior must be what ncbayes.fit, ncbayes.load or "
            f"ncbayes.baselines.kde_over_time returns, got {shown(posterior)}"
        )
    return str(posterior.data.attrs["model"])


def _model(posterior: object, model: Any) -> Any:
    """The model that was fitted: the posterior's own, or the one that was passed, if it fits."""
    name = _fitted_model(posterior)
    assert isinstance(posterior, Posterior)
    if model is None:
        if posterior.run is None:
            raise InputError(
                f"a posterior from a file does not hold its model: pass model=..., {name}"
            )
        return posterior.run.problem.model
    stored = posterior.data["posterior"].to_dataset()
    if isinstance(model, Energy):
        wanted = {leaf.name: leaf.parameter.shape for leaf in model.leaves}
        fits = all(each in stored and stored[each].shape[3:] == wanted[each] for each in wanted)
    else:
        known = stored["statistic"].to_numpy().tolist() if "theta" in stored else None
        is_model = isinstance(model, Model) and not isinstance(model, type)
        fits = is_model and statistic_names(model) == known
    if not fits:
        raise InputError(f"model must be the one that was fitted, {name}, got {shown(model)}")
    check_space(posterior.data, model.space, model_name(model))
    return model


def _density_score(
    posterior: Density, points: Any, times: Any, draws: Any, level: float
) -> LogScore:
    """The score of points at their times, each density normalized over its domain."""
    import xarray as xr

    found = source(ASKER, posterior, draws)
    table, where = checked_points(found.field, points, ASKER)
    groups = _groups(found, match_rows(points, times), len(table))
    _check_inside(found, where)
    seen = np.unique(groups)
    some, scores = found.at(seen.tolist()), np.empty(len(table))
    for k, each in enumerate(seen):
        rows = np.flatnonzero(groups == each)
        scores[rows] = some.log_mean(where[rows], k)
    means = np.array([scores[groups == each].mean() for each in seen])
    coords = {name: ("point", table[:, k]) for k, name in enumerate(axis_names(found.field))}
    coords["time"] = ("point", found.times[groups])
    what = "posterior mean density" if isinstance(found, Fitted) else KERNELS
    attrs = {"long_name": f"log of the {what}", "units": units(found.field)}
    by_time = xr.DataArray(means, some.coords, ("time",), "log_score", attrs)
    pointwise = xr.DataArray(scores, coords, ("point",), "log_score", attrs)
    return _summary(scores, 0.0, level, math.nan, pointwise, by_time)


def _groups(found: Source, times: Any, count: int) -> Any:
    """The position of each point's time; a density of one time needs none."""
    if times is None:
        if len(found.labels) == 1:
            return np.zeros(count, dtype=int)
        raise InputError(
            f"{ASKER} needs times=..., one for each point, since the density has "
            f"{len(found.labels)} times, {found.labels[0]} to {found.labels[-1]}"
        )
    return positions(times, count, found.field.times, found.labels, found.field.style)


def _check_inside(found: Source, points: FloatArray) -> None:
    outside = np.flatnonzero(~found.field.space.contains(points))
    if len(outside):
        raise InputError(
            f"points must lie in the domain, outside of which the density is zero, got "
            f"{len(outside)} of {len(points)} outside, the first in row {outside[0]} (counted from "
            "0): drop these rows"
        )


def _named(scores: FloatArray) -> xr.DataArray:
    import xarray as xr

    return xr.DataArray(scores, dims=("point",), name="log_score")


def _summary(
    scores: FloatArray,
    log_z_error: float,
    level: float,
    spread: float,
    pointwise: xr.DataArray,
    by_time: xr.DataArray | None = None,
) -> LogScore:
    mean = float(scores.mean())
    error = float(scores.std(ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else math.nan
    width = float(-ndtri((1 - level) / 2)) * math.hypot(error, log_z_error)
    ends = (mean - width, mean + width)
    return LogScore(mean, error, log_z_error, *ends, float(level), spread, pointwise, by_time)
