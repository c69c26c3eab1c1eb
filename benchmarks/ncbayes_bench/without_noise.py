"""Effective draws a processor second where log Z is summed, and where an energy is linear.

    python -m ncbayes_bench.without_noise

The exact likelihood of 8 binary columns (n = 200), normal priors and a horseshoe: trajectories
against elliptical slices. An energy with seven linear parameters (n = 500): trajectories against
NUTS. One chain each, sampling alone (a first, short run compiles).
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.engines import Exact, Joint, Nuts
from ncbayes_bench.page import table

SEED = 1


def binary() -> tuple[Any, np.ndarray]:
    """A sparse Ising model of 8 nodes, and rows of it."""
    rng, model = np.random.default_rng(SEED), ncb.models.Ising(8)
    theta = np.where(rng.random(36) < 0.3, rng.normal(0, 1, 36), 0)
    return model, model.sample(theta, 200, rng)


def waves() -> tuple[Any, np.ndarray]:
    """A linear energy on an interval, and points that do not follow it."""
    import jax.numpy as jnp

    def log_density(params: Any, x: Any) -> Any:
        t = x[:, 0]
        cosines = jnp.stack([jnp.cos(k * t) for k in range(1, 6)])
        return params["a"] * t - params["b"] * t**2 + params["c"] @ cosines

    parameters = {
        "a": ncb.priors.Normal(3.0),
        "b": ncb.priors.Normal(3.0),
        "c": ncb.energies.Real(ncb.priors.HalfCauchyNormal(), shape=(5,)),
    }
    rng = np.random.default_rng(SEED)
    points = np.concatenate([rng.normal(-1, 0.5, 300), rng.normal(1.5, 0.6, 200)])[:, None]
    space = ncb.spaces.Box([-4.0], [4.0])
    return ncb.Energy(log_density, parameters, space), points.clip(-3.9, 3.9)


def measured(model: Any, data: np.ndarray, engine: Any, prior: Any) -> list[str]:
    """Seconds of the chain, the worst effective number, and their ratio."""
    options: dict[str, Any] = {
        "engine": engine, "chains": 1, "cores": 1, "progress": False, "verify": False, "seed": SEED,
    }  # fmt: skip
    if prior is not None:
        options["prior"] = prior
    began = time.process_time()
    ncb.fit(model, data, draws=20, tune=20, **options)
    middle = time.process_time()
    found = ncb.fit(model, data, draws=2000, tune=1000, **options)
    seconds = time.process_time() - middle
    worst = float(found.summary()["ess_bulk"].min())
    return [f"{middle - began:.1f}", f"{seconds:.1f}", f"{worst:.0f}", f"{worst / seconds:.0f}"]


def main() -> None:
    """The table."""
    warnings.simplefilter("ignore", ncb.FitWarning)
    (ising, rows), (energy, points) = binary(), waves()
    lines = []
    for words, prior in (("normal priors", None), ("a horseshoe", ncb.priors.Horseshoe())):
        for engine in (Exact("joint"), Exact("slices")):
            words_here = f"exact, {words}"
            lines.append([words_here, repr(engine), *measured(ising, rows, engine, prior)])
    for engine in (Joint(), Nuts()):
        name = type(engine).__name__
        lines.append(["a linear energy", name, *measured(energy, points, engine, None)])
    heads = ["target", "engine", "first short fit, s", "fit, s", "worst ESS", "a second"]
    print(table(heads, lines))


if __name__ == "__main__":
    main()
