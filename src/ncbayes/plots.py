"""Pictures of posteriors; matplotlib is imported only here."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.contrast import model_name, statistic_names
from ncbayes.diagnostics import quantities
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by the colour-blind, and in print.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6B6B6B"
CHAINS = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", "#000000")


def trace(posterior: Posterior, most: int = 8) -> Figure:
    """The first ``most`` quantities: draws over time on the left, their distribution on the right.

    One colour a chain. Chains that have mixed look alike on both sides.
    """
    _check_posterior("plots.trace", posterior)
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"most must be a whole number, 1 or more, got {shown(most)}")
    chosen = list(islice(quantities(posterior.data), most))
    figure, axes = plt.subplots(
        len(chosen),
        2,
        figsize=(9, 1.7 * len(chosen) + 0.5),
        squeeze=False,
        layout="constrained",
        width_ratios=(2, 1),
    )
    for (left, right), (name, values) in zip(axes, chosen, strict=True):
        bins = np.histogram_bin_edges(values, 40).tolist()
        for chain, (draws, colour) in enumerate(zip(values, _cycle(len(values)), strict=True)):
            left.plot(draws, color=colour, linewidth=0.5, label=f"chain {chain}")
            right.hist(draws, bins, density=True, histtype="step", color=colour)
        left.set_ylabel(name)
        left.margins(x=0)
        right.set_yticks([])
        right.set_xlabel(name)
    axes[-1, 0].set_xlabel("draw")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
    return figure


def density(
    posterior: Posterior, model: Model, level: float = 0.9, truth: ArrayLike | None = None
) -> Figure:
    """A one-dimensional model: histograms of data and noise, and the fitted density with its band.

    The band holds the middle ``level`` of the draws' densities point by point, each draw
    normalized numerically over the range shown. ``truth``: theta of a density to add.
    """
    _check_model(model)
    _check_posterior("plots.density", posterior)
    _check_fitted(posterior, model)
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        raise InputError(f"level must be between 0 and 1, such as 0.9, got {shown(level)}")
    true_theta = None if truth is None else _truth(truth, statistic_names(model))
    observed, noise = (posterior.data[name].to_dataset() for name in ("observed_data", "noise"))
    labels = [str(label) for label in posterior.theta["group"].to_numpy()]
    figure, axes = plt.subplots(
        len(labels), 1, figsize=(7, 3.2 * len(labels) + 0.4), squeeze=False, layout="constrained"
    )
    for axis, label in zip(axes[:, 0], labels, strict=True):
        data = observed["points"].to_numpy()[observed["group"].to_numpy() == label, 0]
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


def _check_posterior(name: str, posterior: object) -> None:
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"{name} needs the posterior that ncbayes.fit or ncbayes.load returns, got "
            f"{shown(posterior)}"
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


def _cycle(count: int) -> list[str]:
    return [CHAINS[k % len(CHAINS)] for k in range(count)]
