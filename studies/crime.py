"""Where were the gun assaults in Washington DC, month by month? (The paper's section 4.3.)

    python studies/crime.py [--data crime.csv --outline city.geojson] [--methods ncbayes paper ...]
        [--folds 5] [--tune 500] [--draws 1500] [--cores 1] [--keep rows.jsonl] [--out maps.png]
        [--change change.png]

The CSV is that of the city's portal ("Crime Incidents in 2022"), the outline any GeoJSON polygon;
without them the incidents are those of a simulated city, ``datasets.incidents(seed=1)``. Densities
are for each calendar month, zero outside the outline, and per square kilometer.

Prints the mean log score of held-out points, fold by fold: points are put into folds at random
within months, and each method sees the other folds. Differences to kernels come with the standard
error of their mean over points. Draws maps of "ncbayes" above and "kde" below, some months, one
scale of colours, and where the density rose from the first month to the last.

Methods: "ncbayes" is ``fit_density_over_time`` as it comes. "paper" has the paper's prior, adaptive
noise and as many noise points as data, "paper_prior" the paper's prior only, "ncbayes_100" 100
basis functions. "kde" are SciPy's kernels month by month, zero outside the outline and normalized
inside; "pooled_kde" the same from all months together; "kde_0.7" and "pooled_kde_0.5" have kernels
0.7 and 0.5 times as wide as Scott's rule has them.

With --keep every fold is written to a file when it is done, and not run again.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy.special import logsumexp

import ncbayes as ncb
from ncbayes_paper.crime_figure import loaded, maps
from ncbayes_paper.kept import replications

SEED = 1
FITS = {
    "ncbayes": {},
    "ncbayes_100": {"basis": 100},
    "paper": {
        "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk"),
        "noise": "adaptive",
        "noise_ratio": 1.0,
    },
    "paper_prior": {"prior": ncb.priors.RandomWalk(rate=1.0, initial="walk")},
}
# Whether all months are taken together, and the width of kernels by Scott's rule times this.
KERNELS = {
    "kde": (False, 1.0),
    "kde_0.7": (False, 0.7),
    "pooled_kde": (True, 1.0),
    "pooled_kde_0.5": (True, 0.5),
}
METHODS = (*FITS, *KERNELS)
# Uniform points that normalize kernels of other widths than Scott's: to about 0.5 %.
NODES = 200_000


def split(months: np.ndarray, folds: int, seed: int = SEED) -> np.ndarray:
    """The fold of every point: random, and within a month of equal sizes but for one."""
    rng, found = np.random.default_rng(seed), np.empty(len(months), dtype=int)
    for month in np.unique(months):
        rows = np.flatnonzero(months == month)
        found[rng.permutation(rows)] = (np.arange(len(rows)) + rng.integers(folds)) % folds
    return found


def kernels(
    points: pd.DataFrame, months: object, outline: object, width: float = 1.0
) -> ncb.baselines.KDEOverTime:
    """Kernel density estimates of these months, so many times as wide as Scott's rule has them."""
    found = ncb.baselines.kde_over_time(points, months, domain=outline)
    return found if width == 1 else replace(found, estimate=widened(found.estimate, width))


def widened(estimate: ncb.baselines.TimewiseKDE, width: float) -> ncb.baselines.TimewiseKDE:
    """The same estimate with kernels so many times as wide."""
    domain = estimate.domain
    at = domain.uniform(NODES, np.random.default_rng(SEED))
    kernels = [replace(each, covariance=width**2 * each.covariance) for each in estimate.kernels]
    logs = [domain.log_volume + logsumexp(each.log_density(at)) for each in kernels]
    masses = tuple(float(log - np.log(NODES)) for log in logs)
    return replace(estimate, kernels=tuple(kernels), log_mass=masses)


