"""Is the default right where noise decides? Tables on which noise fitted to the data goes wrong.

    python studies/default_noise.py --keep rows.jsonl [--cells angles ...] [--replications 20]

All at the defaults of ``ncbayes.fit`` (4 chains of 1000 + 1000, automatic noise and prior), data
and fit of seeds 1 and on. Each fit has beside it what simulation shows at its posterior mean, by an
annealing of its own (400 steps, 2000 points): log Z there, and the share of the model's mass near
rows (as near as 99 % of the rows are to each other; for angles within half a turn of their means).

- angles: six around a common one (kappa 15), 300 rows, a tenth of them uniform.
- counts: six overdispersed columns, 200 rows, limit twice the largest.
- few angles: a chain of 12, 60 rows: more parameters than rows.
- few binary: 15 columns, 60 rows.
- ising: 22 columns, 267 rows, 26 couplings of 0.5 to 1.5, fields -1, beside a reference with noise
  from the true model at ratio 30 or more: edges whose 90 % interval excludes zero.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.checks.verification import Nearness
from ncbayes.noise.model_part import ModelPart, drawn
from ncbayes.noise.tempered import anneal, annealing_path, log_mean, systematic
from ncbayes_paper.kept import cells
from verdict_cells import disturbed_angles

STEPS, POINTS = 400, 2000
# Noise of a reference: the larger of this ratio and so many points a parameter.
REFERENCE_RATIO, REFERENCE_POINTS = 30, 40
HEAD = ["cell", "seed", "s", "ratio", "rounds", "grade", "widening", "log_z", "log Z there", "near"]


def angles(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """The case of docs/verdict.md."""
    rng = np.random.default_rng(seed)
    return ncb.models.TorusGraph(6), disturbed_angles(rng, 15.0, 0.1, 300, 6), None


def counts(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Columns that share a gamma factor and have one of their own."""
    rng = np.random.default_rng(seed)
    common = rng.gamma(1.5, 1 / 1.5, (200, 1))
    x = rng.poisson(3 * common * rng.gamma(2, 0.5, (200, 6))).astype(float)
    return ncb.models.ConwayMaxwell(6, most=int(2 * x.max())), x, None


