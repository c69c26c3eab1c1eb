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
- ising: 22 columns, 267 rows, 26 couplings of 0.5 to 1.5, fields -1.
- strong ising: the same size, 26 couplings of up to 3 in size, fields of -3 to 0, and a second fit
  of another seed; strong ising 50: at a noise ratio of 50, the one cell not at the defaults.
- chain, cycle, random: the graphs of the paper's Tables 2 and 3, S1 and S2, S3 and S4.
- directed: 15 directed graphs of 17 nodes with edges, reciprocity and gwesp.

Where the truth is known there is a reference beside it, with noise from the true model at ratio 30
or more, for directed graphs two chains of 3000 draws by exchange: medians in its sds (root mean
square), its sds, edges that the default rule selects, coverage of 90 % intervals.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.checks.verification import Nearness
from ncbayes.couplings import couplings
from ncbayes.noise.model_part import ModelPart, drawn
from ncbayes.noise.tempered import anneal, annealing_path, log_mean, systematic
from ncbayes_paper.kept import cells
from verdict_cells import disturbed_angles

STEPS, POINTS = 400, 2000
# Noise of a reference: the larger of this ratio and so many points a parameter.
REFERENCE_RATIO, REFERENCE_POINTS = 30, 40
# With more parameters than this the ratio alone counts, and the reference has two shorter chains.
MANY = 1000
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


def strong_ising(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Couplings that are hard to see, since some columns are seldom one, others seldom zero."""
    rng, model, data = np.random.default_rng(seed), ncb.models.Ising(22), np.zeros((1, 22))
    while np.any(data.std(axis=0) == 0):  # a column that is always the same is refused
        theta = np.concatenate([rng.uniform(-3, 0, 22), np.zeros(231)])
        theta[22 + rng.choice(231, 26, replace=False)] = rng.uniform(-1, 3, 26)
        data = model.sample(theta, 267, rng)
    return model, data, theta


def of_the_paper(name: str, seed: int, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A data set of its simulations."""
    found = getattr(ncb.datasets, f"torus_{name}")(seed=seed, **options)
    return found.model, np.asarray(found.data), np.ravel(found.theta)


def directed(seed: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Ties that are returned, and transitive."""
    terms, theta = ncb.models.terms, np.array([-2.5, 1.0, 0.5])
    model = ncb.models.ERGM(17, ["edges", terms.reciprocity(), terms.gwesp(0.5)], directed=True)
    return model, model.sample(theta, 15, np.random.default_rng(seed)), theta


CELLS: dict[str, Callable[[int], tuple[Any, np.ndarray, np.ndarray | None]]] = {
    "angles": angles,
    "counts": counts,
    "few angles": few_angles,
    "few binary": few_binary,
    "ising": ising,
    "strong ising": strong_ising,
    "strong ising 50": strong_ising,
    "chain": partial(of_the_paper, "chain"),
    "cycle": partial(of_the_paper, "cycle"),
    "random": partial(of_the_paper, "random", independent=True),
    "directed": directed,
}

OPTIONS: dict[str, dict[str, Any]] = {"strong ising 50": {"noise_ratio": 50}}


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
    options = OPTIONS.get(cell, {})
    found, seconds = fitted(model, data, seed, **options)
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
    if cell.startswith("strong ising"):
        again, _ = fitted(model, data, 1000 + seed, **options)
        one, other = _selected(found), _selected(again)
        row["agree"] = float((one & other).sum() / max(1, (one | other).sum()))
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
        near = Nearness.of(model, data).share(points)
    return {"annealed": log_mean(path[-1])[0], "near": near}


def compared(
    model: Any, data: np.ndarray, truth: np.ndarray, found: ncb.Posterior, seed: int
) -> dict[str, Any]:
    """Beside the posterior against noise from the true model: medians, sds, and edges."""
    reference, seconds = fitted(model, data, seed, **_exact_options(model, data, truth, seed))
    draws = [each.theta.to_numpy()[:, :, 0].reshape(-1, len(truth)) for each in (found, reference)]
    medians, sds = [np.median(x, axis=0) for x in draws], [x.std(axis=0) for x in draws]
    row: dict[str, Any] = {
        "reference_seconds": seconds,
        "off": float(np.sqrt(np.mean(((medians[0] - medians[1]) / sds[1]) ** 2))),
        "sd_ratio": float(np.median(sds[0] / sds[1])),
    }
    low, high = np.quantile(draws[0], [0.05, 0.95], axis=0)
    row["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
    if "graph" in found.data.children:
        columns = np.array([np.asarray(each) for each in model.edge_columns.values()])
        is_edge = (truth[columns] != 0).any(axis=0)
        for name, each in (("default", found), ("reference", reference)):
            chosen = _selected(each)
            row[name] = [
                float(chosen[is_edge].mean()),
                float((chosen & ~is_edge).sum()),
                int(chosen.sum()),
            ]
        row["same"] = float((_selected(found) == _selected(reference)).mean())
    return row


def _exact_options(model: Any, data: np.ndarray, truth: np.ndarray, seed: int) -> dict[str, Any]:
    """Of a fit that is nearly exact."""
    if isinstance(model, ncb.models.ERGM):
        return {"engine": "exchange", "draws": 3000, "chains": 2, "verify": False}
    rng = np.random.default_rng(1000 + seed)
    at = drawn(model, truth, data, None, rng)
    noise = ModelPart(model, truth, at.log_z, at.steps, data)
    if len(truth) > MANY:
        few = {"draws": 750, "tune": 500, "chains": 2}
        return {"noise": noise, "noise_ratio": REFERENCE_RATIO, "verify": False, **few}
    ratio = max(REFERENCE_RATIO, REFERENCE_POINTS * len(truth) / len(data))
    return {"noise": noise, "noise_ratio": ratio, "verify": False}


def _selected(found: ncb.Posterior) -> np.ndarray:
    """By the default rule, in the order of the model."""
    table = ncb.graphs.edges(found).set_index(["node1", "node2"])["selected"]
    return np.array([table.loc[pair] for pair in couplings(found.data, None).graph.edges])


def table(rows: dict[tuple[str, int], dict[str, Any]]) -> str:
    """One line for each fit."""
    lines = ["| " + " | ".join(HEAD) + " | beside the reference |", "|" + "---|" * (len(HEAD) + 1)]
    for (cell, seed), row in sorted(rows.items()):
        mean, sd = row["log_z"]
        texts = [
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
        if "same" in row:
            beside += f"; alike in {100 * row['same']:.0f} % of pairs"
        if "agree" in row:
            beside += f"; {100 * row['agree']:.0f} % of two seeds' edges in both"
        lines.append("| " + " | ".join([*texts, beside]) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    print(table(cells(measured, CELLS, 20, __doc__.splitlines()[0], arguments)))


if __name__ == "__main__":
    main()
