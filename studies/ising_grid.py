"""Is the posterior of an Ising grid's coupling calibrated, and what does it cost?

    python studies/ising_grid.py [--couplings 0.2 0.35] [--methods adaptive auto ...]
        [--replications 50] [--rows 1000] [--side 10] [--cores 2] [--keep rows.jsonl]

A 10 x 10 grid of spins, one coupling for all edges, no fields, n = 1000 independent rows by
the model's own Gibbs sampler. How often do 90 % intervals cover the true coupling, how wide are
they, and how many seconds does a fit take? Methods, all with the prior N(0, 1) and one chain:

"adaptive"          against noise that moves toward the fitted model (``noise.Adaptive()``), as many
                    noise points as data
"auto"              the defaults of ``ncbayes.fit``: noise and noise ratio chosen by themselves
"pseudolikelihood"  the product of full conditionals instead of the likelihood
"exchange"          data simulated in every sweep instead of log Z, by 20 Gibbs sweeps from the data

``error`` is that of the posterior mean (root mean square), ``sd`` the posterior's; they are equal
for calibrated posteriors. Replication r uses seed r; all methods of a replication meet the same
data. Seconds are those of a fit on one core, next to others on the other cores.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_paper.kept import replications

LEVEL = 0.9
LONG = {"tune": 100, "draws": 500}
METHODS: dict[str, dict[str, Any]] = {
    "adaptive": {"noise": ncb.noise.Adaptive(), "noise_ratio": 1.0, **LONG},
    "auto": LONG,
    "pseudolikelihood": {"engine": "pseudolikelihood", **LONG},
    # From the data 20 sweeps are enough to forget them at a theta that is not far.
    "exchange": {"engine": ncb.engines.Exchange(sweeps=20), **LONG},
}
NAMES = ("covered", "difference", "sd", "effective", "seconds")


def grid(side: int) -> ncb.models.Ising:
    """The model."""
    edges = ncb.models.grid_edges(side, side)
    return ncb.models.Ising(side**2, fields=False, edges=edges, coding="spins", coupling="common")


def measured(
    coupling: float, method: str, replication: int, rows: int, side: int
) -> dict[str, float]:
    """One fit of one data set."""
    model, truth = grid(side), np.array([coupling])
    data = model.sample(truth, rows, np.random.default_rng([0, replication]))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model, data, prior=ncb.priors.Normal(scale=1.0), chains=1, cores=1, seed=replication,
            progress=False, **METHODS[method],
        )  # fmt: skip
    seconds = time.perf_counter() - began
    row = posterior.summary(LEVEL).loc["coupling"]
    return {
        "covered": float(row["eti90_low"] <= coupling <= row["eti90_high"]),
        "difference": float(row["mean"] - coupling),
        "sd": float(row["sd"]),
        "effective": float(row["ess_bulk"]),
        "seconds": seconds,
    }


def table(coupling: float, rows: dict[str, list[dict[str, float]]]) -> str:
    """A row a method."""
    lines = [
        f"| coupling {coupling:g} | coverage of 90 % intervals | bias / error | error | sd | "
        "effective draws | seconds |",
        "|---" * 7 + "|",
    ]
    for method, found in rows.items():
        of = {name: np.array([row[name] for row in found]) for name in NAMES}
        # At the nominal level: with all covered, the observed share would claim an error of zero.
        share, chance = of["covered"].mean(), np.sqrt(LEVEL * (1 - LEVEL) / len(found))
        error = np.sqrt((of["difference"] ** 2).mean())
        lines.append(
            f"| {method} | {share:.2f} ± {chance:.2f} | {of['difference'].mean() / error:+.2f} | "
            f"{error:.4f} | {of['sd'].mean():.4f} | {of['effective'].mean():.0f} | "
            f"{of['seconds'].mean():.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--couplings", nargs="+", type=float, default=[0.2, 0.35])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--side", type=int, default=10)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    print(f"{options.side} x {options.side} grid, n = {options.rows}, {options.replications} data "
          "sets\n")  # fmt: skip
    for coupling in options.couplings:
        places = [
            (coupling, method, r, options.rows, options.side)
            for r in range(options.replications)
            for method in options.methods
        ]
        found = replications(measured, places, options.cores, options.keep)
        rows: dict[str, list[dict[str, float]]] = {method: [] for method in options.methods}
        for place, row in zip(places, found, strict=True):
            rows[place[1]].append(row)
        print(f"{table(coupling, rows)}\n", flush=True)


if __name__ == "__main__":
    main()
