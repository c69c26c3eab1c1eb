"""Is kernel noise at the rows of the data unbiased? z of a parameter over data sets.

    python studies/kernel_noise.py [--replications 20]

``log p(x) = -a |x|^2 / 2`` in five dimensions, a = 1.5, n = 500, one chain of 400 draws. "counted"
are kernels whose own one counts in the density at its row; "left out" is what ``KernelDensity``
does in a fit; "matched" is Student t noise. Replication r has the data of seed 100 + r.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import ncbayes as ncb

ROWS, COLUMNS, TRUTH = 500, 5, 1.5


class Spheres:
    """The family."""

    space, groups = ncb.spaces.Reals(COLUMNS), {"precision": ("a",)}

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """One column."""
        return -(x**2).sum(axis=1, keepdims=True) / 2

    def log_base(self, x: np.ndarray) -> np.ndarray:
        """Nothing."""
        return np.zeros(len(x))


class Counted:
    """Kernels without the power to leave rows out."""

    def __init__(self, kernels: ncb.noise.KernelDensity) -> None:
        self.sample, self.log_density = kernels.sample, kernels.log_density


def replication(number: int, kind: str, ratio: float) -> tuple[float, float]:
    """Posterior mean and standard deviation."""
    rng = np.random.default_rng(100 + number)
    x = rng.standard_normal((ROWS, COLUMNS)) / np.sqrt(TRUTH)
    kernels = ncb.noise.KernelDensity.match(x)
    noise = {"counted": Counted(kernels), "left out": kernels, "matched": "matched"}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            Spheres(), x, noise=noise, noise_ratio=ratio, draws=400, tune=200, chains=1,
            seed=number, progress=False,
        )  # fmt: skip
    return float(posterior.theta.mean()), float(posterior.theta.std())


def main(replications: int) -> None:
    """Print a row for each noise and ratio."""
    print("noise, ratio: mean estimate; mean z, sd of z")
    for kind in ("counted", "left out", "matched"):
        for ratio in (1, 5):
            means, sds = np.array([replication(r, kind, ratio) for r in range(replications)]).T
            z = (means - TRUTH) / sds
            print(f"{kind}, {ratio}: {means.mean():.3f}; {z.mean():.2f}, {z.std():.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=20)
    main(parser.parse_args().replications)
