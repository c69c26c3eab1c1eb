"""What a posterior has to say about its noise, in a table and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncbayes import diagnostics
from ncbayes.concerns import Grade
from ncbayes.noise.tempered import FEW_EFFECTIVE, LOWERED, NOT_BETTER, REASONS, UNCERTAIN

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# How much wider intervals may be than exact ones: good, fair, and poor; beyond, the fit has failed.
WIDER: dict[Grade, float] = {"good": 0.10, "fair": 0.25, "poor": 1.0}
# Noise points worth this share of their number are near to ideal ones: only more of them help.
NEAR_IDEAL = 0.8
# With this many noise points for each row more of them change little.
MUCH_NOISE = 10.0
# With log odds beyond this a label is certain to eight digits.
CERTAIN = 18.0
# Beyond this widening a number says no more.
ENDLESS = 10.0
# Beyond this share of the posterior sd of log_z, the error of the noise's own normalizer shows.
NOTICEABLE = 0.3


@dataclass(frozen=True, repr=False)
class NoiseReport:
    """How good the noise is; print it for the words.

    ``verdict`` is one sentence, ``lines`` all of them. ``table`` has a row for each group and noise
    set: ``noise_points``, ``auc`` (1/2: noise like the data; 1: never alike), ``lowest_log_odds``
    and ``highest_log_odds``, ``ideal_noise`` (how many points drawn from the model itself would
    keep as much; noise wider than the data can be worth more than there are points),
    ``information_kept`` (the share of the exact likelihood's information, averaged over the
    statistics, each with the others known), ``widening`` (how much wider intervals are than with
    the exact likelihood, in the mean over parameters), ``worst_widening`` (for the worst one; NaN
    where there are too many parameters to know) and ``log_z_error`` (of the noise's own log
    normalizer, 0 where that is exact). ``updates``: one row for each update of adaptive noise and
    group, with the ``reason`` why it was made or not, else None. ``candidates``: the share kept by
    each candidate or round of automatic noise, else None. ``rounds``: one row for each round of
    self-consistent noise and group, with what simulation showed, else None. ``spread``: with
    several noise sets, how much the posterior differs between them.
    """

    verdict: str
    lines: tuple[str, ...]
    table: pd.DataFrame
    updates: pd.DataFrame | None = None
    candidates: pd.Series[float] | None = None
    spread: pd.DataFrame | None = None
    rounds: pd.DataFrame | None = None

    def __repr__(self) -> str:
        parts = [*self.lines]
        if len(self.table):
            parts += ["", self.table.round(3).to_string()]
        if self.updates is not None:
            parts += ["", "Updates of the noise:", self.updates.round(3).to_string()]
        if self.rounds is not None:
            parts += ["", "Rounds of the noise:", self.rounds.round(3).to_string()]
        if self.spread is not None:
            parts += ["", "Between noise sets:", self.spread.round(3).to_string()]
        return "\n".join(parts)


def noise_report(
    tree: xr.DataTree, spread: pd.DataFrame | None, failed: Sequence[str] = ()
) -> NoiseReport:
    """The report of a posterior, from what is stored in it.

    ``failed`` is what speaks against the fit whatever the noise keeps: it is the verdict, then.
    """
    if "noise" not in tree.children:
        import pandas as pd

        words = f"There is no noise: the fit used {likelihood_of(tree)} of the data alone."
        return NoiseReport(words, (words,), pd.DataFrame())
    table = tree["noise"].to_dataset()[list(diagnostics.NOISE_FACTS)].to_dataframe()
    updates = candidates = rounds = None
    if "adaptation" in tree.children:
        updates = tree["adaptation"].to_dataset().to_dataframe()
        updates["made"] = updates["made"] > 0
    if "candidates" in tree.children:
        candidates = tree["candidates"]["kept"].to_series()
    if "rounds" in tree.children:
        rounds = tree["rounds"].to_dataset().to_dataframe()
        rounds["passed"] = rounds["passed"] > 0
    verdict = _verdict(table, tree)
    told = [f"The fit has failed: {line}." for line in failed]
    lines = [*told, verdict, *_certain(table), *_updates(updates)]
    lines += [*_inherited(tree), *_spread(spread)]
    if "noise_choice" in tree.attrs:
        lines.insert(0, str(tree.attrs["noise_choice"]))
    found = updates, candidates, spread, rounds
    return NoiseReport([*told, verdict][0], tuple(lines), table, *found)


def likelihood_of(tree: xr.DataTree) -> str:
    """What a fit without noise used in its place, in words."""
    return str(tree.attrs.get("likelihood", "the Hyvarinen score"))


def grade_of_noise(widening: float) -> Grade:
    """The grade of noise by how much wider it makes intervals, in the mean over parameters."""
    for grade, limit in WIDER.items():
        if widening <= limit:
            return grade
    return "failed"


def _verdict(table: pd.DataFrame, tree: xr.DataTree) -> str:
    """The worst group or set in plain words, with what to do."""
    noise_set, group = table["widening"].idxmax()
    worst = table.loc[(noise_set, group)]
    grade = grade_of_noise(float(worst["widening"]))
    line, remedy = noise_words(tree, worst, str(group), grade)
    return f"{line[0].upper()}{line[1:]}{'; ' if remedy else ''}{remedy}."


def noise_words(
    tree: xr.DataTree, row: pd.Series[float], group: str, grade: Grade, shrink: bool = False
) -> tuple[str, str]:
    """What to say of one group's noise, and what to do; ``shrink``: name a prior that shrinks."""
    where = f" in group {group}" if tree["noise"].sizes["group"] > 1 else ""
    most = f" ({_percent(row['worst_widening'])} for the worst parameter)"
    line = (
        f"the noise is {grade if grade != 'failed' else 'no use'}: the "
        f"{row['noise_points']:.0f} comparison points (noise){where} are worth "
        f"{row['ideal_noise']:.0f} drawn from the model itself, and intervals are about "
        f"{_percent(row['widening'])} wider than with the exact likelihood"
        f"{most if row['worst_widening'] == row['worst_widening'] else ''}"
    )
    near = bool(row["ideal_noise"] >= NEAR_IDEAL * row["noise_points"])
    return line, _remedy(tree, grade, shrink, near)


