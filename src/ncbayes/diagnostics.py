"""Have the chains converged, and can noise and data be compared? Numbers and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import expit

from ncbayes.base import BoolArray, Design, FloatArray
from ncbayes.modes import modes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# The thresholds of Vehtari et al. (2021).
WORST_R_HAT = 1.01
FEWEST_EFFECTIVE = 100
# Beyond this many statistics the inverses that exact widths need take seconds.
MOST_INVERTED = 600
# Draws that diverge where a posterior can't be entered are many; a few are a large step each.
MOST_DIVERGED = 0.005
# Share of the trees of NUTS that may reach their limit without a word.
MOST_CUT_OFF = 0.1
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


def information_kept(design: Design, log_odds: FloatArray, more: float = 1.0) -> float:
    """The share of the exact likelihood's information that the contrast keeps, from 0 to 1.

    Averaged over the statistics, each with c unknown and the other coefficients known:
    ``E_p(w) Var_wp(statistic) / Var_p(statistic)`` with ``w = 1 - rho``. Intervals are wider by
    about ``1 / sqrt`` of it. ``more``: as if there were so many times the noise points.
    """
    chance = expit(log_odds)
    weight = chance * expit(np.log(more) - log_odds)
    if not (weight.sum() > 0 and chance.sum() > 0):
        return 0.0  # every label is certain
    exact = _variances(design, chance)
    varies = exact > 0
    kept = weight.sum() / chance.sum() * _variances(design, weight)[varies] / exact[varies]
    return float(np.mean(np.clip(kept, 0.0, 1.0)))


def relative_widths(design: Design, log_odds: FloatArray) -> FloatArray:
    """How many times wider each theta's interval is than with the exact likelihood, (p,).

    ``asymptotics.efficiency`` says more. Empty where there are too many statistics, or too few
    points for so many.
    """
    points, columns = design.shape
    chance = expit(log_odds)
    if columns > MOST_INVERTED or points <= columns:
        return np.zeros(0)
    found = []
    for weights in (chance * expit(-log_odds), chance):
        if not weights.sum() ** 2 > columns * np.sum(weights**2):
            return np.zeros(0)  # fewer points count than there are columns
        gram = design.gram(weights)
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        factor, failed = dpotrf(gram / np.outer(scale, scale), lower=1)
        if failed:
            return np.zeros(0)  # some parameter is not identified by these points
        inverse, _ = dpotri(factor, lower=1)
        found.append((np.diag(inverse) / scale**2)[:-1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        widths = np.sqrt(found[0] / found[1])
    return widths if np.isfinite(widths).all() else np.zeros(0)


NOISE_FACTS = (
    "noise_points",
    "auc",
    "lowest_log_odds",
    "highest_log_odds",
    "ideal_noise",
    "information_kept",
    "widening",
    "worst_widening",
    "log_z_error",
)


def noise_facts(
    design: Design,
    log_odds: FloatArray,
    is_data: BoolArray,
    size: int,
    log_z_error: float,
    at_draws: Sequence[FloatArray] = (),
) -> dict[str, float]:
    """How one noise set of ``size`` points compares with the data, in numbers.

    ``log_odds`` at a typical theta and ``at_draws`` of it: where the posterior is wide, noise made
    for its middle keeps less of the information at draws. Ideal noise, drawn from the model
    itself, keeps m / (n + m) of the information; so noise that keeps the share k is worth
    ``ideal_noise = n k / (1 - k)`` such points.
    """
    kept = typically = information_kept(design, log_odds)
    if len(at_draws):
        kept = float(np.mean([information_kept(design, each) for each in at_draws]))
    widths = relative_widths(design, log_odds) * max(typically, 1e-12) ** 0.5
    widths = widths * max(kept, 1e-12) ** -0.5
    about = max(kept, 1e-12) ** -0.5 - 1
    return {
        "noise_points": float(size),
        "auc": overlap(log_odds, is_data),
        "lowest_log_odds": float(log_odds.min()),
        "highest_log_odds": float(log_odds.max()),
        "ideal_noise": float(np.sum(is_data)) * kept / max(1 - kept, 1e-12),
        "information_kept": kept,
        "widening": float(widths.mean()) - 1 if len(widths) else about,
        "worst_widening": float(widths.max()) - 1 if len(widths) else np.nan,
        "log_z_error": log_z_error,
    }


def _variances(design: Design, weights: FloatArray) -> FloatArray:
    """Weighted variances of the statistics, all columns of the design but the last."""
    total = weights.sum()
    means, squares = design.rmatvec(weights) / total, design.gram_diagonal(weights) / total
    # Round-off leaves a share of 1e-15 of the square where a statistic does not vary.
    variances = (squares - means**2)[:-1]
    return np.where(variances > 1e-13 * squares[:-1], variances, 0.0)


def quantities(tree: xr.DataTree) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every scalar of the posterior with its name, as (chain, draw)."""
    groups = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    for name, array in tree["posterior"].to_dataset().data_vars.items():
        values = array.to_numpy()
        # Once: reading a coordinate takes as long as it is.
        statistics = array["statistic"].to_numpy().tolist() if name == "theta" else []
        for index in np.ndindex(values.shape[2:]):
            yield (
                _label(str(name), array, index, groups, statistics),
                values[(slice(None), slice(None), *index)],
            )


