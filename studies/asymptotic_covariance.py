"""Is the covariance of theta the one that the theory predicts? (The paper's section 3.)

    python studies/asymptotic_covariance.py [--replications 500] [--fits 500] [--cores 2]

n = 2000, where what the theory leaves out, of order 1 / n, is half a percent or so; 500
replications leave 6 % in a variance of the estimator and 0.6 % in that of the posterior. Von Mises
angles against uniform noise, and a Gaussian against normal noise of twice its standard deviation.
In every replication the estimator, that is the maximum of the
contrastive likelihood; in the first ``fits`` also a posterior, of other data. Two things are
compared with the theory: n times the covariance of the estimator over replications with
I^-1 J I^-1, and n times the posterior covariance with I^-1. Both are V for theta; for c they differ
by (1 + nu) / nu. Replication r uses seed r.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed

import ncbayes as ncb
from ncbayes.contrast import contrast
from ncbayes.engines.laplace import LogPosterior, laplace
from ncbayes.problem import noise_set

ROWS = 2000
RATIOS = (1, 5, 20)
MODELS = {
    "VonMises": (
        ncb.models.VonMises(),
        np.array([1.0, 0.5]),
        ncb.noise.Uniform(ncb.spaces.Torus(1)),
    ),
    "Gaussian": (
        ncb.models.Gaussian(1),
        np.array([0.5, 1.0]),
        ncb.noise.Normal([0.5], [[4.0]]),
    ),
}


def estimate(name: str, noise_ratio: int, seed: int) -> np.ndarray:
    """The maximum (theta, c) of the contrastive likelihood."""
    model, truth, noise = MODELS[name]
    rng = np.random.default_rng([2, seed])
    data = model.sample(truth, ROWS, rng)
    pooled = contrast(model, data, noise_set(noise, data, noise_ratio * ROWS, rng))
    size = len(truth) + 1
    # A prior so weak that it moves nothing, since Newton's method here is that of a posterior.
    found = laplace(LogPosterior(pooled, 1e-9 * np.eye(size), np.zeros(size)))
    if found is None:
        raise RuntimeError(f"Newton's method failed for {name}, nu = {noise_ratio}, seed {seed}")
    return found.mode


def posterior_covariance(name: str, noise_ratio: int, seed: int) -> np.ndarray:
    """Of (theta, c), with data and noise of its own."""
    model, truth, noise = MODELS[name]
    data = model.sample(truth, ROWS, np.random.default_rng([3, seed]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model,
            data,
            noise=noise,
            noise_ratio=noise_ratio,
            draws=100,
            tune=50,
            chains=1,
            cores=1,
            seed=seed,
            progress=False,
        )
    own = posterior.data["normalizer"]["contrast_log_z"]
    draws = [posterior.theta.to_numpy()[0, :, 0], -own.to_numpy()[0]]
    return np.cov(np.column_stack(draws), rowvar=False)


def in_errors(found: np.ndarray, theory: np.ndarray, replications: int) -> np.ndarray:
    """Differences of covariance matrices in standard errors of a sample covariance."""
    variance = np.diag(theory)
    error = np.sqrt((np.outer(variance, variance) + theory**2) / (replications - 1))
    return (found - theory) / error


def cell(name: str, noise_ratio: int, replications: int, fits: int, cores: int) -> None:
    """Print the rows of one model and noise ratio."""
    model, truth, noise = MODELS[name]
    theory = ncb.asymptotics.expected(model, truth, noise, noise_ratio)
    sandwich, inverse = theory.sandwich, theory.inverse_curvature
    parallel = Parallel(n_jobs=cores)
    seeds = range(1, replications + 1)
    estimates = parallel(delayed(estimate)(name, noise_ratio, seed) for seed in seeds)
    sampling = ROWS * np.cov(np.array(estimates), rowvar=False)
    errors = in_errors(sampling, sandwich, replications)
    fitted = parallel(delayed(posterior_covariance)(name, noise_ratio, s) for s in seeds[:fits])
    posterior = ROWS * np.mean(fitted, axis=0)
    noisy = ROWS * np.std(fitted, axis=0, ddof=1) / np.sqrt(fits)
    labels = [*theory.names, "c"]
    entries = [(i, j) for i in range(len(truth)) for j in range(i, len(truth))]
    for i, j in [*entries, (len(truth), len(truth))]:
        what = f"Var {labels[i]}" if i == j else f"Cov {labels[i]}, {labels[j]}"
        print(f"| {name} | {noise_ratio} | {what} | {sandwich[i, j]:.3f} | {sampling[i, j]:.3f} | "
              f"{errors[i, j]:+.1f} | {inverse[i, j]:.3f} | {posterior[i, j]:.3f} "
              f"({noisy[i, j]:.3f}) |", flush=True)  # fmt: skip


def study(replications: int, fits: int, cores: int) -> None:
    """Print the table."""
    print(f"n = {ROWS}, {replications} estimates and {fits} posteriors a cell, all times n\n")
    print("| model | nu | entry | I^-1 J I^-1 | of the estimator | difference in standard errors "
          "| I^-1 | of the posterior (its error) |\n" + "|---" * 8 + "|")  # fmt: skip
    for name in MODELS:
        for noise_ratio in RATIOS:
            cell(name, noise_ratio, replications, fits, cores)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--fits", type=int, default=500)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    study(arguments.replications, arguments.fits, arguments.cores)
