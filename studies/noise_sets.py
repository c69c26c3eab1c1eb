"""What does one set of noise do, and are several sets better? Intervals against the exact ones.

    python studies/noise_sets.py [--replications 200] [--cells NAME ...] [--keep rows.jsonl]

Chains of one fit share a noise set, whose accident moves all of them: by about sqrt(1 / ratio)
posterior sds. Here each of four chains has a set of its own, from the same noise (the true model,
so that nothing else is off), beside the exact posterior and 90 % intervals of theta by

- one set: one chain by itself;
- all draws: those of four chains together;
- recentred: draws of each chain moved to the common mean, and narrowed around it from
  (1 + 1 / ratio) to (1 + 1 / (4 ratio)) of the exact variance: right for normal posteriors, and
  what ``posterior.recentred()`` does with Pooled noise;
- four times: one chain with four times the noise.

Printed are coverage of the true theta with its standard error, how far means are from exact ones
in exact sds (root mean square), and sds by exact ones (mean).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes import several_sets
from ncbayes.noise.model_part import ModelPart
from ncbayes_paper.kept import cells

SETS, LEVEL = 4, 0.9
WAYS = ("exact", "one set", "all draws", "recentred", "four times")
models, priors = ncb.models, ncb.priors


def angle(rng: np.random.Generator, n: int) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """One angle, and a prior that is wide: theta of sizes up to 2."""
    model, theta = models.VonMises(), rng.normal(0, 1.0, 2)
    return model, theta, model.sample(theta, n, rng), priors.Normal(1.0)


def spins(rng: np.random.Generator, n: int) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Four binary columns, theta drawn from its normal prior."""
    model = models.Ising(4)
    theta = rng.normal(0, 0.7, 10)
    return model, theta, model.sample(theta, n, rng), priors.Normal(0.7)


def sparse(rng: np.random.Generator, n: int) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Five binary columns, two of whose ten couplings are not zero, under a horseshoe."""
    model = models.Ising(5)
    theta = np.concatenate([rng.normal(0, 0.5, 5), np.zeros(10)])
    theta[5 + rng.choice(10, 2, replace=False)] = rng.choice([-1.0, 1.0], 2) * 1.2
    return (
        model,
        theta,
        model.sample(theta, n, rng),
        {
            "field": priors.Normal(0.5),
            "edge": priors.Horseshoe(slab=2.5),
        },
    )


CELLS: dict[str, tuple[Callable[..., Any], int, float]] = {
    "one angle, 50 rows, ratio 2": (angle, 50, 2.0),
    "one angle, 50 rows, ratio 10": (angle, 50, 10.0),
    "4 binary columns, 60 rows, ratio 10": (spins, 60, 10.0),
    "5 binary columns, 80 rows, horseshoe, ratio 10": (sparse, 80, 10.0),
}


def measured(cell: str, seed: int) -> dict[str, list[float]]:
    """By way: the share covered, the squared distance of means, and sds by exact ones."""
    make, n, ratio = CELLS[cell]
    rng = np.random.default_rng(seed)
    model, theta, data, prior = make(rng, n)
    if np.any(data.std(axis=0) == 0):
        return {}
    noise = ModelPart(model, theta, float(model.log_partition(theta)), 64, data)

    def draws(number: int, **options: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            found = ncb.fit(
                model, data, prior=prior, seed=1000 * seed + number, draws=1000, tune=400,
                chains=1, cores=1, progress=False, verify=False, **options,
            )  # fmt: skip
        return np.asarray(found.theta.to_numpy().reshape(-1, len(theta)))

    exact = draws(0, engine="exact")
    own = [draws(k + 1, noise=noise, noise_ratio=ratio) for k in range(SETS)]
    more = draws(SETS + 1, noise=noise, noise_ratio=SETS * ratio)
    every, sets = np.concatenate(own), np.repeat(np.arange(SETS), len(own[0]))
    moved = several_sets.moved(every[None], sets, ratio / (ratio + 1))[0]
    by_way = {
        "exact": exact, "one set": own[0], "all draws": every, "recentred": moved,
        "four times": more,
    }  # fmt: skip
    return {way: _rated(each, exact, theta) for way, each in by_way.items()}


def _rated(draws: np.ndarray, exact: np.ndarray, theta: np.ndarray) -> list[float]:
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    off = (draws.mean(axis=0) - exact.mean(axis=0)) / exact.std(axis=0)
    return [
        float(np.mean((low <= theta) & (theta <= high))),
        float(np.mean(off**2)),
        float(np.mean(draws.std(axis=0) / exact.std(axis=0))),
    ]


def table(done: dict[tuple[Any, ...], Any]) -> str:
    """Markdown."""
    lines = ["| cell | data sets | way | coverage | means off, sds | sds by exact ones |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for cell in CELLS:
        rows = [row for place, row in done.items() if place[0] == cell and row]
        for way in WAYS if rows else ():
            cover, off, wide = np.array([row[way] for row in rows]).T
            error = cover.std() / np.sqrt(len(cover))
            lines.append(
                f"| {cell} | {len(rows)} | {way} | {cover.mean():.3f} ({error:.3f}) | "
                f"{np.sqrt(off.mean()):.2f} | {wide.mean():.3f} |"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    print(table(cells(measured, CELLS, 200, __doc__.splitlines()[0], arguments)))


if __name__ == "__main__":
    main()