def few_angles(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """288 parameters."""
    found = ncb.datasets.torus_chain(60, nodes=12, seed=seed)
    return found.model, np.asarray(found.data), np.ravel(found.theta)


def few_binary(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """120 parameters."""
    rng, model = np.random.default_rng(seed), ncb.models.Ising(15)
    theta = np.concatenate([np.full(15, -1.0), 0.6 * (rng.random(105) < 0.2)])
    return model, model.sample(theta, 60, rng), theta


def ising(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """A sparse table of 22 columns."""
    rng, model = np.random.default_rng(seed), ncb.models.Ising(22)
    theta = np.concatenate([np.full(22, -1.0), np.zeros(231)])
    theta[22 + rng.choice(231, 26, replace=False)] = rng.uniform(0.5, 1.5, 26)
    return model, model.sample(theta, 267, rng), theta


CELLS: dict[str, Callable[[int], tuple[Any, np.ndarray, np.ndarray | None]]] = {
    "angles": angles,
    "counts": counts,
    "few angles": few_angles,
    "few binary": few_binary,
    "ising": ising,
}


def fitted(model: Any, data: np.ndarray, seed: int, **options: Any) -> tuple[ncb.Posterior, float]:
    """A fit, and its processor seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        found = ncb.fit(model, data, seed=seed, cores=1, progress=False, **options)
    return found, time.process_time() - began


def measured(cell: str, seed: int) -> dict[str, Any]:
    """Numbers of one fit."""
    model, data, truth = CELLS[cell](seed)
    found, seconds = fitted(model, data, seed)
    theta = found.theta.to_numpy()[:, :, 0].mean(axis=(0, 1))
    row: dict[str, Any] = {
        "seconds": seconds,
        "ratio": float(found.data.attrs["noise_ratio"]),
        "rounds": int(found.data["rounds"].sizes["round"]),
        "grade": str(found.data.attrs["grade"]),
        "widening": float(found.noise_report().table["widening"].max()),
        "log_z": [float(found.log_z.mean()), float(found.log_z.std())],
        **simulated(model, data, theta, seed),
    }
    if truth is not None:
        row |= compared(model, data, truth, found, seed)
    return row


def simulated(model: Any, data: np.ndarray, theta: np.ndarray, seed: int) -> dict[str, float]:
    """log Z at theta, and the share of the model's mass near rows."""
    rng = np.random.default_rng(seed)
    start, end = annealing_path(model, theta, 1.0)
    points, path = anneal(model, end, STEPS, POINTS, rng, start)
    points = points[systematic(path[-1], POINTS, rng)]
    if isinstance(model, ncb.models.TorusGraph):
        mean = np.angle(np.exp(1j * data).mean(axis=0))
        near = float((np.cos(points - mean).mean(axis=1) > 0).mean())
    else:
        near = Nearness.of(model.space, data).share(points)
    return {"annealed": log_mean(path[-1])[0], "near": near}


def compared(
    model: Any, data: np.ndarray, truth: np.ndarray, found: ncb.Posterior, seed: int
) -> dict[str, Any]:
    """Beside the posterior against noise from the true model: medians, sds, and edges."""
    rng = np.random.default_rng(1000 + seed)
    at = drawn(model, truth, data, None, rng)
    noise = ModelPart(model, truth, at.log_z, at.steps, data)
    ratio = max(REFERENCE_RATIO, REFERENCE_POINTS * len(truth) / len(data))
    reference, seconds = fitted(model, data, seed, noise=noise, noise_ratio=ratio)
    draws = [each.theta.to_numpy()[:, :, 0].reshape(-1, len(truth)) for each in (found, reference)]
    medians, sds = [np.median(x, axis=0) for x in draws], [x.std(axis=0) for x in draws]
    row: dict[str, Any] = {
        "reference_seconds": seconds,
        "off": float(np.sqrt(np.mean(((medians[0] - medians[1]) / sds[1]) ** 2))),
        "sd_ratio": float(np.median(sds[0] / sds[1])),
    }
    low, high = np.quantile(draws[0], [0.05, 0.95], axis=0)
    row["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
    if isinstance(model, ncb.models.Ising):
        edges = slice(len(model.nodes), None)
        true = truth[edges] != 0
        for name, x in zip(("default", "reference"), draws, strict=True):
            ends = np.quantile(x[:, edges], [0.05, 0.95], axis=0)
            chosen = (ends[0] > 0) | (ends[1] < 0)
            row[name] = [
                float(chosen[true].mean()),
                float((chosen & ~true).sum()),
                int(chosen.sum()),
            ]
    return row


def table(rows: dict[tuple[str, int], dict[str, Any]]) -> str:
    """One line for each fit."""
    lines = ["| " + " | ".join(HEAD) + " | beside the reference |", "|" + "---|" * (len(HEAD) + 1)]
    for (cell, seed), row in sorted(rows.items()):
        mean, sd = row["log_z"]
        cells = [
            cell, str(seed), f"{row['seconds']:.0f}", f"{row['ratio']:g}", str(row["rounds"]),
            row["grade"], f"{100 * row['widening']:.0f} %", f"{mean:.2f} ({sd:.2f})",
            f"{row['annealed']:.2f}", f"{row['near']:.2f}",
        ]  # fmt: skip
        beside = ""
        if "off" in row:
            beside = f"medians {row['off']:.2f} sds, sds x {row['sd_ratio']:.2f}"
            beside += f", coverage {row['coverage']:.2f}"
        for name in ("default", "reference"):
            if name in row:
                recall, false, count = row[name]
                beside += f"; {name}: recall {recall:.2f}, {false:.0f} of {count} false"
        lines.append("| " + " | ".join([*cells, beside]) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    print(table(cells(measured, CELLS, 20, __doc__.splitlines()[0], arguments)))


if __name__ == "__main__":
    main()
