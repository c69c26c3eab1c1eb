"""Predictive power: normalized log densities of held-out points, for families and energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp, ndtri

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.contrast import model_name, statistic_names
from ncbayes.couplings import check_level, check_space, group_label
from ncbayes.energies import Energy
from ncbayes.inputs import checked_count, later_points
from ncbayes.posterior import Posterior
from ncbayes.readout import thinned
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["HeldOut", "log_density_draws", "log_score"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The log score of held-out points: larger is better.

    ``pointwise`` holds the log of the posterior mean density of each point, ``mean`` their mean and
    ``error`` its standard error over the points; ``low`` to ``high`` is the normal interval
    ``mean -+ z error`` at this ``level``. ``posterior_sd`` is how much the mean log density varies
    over the draws.
    """

    mean: float
    error: float
    low: float
    high: float
    level: float
    posterior_sd: float
    pointwise: xr.DataArray


def log_density_draws(
    posterior: Posterior,
    model: Model | Energy,
    points: Any,
    *,
    group: str | None = None,
    draws: int = 1000,
) -> xr.DataArray:
    """``log p(x)`` of every draw, (sample, point): ``theta . statistics + log_base - log_z``.

    Of an Energy ``log_density(params, x) - log_z``. Each draw has its own log_z, so that what is
    not known about the normalizing constant counts. At most ``draws`` draws, evenly chosen.
    """
    import xarray as xr

    most = checked_count("draws", draws, 1)
    label = _checked(posterior, model, group)
    table = later_points(posterior.data, model, points)
    data = posterior.data["posterior"].to_dataset().sel(group=label)
    log_z = thinned(data["log_z"].to_numpy().ravel(), most)
    with single_threaded():
        if isinstance(model, Energy):
            names = [leaf.name for leaf in model.leaves]
            values = {name: _flattened(data[name].to_numpy(), most) for name in names}
            found = model.evaluated(model.row(values), table)
        else:
            theta = _flattened(data["theta"].to_numpy(), most)
            found = theta @ model.statistics(table).T + model.log_base(table)
    return xr.DataArray(found - log_z[:, None], dims=("sample", "point"), name="log_density")


def log_score(
    posterior: Posterior,
    model: Model | Energy,
    points: Any,
    *,
    group: str | None = None,
    draws: int = 1000,
    level: float = 0.9,
) -> HeldOut:
    """How well the posterior predicts held-out points: the mean log of its mean density there."""
    import xarray as xr

    check_level(level)
    found = log_density_draws(posterior, model, points, group=group, draws=draws).to_numpy()
    scores = np.asarray(logsumexp(found, axis=0) - np.log(len(found)))
    if len(scores) < 2:
        raise InputError("scores.log_score needs at least 2 points, for its standard error, got 1")
    mean, error = float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(len(scores)))
    width = float(-ndtri((1 - level) / 2)) * error
    return HeldOut(
        mean,
        error,
        mean - width,
        mean + width,
        float(level),
        float(found.mean(axis=1).std()),
        xr.DataArray(scores, dims=("point",), name="log_score"),
    )


def _flattened(values: FloatArray, most: int) -> FloatArray:
    """Draws of all chains one after the other, at most so many."""
    return thinned(values.reshape(-1, *values.shape[2:]), most)


def _checked(posterior: object, model: Any, group: object) -> str:
    """The group's label, of a posterior that is one of this model, with log_z."""
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"posterior must be what ncbayes.fit or ncbayes.load returns, got {shown(posterior)}"
        )
    _ = posterior.log_z  # without noise there is none, which it says
    stored = posterior.data["posterior"].to_dataset()
    if isinstance(model, Energy):
        wanted = {leaf.name: leaf.parameter.shape for leaf in model.leaves}
        fits = all(name in stored and stored[name].shape[3:] == wanted[name] for name in wanted)
    else:
        known = stored["statistic"].to_numpy().tolist() if "theta" in stored else None
        is_model = isinstance(model, Model) and not isinstance(model, type)
        fits = is_model and statistic_names(model) == known
    if not fits:
        raise InputError(
            f"model must be the one that was fitted, {posterior.data.attrs['model']}, got "
            f"{shown(model)}"
        )
    check_space(posterior.data, model.space, model_name(model))
    return group_label(posterior.data, group)
