"""Pictures of data beside rows that were simulated from the fit."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtri

from ncbayes import diagnosis
from ncbayes.base import FloatArray, InputError, shown
from ncbayes.couplings import group_label
from ncbayes.plots.style import BLUE, GREY, ORANGE, check_posterior, legend_above, short
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Scores beyond this are all the same: no model that is right has them.
FARTHEST = 12.0
# How far dots of one look lie from its line, at most, and letters of a name beside a dot.
SPREAD, MOST_LETTERS = 0.3, 34
# The golden ratio's part: multiples of it, modulo 1, are evenly spread however many there are.
TURN = 0.6180339887


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one group, look by look, and a histogram of the look with the smallest p-value.

    ``worst`` is which of the looks has the smallest p-value. By chance one of all statistics of
    the fit lies beyond ``limit`` in one of a hundred fits.
    """

    group: str
    names: list[str]
    z: list[FloatArray]
    worst: int
    worst_label: str
    p_value: float
    limit: float
    picture_name: str
    edges: FloatArray
    data: FloatArray
    simulated: FloatArray

    @property
    def count(self) -> int:
        """Number of statistics of this group."""
        return sum(map(len, self.z))

    @property
    def beyond(self) -> int:
        """Number of statistics whose scores are too far out to be drawn where they are."""
        return sum(int((np.abs(each) > FARTHEST).sum()) for each in self.z)


def predictions(posterior: Posterior, group: str | None = None) -> Figure:
    """Data beside rows simulated from the fit: all scores on the left, the worst on the right.

    Left: a dot for each statistic compared, by kind. Its score is the difference between data
    and simulated rows in standard errors, 0 for what the model was fitted to; by chance one of
    all lies beyond the two light lines in one of a hundred fits. Right: a histogram of what differs
    most. ``group``: None is the group that differs most.
    """
    check_posterior("plots.predictions", posterior)
    found = _scores(
        _checked_tree(posterior)["verification"].to_dataset(), _checked_group(posterior, group)
    )
    height = max(4.0, 1.9 + 0.42 * len(found.names))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, height), layout="constrained", width_ratios=(1.15, 1)
    )
    _draw_scores(left, found)
    _draw_histogram(right, found)
    figure.suptitle(_title(posterior, found), fontsize="medium")
    return figure


def _checked_tree(posterior: Posterior) -> xr.DataTree:
    tree = posterior.data
    if "verification" in tree.children and tree["verification"].sizes.get("look", 0):
        return tree
    why = str(tree.attrs.get("not_verified", ""))
    raise InputError(
        "plots.predictions needs a fit that was compared with rows simulated from it, and this one "
        f"was not{f' ({why})' if why else ''}; fit again with verify=True"
    )


def _checked_group(posterior: Posterior, group: str | None) -> str | None:
    if group is None:
        return None
    label = group_label(posterior.data, group)
    compared = np.unique(posterior.data["verification"]["look_group"].to_numpy().astype(str))
    if label not in compared:
        raise InputError(
            f"group must be one that has rows to compare, {shown(compared.tolist())}, got "
            f"{shown(label)}; pass group={str(compared[0])!r}"
        )
    return label


def _scores(stored: xr.Dataset, group: str | None = None) -> Scores:
    """Scores of a group of ``tree["verification"]``; None: the group that differs most."""
    groups = stored["look_group"].to_numpy().astype(str)
    p_values = stored["p_value"].to_numpy()
    if group is None:
        group = str(groups[diagnosis.most_different(p_values)[0]])
    places = np.flatnonzero(groups == group)
    worst = int(diagnosis.most_different(p_values[places])[0])
    look = stored.isel(look=int(places[worst]))
    owner, z = stored["compared_look"].to_numpy(), stored["z"].to_numpy()
    edges, data, simulated = (
        look[name].to_numpy() for name in ("edges", "data_share", "simulated_share")
    )
    return Scores(
        group=group,
        names=stored["look_name"].to_numpy()[places].astype(str).tolist(),
        z=[z[owner == place] for place in places],
        worst=worst,
        worst_label=str(look["worst_label"].item()),
        p_value=float(look["p_value"]),
        limit=float(-ndtri(diagnosis.FALSE_ALARM / (2 * len(z)))),
        picture_name=str(look["picture_name"].item()),
        edges=edges[np.isfinite(edges)],
        data=data[np.isfinite(data)],
        simulated=simulated[np.isfinite(simulated)],
    )