def _remedy(tree: xr.DataTree, grade: Grade, shrink: bool, near: bool) -> str:
    """What to do; ``near``: the noise is as good as its number of points allows."""
    ratio = float(tree.attrs["noise_ratio"])
    more = f"noise_ratio={2 * ratio:.3g} would bring them closer"
    if grade == "good":
        return more if ratio < MUCH_NOISE / 2 else ""
    if near:
        return more
    if shrink:
        return (
            "there are many parameters for so few rows: a prior that shrinks, such as "
            "prior=ncbayes.priors.Horseshoe(), helps most"
        )
    if grade == "failed" and tree.attrs["schedule"] == "Auto":
        return (
            "no noise that was tried is closer: look for broken rows, and for columns that nearly "
            "repeat each other"
        )
    if "theta" not in tree["posterior"]:
        return "noise closer to the data, such as ncbayes.noise.gaussian_mixture(data), may help"
    if tree.attrs["schedule"] == "Auto":
        return f"no noise that was tried is closer; {more}, and so do more data"
    if tree.attrs["schedule"] == "Adaptive":
        return f"a larger alpha of noise.Adaptive may help, and {more}"
    return 'noise="auto" may do better, and should be tried before more noise'


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share < ENDLESS else f"more than {100 * ENDLESS:.0f} %"


def _certain(table: pd.DataFrame) -> list[str]:
    low, high = float(table["lowest_log_odds"].min()), float(table["highest_log_odds"].max())
    if max(-low, high) <= CERTAIN:
        return []
    return [
        f"Log odds reach from {low:.0f} to {high:.0f}: some points are data or noise for certain, "
        "and tell nothing."
    ]


def _updates(updates: pd.DataFrame | None) -> list[str]:
    """How many updates were made, and of the others, and of those cut short, why."""
    if updates is None:
        return []
    made = updates[updates["made"]]
    lines = [f"{len(made)} of {len(updates)} updates of the noise were made."]
    if "reason" in updates:
        for reason, rows in updates.groupby("reason", sort=False):
            lines += _why(str(reason), rows)
    return lines if len(made) else [*lines, "The noise is the one it started with."]


def _why(reason: str, rows: pd.DataFrame) -> list[str]:
    """What there is to say of updates with this reason."""
    count, were = len(rows), "was" if len(rows) == 1 else "were"
    if reason == LOWERED:
        least = rows.loc[(rows["alpha"] / rows["wanted"]).idxmin()]
        return [
            f"{count} {were} made with a smaller alpha than asked for ({least['alpha']:.2g} for "
            f"{least['wanted']:.2g} at the least): with more, too few points would be effective or "
            "the normalizer too uncertain."
        ]
    if reason == NOT_BETTER:
        best = rows.loc[(rows["kept"] / rows["kept_before"]).idxmax()]
        return [
            f"{count} {were} not made: the new noise kept no more of the information than the one "
            f"before ({100 * best['kept']:.3g} % after {100 * best['kept_before']:.3g} %, at best)."
        ]
    if reason not in REASONS:
        return []
    return [f"{count} {were} refused by the guard: {REASONS[reason]}{_numbers(reason, rows)}."]


def _numbers(reason: str, rows: pd.DataFrame) -> str:
    if reason == FEW_EFFECTIVE and rows["effective"].notna().any():
        return f"; at the smallest, {100 * rows['effective'].max():.2g} % of the noise points"
    if reason == UNCERTAIN and rows["log_z_error"].notna().any():
        return f"; at the smallest, its standard error is {rows['log_z_error'].min():.2g}"
    return ""


def _inherited(tree: xr.DataTree) -> list[str]:
    """Where the error of the noise's own normalizer shows in log_z, if that is the contrast's."""
    error = tree["noise"]["log_z_error"].max("noise_set")
    if "normalizer" in tree.children:
        error = error.where(tree["normalizer"]["way"] == "contrast", 0.0)
    spread = tree["posterior"]["log_z"].std(("chain", "draw"))
    ratio = (error / spread).fillna(0.0)
    if float(ratio.max()) <= NOTICEABLE:
        return []
    group = ratio["group"].values[int(np.argmax(ratio.to_numpy()))]
    where = f" of group {group}" if ratio.sizes["group"] > 1 else ""
    return [
        f"The normalizer of the noise{where} has a standard error of "
        f"{float(error.sel(group=group)):.3f}, which log_z inherits beyond its posterior sd of "
        f"{float(spread.sel(group=group)):.3f}; theta does not."
    ]


def _spread(spread: pd.DataFrame | None) -> list[str]:
    if spread is None:
        return []
    worst = spread["ratio"].idxmax()
    return [
        f"Between noise sets posterior means differ by up to {spread['ratio'].max():.2f} posterior "
        f"sds ({worst})."
    ]
