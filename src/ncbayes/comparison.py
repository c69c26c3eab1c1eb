"""Do posteriors agree? Means, spreads, distances and costs of several fits, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import diagnostics
from ncbayes.base import InputError, shown
from ncbayes.couplings import check_level
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

# Beyond this many standard errors a difference is more than chance among a few dozen of them.
NOTICEABLE = 4.0


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """How posteriors of the same parameters compare with one of them, the ``reference``.

    ``table`` has a row for each parameter and posterior: ``mean``, ``sd``, the ends of the
    equal-tailed interval of ``level`` (their names carry kind and level: ``eti90_low``),
    ``difference_sds``, the mean less that of the reference in sds of the reference;
    ``difference_errors``, the same in Monte Carlo standard errors of both; ``sd_ratio``, sd by that
    of the reference; ``wasserstein_sds``, the distance of the two marginal laws (earth mover's) in
    sds of the reference: of two samples of one law about ``1 / sqrt(effective draws)``;
    ``ess_bulk`` and ``r_hat``.

    ``overview`` has a row for each posterior: its engine, draws in all, ``seconds`` of the fit,
    worst and median effective draws and those a second, the worst R-hat, and over parameters the
    largest ``difference_sds`` and ``difference_errors`` by size, the range of ``sd_ratio``, and the
    largest ``wasserstein_sds``.
    """

    table: pd.DataFrame
    overview: pd.DataFrame
    reference: str
    level: float

    def __repr__(self) -> str:
        lines = [_verdict(name, row) for name, row in self.overview.iterrows()
                 if name != self.reference]  # fmt: skip
        head = f"Reference: {self.reference}, {len(set(self.table['parameter']))} parameters."
        return "\n".join([head, *lines, "", self.overview.round(3).T.to_string()])


def compare(
    posteriors: Mapping[str, Posterior], reference: str | None = None, level: float = 0.9
) -> Comparison:
    """Compare posteriors by name, such as ``{"gibbs": one, "exact": other}``, with the reference.

    What they have in common is compared: theta by statistic and group, and log_z; not the prior's
    scales. None: the first is the reference.
    """
    chosen = _checked(posteriors)
    check_level(level)
    name = next(iter(chosen)) if reference is None else str(reference)
    if name not in chosen:
        raise InputError(
            f"reference must be the name of one of the posteriors {shown(list(chosen))}, got "
            f"{shown(reference)}"
        )
    by_name = {each: _parameters(posterior) for each, posterior in chosen.items()}
    common = [key for key in by_name[name] if all(key in each for each in by_name.values())]
    if not common:
        raise InputError(
            "the posteriors have no parameter in common: "
            + "; ".join(f"{each} has {shown(list(own))}" for each, own in by_name.items())
        )
    table = _table(chosen, by_name, common, name, float(level))
    return Comparison(table, _overview(chosen, table), name, float(level))


def _checked(posteriors: Any) -> dict[str, Posterior]:
    named = isinstance(posteriors, Mapping)
    values = list(posteriors.values()) if named else []
    if len(values) < 2 or not all(isinstance(each, Posterior) for each in values):
        raise InputError(
            "compare needs at least two posteriors by name, such as "
            f'{{"gibbs": posterior, "exact": other}}, got {shown(posteriors)}'
        )
    found = {str(name): posterior for name, posterior in posteriors.items()}
    if len(found) < len(values):
        raise InputError(
            f"compare needs posteriors of different names, got {shown(list(posteriors))}, some of "
            "which are the same as text; call them something else"
        )
    return found


def _parameters(posterior: Posterior) -> dict[str, NDArray[Any]]:
    """Every scalar but the prior's scales, as (chain, draw)."""
    import xarray as xr

    stored = posterior.data["posterior"].to_dataset()
    scales = [name for name in stored.data_vars if _is_scale(str(name), stored)]
    tree = xr.DataTree.from_dict({"posterior": stored.drop_vars(scales)})
    return dict(diagnostics.quantities(tree))


def _is_scale(name: str, stored: Any) -> bool:
    """Whether this is part.scale of the prior, and no parameter of an Energy, outer.inner."""
    return "." in name and ("theta" in stored or name.rpartition(".")[0] in stored)


def _table(
    chosen: Mapping[str, Posterior],
    by_name: Mapping[str, Mapping[str, NDArray[Any]]],
    common: list[str],
    reference: str,
    level: float,
) -> pd.DataFrame:
    import pandas as pd

    sets = {name: _sets(posterior) for name, posterior in chosen.items()}
    rows = []
    for key in common:
        base = by_name[reference][key]
        against = _facts(base, sets[reference], level)
        for name, own in by_name.items():
            facts = _facts(own[key], sets[name], level)
            rows.append({"parameter": key, "posterior": name, **facts,
                         **_differences(own[key], facts, base, against)})  # fmt: skip
    return pd.DataFrame(rows)


def _sets(posterior: Posterior) -> NDArray[Any]:
    if "sample_stats" not in posterior.data.children:
        return np.zeros(posterior.data["posterior"].sizes["draw"], dtype=int)
    return diagnostics.noise_sets(posterior.data)


def _facts(values: NDArray[Any], sets: NDArray[Any], level: float) -> dict[str, float]:
    tail, percent = (1 - level) / 2, f"{100 * level:g}"
    low, high = np.quantile(values, [tail, 1 - tail])
    effective, _, r_hat = diagnostics.convergence(values, sets)
    return {
        "mean": float(values.mean()),
        "sd": float(np.std(values, ddof=1)) if values.size > 1 else np.nan,
        f"eti{percent}_low": float(low),
        f"eti{percent}_high": float(high),
        "mcse_mean": diagnostics.monte_carlo_error(values, sets, effective),
        "ess_bulk": effective,
        "r_hat": r_hat,
    }


def _differences(
    values: NDArray[Any],
    facts: Mapping[str, float],
    base: NDArray[Any],
    against: Mapping[str, float],
) -> dict[str, float]:
    from scipy.stats import wasserstein_distance

    change, sd = facts["mean"] - against["mean"], against["sd"]
    unit = sd if sd > 0 else np.nan
    error = 0.0 if values is base else float(np.hypot(facts["mcse_mean"], against["mcse_mean"]))
    return {
        "difference_sds": change / unit,
        "difference_errors": change / error if error > 0 else 0.0 if change == 0 else np.nan,
        "sd_ratio": facts["sd"] / unit,
        "wasserstein_sds": float(wasserstein_distance(values.ravel(), base.ravel())) / unit,
    }


def _overview(chosen: Mapping[str, Posterior], table: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = {}
    for name, posterior in chosen.items():
        own = table[table["posterior"] == name]
        attributes, sizes = posterior.data.attrs, posterior.data["posterior"].sizes
        seconds = float(attributes.get("wall_seconds", np.nan))
        worst, median = float(own["ess_bulk"].min()), float(own["ess_bulk"].median())
        rows[name] = {
            "engine": str(attributes.get("engine", "")),
            "draws": int(sizes["chain"] * sizes["draw"]),
            "seconds": seconds,
            "worst_ess": worst,
            "median_ess": median,
            "worst_ess_a_second": worst / seconds if seconds > 0 else np.nan,
            "median_ess_a_second": median / seconds if seconds > 0 else np.nan,
            "worst_r_hat": float(own["r_hat"].max()),
            "difference_sds": float(own["difference_sds"].abs().max()),
            "difference_errors": float(own["difference_errors"].abs().max()),
            "sd_ratio_low": float(own["sd_ratio"].min()),
            "sd_ratio_high": float(own["sd_ratio"].max()),
            "wasserstein_sds": float(own["wasserstein_sds"].max()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _verdict(name: Any, row: pd.Series[Any]) -> str:
    """One posterior in words."""
    if np.isnan(row["difference_errors"]) or np.isnan(row["sd_ratio_high"]):
        return f"{name}: too few draws that vary to say whether it agrees."
    within = row["difference_errors"] <= NOTICEABLE
    chance = "no more than Monte Carlo error" if within else "more than Monte Carlo error"
    return (
        f"{name}: means differ by up to {row['difference_sds']:.2f} reference sds, {chance} "
        f"({row['difference_errors']:.1f} standard errors); sds are {row['sd_ratio_low']:.2f} to "
        f"{row['sd_ratio_high']:.2f} times as wide."
    )
