"""Pictures of one-dimensional densities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.contrast import model_name, statistic_names
from ncbayes.plots.style import BLUE, GREY, ORANGE, check_posterior
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def density(
    posterior: Posterior, model: Model, level: float = 0.9, truth: ArrayLike | None = None
) -> Figure:
    """A one-dimensional model: histograms of data and noise, and the fitted density with its band.

    The band holds the middle ``level`` of the draws' densities point by point, each draw
    normalized numerically over the range shown. ``truth``: theta of a density to add.
    """
    _check_model(model)
    check_posterior("plots.density", posterior)
    _check_fitted(posterior, model)
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        raise InputError(f"level must be between 0 and 1, such as 0.9, got {shown(level)}")
    true_theta = None if truth is None else _truth(truth, statistic_names(model))
    observed = posterior.data["observed_data"].to_dataset()
    noise = posterior.data["noise"].to_dataset() if "noise" in posterior.data.children else None
    labels = [str(label) for label in posterior.theta["group"].to_numpy()]
    figure, axes = plt.subplots(
        len(labels), 1, figsize=(7, 3.2 * len(labels) + 0.4), squeeze=False, layout="constrained"
    )
    for axis, label in zip(axes[:, 0], labels, strict=True):
        data = observed["points"].to_numpy()[observed["group"].to_numpy() == label, 0]
        near = np.zeros(0)
        if noise is not None:
            near = noise["points"].to_numpy()[noise["row_group"].to_numpy() == label, 0]
        x = _grid(model, data)
        _draw_points(axis, data, near, x)
        theta = posterior.theta.sel(group=label).to_numpy().reshape(-1, posterior.theta.shape[-1])
        _draw_band(axis, x, _densities(model, theta[:: max(1, len(theta) // 400)], x), level)
        if true_theta is not None:
            axis.plot(x, _densities(model, true_theta[None], x)[0], color="black", linestyle=":",
                      label="truth")  # fmt: skip
        axis.set(xlabel="x", ylabel="density", title=label if len(labels) > 1 else "")
        axis.margins(x=0)
    axes[0, 0].legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _check_model(model: object) -> None:
    if isinstance(model, type) or not isinstance(model, Model):
        raise InputError(
            "plots.density(posterior, model) needs the model that was fitted, such as "
            f"ncbayes.models.VonMises(), got {shown(model)}"
        )
    if model.space.dimension != 1:
        raise InputError(
            f"plots.density shows models of one dimension, {model_name(model)} has "
            f"{model.space.dimension}; look at plots.trace(posterior) instead"
        )


def _check_fitted(posterior: Posterior, model: Model) -> None:
    fitted, names = posterior.theta["statistic"].to_numpy().tolist(), statistic_names(model)
    if names != fitted:
        raise InputError(
            f"model must be the one that was fitted, with the statistics {shown(fitted)}, got "
            f"{model_name(model)} with {shown(names)}"
        )


def _truth(truth: ArrayLike, names: list[str]) -> FloatArray:
    try:
        values = np.asarray(truth)
    except ValueError:  # lists of different lengths
        values = np.array(None)
    fine = values.dtype.kind in "iuf" and values.shape == (len(names),)
    if not fine or not np.isfinite(values).all():
        raise InputError(
            f"truth must be {len(names)} finite numbers, one for each of the statistics "
            f"{shown(names)}, got {shown(truth)}"
        )
    return values.astype(np.float64)


def _draw_points(axis: Axes, data: FloatArray, near: FloatArray, x: FloatArray) -> None:
    bins = np.linspace(x[0], x[-1], 31).tolist()
    axis.hist(data, bins, density=True, color=BLUE, alpha=0.3, label=f"data (n = {len(data)})")
    if not len(near):
        return
    inside = near[(near >= x[0]) & (near <= x[-1])]
    axis.hist(inside, bins, density=True, histtype="step", color=GREY, linestyle="--",
              label=f"noise (m = {len(near)})")  # fmt: skip


def _draw_band(axis: Axes, x: FloatArray, curves: FloatArray, level: float) -> None:
    low, middle, high = np.quantile(curves, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=0)
    axis.fill_between(x, low, high, color=ORANGE, alpha=0.35, linewidth=0,
                      label=f"{100 * level:g} % band")  # fmt: skip
    axis.plot(x, middle, color=ORANGE, label="posterior median")


def _densities(model: Model, theta: FloatArray, x: FloatArray) -> FloatArray:
    log = theta @ model.statistics(x[:, None]).T + model.log_base(x[:, None])
    values = np.exp(log - log.max(axis=1, keepdims=True))
    areas = np.trapezoid(values, x, axis=1)
    return np.asarray(values / areas[:, None])


def _grid(model: Model, data: FloatArray) -> FloatArray:
    """Where to draw the density: over the data and a margin, as far as the space goes."""
    margin = 0.3 * np.ptp(data)
    x = np.linspace(data.min() - margin, data.max() + margin, 2001)
    if np.isfinite(model.space.log_volume):
        whole = np.concatenate([data[:, None], model.space.uniform(2000, np.random.default_rng(0))])
        x = np.linspace(whole.min(), whole.max(), 2001)
    return x[model.space.contains(x[:, None]) & np.isfinite(model.log_base(x[:, None]))]
