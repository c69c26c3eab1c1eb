"""Does a fit of simulated graphs find what they were simulated from? (docs/random_graphs.md)

    python studies/ergm_recovery.py [--replications 20] [--noise auto] [--cores 2]

100 graphs of 20 nodes in two classes of ten: edges, triangles (mild) and homophily. For each
replication the z-scores ``(posterior mean - truth) / posterior sd``, whether the 90 % intervals
hold the truth, and processor seconds, simulation not included. Replication r uses seed r, for any
number.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed

import ncbayes as ncb

CLASSES = ["a"] * 10 + ["b"] * 10
MODEL = ncb.models.ERGM(20, ["edges", "triangles", ncb.models.terms.homophily(CLASSES)])
TRUTH = np.array([-2.2, 0.1, 0.5])
GRAPHS = 100


def replication(seed: int, noise: str = "auto", draws: int = 1000) -> np.ndarray:
    """By row: z-scores, is the truth in the 90 % interval, posterior sds, processor seconds."""
    graphs = MODEL.sample(TRUTH, GRAPHS, np.random.default_rng([0, seed]))
    settings = {"noise": noise, "seed": seed, "draws": draws, "tune": 500, "chains": 2}
    if noise == "matched":
        settings["noise_ratio"] = 1
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(MODEL, graphs, cores=1, progress=False, **settings)
    seconds = time.process_time() - began
    table = posterior.summary(0.9).iloc[: len(TRUTH)]
    z = (table["mean"] - TRUTH) / table["sd"]
    covered = (table["eti90_low"] <= TRUTH) & (table["eti90_high"] >= TRUTH)
    return np.array([z, covered, table["sd"], np.full(len(TRUTH), seconds)])


def study(replications: int, noise: str, cores: int) -> None:
    """Print the table."""
    jobs = (delayed(replication)(seed, noise) for seed in range(1, replications + 1))
    found = np.array(Parallel(n_jobs=cores)(jobs))
    z, covered, sd, seconds = np.moveaxis(found, 1, 0)
    spent = f"{seconds.mean():.1f} processor seconds each"
    print(f"{replications} replications, noise={noise!r}, {spent}\n")
    print("| statistic | truth | mean sd | mean z | sd of z | largest abs(z) | 90 % covered |")
    print("|---" * 7 + "|")
    for k, term in enumerate(MODEL.terms):
        numbers = (TRUTH[k], sd[:, k].mean(), z[:, k].mean(), z[:, k].std(ddof=1))
        rest = f"{np.abs(z[:, k]).max():.2f} | {covered[:, k].sum():.0f} of {replications}"
        print(f"| {term.name} | {' | '.join(f'{each:.3g}' for each in numbers)} | {rest} |")
    print(f"\nwithin 3 posterior sds: {int((np.abs(z) < 3).sum())} of {z.size}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--noise", choices=["auto", "matched"], default="auto")
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    study(arguments.replications, arguments.noise, arguments.cores)