def plain_names(tree: xr.DataTree) -> dict[str, str]:
    """What scales of a graph are of, in words, by the names that ``quantities`` gives them."""
    if "graph" not in tree.children:
        return {}
    stored = tree["graph"].to_dataset()
    nodes = [str(node) for node in stored["node"].to_numpy()]
    edges = [f"the edge {nodes[j]} - {nodes[k]}" for j, k in stored["ends"].to_numpy()]
    waves = [f"{wave} {node}" for node in nodes for wave in ("cos", "sin")]
    runs = {len(each): each for each in (edges, [*nodes, *edges], [*waves, *edges])}
    groups = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    found = {}
    for name, array in tree["posterior"].to_dataset().data_vars.items():
        if not str(name).endswith(".local") or array.shape[-1] not in runs:
            continue
        for index in np.ndindex(array.shape[2:]):
            label = _label(str(name), array, index, groups, [])
            found[label] = f"the scale of {runs[array.shape[-1]][index[-1]]}"
    return found


def _label(
    name: str,
    array: xr.DataArray,
    index: tuple[int, ...],
    groups: list[str],
    statistics: list[str],
) -> str:
    coordinates = dict(zip(array.dims[2:], index, strict=True))
    group = coordinates.pop("group", None)
    if name == "theta":
        name = str(statistics[coordinates.pop("statistic")])
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
    """Which noise set each draw is from, (draw,); the same in every chain, 0 without noise."""
    if "noise_set" not in tree["sample_stats"]:
        return np.zeros(tree["posterior"].sizes["draw"], dtype=int)
    sets = tree["sample_stats"]["noise_set"].to_numpy()
    return np.asarray(sets[0])


def within_sets(values: NDArray[Any], sets: NDArray[Any]) -> NDArray[Any]:
    """(chain, draw) values less the mean of their noise set over all chains."""
    centred = np.array(values)
    for which in np.unique(sets):
        centred[:, sets == which] -= values[:, sets == which].mean()
    return centred


def _standardized(values: NDArray[Any], sets: NDArray[Any]) -> NDArray[Any]:
    """(chain, draw) values with mean 0 and variance 1 in each noise set, over all chains."""
    standard = within_sets(values, sets)
    for which in np.unique(sets):
        here = standard[:, sets == which]
        standard[:, sets == which] = here / (np.std(here) or 1.0)
    return standard


def convergence(
    values: NDArray[Any], sets: NDArray[Any], tail: float = 0.05
) -> tuple[float, float, float]:
    """Bulk and tail ESS and R-hat of (chain, draw) values.

    A chain that visits several noise sets has several targets: their means and spreads are taken
    out, so that the wandering between sets, which all chains share, is not taken for bad mixing.
    """
    from arviz_stats.base import array_stats as untyped

    array_stats: Any = untyped
    if values.shape[1] < 4 or np.ptp(values) == 0:
        # ArviZ needs four draws, and a constant has neither ESS nor R-hat.
        return float("nan"), float("nan"), float("nan")
    if len(np.unique(sets)) > 1:
        values = _standardized(values, sets)
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


