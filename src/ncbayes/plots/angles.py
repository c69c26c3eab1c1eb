"""Pictures of angles: pairs of them, and observed against replicated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.plots.style import BLUE, GREY, ORANGE, angle_ticks, short
from ncbayes.predictive import PredictiveCheck
from ncbayes.spaces import Torus, as_points

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More panels than this squared are too small to see anything.
MOST_COLUMNS = 12
# So many of the points farthest out get a name.
MOST_NAMED = 3
BINS = np.linspace(-np.pi, np.pi, 25)
WORDS = {
    "phase_locking": "phase locking",
    "resultant": "resultant length",
    "difference": "direction of the difference",
    "sum": "resultant of the sum",
}


def pairs(
    data: Any, columns: Sequence[Any] | None = None, names: Sequence[str] | None = None
) -> Figure:
    """Angles two by two: scatter plots below the diagonal, histograms on it, numbers above.

    ``data`` are rows of angles in radians, an array or a data frame; ``names`` name the
    columns of an array; ``columns`` chooses some by name or by number from 0 (None: all). Axes go
    from -pi to pi. The numbers are ``|mean exp(i (xj - xk))|``, the phase-locking value, and
    ``|mean exp(i (xj + xk))|``, its counterpart for sums; 1 is the most.
    """
    x, labels = _chosen(data, columns, names)
    count = len(labels)
    side = max(4.0, min(13.0, 1.5 * count))
    figure, axes = plt.subplots(
        count, count, figsize=(side, side), squeeze=False, layout="constrained"
    )
    for j in range(count):
        for k in range(count):
            axis = axes[j, k]
            if j == k:
                axis.hist(x[:, j], BINS.tolist(), color=BLUE, alpha=0.6)
                axis.set_yticks([])
            elif j > k:
                axis.plot(x[:, k], x[:, j], ".", color=BLUE, markersize=3.5, alpha=0.6,
                          markeredgewidth=0, rasterized=True)  # fmt: skip
                axis.set_ylim(-np.pi, np.pi)
                angle_ticks(axis.yaxis, halves=False)
            else:
                _write_lengths(axis, x[:, j], x[:, k])
                continue
            axis.set_xlim(-np.pi, np.pi)
            angle_ticks(axis.xaxis, halves=False)
            if j < count - 1:
                axis.set_xticklabels([])
            if 0 < k < j:
                axis.set_yticklabels([])
        axes[j, 0].set_ylabel(short(labels[j]))
        axes[-1, j].set_xlabel(short(labels[j]))
    return figure


def predictive(check: PredictiveCheck) -> Figure:
    """Observed statistics against replicated ones, for ``predictive.check`` and ``check_angles``.

    A panel a statistic. A mark for each component, node or pair: what was observed, and the mean
    of the replications with the interval that holds ``check.level`` of them. Where the interval
    misses the diagonal the mark is filled; the farthest are named.
    """
    if not isinstance(check, PredictiveCheck):
        raise InputError(
            "plots.predictive needs what ncbayes.predictive.check or check_angles returns, got "
            f"{shown(check)}"
        )
    parts = list(check.table.groupby("statistic", sort=False))
    columns = min(2, len(parts))
    rows = -(-len(parts) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.4 * columns, 4.2 * rows + 0.3), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    summary = check.summary()
    for axis, (name, part) in zip(axes.ravel(), parts, strict=False):
        _draw_comparison(axis, part, circular=name in check.circular)
        facts = summary.loc[name]
        beyond = round(facts["outside"] * facts["count"])
        axis.set_title(
            f"{WORDS.get(str(name), str(name))}\n{beyond} of {facts['count']:.0f} outside, "
            f"overall p = {facts['p_value']:.2g}",
            fontsize="medium",
        )
    for axis in axes.ravel()[len(parts) :]:
        axis.set_axis_off()
    figure.supxlabel("observed", fontsize=10)
    figure.supylabel(f"replicated: mean and {100 * check.level:g} % interval", fontsize=10)
    return figure


def _chosen(
    data: Any, columns: Sequence[Any] | None, names: Sequence[str] | None
) -> tuple[FloatArray, list[str]]:
    """The chosen angles, in [-pi, pi), and what they are called."""
    shape = np.shape(data)
    width = shape[1] if len(shape) == 2 else 1
    x = as_points(data, Torus(max(width, 1)), "plots.pairs", minimum=1)
    own = [str(name) for name in data.columns] if hasattr(data, "columns") else None
    labels = own or [f"x{j + 1}" for j in range(width)]
    if names is not None:
        labels = [str(name) for name in names]
        if isinstance(names, str) or len(labels) != width:
            raise InputError(
                f"names must be {width} names, one for each column of the data, got {shown(names)}"
            )
    kept = list(range(width)) if columns is None else _numbers(columns, labels)
    if not 1 <= len(kept) <= MOST_COLUMNS:
        raise InputError(
            f"plots.pairs has room for 1 to {MOST_COLUMNS} columns, got {len(kept)}; choose some, "
            f"as in columns={labels[:3]}"
        )
    turned = (x[:, kept] + np.pi) % (2 * np.pi) - np.pi
    return turned, [labels[j] for j in kept]


def _numbers(columns: Any, labels: list[str]) -> list[int]:
    listed = [] if isinstance(columns, str) or not hasattr(columns, "__iter__") else list(columns)
    found = []
    for column in listed:
        whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if whole and 0 <= column < len(labels):
            found.append(int(column))
        elif isinstance(column, str) and column in labels:
            found.append(labels.index(column))
    if len(found) < max(1, len(listed)):
        raise InputError(
            f"columns must be a list of names among {shown(labels)} or of numbers from 0 to "
            f"{len(labels) - 1}, got {shown(columns)}"
        )
    return found


def _write_lengths(axis: Axes, one: FloatArray, other: FloatArray) -> None:
    minus, plus = (abs(np.exp(1j * (one + sign * other)).mean()) for sign in (-1, 1))
    text = f"difference {minus:.2f}\nsum {plus:.2f}"
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", fontsize="small")
    axis.set_axis_off()


def _draw_comparison(axis: Axes, part: pd.DataFrame, circular: bool) -> None:
    observed, mean, low, high = (
        part[name].to_numpy() for name in ("observed", "replicated", "low", "high")
    )
    if circular:  # the turn that is nearest to the replications
        observed = mean + np.angle(np.exp(1j * (observed - mean)))
    outside = (observed < low) | (observed > high)
    for ours, colour, filled in ((~outside, GREY, "white"), (outside, ORANGE, ORANGE)):
        axis.vlines(observed[ours], low[ours], high[ours], color=colour, linewidth=1)
        axis.scatter(
            observed[ours], mean[ours], s=22, facecolors=filled, edgecolors=colour, zorder=3
        )
    ends = [min(observed.min(), low.min()), max(observed.max(), high.max())]
    axis.axline((0, 0), slope=1, color="black", linewidth=0.8, zorder=0)
    margin = 0.08 * (ends[1] - ends[0]) or 0.1
    axis.set(xlim=(ends[0] - margin, ends[1] + margin), ylim=(ends[0] - margin, ends[1] + margin))
    axis.set_aspect("equal")
    if circular and ends[1] - ends[0] > np.pi:
        angle_ticks(axis.xaxis)
        angle_ticks(axis.yaxis)
    _name_farthest(axis, part, (observed - mean) * outside)


def _name_farthest(axis: Axes, part: pd.DataFrame, beyond: FloatArray) -> None:
    """The names of those farthest out, in the corner where most of the marks are not."""
    far = np.argsort(-np.abs(beyond), kind="stable")[:MOST_NAMED]
    columns = [name for name in ("node1", "node2", "component") if name in part]
    named = [part[columns].iloc[row] for row in far if beyond[row] != 0]
    lines = [", ".join(short(name) for name in each if name) for each in named]
    if not any(lines):
        return
    below = (beyond > 0).sum() > (beyond < 0).sum()
    axis.text(
        0.03 if below else 0.97, 0.97 if below else 0.03, "\n".join(["farthest out:", *lines]),
        transform=axis.transAxes, fontsize="small", ha="left" if below else "right",
        va="top" if below else "bottom",
    )  # fmt: skip
