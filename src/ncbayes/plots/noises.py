"""Pictures of how well noise and data can be compared."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from ncbayes.base import InputError
from ncbayes.plots.style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    check_posterior,
    cycle,
    legend_above,
    short,
)
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# With log odds beyond this a label is certain, and how certain does not matter.
FARTHEST = 20.0
# What a panel has room for: bars by its height, lines by the colours.
MOST_BARS, MOST_LINES = 12, len(COLOURS)


def noise(posterior: Posterior) -> Figure:
    """How well noise and data can be compared: log odds on the left, what the noise is worth right.

    Left: log odds at the posterior mean, of all groups and noise sets together. Where the two
    histograms overlap a label is uncertain, and tells something. Right: noise points by group, and
    how many drawn from the model itself would be worth as much; or, for adaptive noise, the
    share of information kept after each update. Groups that keep least come first.
    """
    check_posterior("plots.noise", posterior)
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
    legend_above(axis)


def _draw_updates(axis: Axes, updates: xr.Dataset, ideal: float) -> None:
    labels = [short(label) for label in updates["group"].to_numpy()]
    kept, before = (100 * updates[name].to_numpy() for name in ("kept", "kept_before"))
    made, refused = updates["made"].to_numpy() > 0, np.isnan(kept)
    worse, times = ~made & ~refused, np.arange(1, len(kept) + 1)
    for g, (label, colour) in enumerate(zip(labels, cycle(len(labels)), strict=True)):
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
    legend_above(axis, 1 if len(labels) < 2 else 3)


def _draw_worth(axis: Axes, stored: xr.Dataset) -> None:
    """Bars by group, the mean over noise sets, and a line from the lowest set to the highest."""
    labels = [short(label) for label in stored["group"].to_numpy()]
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
    legend_above(axis)


def _verdict(posterior: Posterior) -> str:
    """The report's sentence about the noise, without what to do."""
    report = posterior.noise_report()
    rows = len(report.table)
    worst = f" (the worst of {rows} groups and sets)" if rows > 1 else ""
    return re.split(r"; | \((?!noise)|\.$", report.verdict)[0] + worst
