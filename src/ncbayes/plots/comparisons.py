"""Pictures of how posteriors compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from ncbayes.base import InputError, shown
from ncbayes.comparison import Comparison
from ncbayes.plots.style import BLUE, GREEN, ORANGE, check_most, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by colour or, in grey, by shape; yellow is left out, which is too pale for a line.
COLOURS = ("#000000", BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("o", "s", "D", "^", "v", "P", "X")


def comparison(compared: Comparison, most: int = 12, standardized: bool = True) -> Figure:
    """Means and intervals of every posterior, one row a parameter; what ``ncb.compare`` returns.

    ``standardized``: as differences from the reference's mean, in its sds; the band is the
    reference's interval. Of more than ``most`` parameters those that differ most are shown.
    """
    if not isinstance(compared, Comparison):
        raise InputError(
            f"plots.comparison needs what ncbayes.compare returns, got {shown(compared)}"
        )
    check_most(most)
    table, all_names = compared.table, list(dict.fromkeys(compared.table["parameter"]))
    names = _chosen(table, all_names, most)
    posteriors = list(compared.overview.index)
    height = 1.3 + max(0.34, 0.13 * len(posteriors)) * len(names)
    figure, axis = plt.subplots(figsize=(7.5, height), layout="constrained")
    if standardized:
        base = table[table["posterior"] == compared.reference].set_index("parameter").loc[names]
        _draw_band(axis, base, compared.level)
    for k, posterior in enumerate(posteriors):
        own = table[table["posterior"] == posterior].set_index("parameter").loc[names]
        values = _ends(own, compared.level)
        if standardized:
            values = (values - base["mean"].to_numpy()) / base["sd"].to_numpy()
        _draw_posterior(axis, values, k, len(posteriors), posterior)
    axis.set_yticks(range(len(names)), [short(name) for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    few = f"; {len(names)} of {len(all_names)} parameters, those that differ most"
    kind = f"mean and {100 * compared.level:g} % equal-tailed interval"
    kind += few if len(names) < len(all_names) else ""
    unit = f"difference from the mean of {compared.reference}, in its sds"
    axis.set_xlabel(f"{unit}\n{kind}" if standardized else kind)
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize="small")
    return figure


def _chosen(table: pd.DataFrame, names: list[str], most: int) -> list[str]:
    """The parameters that differ most, in their own order."""
    if len(names) <= most:
        return names
    sizes = table.assign(size=table["difference_sds"].abs()).groupby("parameter")["size"].max()
    kept = set(sizes.nlargest(most).index)
    return [name for name in names if name in kept]


def _ends(own: pd.DataFrame, level: float) -> np.ndarray:
    """Low, mean and high, (3, parameter)."""
    percent = f"{100 * level:g}"
    return np.asarray(own[[f"eti{percent}_low", "mean", f"eti{percent}_high"]].to_numpy().T)


def _draw_band(axis: Axes, base: pd.DataFrame, level: float) -> None:
    low, _, high = (_ends(base, level) - base["mean"].to_numpy()) / base["sd"].to_numpy()
    for k, (left, right) in enumerate(zip(low, high, strict=True)):
        axis.fill_betweenx([k - 0.45, k + 0.45], left, right, color="0.93", zorder=0, linewidth=0)
    axis.axvline(0, color="0.6", linewidth=0.8, zorder=1)


def _draw_posterior(axis: Axes, values: np.ndarray, k: int, count: int, label: str) -> None:
    low, mean, high = values
    rows = np.arange(len(mean)) + (k - (count - 1) / 2) * 0.7 / max(count, 2)
    colour, mark = COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
    axis.hlines(rows, low, high, color=colour, linewidth=1.4, zorder=2)
    axis.scatter(mean, rows, s=22, color=colour, marker=mark, zorder=3, label=label)
