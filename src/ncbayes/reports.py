"""What a posterior has to say about its noise, in a table and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncbayes import diagnostics

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Shares of what ideal noise of the same size keeps: above the first, other noise would change
# little; below the second, the noise is the first thing to improve.
GOOD, POOR = 0.8, 0.4
# With log odds beyond this a label is certain to eight digits.
CERTAIN = 18.0
# Beyond this share of the posterior sd of log_z, the error of the noise's own normalizer shows.
NOTICEABLE = 0.3


@dataclass(frozen=True, repr=False)
class NoiseReport:
    """How good the noise is; print it for the words.

    ``table`` has a row for each group and noise set: ``noise_points``, ``auc`` (1/2: noise like the
    data; 1: never alike), ``lowest_log_odds`` and ``highest_log_odds``, ``ideal_noise`` (how
    many points drawn from the model itself would keep as much; noise wider than the data can be
    worth more than there are points), ``information_kept`` (the share of the exact likelihood's
    information, averaged over the statistics) and ``widening`` (how much wider that makes
    intervals). ``updates``: one row for each update of adaptive noise and group,
    else None. ``spread``: with several noise sets, how much the posterior differs between them.
    """

    table: pd.DataFrame
    lines: tuple[str, ...]
    updates: pd.DataFrame | None = None
    spread: pd.DataFrame | None = None

    def __repr__(self) -> str:
        parts = [*self.lines, "", self.table.round(3).to_string()]
        if self.updates is not None:
            parts += [
                "",
                "Updates of the noise before the chains:",
                self.updates.round(3).to_string(),
            ]
        if self.spread is not None:
            parts += ["", "Between noise sets:", self.spread.round(3).to_string()]
        return "\n".join(parts)


def noise_report(tree: xr.DataTree, spread: pd.DataFrame | None) -> NoiseReport:
    """The report of a posterior, from what is stored in it."""
    noise = tree["noise"].to_dataset()
    table = noise[list(diagnostics.NOISE_FACTS)].to_dataframe()
    table["widening"] = table["information_kept"] ** -0.5 - 1
    updates = None
    if "adaptation" in tree.children:
        updates = tree["adaptation"].to_dataset().to_dataframe()
        updates["made"] = updates["made"] > 0
    lines = [_verdict(table, tree), *_certain(table), *_updates(updates, tree), *_spread(spread)]
    if "noise_choice" in tree.attrs:
        lines.insert(0, str(tree.attrs["noise_choice"]))
    return NoiseReport(table, tuple(lines), updates, spread)


def _verdict(table: pd.DataFrame, tree: xr.DataTree) -> str:
    """The worst group or set in plain words, with what to do."""
    ratio = float(tree.attrs["noise_ratio"])
    worst = table.loc[table["information_kept"].idxmin()]
    share, ideal = float(worst["information_kept"]), ratio / (1 + ratio)
    number = (
        f"the {worst['noise_points']:.0f} noise points are worth {worst['ideal_noise']:.0f} drawn "
        f"from the model itself, and intervals are about {100 * worst['widening']:.0f} % wider "
        "than with the exact likelihood"
    )
    if share >= GOOD * ideal:
        more = f" (noise_ratio={_rounder(2 * ratio)} would bring them closer)" if ratio < 10 else ""
        return f"The noise is good: {number}{more}."
    if share >= POOR * ideal:
        return f'The noise is fair: {number}; noise="auto" or Adaptive() may do better.'
    return (
        f'The noise is poor: {number}; use noise="auto", noise=ncbayes.noise.Adaptive() or noise '
        "closer to the data before more of it."
    )


def _rounder(ratio: float) -> str:
    return f"{ratio:.2g}"


def _certain(table: pd.DataFrame) -> list[str]:
    low, high = float(table["lowest_log_odds"].min()), float(table["highest_log_odds"].max())
    if max(-low, high) <= CERTAIN:
        return []
    return [
        f"Log odds reach from {low:.0f} to {high:.0f}: some points are data or noise for certain, "
        "and tell nothing."
    ]


def _updates(updates: pd.DataFrame | None, tree: xr.DataTree) -> list[str]:
    if updates is None:
        return []
    made = updates[updates["made"]]
    lines = [f"{len(made)} of {len(updates)} updates of the noise were made."]
    refused = int(updates["alpha"].isna().sum())
    if refused:
        lines.append(f"{refused} were refused by the guard: no alpha gave enough effective points.")
    if len(made) == 0:
        return [*lines, "The noise is the one it started with."]
    error = float(made.groupby("group")["log_z_error"].last().max())
    spread = float(tree["posterior"]["log_z"].std(("chain", "draw")).min())
    if error > NOTICEABLE * spread:
        lines.append(
            f"The noise's own normalizer has a standard error of {error:.3f}, which log_z inherits "
            f"beyond its posterior sd of {spread:.3f}; theta does not."
        )
    return lines


def _spread(spread: pd.DataFrame | None) -> list[str]:
    if spread is None:
        return []
    worst = spread["ratio"].idxmax()
    return [
        f"Between noise sets posterior means differ by up to {spread['ratio'].max():.2f} posterior "
        f"sds ({worst})."
    ]
