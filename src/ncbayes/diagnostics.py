"""Have the chains converged, and can noise and data be compared? Numbers and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# The thresholds of Vehtari et al. (2021).
WORST_R_HAT = 1.01
FEWEST_EFFECTIVE = 100
# An AUC that a handful of pooled points out of thousands could lower no further.
SEPARATED = 0.999


class FitWarning(UserWarning):
    """A fit ended, but something about it needs attention; the message says what to do."""


def overlap(log_odds: FloatArray, is_data: BoolArray) -> float:
    """AUC: the chance that a data point has higher log odds than a noise point (ties count half).

    1/2: noise like the data; 1: noise and data never overlap.
    """
    _, inverse, counts = np.unique(log_odds, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n, m = int(np.sum(is_data)), int(np.sum(~is_data))
    return float((np.sum(ranks[is_data]) - n * (n + 1) / 2) / (n * m))


def quantities(tree: xr.DataTree) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every scalar of the posterior with its name, as (chain, draw)."""
    groups = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    for name, array in tree["posterior"].to_dataset().data_vars.items():
        values = array.to_numpy()
        for index in np.ndindex(values.shape[2:]):
            yield (
                _label(str(name), array, index, groups),
                values[(slice(None), slice(None), *index)],
            )


def _label(name: str, array: xr.DataArray, index: tuple[int, ...], groups: list[str]) -> str:
    coordinates = dict(zip(array.dims[2:], index, strict=True))
    group = coordinates.pop("group", None)
    if name == "theta":
        name = str(array["statistic"].values[coordinates.pop("statistic")])
    elif array.size == array.shape[0] * array.shape[1]:
        coordinates = {}
    inner = [str(position) for position in coordinates.values()]
    if group is not None and len(groups) > 1:
        inner.insert(0, groups[group])
    return f"{name}[{', '.join(inner)}]" if inner else name


def summary(tree: xr.DataTree, level: float) -> pd.DataFrame:
    """One row a quantity: mean, sd, median, interval, Monte Carlo error, ESS, R-hat."""
    import pandas as pd

    tail = (1 - level) / 2
    percent = f"{100 * level:g}"
    names = [f"eti{percent}_low", f"eti{percent}_high"]
    sets = noise_sets(tree)
    rows, index = [], []
    for name, values in quantities(tree):
        index.append(name)
        low, median, high = np.quantile(values, [tail, 0.5, 1 - tail])
        bulk, tails, r_hat = convergence(values, sets, tail)
        sd = float(np.std(values, ddof=1)) if values.size > 1 else np.nan
        row = {
            "mean": float(np.mean(values)),
            "sd": sd,
            "median": median,
            names[0]: low,
            names[1]: high,
            "mcse_mean": monte_carlo_error(values, sets, bulk),
            "ess_bulk": bulk,
            "ess_tail": tails,
            "r_hat": r_hat,
        }
        rows.append(row)
    return pd.DataFrame(rows, index=index)


def noise_sets(tree: xr.DataTree) -> NDArray[Any]:
    """Which noise set each draw is from, (draw,); the same in every chain."""
    sets = tree["sample_stats"]["noise_set"].to_numpy()
    return np.asarray(sets[0])


def within_sets(values: NDArray[Any], sets: NDArray[Any]) -> NDArray[Any]:
    """(chain, draw) values less the mean of their noise set over all chains."""
    centred = np.array(values)
    for which in np.unique(sets):
        centred[:, sets == which] -= values[:, sets == which].mean()
    return centred


