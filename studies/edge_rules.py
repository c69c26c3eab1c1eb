"""Which rule selects edges? Realised shares of false edges and of true ones, at the defaults.

    python studies/edge_rules.py [--cells NAME ...] [--replications 10] [--keep rows.jsonl]

Each data set is simulated from a known graph and fitted at the defaults of ``fit`` (two chains).
Each rule selects edges from the same posterior. The cells of CHOSEN were looked at when the default
of ``graphs.edges`` was chosen, those of JUDGED were not: by them it is to be judged. ``false`` is
the share of false edges among all that a rule selected in a cell, ``found`` the share of the true
ones that it selected.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.couplings import couplings
from ncbayes.graphs.evidence import adjusted, tail_mass
from ncbayes_paper.kept import cells

models = ncb.models
Rows = tuple[Any, np.ndarray, np.ndarray]


def pairs(count: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Which pairs of nodes are edges, in the order of the models."""
    one, other = np.triu_indices(count, 1)
    if kind == "chain":
        return other - one == 1
    if kind == "hub":
        return one == 0
    if kind == "none":
        return np.zeros(len(one), dtype=bool)
    return rng.random(len(one)) < float(kind)


def torus(count: int, n: int, kind: str, size: float) -> Callable[[int], Rows]:
    """Angles whose edges couple differences, half of them at a lag."""

    def made(seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        model = models.TorusGraph(count)
        is_edge = pairs(count, kind, rng)
        theta = np.zeros(sum(map(len, model.groups.values())))
        columns = [np.asarray(each) for each in model.edge_columns.values()]
        for edge in np.flatnonzero(is_edge):
            angle = rng.choice([0.0, 1.0])
            theta[columns[0][edge]] = size * np.cos(angle)
            theta[columns[1][edge]] = size * np.sin(angle)
        return model, model.sample(theta, n, rng), is_edge

    return made


def single(
    model: Any, n: int, kind: str, field: float, low: float, high: float, mixed: bool = True
) -> Callable[[int], Rows]:
    """A model with one coefficient an edge, of a size between ``low`` and ``high``."""

    def made(seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        nodes = len(model.nodes)
        is_edge = pairs(nodes, kind, rng)
        theta = np.full(sum(map(len, model.groups.values())), field)
        (edges,) = (np.asarray(each) for each in model.edge_columns.values())
        sign = rng.choice([-1.0, 1.0], len(is_edge)) if mixed else np.ones(len(is_edge))
        theta[edges] = np.where(is_edge, sign * rng.uniform(low, high, len(is_edge)), 0.0)
        return model, model.sample(theta, n, rng), is_edge

    return made


def counted(n: int, nodes: int, kind: str, size: float) -> Callable[[int], Rows]:
    """Counts with negative couplings: Poisson but for these."""

    def made(seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        model = models.ConwayMaxwell(nodes, most=30)
        is_edge = pairs(nodes, kind, rng)
        theta = np.zeros(sum(map(len, model.groups.values())))
        theta[:nodes], theta[nodes : 2 * nodes] = 1.2, 1.0
        (edges,) = (np.asarray(each) for each in model.edge_columns.values())
        theta[edges] = np.where(is_edge, -size, 0.0)
        return model, model.sample(theta, n, rng), is_edge

    return made


CHOSEN: dict[str, Callable[[int], Rows]] = {
    "angles, chain of 8, n = 200": torus(8, 200, "chain", 0.8),
    "angles, random 10, n = 500": torus(10, 500, "0.2", 0.4),
    "binary, random 12, n = 300": single(models.Ising(12), 300, "0.2", -0.5, 0.5, 1.5),
    "binary, no edge 10, n = 100": single(models.Ising(10), 100, "none", -0.5, 0.5, 1.5),
}
JUDGED: dict[str, Callable[[int], Rows]] = {
    "angles, hub of 6, n = 100": torus(6, 100, "hub", 0.8),
    "angles, no edge 8, n = 150": torus(8, 150, "none", 0.8),
    "binary, 22 columns, n = 267": single(models.Ising(22), 267, "0.11", -1, 0.5, 1.5, False),
    "binary, chain of 10, n = 1000": single(models.Ising(10), 1000, "chain", 0.0, 0.5, 1.0),
    "counts, chain of 5, n = 300": counted(300, 5, "chain", 0.1),
}
CELLS = CHOSEN | JUDGED


def rules(found: Any) -> dict[str, np.ndarray]:
    """Which edges each rule selects, of draws (draw, edge, kind)."""
    draws = found.draws
    median = np.abs(np.median(draws, axis=0)).max(axis=1)
    mass = tail_mass(draws)
    sign = np.minimum((draws > 0).mean(axis=0), (draws < 0).mean(axis=0)).min(axis=1)
    made = {"median, 0.1": median > 0.1}
    for level in (0.9, 0.95, 0.99):
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        made[f"interval, {level:g}"] = ((low > 0) | (high < 0)).any(axis=1)
    for most in (0.1, 0.05):
        made[f"region, {1 - most:g}"] = mass < most
        made[f"evidence, {most:g}"] = adjusted(mass) < most
    made["signs, 0.05"] = expected(sign, 0.05)
    made["half mass, 0.05"] = expected(mass / 2, 0.05)
    return made


def expected(wrong: np.ndarray, most: float) -> np.ndarray:
    """The largest set whose mean chance of being wrong is at most so much."""
    order = np.argsort(wrong)
    means = np.cumsum(wrong[order]) / np.arange(1, len(wrong) + 1)
    chosen = np.zeros(len(wrong), dtype=bool)
    chosen[order[: int(np.sum(means <= most))]] = True
    return chosen


def measured(cell: str, seed: int) -> dict[str, Any]:
    """Of one fit: by rule, how many it selected, and how many of these are false."""
    model, data, is_edge = CELLS[cell](seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        try:
            posterior = ncb.fit(
                model, data, seed=seed, draws=1000, chains=2, cores=1, progress=False, verify=False
            )
        except ncb.InputError as refused:
            return {"error": str(refused)}
    found = rules(couplings(posterior.data, None))
    return {
        "edges": int(is_edge.sum()),
        "rules": {
            name: [int(each.sum()), int((each & ~is_edge).sum())] for name, each in found.items()
        },
    }


def table(done: dict[tuple[Any, ...], Any], cells: Iterable[str]) -> str:
    """Markdown: a row a rule, by cell the share of false edges and the share found."""
    held = {
        cell: [row for place, row in done.items() if place[0] == cell and "rules" in row]
        for cell in cells
    }
    held = {cell: rows for cell, rows in held.items() if rows}
    lines = ["| rule | " + " | ".join(held) + " | all |", "|---" * (len(held) + 2) + "|"]
    for rule in next(iter(held.values()))[0]["rules"]:
        texts, all_rows = [], [row for rows in held.values() for row in rows]
        for rows in [*held.values(), all_rows]:
            chosen, false = np.sum([row["rules"][rule] for row in rows], axis=0)
            true = sum(row["edges"] for row in rows)
            share = f"{false / chosen:.3f}" if chosen and true else f"{false} of {len(rows)} fits"
            texts.append(f"{share}, {(chosen - false) / true:.2f}" if true else share)
        lines.append(f"| {rule} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print a table each of the cells chosen by and judged by."""
    done = cells(measured, CELLS, 10, __doc__.splitlines()[0], arguments)
    for half in (CHOSEN, JUDGED):
        shown = [cell for cell in half if any(cell == place[0] for place in done)]
        if shown:
            print(table(done, shown), "\n")


if __name__ == "__main__":
    main()