def _draw_scores(axis: Axes, found: Scores) -> None:
    for place, z in enumerate(found.z):
        far = np.abs(z) > found.limit
        at = np.clip(z, -FARTHEST, FARTHEST)
        heights = place + _spread(len(z))
        axis.plot(at[~far], heights[~far], "o", color=BLUE, alpha=0.5, markersize=4, mew=0)
        axis.plot(at[far], heights[far], "D", color=ORANGE, markersize=4.5, mew=0)
    for sign in (-1, 1):
        axis.axvline(sign * found.limit, color=GREY, alpha=0.6, linewidth=1, zorder=0)
    axis.axvline(0, color="black", linewidth=0.6, zorder=0)
    _name_worst(axis, found)
    labels = [
        textwrap.fill(name + ("" if z.any() else " (fitted)"), 24)
        for name, z in zip(found.names, found.z, strict=True)
    ]
    axis.set_yticks(range(len(labels)), labels, fontsize="small")
    axis.set_ylim(len(labels) - 0.4, -0.85)
    reach = max(found.limit, min(FARTHEST, max(float(np.abs(z).max(initial=0)) for z in found.z)))
    axis.set_xlim(-1.1 * reach, 1.1 * reach)
    ends = f"; {found.beyond} beyond {FARTHEST:g}, at the ends" if found.beyond else ""
    axis.set_xlabel(f"score z of {found.count} statistics (lines: ±{found.limit:.1f}{ends})")


def _spread(count: int) -> FloatArray:
    """Places around 0 that keep dots apart; 0 for a single one."""
    if count == 1:
        return np.zeros(1)
    return np.asarray(SPREAD * (2 * (TURN * np.arange(1, count + 1) % 1) - 1))


def _name_worst(axis: Axes, found: Scores) -> None:
    """Name the worst statistic, above its look and towards the middle, where there is room."""
    z = found.z[found.worst]
    if not len(z):
        return
    top = int(np.argmax(np.abs(z)))
    at = float(np.clip(z[top], -FARTHEST, FARTHEST))
    height = found.worst + float(_spread(len(z))[top])
    axis.annotate(
        textwrap.shorten(found.worst_label, MOST_LETTERS, placeholder=" ..."),
        (at, height), (0, found.worst - 0.42), textcoords=("offset points", "data"),
        ha="right" if at > 0 else "left", va="bottom", fontsize="small",
        arrowprops={"arrowstyle": "-", "color": "black", "linewidth": 0.6, "shrinkB": 3},
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none",
              "alpha": 0.8},
    )  # fmt: skip


def _draw_histogram(axis: Axes, found: Scores) -> None:
    axis.stairs(found.data, found.edges, fill=True, color=BLUE, alpha=0.3)
    axis.stairs(found.data, found.edges, color=BLUE, linewidth=1.5, label="data")
    axis.stairs(
        found.simulated, found.edges, color=ORANGE, linewidth=1.8, linestyle="--",
        label="simulated from the fit",
    )  # fmt: skip
    axis.set(xlabel=textwrap.shorten(found.picture_name, 60, placeholder=" ..."), ylabel="share")
    axis.set_ylim(bottom=0)
    legend_above(axis, 2)


def _title(posterior: Posterior, found: Scores) -> str:
    """The verdict on all groups; and of the one that is shown, if that is another."""
    concerns = diagnosis.verification(posterior.data)
    line = next(each.line for each in concerns if each.side == "predictions")
    lines = textwrap.wrap(f"{line[0].upper()}{line[1:]}.", 118)
    groups = np.unique(posterior.data["verification"]["look_group"].to_numpy().astype(str))
    if len(groups) > 1:
        smallest = f"{found.p_value:.2g}" if found.p_value > 1e-12 else "below 1e-12"
        lines.append(f"Shown: group {short(found.group)}, its smallest p is {smallest}")
    return "\n".join(lines)
