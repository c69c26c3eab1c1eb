"""Does the contrastive posterior agree with the exact one where that can be computed?

    python studies/exact_agreement.py [--sets 100] [--draws 4000] [--cores 2]

Von Mises and a natural-parameter Gaussian, n = 200, noise_ratio 50, against quadrature over theta.
One noise set moves the posterior mean by about 1 / sqrt(50) = 0.14 posterior standard deviations
(noise like the data), so a tenth of one can only be asked of the average over many sets.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import ncbayes as ncb

ROWS, NOISE_RATIO, PRIOR_SCALE = 200, 50, 5.0
MODELS = {
    "VonMises": (ncb.models.VonMises(), np.array([1.0, 0.5])),
    "Gaussian": (ncb.models.Gaussian(1), np.array([0.5, 1.0])),
}


def exact(model: ncb.models.VonMises, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and standard deviations of theta by quadrature, normalizer known."""
    total = model.statistics(data).sum(axis=0)
    center, width = _mode(model, total, len(data))
    axes = [np.linspace(c - 8 * w, c + 8 * w, 161) for c, w in zip(center, width, strict=True)]
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log = np.array([_log_posterior(model, each, total, len(data)) for each in theta])
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = weights @ theta
    return mean, np.sqrt(weights @ (theta - mean) ** 2)


def _log_posterior(model, theta, total, rows):
    return theta @ total - rows * model.log_partition(theta) - theta @ theta / 2 / PRIOR_SCALE**2


def _mode(model, total, rows):
    """The mode, and the standard deviations there by finite differences; only to place a grid."""
    from scipy.optimize import minimize

    start = np.array([0.1, 1.0])
    found = minimize(
        lambda theta: min(-_log_posterior(model, theta, total, rows), 1e10), start, method="BFGS"
    )
    return found.x, np.sqrt(np.diag(found.hess_inv))


def agreement(name: str, sets: int, draws: int, cores: int, seed: int) -> dict[str, np.ndarray]:
    """Differences of means in posterior sds, ratios of sds, and how far log Z is from the truth."""
    model, truth = MODELS[name]
    data = model.sample(truth, ROWS, np.random.default_rng([1, seed]))
    mean, sd = exact(model, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model,
            data,
            noise=ncb.noise.Pooled(sets=sets, settle=10),
            noise_ratio=NOISE_RATIO,
            prior=ncb.priors.Normal(PRIOR_SCALE),
            draws=draws,
            tune=100,
            cores=cores,
            seed=seed,
            progress=False,
        )
    table = posterior.summary(0.9)
    own = posterior.data["normalizer"]["contrast_log_z"].to_numpy()
    return {
        "difference": (table["mean"].to_numpy()[:2] - mean) / sd,
        "error": table["mcse_mean"].to_numpy()[:2] / sd,
        "ratio": table["sd"].to_numpy()[:2] / sd,
        "log_z": np.array([(own.mean() - model.log_partition(truth)) / own.std()]),
    }


def study(sets: int, draws: int, cores: int, seed: int) -> None:
    """Print the table."""
    print("| model | parameter | difference of means, in exact sds (its MC error) | "
          "sd / exact sd | -c: (mean - log Z) / sd |\n|---|---|---|---|---|")  # fmt: skip
    for name, (model, _) in MODELS.items():
        found = agreement(name, sets, draws, cores, seed)
        names = [each for block in model.groups.values() for each in block]
        for k, each in enumerate(names):
            print(f"| {name} | {each} | {found['difference'][k]:+.3f} ({found['error'][k]:.3f}) | "
                  f"{found['ratio'][k]:.3f} | {found['log_z'][0]:+.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    study(arguments.sets, arguments.draws, arguments.cores, arguments.seed)
