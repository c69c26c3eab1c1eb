"""Do joint trajectories, Polya-Gamma sweeps and NUTS sample the same posteriors?

(docs/measurements.md)

    python studies/joint_agreement.py [--seeds 20] [--no-nuts]

Eight posteriors. The reference is one long chain of Polya-Gamma sweeps; joint trajectories run once
with each seed (400 + 1000 sweeps). For every coefficient and log scale: z, the difference of means
in standard errors, and the same for squared deviations from the reference's mean; over all of
them and all seeds the root of the mean square, which is 1 if standard errors are right, and the
largest. "spread": the standard deviation of the means between seeds by the standard error that
a single run states, root mean square; above 1, effective draws are flattered.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

import ncbayes as ncb

MODELS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {}


def posterior(words: str) -> Callable[[Any], Any]:
    """Enter a function that makes model, data and prior into the table."""

    def entered(make: Any) -> Any:
        MODELS[words] = make
        return make

    return entered


def angles() -> tuple[Any, Any]:
    """A chain of five angles."""
    made = ncb.datasets.torus_chain(150, nodes=5, seed=1)
    return made.model, np.asarray(made.data)


def spins(rows: int = 150) -> tuple[Any, Any]:
    """Six binary columns, a coupling in every other pair."""
    model, rng = ncb.models.Ising(6), np.random.default_rng(1)
    theta = np.append(np.full(6, -0.5), 0.8 * (np.arange(15) % 2))
    return model, model.sample(theta, rows, rng)


def grouped(groups: int) -> tuple[Any, Any]:
    """Spins of several groups of uneven size."""
    model, rng = ncb.models.Ising(3), np.random.default_rng(2)
    theta = np.array([-0.3, 0.2, 0.0, 0.5, 0.0, -0.4])
    sizes = [40 + 60 * (g % 3) for g in range(groups)]
    return model, {
        f"group {g}": model.sample(theta + 0.3 * rng.standard_normal(6), n, rng)
        for g, n in enumerate(sizes)
    }


@posterior("5 angles, horseshoe")
def _horseshoe() -> Any:
    return *angles(), ncb.priors.Horseshoe()


@posterior("5 angles, slab as a likelihood")
def _fictitious() -> Any:
    return *angles(), ncb.priors.Horseshoe(slab_form="likelihood")


@posterior("6 spins, horseshoe on couplings")
def _mapping() -> Any:
    return *spins(), {"field": ncb.priors.Normal(3.0), "edge": ncb.priors.Horseshoe(slab=2.5)}


@posterior("6 spins, learned scale")
def _learned() -> Any:
    return *spins(), ncb.priors.HalfCauchyNormal()


@posterior("6 spins, weak normal")
def _normal() -> Any:
    return *spins(), None


@posterior("5 groups of 3 spins, population")
def _population() -> Any:
    return *grouped(5), ncb.priors.Hierarchical()


@posterior("5 groups of 3 spins, diagonal population")
def _diagonal() -> Any:
    return *grouped(5), ncb.priors.Hierarchical(covariance="diagonal")


@posterior("6 groups of 3 spins, random walk")
def _walk() -> Any:
    return *grouped(6), ncb.priors.RandomWalk(2.0, 0.5, initial="separate")


def draws_of(make: Any, seed: int, engine: str, tune: int, draws: int, chains: int) -> np.ndarray:
    """coef and logarithms of scales, (chain, draw, quantity), against the same noise."""
    model, data, prior = make()
    noise = ncb.noise.Uniform(model.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        # The seed of the fit would change the noise: chains differ by their number instead.
        found = ncb.fit(model, data, prior=prior, noise=noise, noise_ratio=3, engine=engine, seed=1,
                        tune=tune, draws=draws, chains=chains, progress=False)  # fmt: skip
    parts = [found.theta, found.data["normalizer"]["contrast_log_z"]]
    parts += [
        np.log(np.abs(values))
        for name, values in sorted(found.data["posterior"].data_vars.items())
        if "." in str(name) and "covariance" not in str(name) and "mean" not in str(name)
    ]
    arrays = [np.asarray(part) for part in parts]
    return np.concatenate([each.reshape(*each.shape[:2], -1) for each in arrays], axis=-1)


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of chains (chain, draw, quantity), together."""
    error = array_stats.mcse(values, chain_axis=0, draw_axis=1, method="mean")
    return values.mean(axis=(0, 1)), np.asarray(error)


def compared(ours: np.ndarray, reference: np.ndarray) -> list[str]:
    """z of means and squares over all seeds, and the spread between seeds; as cells of a table."""
    cells, center = [], reference.mean(axis=(0, 1))
    for power in (1, 2):
        wanted, its_error = mean_and_error((reference - center) ** power)
        each = [mean_and_error((chain[None] - center) ** power) for chain in ours]
        means, errors = (np.array(part) for part in zip(*each, strict=True))
        z = (means - wanted) / np.hypot(errors, its_error)
        spread = means.std(axis=0, ddof=1) / np.sqrt(np.mean(errors**2, axis=0))
        cells += [f"{np.sqrt(np.mean(z**2)):.2f}", f"{np.abs(z).max():.1f}",
                  f"{np.sqrt(np.mean(spread**2)):.2f}"]  # fmt: skip
    return cells


def main() -> None:
    """Print a row for each posterior and sampler."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sweeps", type=int, default=20_000, help="of the reference")
    parser.add_argument("--no-nuts", action="store_true")
    given = parser.parse_args()
    heads = ["posterior", "sampler", "quantities", "z of means", "largest", "spread",
             "z of squares", "largest", "spread"]  # fmt: skip
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|", flush=True)
    for words, make in MODELS.items():
        reference = draws_of(make, 0, "gibbs", 1000, given.sweeps, 2)
        samplers = {"joint": draws_of(make, 0, "joint", 400, 1000, given.seeds)}
        if not given.no_nuts:
            samplers["nuts"] = draws_of(make, 0, "nuts", 400, 500, 4)
        for name, ours in samplers.items():
            cells = compared(ours, reference)
            print(f"| {' | '.join([words, name, str(ours.shape[-1]), *cells])} |", flush=True)


if __name__ == "__main__":
    main()
