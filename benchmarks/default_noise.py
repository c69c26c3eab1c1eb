"""What automatic noise, the default, costs and gives, by family.

    python benchmarks/default_noise.py [--families angles ...]

Fits of four chains of 1000 + 1000 in one process, with automatic noise and with what it was at its
simplest before: noise matched to the data, five points a row. Seconds of the processor of the whole
fit without the look at itself, and those before the chains (a fit of one chain of one draw);
effective draws of the worst coefficient a second; how much wider intervals are than exact ones.
The first fit of a family is not counted: it compiles.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import ncbayes as ncb

models = ncb.models
NOISES: dict[str, dict[str, Any]] = {
    "auto": {},
    "matched, ratio 5": {"noise": "matched", "noise_ratio": 5},
}
FIT: dict[str, Any] = {
    "draws": 1000, "seed": 1, "cores": 1, "progress": False, "verify": False,
}  # fmt: skip
FIRST = {**FIT, "draws": 1, "tune": 0, "chains": 1}


def torus(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Eight angles in a chain."""
    found = ncb.datasets.torus_chain(200, nodes=8, seed=1)
    return found.model, np.asarray(found.data)


def ising(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Twelve columns, one pair in five coupled."""
    model = models.Ising(12)
    theta = np.concatenate([np.full(12, -0.5), 0.8 * (rng.random(66) < 0.2)])
    return model, model.sample(theta, 300, rng)


def counts(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Four columns in a chain."""
    model = models.ConwayMaxwell(4, most=30)
    theta = np.array([1.2] * 4 + [1.0] * 4 + [-0.1, 0, 0, -0.1, 0, -0.1])
    return model, model.sample(theta, 300, rng)


def truncated(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Four positive columns."""
    model = models.TruncatedGaussian(4)
    theta = np.array([0.5] * 4 + [1.0] * 4 + [0.4, 0, 0, 0.4, 0, 0.4])
    return model, model.sample(theta, 300, rng)


def graphs(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Twenty graphs of twelve nodes."""
    model = models.ERGM(12, ["edges", models.terms.gwesp(0.5)])
    return model, model.sample(np.array([-2.0, 0.4]), 20, rng)


def angle(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """One angle."""
    return models.VonMises(), models.VonMises().sample(np.array([1.5, 1.0]), 200, rng)


def reals(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Five reals."""
    return models.Gaussian(5), rng.normal(size=(300, 5))


FAMILIES: dict[str, Callable[[np.random.Generator], tuple[Any, np.ndarray]]] = {
    "one angle": angle,
    "8 angles": torus,
    "12 binary columns": ising,
    "4 counts": counts,
    "4 positive numbers": truncated,
    "5 reals": reals,
    "20 graphs": graphs,
}


def seconds(model: Any, data: np.ndarray, **options: Any) -> tuple[ncb.Posterior, float]:
    """A fit, and its seconds of the processor."""
    began = time.process_time()
    found = ncb.fit(model, data, **options)
    return found, time.process_time() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    warnings.simplefilter("ignore", ncb.FitWarning)
    print("| family | noise | ratio | seconds | before the chains | worst ESS | a second | wider |")
    print("|---|---|---|---|---|---|---|---|")
    for family in parser.parse_args().families:
        model, data = FAMILIES[family](np.random.default_rng(1))
        for name, noise in NOISES.items():
            ncb.fit(model, data, **{**FIT, "draws": 20, "tune": 20}, **noise)
            first = seconds(model, data, **FIRST, **noise)[1]
            found, whole = seconds(model, data, **FIT, **noise)
            names = found.data["posterior"]["theta"]["statistic"].to_numpy()
            worst = found.summary()["ess_bulk"].loc[list(names)].min()
            wider = 100 * found.noise_report().table["widening"].max()
            ratio = float(found.data.attrs["noise_ratio"])
            print(
                f"| {family} | {name} | {ratio:g} | {whole:.1f} | {first:.1f} | {worst:.0f} | "
                f"{worst / whole:.0f} | {wider:.0f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main()
