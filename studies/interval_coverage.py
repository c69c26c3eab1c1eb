"""Do 90 % intervals for theta cover the truth 90 % of the time? (The paper's section 3.)

    python studies/interval_coverage.py [--replications 300] [--cores 2]

Von Mises, n = 200. The paper's theorem says that the posterior covariance of theta given one noise
set equals the sampling covariance of the estimator, noise draw included, so fixed noise should
cover at the nominal level for every noise ratio. It promises nothing for log Z, and pooling noise
sets makes the intervals wider than they need to be. Replication r uses seed r, for any number.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed

import ncbayes as ncb

TRUTH = np.array([1.0, 0.5])
ROWS = 200
LEVEL = 0.9
CELLS = {
    "nu = 1, Fixed": (1, ncb.noise.Fixed(), 1000),
    "nu = 5, Fixed": (5, ncb.noise.Fixed(), 1000),
    "nu = 1, Pooled(8)": (1, ncb.noise.Pooled(sets=8, settle=20), 1600),
}


def replication(cell: str, seed: int) -> np.ndarray:
    """For cos, sin and -c: is the truth in the interval, how wide is it, posterior mean."""
    noise_ratio, schedule, draws = CELLS[cell]
    model = ncb.models.VonMises()
    data = model.sample(TRUTH, ROWS, np.random.default_rng([0, seed]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model,
            data,
            noise=schedule,
            noise_ratio=noise_ratio,
            draws=draws,
            tune=100,
            chains=1,
            cores=1,
            seed=seed,
            progress=False,
        )
    truth = np.append(TRUTH, model.log_partition(TRUTH))
    own = posterior.data["normalizer"]["contrast_log_z"].to_numpy().reshape(-1, 1)
    draws = np.concatenate([posterior.theta.to_numpy().reshape(-1, 2), own], axis=1)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return np.array([(low <= truth) & (truth <= high), high - low, draws.mean(axis=0)])


def coverage(cell: str, replications: int, cores: int) -> np.ndarray:
    """All replications of a cell, (replication, what, quantity)."""
    jobs = (delayed(replication)(cell, seed) for seed in range(1, replications + 1))
    return np.array(Parallel(n_jobs=cores)(jobs))


def study(replications: int, cores: int) -> None:
    """Print the table."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / replications)
    print(f"coverage of {LEVEL:.0%} intervals, {replications} replications, Monte Carlo standard "
          f"error {error:.3f}\n")  # fmt: skip
    print("| noise | cos | sin | -c | mean width cos | sin | -c |\n" + "|---" * 7 + "|")
    for cell in CELLS:
        covered, width, _ = coverage(cell, replications, cores).mean(axis=0)
        numbers = [f"{each:.3f}" for each in (*covered, *width)]
        print(f"| {cell} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    study(arguments.replications, arguments.cores)
