"""Noise for energies: fitted families alone against the energy itself among the candidates.

    python studies/energy_noise.py [--cells WORDS ...] [--replications 5] [--keep rows.jsonl]

Every data set has 1000 rows of an energy whose parameters are known, drawn by annealing it slowly
from a wide normal or the uniform. Each is fitted with automatic noise at the defaults (2 chains of
500 + 500), and so without the energy among the candidates (``Auto(rounds=0)``). Printed are the
noise ratio, by how much intervals are wider than those of the exact likelihood (mean, worst
statistic), log Z less that of a slow annealing at the true parameters in posterior sds, the
processor's seconds, the verdict on noise, and what was chosen.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.noise.carried import Path
from ncbayes.noise.tempered import log_mean, systematic
from ncbayes_paper.kept import cells

ROWS, STEPS, POINTS = 1000, 1000, 4000
WAYS = {"auto": ncb.noise.Auto(), "families alone": ncb.noise.Auto(rounds=0)}


def rings(params: Any, x: Any) -> Any:
    """Pairs of coordinates near circles that follow each other."""
    import jax.numpy as jnp

    radius = jnp.sqrt(x[:, ::2] ** 2 + x[:, 1::2] ** 2 + 1e-6)
    near = ((radius - params["radius"]) ** 2).sum(axis=1)
    turned = ((x[:, 2:] - x[:, :-2]) ** 2).sum(axis=1)
    return -params["width"] * near - params["tie"] * turned - 0.05 * (x**2).sum(axis=1)


def wells(params: Any, x: Any) -> Any:
    """A chain of coordinates with two wells each."""
    well = ((x**2 - 1) ** 2).sum(axis=1)
    return -params["depth"] * well + params["tie"] * (x[:, 1:] * x[:, :-1]).sum(axis=1)


def heavy(params: Any, x: Any) -> Any:
    """Coordinates with exponential tails, tied by products."""
    import jax.numpy as jnp

    tails = jnp.sqrt(1 + x**2).sum(axis=1)
    return -params["tails"] * tails + params["tie"] * jnp.tanh(x[:, 1:] * x[:, :-1]).sum(axis=1)


def walls(params: Any, x: Any) -> Any:
    """Mass at the walls of a box, in neighbouring corners."""
    y = 2 * x - 1
    return params["tie"] * (y[:, 1:] * y[:, :-1]).sum(axis=1) + params["edge"] * (y**2).sum(axis=1)


def _case(log_density: Callable[..., Any], space: Any, **truth: float) -> tuple[Any, ...]:
    params = {name: ncb.energies.Positive() for name in truth}
    return ncb.Energy(log_density, params, space), truth


Reals, Box = ncb.spaces.Reals, ncb.spaces.Box
CELLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "rings 4": lambda: _case(rings, Reals(4), radius=2.0, width=2.0, tie=0.3),
    "rings 10": lambda: _case(rings, Reals(10), radius=2.0, width=0.6, tie=0.15),
    "wells 5": lambda: _case(wells, Reals(5), depth=1.0, tie=0.3),
    "wells 10": lambda: _case(wells, Reals(10), depth=1.0, tie=0.3),
    "heavy 10": lambda: _case(heavy, Reals(10), tails=1.5, tie=1.0),
    "heavy 20": lambda: _case(heavy, Reals(20), tails=1.5, tie=1.0),
    "walls 10": lambda: _case(walls, Box([0.0] * 10, [1.0] * 10), tie=1.0, edge=1.0),
}


def measured(cell: str, seed: int) -> dict[str, Any]:
    """Numbers of the fits of one data set, by way."""
    energy, truth = CELLS[cell]()
    rng = np.random.default_rng(seed)
    theta = energy.row({name: np.array(value) for name, value in truth.items()})
    space = energy.space
    wide = np.isfinite(space.log_volume)
    base = ncb.noise.Uniform(space) if wide else _normal(space.dimension)
    path = Path(energy, theta, base)
    points, log_weights = path.carried(1.0, STEPS, POINTS, rng)
    log_z, _ = log_mean(log_weights[-1])
    data = path.settled(points[systematic(log_weights[-1], ROWS, rng)], 1.0, rng, like=points)
    row = {}
    for way, noise in WAYS.items():
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            fit = ncb.fit(
                energy, data, noise=noise, seed=seed, draws=500, tune=500, chains=2, cores=1,
                progress=False,
            )  # fmt: skip
        report = fit.noise_report()
        table = report.table
        row[way] = {
            "seconds": time.process_time() - began,
            "ratio": float(fit.data.attrs["noise_ratio"]),
            "widening": [float(table[name].max()) for name in ("widening", "worst_widening")],
            "off": float((fit.log_z.mean() - log_z) / fit.log_z.std()),
            "sds": [float(fit.data["posterior"][name].std()) for name in truth],
            "noise": report.verdict.split(":")[0].removeprefix("The noise is "),
            "grade": str(fit.data.attrs["grade"]),
            "chosen": report.lines[0].split(": ")[1].split(".")[0].split(",")[0],
            "kept": {name: float(share) for name, share in report.candidates.items()},
        }
    return row


def _normal(dimension: int) -> Any:
    return ncb.noise.Normal(np.zeros(dimension), 4 * np.eye(dimension))


def table(done: dict[tuple[Any, ...], Any]) -> str:
    """Markdown, one line for each cell and way."""
    head = ["energy", "data sets", "noise", "chosen", "ratio", "wider by", "worst",
            "log Z off, sds", "s", "verdict on noise"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cell in CELLS:
        rows = [row for place, row in done.items() if place[0] == cell]
        for way in WAYS if rows else ():
            lines.append("| " + " | ".join(_texts(cell, way, [row[way] for row in rows])) + " |")
    return "\n".join(lines)


def _texts(cell: str, way: str, fits: list[dict[str, Any]]) -> list[str]:
    """The columns of a line."""
    wider, worst = 100 * np.mean([each["widening"] for each in fits], axis=0)
    off = np.sqrt(np.mean([each["off"] ** 2 for each in fits]))
    ratios = [each["ratio"] for each in fits]
    return [
        cell,
        str(len(fits)),
        way,
        ", ".join(sorted({each["chosen"] for each in fits})),
        f"{min(ratios):g} to {max(ratios):g}",
        f"{wider:.0f} %",
        f"{worst:.0f} %",
        f"{off:.2f}",
        f"{np.mean([each['seconds'] for each in fits]):.0f}",
        ", ".join(sorted({each["noise"] for each in fits})),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    print(table(cells(measured, CELLS, 5, __doc__.splitlines()[0], arguments)))


if __name__ == "__main__":
    main()