def effective_draws(bulk: float, tail: float) -> float:
    """The fewer of both; none where one of them is not known."""
    return float(np.nan_to_num(np.minimum(bulk, tail)))


def measured(tree: xr.DataTree) -> list[tuple[str, float, float, float]]:
    """Name, bulk and tail ESS and R-hat of every quantity."""
    sets = noise_sets(tree)
    return [(name, *convergence(values, sets)) for name, values in quantities(tree)]


def mode_kind(tree: xr.DataTree) -> Literal["copies", "equals"] | None:
    """Whether chains of an energy differ because their modes do."""
    posterior, sets = tree["posterior"].to_dataset(), noise_sets(tree)
    if "theta" in posterior or "log_likelihood" not in tree["sample_stats"]:
        return None  # the likelihood of a family has one mode
    parameters = {
        str(name): array.to_numpy()
        for name, array in posterior.data_vars.items()
        if "group" in array.dims and name != "log_z"
    }
    log_likelihood = tree["sample_stats"]["log_likelihood"].to_numpy()
    return modes(parameters, log_likelihood, lambda values: convergence(values, sets)[2])


def trajectory_lines(tree: xr.DataTree) -> list[tuple[str, str]]:
    """What trajectories have to say, by kind."""
    return [("divergences", line) for line in _divergences(tree)] + [
        ("tree_depth", line) for line in _depth(tree)
    ]


def _depth(tree: xr.DataTree) -> list[str]:
    """Trees of NUTS that were cut off."""
    if "reached_max_treedepth" not in tree["sample_stats"]:
        return []
    reached = tree["sample_stats"]["reached_max_treedepth"].to_numpy()
    share = float(reached.mean())
    if share < MOST_CUT_OFF:
        return []
    return [
        f"{100 * share:.0f} % of the trees of NUTS reached their limit of depth, so that draws are "
        "close to each other; bring data and parameters to the order of 1, narrow the priors, use "
        "more tune, or engine=ncbayes.engines.Nuts(max_depth=12)"
    ]


def _divergences(tree: xr.DataTree) -> list[str]:
    if "diverging" not in tree["sample_stats"]:
        return []
    diverging = tree["sample_stats"]["diverging"].to_numpy()
    count = int(diverging.sum())
    if diverging.mean() <= MOST_DIVERGED:
        return []
    remedy = "use more tune, narrower priors, or parameters of the order of 1"
    if "reached_max_treedepth" in tree["sample_stats"]:
        remedy = (
            "use engine=ncbayes.engines.Nuts(target_acceptance=0.95), narrower priors, or "
            "parameters of the order of 1"
        )
    return [
        f"{count} of {diverging.size} draws diverged: trajectories could not follow the posterior "
        f"there, and may leave parts of it out; {remedy}"
    ]


def enough(draws: int, effective: float, chains: int) -> int:
    """More draws that should reach the wanted number of effective ones, in round numbers."""
    if not effective > 0:
        return 2 * draws
    return int(np.ceil(draws * (FEWEST_EFFECTIVE * chains / effective - 1) / 100) * 100) or 100


def separation(tree: xr.DataTree) -> str | None:
    """What to say of noise that no row can be mistaken for; None if there is nothing."""
    auc = tree["noise"]["auc"]
    if float(auc.max()) < SEPARATED:
        return None
    worst = auc.where(auc == auc.max(), drop=True)
    of_group = f" in group {worst['group'].values[0]}" if auc.sizes["group"] > 1 else ""
    if "field" in tree.children and "far" in tree["field"]:
        far = str(tree["field"]["far"].item())
        return f"noise and data are told apart perfectly{of_group}, most likely since {far}"
    closer = 'choose noise closer to the data, e.g. noise="auto"'
    if "theta" not in tree["posterior"]:
        closer = "choose noise closer to the data, e.g. noise=ncbayes.noise.gaussian_mixture(data)"
    if tree.attrs["schedule"] == "Auto":
        closer = "no noise that was tried comes closer: look at the data, or pass noise of your own"
    return (
        f"noise and data are told apart perfectly{of_group} (AUC {float(auc.max()):.4f}): "
        f"little is learned and log_z rests on its prior; {closer}"
    )
