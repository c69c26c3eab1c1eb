"""Pictures of posteriors; matplotlib is imported only here."""

from __future__ import annotations

import re
import textwrap
from itertools import islice
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.contrast import model_name, statistic_names
from ncbayes.diagnostics import quantities
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by the colour-blind, and in print.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6B6B6B"
CHAINS = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", "#000000")
# With log odds beyond this a label is certain, and how certain does not matter.
FARTHEST = 20.0
# What a panel has room for: bars by its height, lines by the colours, letters of a group's name.
MOST_BARS, MOST_LINES = 12, len(CHAINS)
MOST_LETTERS = 20


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


def noise(posterior: Posterior) -> Figure:
    """How well noise and data can be compared: log odds on the left, what the noise is worth right.

    Left: log odds at the posterior mean, of all groups and noise sets together. Where the two
    histograms overlap a label is uncertain, and tells something. Right: noise points by group, and
    how many drawn from the model itself would be worth as much; or, for adaptive noise, the
    share of information kept after each update. Groups that keep least come first.
    """
    _check_posterior("plots.noise", posterior)
    if "noise" not in posterior.data.children:
        raise InputError("plots.noise needs a fit against noise, and this one used none")
    ratio = float(posterior.data.attrs["noise_ratio"])
    stored = posterior.data["noise"].to_dataset()
    worst = np.argsort(stored["information_kept"].mean("noise_set").to_numpy(), kind="stable")
    adaptive = "adaptation" in posterior.data.children
    shown_groups = worst[: MOST_LINES if adaptive else MOST_BARS]
    height = 4.0 if adaptive else max(4.0, 1.8 + 0.42 * len(shown_groups))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, height), layout="constrained")
    _draw_log_odds(left, stored, ratio)
    if adaptive:
        updates = posterior.data["adaptation"].to_dataset().isel(group=shown_groups)
        _draw_updates(right, updates, ratio / (1 + ratio))
    else:
        _draw_worth(right, stored.isel(group=shown_groups))
    if len(shown_groups) < len(worst):
        few = f"{len(shown_groups)} of {len(worst)} groups"
        right.set_ylabel(", ".join(filter(None, [right.get_ylabel(), few])))
    figure.suptitle(textwrap.fill(_verdict(posterior), 100), fontsize="medium")
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


def _draw_log_odds(axis: Axes, stored: xr.Dataset, ratio: float) -> None:
    data, near = (stored[name].to_numpy() for name in ("log_odds_at_data", "log_odds"))
    sets, rows = data.shape
    beyond = int(np.sum(np.isneginf(near)))
    label = f"m = {len(near) // sets}" + (f" in each of {sets} sets" if sets > 1 else "")
    label += f"; {beyond} beyond the model's space not drawn" if beyond else ""
    alike, limits = -np.log(ratio), (-FARTHEST, FARTHEST)
    finite = near[np.isfinite(near)]
    both = np.concatenate([data.ravel(), finite])
    # However alike the two are, a unit on each side: differences far below one are nothing.
    whole = np.append(np.clip(both, *limits), [alike - 1, alike + 1])
    bins = np.histogram_bin_edges(whole, 40).tolist()
    for values, colour, style, name in (
        (np.clip(data.ravel(), *limits), BLUE, "-", f"data (n = {rows})"),
        (np.clip(finite, *limits), GREY, "--", f"noise ({label})"),
    ):
        shares = np.full(len(values), 1 / max(len(values), 1))
        axis.hist(values, bins, weights=shares, color=colour, alpha=0.3, label=name)
        axis.hist(values, bins, weights=shares, color=colour, histtype="step", linestyle=style)
    axis.axvline(alike, color="black", linestyle=":", linewidth=1,
                 label="all points, if noise were like the data")  # fmt: skip
    ends = f" (beyond {FARTHEST:g}: at the ends)" if np.abs(both).max() > FARTHEST else ""
    axis.set(xlabel=f"log odds that a point is data{ends}", ylabel="share of points")
    _legend_above(axis)


def _draw_updates(axis: Axes, updates: xr.Dataset, ideal: float) -> None:
    labels = [_short(label) for label in updates["group"].to_numpy()]
    kept, before = (100 * updates[name].to_numpy() for name in ("kept", "kept_before"))
    made, refused = updates["made"].to_numpy() > 0, np.isnan(kept)
    worse, times = ~made & ~refused, np.arange(1, len(kept) + 1)
    for g, (label, colour) in enumerate(zip(labels, _cycle(len(labels)), strict=True)):
        used = made[:, g]
        axis.plot([0, *times[used]], [before[0, g], *kept[used, g]], "o-", color=colour,
                  label=label if len(labels) > 1 else "noise in use")  # fmt: skip
        axis.plot(times[worse[:, g]], kept[worse[:, g], g], "o", color=colour, fillstyle="none")
        axis.plot(times[refused[:, g]], before[refused[:, g], g], "x", color=colour)
    if worse.any():
        axis.plot([], [], "o", color=GREY, fillstyle="none", label="tried, no better")
    if refused.any():
        axis.plot([], [], "x", color=GREY, label="refused by the guard")
    axis.axhline(100 * ideal, color="black", linestyle="--", linewidth=1, label="ideal noise")
    axis.set(xlabel="update (0: the noise to start from)", ylabel="information kept, %")
    axis.set_ylim(0, 1.08 * float(np.nanmax([100 * ideal, before.max(), *kept.ravel()])))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend_above(axis, 1 if len(labels) < 2 else 3)


def _draw_worth(axis: Axes, stored: xr.Dataset) -> None:
    """Bars by group, the mean over noise sets, and a line from the lowest set to the highest."""
    labels = [_short(label) for label in stored["group"].to_numpy()]
    points, worth = (stored[name].to_numpy() for name in ("noise_points", "ideal_noise"))
    places, sets = np.arange(len(labels)), len(worth)
    several = f" (line: {sets} sets)" if sets > 1 else ""
    for shift, values, colour, name in (
        (-0.2, points, GREY, "noise points"),
        (0.2, worth, GREEN, f"drawn from the model, worth as much{several}"),
    ):
        means, ends = values.mean(axis=0), values.max(axis=0)
        axis.barh(places + shift, means, 0.36, color=colour, alpha=0.6, label=name)
        for place, mean, end in zip(places + shift, means, ends, strict=True):
            axis.annotate(f"{mean:.0f}", (end, place), (4, 0), textcoords="offset points",
                          va="center", fontsize="small")  # fmt: skip
    if several:
        axis.hlines(places + 0.2, worth.min(axis=0), worth.max(axis=0), color="black")
    axis.set(xlabel="points", ylim=(len(labels) - 0.4, -0.6))
    axis.set_xlim(0, 1.15 * float(max(points.max(), worth.max())))
    axis.set_yticks(places if len(labels) > 1 else [], labels if len(labels) > 1 else [])
    _legend_above(axis)


def _legend_above(axis: Axes, columns: int = 1) -> None:
    axis.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1),
                borderaxespad=0, ncols=columns)  # fmt: skip


def _verdict(posterior: Posterior) -> str:
    """The report's sentence about the noise, without what to do."""
    report = posterior.noise_report()
    rows = len(report.table)
    worst = f" (the worst of {rows} groups and sets)" if rows > 1 else ""
    return re.split(r"; | \(|\.$", report.verdict)[0] + worst


def _short(label: object) -> str:
    text = str(label)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."


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
