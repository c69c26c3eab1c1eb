"""Do densities over time come out as in the paper's Table 1? (Its section 4.2.)

    python studies/density_tables.py [--scenarios 1 2] [--methods common per_time adaptive ...]
        [--replications 20] [--cores 2] [--keep rows.jsonl]

ABE, CP and AL (``ncbayes.metrics``) at 500 uniform points of the data's rectangle, T = 10, n = 100
points a time, L = 30 basis functions, one chain of 500 + 1500 sweeps. CP and AL by intervals of
mean +- 1.96 sd (the paper's level can only be had with these, docs/intervals.md) and by quantiles,
the latter also where the true density exceeds 1 % of its peak.

Methods: "common" (the paper's N1), "per_time" (N2) and "adaptive" (aN) have the paper's prior
``RandomWalk()`` and as many noise points as data. "default" is ``fit_density_over_time`` as it
comes (a separate variance for the first time, noise ratio 5). "kde": SciPy's kernels time by time.

Replication r uses seed r; all methods of a replication meet the same data. With --keep every fit is
written to a file when it is done, and not run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import ncbayes as ncb
from kept import replications

# Fewer than the paper's 2000 + 3000: half of these draws are effective, of its own hardly any.
TUNE, DRAWS = 500, 1500
SCENARIOS = {1: ncb.datasets.moving_mixture, 2: ncb.datasets.growing_ring}
PAPER_PRIOR = {"prior": ncb.priors.RandomWalk(), "noise_ratio": 1.0}
METHODS = {
    "common": {"noise": "common", **PAPER_PRIOR},
    "per_time": {"noise": "per_time", **PAPER_PRIOR},
    "adaptive": {"noise": "adaptive", **PAPER_PRIOR},
    "default": {},
    "kde": None,
}
# Table 1: ABE, CP in percent, AL.
PAPER = {
    (1, "common"): (0.267, 96.2, 0.154),
    (1, "per_time"): (0.270, 95.1, 0.130),
    (1, "adaptive"): (0.255, 93.9, 0.113),
    (1, "kde"): (0.301, np.nan, np.nan),
    (2, "common"): (0.350, 97.2, 0.123),
    (2, "per_time"): (0.375, 95.8, 0.129),
    (2, "adaptive"): (0.371, 94.5, 0.111),
    (2, "kde"): (0.581, np.nan, np.nan),
}
NAMES = ("abe", "cp", "al", "quantile_cp", "quantile_cp_high", "quantile_al")


def measured(scenario: int, method: str, replication: int) -> dict[str, float]:
    """One fit of one data set."""
    simulated = SCENARIOS[scenario](seed=replication)
    at = ncb.metrics.evaluation_points(simulated.points, seed=replication)
    volume = float(np.exp(ncb.metrics.rectangle(simulated.points).log_volume))
    truth = np.array([simulated.density(t, at) for t in np.unique(simulated.times)])
    began = time.perf_counter()
    if METHODS[method] is None:
        estimate = ncb.baselines.TimewiseKDE.of(simulated.points, simulated.times).density(at)
        return {"abe": ncb.metrics.absolute_error(estimate, truth, volume)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit_density_over_time(
            simulated.points, simulated.times, tune=TUNE, draws=DRAWS, chains=1, cores=1,
            seed=replication, progress=False, **METHODS[method],
        )  # fmt: skip
    seconds = time.perf_counter() - began
    draws = ncb.densities.density_draws(posterior, at).to_numpy()
    draws = ncb.metrics.rescaled(draws, volume)
    true = ncb.metrics.rescaled(truth, volume)
    found = {"abe": ncb.metrics.absolute_error(draws.mean(axis=0), truth, volume)}
    for kind, prefix in (("sd", ""), ("quantile", "quantile_")):
        low, high = ncb.metrics.intervals(draws, volume, 0.95, kind)
        found[f"{prefix}cp"] = ncb.metrics.coverage(low, high, true)
        found[f"{prefix}al"] = ncb.metrics.average_length(low, high)
    where = ncb.metrics.high_density(true)
    found["quantile_cp_high"] = ncb.metrics.coverage(low, high, true, where)
    return {**found, "seconds": seconds}


def table(scenario: int, rows: dict[str, list[dict[str, float]]]) -> str:
    """A row a method: means with standard errors, and the paper's figures in parentheses."""
    lines = [
        f"| scenario {scenario} | ABE | CP, % | AL | CP by quantiles, % | where the density "
        "matters, % | below KDE | seconds |",
        "|---" * 8 + "|",
    ]
    kde = np.array([row["abe"] for row in rows["kde"]]) if "kde" in rows else None
    for method, found in rows.items():
        paper = PAPER.get((scenario, method), (np.nan,) * 3)
        columns = {
            name: np.array([row.get(name, np.nan) for row in found]) for name in (*NAMES, "seconds")
        }
        below = "" if kde is None else f"{np.sum(columns['abe'] < kde)} of {len(kde)}"
        cells = [
            _cell(columns["abe"], paper[0], 3),
            _cell(100 * columns["cp"], paper[1], 1),
            _cell(columns["al"], paper[2], 3),
            _cell(100 * columns["quantile_cp"], np.nan, 1),
            _cell(100 * columns["quantile_cp_high"], np.nan, 1),
            below if method != "kde" else "",
            "" if method == "kde" else f"{columns['seconds'].mean():.0f}",
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(values: np.ndarray, paper: float, digits: int) -> str:
    if np.isnan(values).all():
        return ""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    text = f"{values.mean():.{digits}f} ± {error:.{digits}f}"
    return text if np.isnan(paper) else f"{text} ({paper:g})"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", nargs="+", type=int, choices=SCENARIOS, default=[1, 2])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    print(f"{options.replications} replications, {TUNE} + {DRAWS} sweeps; the paper has 200\n")
    for scenario in options.scenarios:
        places = [
            (scenario, method, r) for method in options.methods for r in range(options.replications)
        ]
        found = replications(measured, places, options.cores, options.keep)
        rows: dict[str, list[dict[str, float]]] = {method: [] for method in options.methods}
        for (_, method, _), row in zip(places, found, strict=True):
            rows[method].append(row)
        print(f"{table(scenario, rows)}\n", flush=True)


if __name__ == "__main__":
    main()
