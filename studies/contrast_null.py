"""How often are conditions said to differ that do not, and how often those that do?

    python studies/contrast_null.py [--data-sets 200] [--cells torus ising ...] [--draws 300]

Five nodes, eight edges; three of them are coupled, in both conditions alike. Both conditions are
fitted and compared by ``graphs.contrast`` at level .9. Under no difference a tenth of the edges may
be selected with ``control="edge"``, and a tenth of the data sets may have any edge selected with
``control="fdr"``. Old is the rule before: some 90 % interval of a coefficient's difference excludes
zero. In the cells of power one of the uncoupled edges differs by .5 in one coefficient. The rules
were set on the cells ``torus`` and ``ising``, and judged on all. Data set r of a cell has its own
seed, whatever the number of data sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import ncbayes as ncb

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (0, 2), (1, 3), (2, 4)]
COUPLED, CHANGED, LEVEL, CHANGE = [0, 3, 6], 1, 0.9, 0.5
HORSESHOE = {"edge": ncb.priors.Horseshoe(slab=2.5)}


@dataclass(frozen=True)
class Cell:
    """A family with its numbers of rows, and how it is fitted; ``apart``: each group for itself."""

    model: Any
    rows: tuple[int, int]
    coupling: float
    prior: Any = None
    apart: bool = False
    change: float = 0.0
    margin: float = 0.0
    """What the second condition has more in the margins."""
    balanced: bool = False
    """Whether binary nodes are one in half of the rows, where couplings are known best."""


TORUS = ncb.models.TorusGraph(5, edges=EDGES)
ISING = ncb.models.Ising(5, edges=EDGES)
COUNTS = ncb.models.ConwayMaxwell(5, edges=EDGES, most=8, dispersion=False)
CELLS = {
    "torus": Cell(TORUS, (55, 300), 0.7),
    "ising": Cell(ISING, (150, 150), 1.0),
    "torus-power": Cell(TORUS, (300, 300), 0.7, change=CHANGE),
    "ising-power": Cell(ISING, (600, 600), 1.0, change=CHANGE, balanced=True),
    "torus-even": Cell(TORUS, (120, 120), 0.5),
    "ising-horseshoe": Cell(ISING, (80, 400), 1.0, HORSESHOE, apart=True, balanced=True),
    "ising-margins": Cell(ISING, (200, 500), 0.8, margin=0.7, balanced=True),
    "counts": Cell(COUNTS, (80, 240), -0.2, margin=0.5),
}


def truths(cell: Cell) -> list[np.ndarray]:
    """Theta of both conditions."""
    columns = np.array(list(cell.model.edge_columns.values())).T
    size = sum(len(names) for names in cell.model.groups.values())
    first = np.zeros(size)
    first[columns[COUPLED, 0]] = cell.coupling
    second = first.copy()
    first[columns[CHANGED, 0]] += cell.change
    if cell.balanced:
        for theta in (first, second):
            for ends in cell.model.pairs:
                np.add.at(theta, ends, -theta[columns[:, 0]] / 2)
    second[: len(cell.model.nodes)] += cell.margin
    return [first, second]


def table(cell: Cell, number: int, draws: int) -> Any:
    """The fits of one data set, read in every way: (edge, what), in the order of the edges."""
    rng = np.random.default_rng([18, list(CELLS.values()).index(cell), number])
    data = {
        label: cell.model.sample(theta, rows, rng)
        for label, theta, rows in zip("ab", truths(cell), cell.rows, strict=True)
    }
    options: dict[str, Any] = {"noise": "matched", "noise_ratio": 5, "draws": draws, "tune": 100,
                               "chains": 1, "cores": 1, "progress": False}  # fmt: skip
    if cell.prior is not None:
        options["prior"] = cell.prior
    if cell.apart:
        fits = [
            ncb.fit(cell.model, data[g], seed=number + k, **options) for k, g in enumerate("ab")
        ]
        asked: dict[str, Any] = {"first": fits[0], "second": fits[1]}
    else:
        both = ncb.fit(cell.model, data, seed=number, **options)
        asked = {"first": both, "groups": ("a", "b")}
    found = []
    for rule in ("region", "strength"):
        read = ncb.graphs.contrast(**asked, rule=rule, level=LEVEL, control="edge")
        read = read.set_index(["node1", "node2"]).loc[list(cell.model.edges)]
        found += [read["p_value"], read["p_adjusted"]]
    kinds = list(cell.model.edge_columns)
    old = [(read[f"{kind}_low"] > 0) | (read[f"{kind}_high"] < 0) for kind in kinds]
    return np.column_stack([*found, np.any(old, axis=0)])


def line(name: str, cell: Cell, found: np.ndarray) -> str:
    """The row of the table for one cell, from (data set, edge, what)."""
    limit = 1 - LEVEL
    old, each, adjusted = found[..., 4] > 0, found[..., [0, 2]] < limit, found[..., [1, 3]] < limit
    same = np.ones(len(EDGES), dtype=bool)
    same[CHANGED] = cell.change == 0
    rates = [old[:, same].mean(), *each[:, same].mean(axis=(0, 1))]
    rates += [each[:, COUPLED, 0].mean(), *adjusted[:, same].any(axis=1).mean(axis=0)]
    power = [old[:, CHANGED], *each[:, CHANGED].T, *adjusted[:, CHANGED].T]
    shown = [f"{rate:.3f}" for rate in rates]
    shown += [f"{hits.mean():.2f}" if cell.change else "" for hits in power]
    return f"| {name} | {cell.rows[0]}, {cell.rows[1]} | " + " | ".join(shown) + " |"


def study(names: list[str], data_sets: int, draws: int) -> None:
    """Print the table, cell by cell."""
    print(f"{data_sets} data sets a cell; sd of a share of .1: {np.sqrt(0.09 / data_sets):.3f} of "
          f"data sets, {np.sqrt(0.09 / data_sets / len(EDGES)):.3f} of edges")  # fmt: skip
    print("| cell | rows | old | region | strength | region, coupled | some, region | some, "
          "strength | power: old | region | strength | fdr, region | fdr, strength |")  # fmt: skip
    print("|---" * 13 + "|", flush=True)
    for name in names:
        began = time.monotonic()
        found = np.array([table(CELLS[name], number, draws) for number in range(data_sets)])
        seconds = f"  <!-- {time.monotonic() - began:.0f} s -->"
        print(line(name, CELLS[name], found) + seconds, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=200)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--cells", nargs="*", default=list(CELLS), choices=list(CELLS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ncb.FitWarning)
    study(arguments.cells, arguments.data_sets, arguments.draws)
