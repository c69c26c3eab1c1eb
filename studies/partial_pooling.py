"""Is it better to fit groups together? Partial, no and complete pooling (the paper's section 2.4).

    python studies/partial_pooling.py [--replications 40] [--cores 2]

Eight groups of angles, of 5 to 200 rows, von Mises with theta_g ~ N((1, 0.5), 0.3^2 I). Partial
pooling is one fit with ``priors.Hierarchical()`` as it comes, no pooling the same groups with the
default prior, complete pooling one fit of all rows as if there were no groups. Printed by size of
the group: root mean squared error of the posterior mean of theta, and how often 90 % intervals hold
the truth. Replication r uses seed r, for any number.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed

import ncbayes as ncb

MEAN, SPREAD = np.array([1.0, 0.5]), 0.3
SIZES = (5, 8, 14, 24, 41, 70, 118, 200)
LEVEL = 0.9
KINDS = ("none", "complete", "partial")
OPTIONS = {"noise": "matched", "noise_ratio": 5, "tune": 200, "draws": 800, "chains": 1}


def replication(seed: int, sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    """Error of the posterior mean and whether the interval covers, (kind, 2, group, statistic)."""
    model, rng = ncb.models.VonMises(), np.random.default_rng([1, seed])
    truth = MEAN + SPREAD * rng.standard_normal((len(sizes), len(MEAN)))
    rows = zip(truth, sizes, strict=True)
    data = {f"group {g + 1}": model.sample(each, n, rng) for g, (each, n) in enumerate(rows)}
    pooled = np.concatenate(list(data.values()))
    priors = {"none": None, "complete": None, "partial": ncb.priors.Hierarchical()}
    found = []
    for kind in KINDS:
        points = pooled if kind == "complete" else data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            posterior = ncb.fit(
                model, points, prior=priors[kind], cores=1, seed=seed, progress=False, **OPTIONS
            )
        theta = posterior.theta.to_numpy()[0]
        low, high = np.quantile(theta, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        error = theta.mean(axis=0) - truth
        found.append([error, np.broadcast_to((low <= truth) & (truth <= high), truth.shape)])
    return np.array(found, dtype=float)


def study(replications: int, cores: int) -> None:
    """Print the table."""
    jobs = (delayed(replication)(seed) for seed in range(1, replications + 1))
    found = np.array(Parallel(n_jobs=cores)(jobs))
    rms = np.sqrt(np.mean(found[:, :, 0] ** 2, axis=(0, 3)))
    covered = found[:, :, 1].mean(axis=(0, 3))
    error = np.sqrt(LEVEL * (1 - LEVEL) / (2 * replications))
    print(f"{replications} replications; standard error of a coverage about {error:.2f}\n")
    names = [f"{what}: {kind}" for what in ("error", "covered") for kind in KINDS]
    print(f"| rows | {' | '.join(names)} |\n" + "|---" * (len(names) + 1) + "|")
    for g, size in enumerate(SIZES):
        numbers = [f"{each:.2f}" for each in (*rms[:, g], *covered[:, g])]
        print(f"| {size} | {' | '.join(numbers)} |")
    rms = np.sqrt(np.mean(found[:, :, 0] ** 2, axis=(0, 2, 3)))
    numbers = [f"{each:.2f}" for each in (*rms, *covered.mean(axis=1))]
    print(f"| all | {' | '.join(numbers)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    study(arguments.replications, arguments.cores)