def convergence(
    values: NDArray[Any], sets: NDArray[Any], tail: float = 0.05
) -> tuple[float, float, float]:
    """Bulk and tail ESS and R-hat of (chain, draw) values.

    A chain that visits several noise sets has several targets: their means are taken out, so that
    the wandering between sets, which all chains share, is not mistaken for bad mixing.
    """
    from arviz_stats.base import array_stats as untyped

    array_stats: Any = untyped
    if values.shape[1] < 4 or np.ptp(values) == 0:
        # ArviZ needs four draws, and a constant has neither ESS nor R-hat.
        return float("nan"), float("nan"), float("nan")
    if len(np.unique(sets)) > 1:
        values = within_sets(values, sets)
    axes = {"chain_axis": 0, "draw_axis": 1}
    return (
        float(array_stats.ess(values, **axes)),
        float(array_stats.ess(values, method="tail", prob=(tail, 1 - tail), **axes)),
        float(array_stats.rhat(values, **axes)),
    )


def monte_carlo_error(values: NDArray[Any], sets: NDArray[Any], effective: float) -> float:
    """Standard error of the mean: of finitely many draws and, if there are several, of noise sets.

    ``sqrt(within^2 / effective + between^2 / sets)``
    """
    labels = np.unique(sets)
    within = within_sets(values, sets)
    variance = float(np.sum(within**2)) / max(values.size - len(labels), 1) / effective
    if len(labels) > 1:
        means = [values[:, sets == label].mean() for label in labels]
        variance += float(np.var(means, ddof=1)) / len(labels)
    return float(np.sqrt(variance))


def warning_lines(tree: xr.DataTree) -> list[str]:
    """What needs attention, one line each, with what to do."""
    chains, draws = (int(tree["posterior"].sizes[name]) for name in ("chain", "draw"))
    sets = noise_sets(tree)
    lines = _unfinished(tree)
    measured = [(name, *convergence(values, sets)) for name, values in quantities(tree)]
    bad = [(r_hat, name) for name, _, _, r_hat in measured if r_hat > WORST_R_HAT]
    if bad:
        worst, name = max(bad)
        lines.append(
            f"R-hat is above {WORST_R_HAT} for {len(bad)} of {len(measured)} quantities (worst "
            f"{worst:.3f}, {name}): the chains have not mixed; use more draws and tune, "
            f"e.g. posterior.extend(draws={2 * draws})"
        )
    few = [
        (float(np.nan_to_num(min(bulk, tails))), name)
        for name, bulk, tails, _ in measured
        if not min(bulk, tails) >= FEWEST_EFFECTIVE * chains
    ]
    if few:
        worst, name = min(few)
        lines.append(
            f"fewer than {FEWEST_EFFECTIVE} effective draws a chain for {len(few)} of "
            f"{len(measured)} quantities (worst {worst:.0f} in all, {name}); use more draws, e.g. "
            f"posterior.extend(draws={_enough(draws, worst, chains)})"
        )
    return lines + _separation(tree)


def _enough(draws: int, effective: float, chains: int) -> int:
    """More draws that should reach the wanted number of effective ones, in round numbers."""
    if not effective > 0:
        return 2 * draws
    return int(np.ceil(draws * (FEWEST_EFFECTIVE * chains / effective - 1) / 100) * 100) or 100


def _unfinished(tree: xr.DataTree) -> list[str]:
    if tree.attrs["complete"]:
        return []
    sizes = tree["posterior"].sizes
    return [
        f"the fit was interrupted: {sizes['chain']} chains of {sizes['draw']} draws were kept of "
        f"{tree.attrs['chains']} of {tree.attrs['draws']}; posterior.extend(draws=0) finishes it"
    ]


def _separation(tree: xr.DataTree) -> list[str]:
    auc = tree["noise"]["auc"]
    if float(auc.max()) < SEPARATED:
        return []
    worst = auc.where(auc == auc.max(), drop=True)
    of_group = f" in group {worst['group'].values[0]}" if auc.sizes["group"] > 1 else ""
    return [
        f"noise and data are told apart perfectly{of_group} (AUC {float(auc.max()):.4f}): "
        "little is learned and log_z rests on its prior; choose noise closer to the data, "
        "e.g. noise=None"
    ]
