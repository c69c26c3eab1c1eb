"""Have the chains mixed? R-hat and effective draws of all quantities as one graded concern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtri

from ncbayes import diagnostics
from ncbayes.concerns import Concern, Grade
from ncbayes.modes import mode_line

if TYPE_CHECKING:
    import xarray as xr

# R-hat above the limit in this share of the quantities, and below this everywhere, is a note.
FEW, NOTED_R_HAT = 0.05, 1.05
# The chance that the R-hat of a quantity exceeds what its effective draws allow.
BY_CHANCE = 1e-4


def convergence(tree: xr.DataTree) -> Iterator[Concern]:
    """R-hat and effective draws of all quantities."""
    measured = diagnostics.measured(tree)
    if not measured:
        return
    plain = diagnostics.plain_names(tree)
    measured = [(plain.get(each[0], each[0]), *each[1:]) for each in measured]
    chains, draws = (int(tree["posterior"].sizes[name]) for name in ("chain", "draw"))
    kind = diagnostics.mode_kind(tree) if _doubts(measured, chains)[0] else None
    if kind is not None:
        name, *_, r_hat = max(measured, key=lambda each: np.nan_to_num(each[3]))
        line, _, remedy = mode_line(kind, r_hat, name).partition("; ")
        yield Concern("modes", "convergence", "poor", line, remedy, {"r_hat": r_hat})
        measured = [each for each in measured if each[0].startswith("log_z")]
    if measured:
        yield graded_convergence(measured, chains, draws)


def graded_convergence(
    measured: list[tuple[str, float, float, float]], chains: int, draws: int
) -> Concern:
    """One concern over rows of a name, bulk and tail ESS and R-hat."""
    known = [each for each in measured if np.isfinite(each[3])]
    bad, few = _doubts(measured, chains)
    if not known and not few:
        words = "R-hat is not known of one chain"
        return Concern("mixing", "convergence", "fair", words, "fit with chains=4")
    facts: dict[str, Any] = {
        "worst_r_hat": max((each[3] for each in known), default=np.nan),
        "effective": min(diagnostics.effective_draws(*each[1:3]) for each in measured),
        "quantities": len(measured),
        "above": len(bad),
        "few": len(few),
    }
    if not bad and not few:
        words = (
            f"the chains agree: R-hat is at most {facts['worst_r_hat']:.3f}, and there are at "
            f"least {facts['effective']:.0f} effective draws"
        )
        return Concern("mixing", "convergence", "good", words, "", facts, "the chains agree")
    grade, parts = _grade_of_mixing(bad, few, len(measured)), []
    if bad:
        r_hat, name = bad[0]
        facts |= {"name": name}
        parts.append(
            f"R-hat is above {diagnostics.WORST_R_HAT} for {len(bad)} of {len(measured)} "
            f"quantities (worst {r_hat:.3f}, {name}): the chains have not mixed"
            if grade != "fair"
            else f"R-hat is a little above {diagnostics.WORST_R_HAT} for {len(bad)} of "
            f"{len(measured)} quantities (worst {r_hat:.3f}, {name})"
        )
    if few:
        fewest, name = few[0]
        parts.append(
            f"there are fewer than {diagnostics.FEWEST_EFFECTIVE} effective draws a chain for "
            f"{len(few)} of {len(measured)} quantities (worst {fewest:.0f} in all, {name})"
        )
    # Effective draws of chains that disagree tell nothing about how many more they need.
    more = 2 * draws if bad or not few else diagnostics.enough(draws, few[0][0], chains)
    facts |= {"more_draws": more}
    remedy = f"use more draws, e.g. posterior.extend(draws={more})" if grade != "fair" else ""
    short = "the chains have not mixed" if bad and grade != "fair" else "few effective draws"
    if grade == "fair":
        short = f"R-hat is a little above {diagnostics.WORST_R_HAT} in places"
    return Concern("mixing", "convergence", grade, ", and ".join(parts), remedy, facts, short)


def _doubts(
    measured: list[tuple[str, float, float, float]], chains: int
) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """Too high R-hats and too few effective draws, with their names and the worst first."""
    bad, few = [], []
    for name, bulk, tail, r_hat in measured:
        effective = diagnostics.effective_draws(bulk, tail)
        if r_hat > r_hat_limit(effective, chains):
            bad.append((r_hat, name))
        if effective < diagnostics.FEWEST_EFFECTIVE * chains:
            few.append((effective, name))
    return sorted(bad, reverse=True), sorted(few)


def r_hat_limit(effective: float, chains: int) -> float:
    """1.01, or what chance makes of so many effective draws, if that is more.

    Means of the 2k half chains of e effective draws each vary by 1 / e of their variance, so
    ``R-hat^2`` is about ``1 + (chi-square of 2k - 1 degrees / (2k - 1) - 1) / e``.
    """
    halves = 2 * chains
    each = max(effective, diagnostics.FEWEST_EFFECTIVE * chains) / halves
    beyond = float(chdtri(halves - 1, BY_CHANCE)) / (halves - 1) - 1
    return max(diagnostics.WORST_R_HAT, float(np.sqrt(1 + beyond / each)))


def _grade_of_mixing(
    bad: list[tuple[float, str]], few: list[tuple[float, str]], total: int
) -> Grade:
    if few or (bad and (bad[0][0] > NOTED_R_HAT or len(bad) > max(FEW * total, 1))):
        return "poor"
    return "fair"
