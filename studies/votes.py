"""Which votes of the 1984 House of Representatives hang together directly? (docs/ising.md)

    python studies/votes.py --data house_votes_1984_complete.csv [--cores 2] [--seeds 5]

The file has a column "party" and sixteen columns of zeros and ones, one a vote, one row a member
without missing votes (Congressional Quarterly Almanac 1985; UCI Machine Learning Repository). An
Ising model of all pairs, at the defaults of ``fit``. It prints how chains and noise did, the edges
that are selected, and how replicated data compare with the data in what the model was not fitted
to: how many members vote yes on k of the sixteen. With --seeds it prints the medians of edges that
any of so many fits selects, side by side, stars at those that it selects: with automatic noise,
and with noise fitted to the data (matched, ratio 5).
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ncbayes as ncb

THRESHOLD = 0.5  # of the probability that an edge is so strong
REPLICATIONS = 200


def votes(path: Path) -> pd.DataFrame:
    """The sixteen columns of votes."""
    return pd.read_csv(path).drop(columns="party")


def extremes(x: np.ndarray) -> dict[str, float]:
    """Shares of rows with few, a middling number of and many ones."""
    ones = x.sum(axis=1)
    return {
        "at most 4 of 16": float(np.mean(ones <= 4)),
        "7 to 9 of 16": float(np.mean((ones >= 7) & (ones <= 9))),
        "at least 12 of 16": float(np.mean(ones >= 12)),
    }


def replicated(
    posterior: ncb.Posterior, model: ncb.models.Ising, data: np.ndarray, seed: int
) -> pd.DataFrame:
    """Observed shares, and the 90 % interval of those of replicated data."""
    rng = np.random.default_rng(seed)
    theta = posterior.theta.values.reshape(-1, posterior.theta.shape[-1])
    chosen = theta[np.arange(REPLICATIONS) * len(theta) // REPLICATIONS]
    made = pd.DataFrame([extremes(model.sample(each, len(data), rng)) for each in chosen])
    low, high = made.quantile(0.05), made.quantile(0.95)
    return pd.DataFrame({"observed": pd.Series(extremes(data)), "low": low, "high": high})


def side_by_side(data: pd.DataFrame, seeds: int, **options: Any) -> pd.DataFrame:
    """Medians of the edges that any of the fits selects, a column a seed."""
    model, columns, chosen = ncb.models.Ising(list(data.columns)), {}, []
    for seed in range(1, seeds + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            posterior = ncb.fit(model, data, seed=seed, progress=False, **options)
        table = ncb.graphs.edges(posterior).set_index(["node1", "node2"]).sort_index()
        marks = np.where(table["selected"], "*", "")
        columns[f"seed {seed}"] = table["coupling"].map("{:.1f}".format) + marks
        chosen.append(table["selected"])
    selected = pd.concat(chosen, axis=1)
    order = selected.sum(axis=1).sort_values(ascending=False, kind="stable").index
    both = [(one & other).sum() / (one | other).sum() for one, other in combinations(chosen, 2)]
    print(f"{np.mean(both):.2f} of the edges of two seeds are in both, on average")
    return pd.DataFrame(columns).loc[order[selected.loc[order].any(axis=1)]]


def main(path: Path, seed: int, **options: Any) -> None:
    """Fit and print; ``options`` are those of ``fit``."""
    data = votes(path)
    model = ncb.models.Ising(list(data.columns))
    posterior = ncb.fit(model, data, seed=seed, **options)
    print(f"{posterior}, {posterior.data.attrs['wall_seconds']:.0f} seconds")
    print("\n".join([*posterior.warning_lines(), *posterior.noise_report().lines]))
    edges = ncb.graphs.edges(posterior, threshold=THRESHOLD)
    shown = edges[edges["selected"]]
    columns = ["node1", "node2", "coupling", "coupling_low", "coupling_high", "probability"]
    print(shown[columns].round(2).to_string(index=False))
    print(f"{len(shown)} of {len(edges)}; expected false: {edges.attrs['expected_fdr']:.3f}")
    print(replicated(posterior, model, data.to_numpy(float), seed).round(3).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, help="fits to set side by side")
    arguments = vars(parser.parse_args())
    file, seeds = arguments.pop("data"), arguments.pop("seeds")
    if seeds is None:
        main(file, **arguments)
    else:
        cores = {"cores": arguments["cores"]}
        for each in ({}, {"noise": "matched", "noise_ratio": 5}):
            print(each or "automatic noise")
            print(side_by_side(votes(file), seeds, **cores, **each).to_string(), "\n")