def fitted(incidents: ncb.datasets.Incidents, rows: np.ndarray, method: str, **options: object):
    """The posterior from some of the incidents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit_density_over_time(
            incidents.points[rows], incidents.times[rows], domain=incidents.outline, every="month",
            cores=1, seed=SEED, progress=False, **FITS[method], **options,
        )  # fmt: skip


def measured(
    data: str | None,
    outline: str | None,
    method: str,
    fold: int,
    folds: int,
    tune: int,
    draws: int,
) -> list[float]:
    """Log scores of the points of a fold, by what the method makes of the other folds."""
    incidents = loaded(data, outline)
    months = incidents.times.dt.month.to_numpy()
    held = split(months, folds) == fold
    if method in FITS:
        found = fitted(incidents, ~held, method, tune=tune, draws=draws, chains=1)
        times = incidents.times
    else:
        pooled, width = KERNELS[method]
        times = np.zeros(len(months)) if pooled else months
        found = kernels(incidents.points[~held], times[~held], incidents.outline, width)
    score = ncb.scores.log_score(found, incidents.points[held], times=times[held])
    return score.pointwise.to_numpy().tolist()


def table(scores: dict[str, list[list[float]]]) -> str:
    """A row a method: the mean log score of each fold and of all points, less those of kernels."""
    folds = len(next(iter(scores.values())))
    rivals = [name for name in ("kde", "pooled_kde") if name in scores]
    head = [
        "log score of a point",
        *(f"fold {fold + 1}" for fold in range(folds)),
        "all",
        *(f"less {rival} (folds better)" for rival in rivals),
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for method, found in scores.items():
        cells = [f"{np.mean(own):.3f}" for own in [*found, np.concatenate(found)]]
        cells += [_gain(found, scores[rival]) if method != rival else "" for rival in rivals]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _gain(scores: list[list[float]], others: list[list[float]]) -> str:
    """The mean difference over points with its standard error, and in how many folds it is > 0."""
    by_fold = [np.subtract(*pair) for pair in zip(scores, others, strict=True)]
    gain = np.concatenate(by_fold)
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    better = sum(own.mean() > 0 for own in by_fold)
    return f"{gain.mean():+.3f} ± {error:.3f} ({better} of {len(by_fold)})"


def main() -> None:
    """Print the scores and draw the maps."""
    mpl.use("agg")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--outline")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1500)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--change", type=Path)
    options = parser.parse_args()
    if (options.data is None) != (options.outline is None):
        parser.error("--data and --outline go together: the density is zero outside the outline")
    incidents = loaded(options.data, options.outline)
    counts = incidents.times.dt.to_period("M").value_counts()
    shared = incidents.points.duplicated(keep=False).sum()
    print(f"{len(incidents.points)} incidents, {counts.min()} to {counts.max()} a month, ", end="")
    print(f"{shared} of which share their place with another\n")
    length = (options.folds, options.tune, options.draws)
    files = (options.data, options.outline)
    places = [(*files, method, fold, *length) for method in options.methods
              for fold in range(options.folds)]  # fmt: skip
    found = replications(measured, places, options.cores, options.keep)
    scores: dict[str, list[list[float]]] = {method: [] for method in options.methods}
    for (_, _, method, *_), own in zip(places, found, strict=True):
        scores[method].append(own)
    print(table(scores), flush=True)
    if options.out or options.change:
        draw(incidents, options)


def draw(incidents: ncb.datasets.Incidents, options: argparse.Namespace) -> None:
    """Fit all incidents, say how that went, and save the pictures that were asked for."""
    everything = np.ones(len(incidents.points), dtype=bool)
    length = {"tune": options.tune, "draws": options.draws}
    posterior = fitted(incidents, everything, "ncbayes", chains=2, **length)
    variance = posterior.data["posterior"]["theta.variance"]
    print(f"\n{posterior}, {posterior.data.attrs['wall_seconds']:.0f} seconds")
    print("\n".join([*posterior.warning_lines(), posterior.noise_report().verdict]))
    print(f"median variance of a month's step: {float(variance.median()):.2f}")
    ends = [str(label) for label in posterior.theta["group"].to_numpy()[[0, -1]]]
    rise = ncb.densities.change(posterior, *ends)["probability"]
    words = f"probability of a rise from {ends[0]} to {ends[1]}, over the cells of a grid"
    print(f"{words}: {float(rise.min()):.3f} to {float(rise.max()):.3f}")
    if options.out:
        maps(posterior, incidents).savefig(options.out, dpi=110)
    if options.change:
        ncb.plots.change_map(posterior, *ends).savefig(options.change, dpi=110)


if __name__ == "__main__":
    main()
