"""Which votes of the 1984 House of Representatives hang together directly? (docs/ising.md)

    python studies/votes.py --data house_votes_1984_complete.csv [--draws 2000] [--cores 2]

The file has a column "party" and sixteen columns of zeros and ones, one a vote, one row a member
without missing votes (Congressional Quarterly Almanac 1985; UCI Machine Learning Repository). An
Ising model of all pairs, with a horseshoe prior on the couplings. It prints how chains and noise
did, the edges that the 90 % interval rule selects, and how replicated data compare with the data
in what the model was not fitted to: how many members vote yes on k of the sixteen.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ncbayes as ncb

# Couplings are conditional log odds ratios: e^5 is more than anything one believes.
PRIOR = {"edge": ncb.priors.Horseshoe(slab=2.5)}
RULE = {"rule": "interval", "level": 0.9, "threshold": 0.5}
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


def main(path: Path, seed: int, **options: Any) -> None:
    """Fit and print; ``options`` are those of ``fit``."""
    data = votes(path)
    model = ncb.models.Ising(list(data.columns))
    posterior = ncb.fit(model, data, prior=PRIOR, seed=seed, **options)
    print(f"{posterior}, {posterior.data.attrs['wall_seconds']:.0f} seconds")
    print("\n".join([*posterior.warning_lines(), *posterior.noise_report().lines]))
    edges = ncb.graphs.edges(posterior, **RULE)
    shown = edges[edges["selected"]]
    columns = ["node1", "node2", "coupling", "coupling_low", "coupling_high", "probability"]
    print(shown[columns].round(2).to_string(index=False))
    print(f"{len(shown)} of {len(edges)}; expected false: {edges.attrs['expected_fdr']:.3f}")
    print(replicated(posterior, model, data.to_numpy(float), seed).round(3).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = vars(parser.parse_args())
    main(arguments.pop("data"), **arguments)
