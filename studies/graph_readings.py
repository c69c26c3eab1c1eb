"""How much do Tables S3 and S4 depend on which random graph was drawn? (docs/paper_notes.md)

    python studies/graph_readings.py [--graphs 5] [--cores 2] [--keep rows.jsonl]

The paper does not give the seed of its graph, but its numbers give the size. With nothing false
selected, ``accuracy = 1 - edges (1 - recall) / 435``, and a recall of .110 with an accuracy of .916
belongs to 41 edges (``edges_of``). The graph of our tables has 44. Here the methods whose cells
differ from the paper's meet other graphs, each with 41 edges, one data set a graph; and NC-Bayes
with several values of a fixed global scale tau, which the paper has for its recording and may have
had here. One chain of 500 + 1000 sweeps. Means and standard errors over the graphs, and the paper's
figures.
"""

from __future__ import annotations

import argparse
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_paper import published, torus_tables
from ncbayes_paper.kept import replications
from torus_readings import cells

PAIRS = 30 * 29 // 2
LABELS = {
    "nu=1": "NC-Bayes, nu = 1",
    **{f"tau={tau}": f"NC-Bayes, nu = 1, tau = {tau}" for tau in (0.02, 0.03, 0.05)},
    "nu=1 tau": "NC-Bayes, nu = 1, tau fixed as in section 5.4",
    "nu=1 updated": "NC-Bayes, nu = 1, noise updated",
    "tau=0.02 updated": "NC-Bayes, nu = 1, noise updated, tau = 0.02",
    "w=1": "H-Bayes, w = 1",
}
COLUMNS = {
    "median_recall": "median rule: recall",
    "median_precision": "precision",
    "median_accuracy": "accuracy",
    "coverage": "coverage, %",
    "interval_recall": "90 % intervals: recall",
    "interval_precision": "precision",
    "interval_accuracy": "accuracy",
}


def edges_of(recall: float, accuracy: float) -> float:
    """The number of edges that a published row without false edges belongs to."""
    return PAIRS * (1 - accuracy) / (1 - recall)


def graphs(edges: int) -> Any:
    """The seeds of graphs with so many edges, in order."""
    sizes = ((seed, len(ncb.datasets.torus_random(1, graph_seed=seed, tune=0, seed=0).edges))
             for seed in count(1))  # fmt: skip
    return (seed for seed, size in sizes if size == edges)


def measured(method: str, graph: int, tune: int, draws: int) -> dict[str, float]:
    """One fit."""
    simulated = ncb.datasets.torus_random(graph_seed=graph, seed=np.random.default_rng([13, graph]))
    space = simulated.model.space
    known = torus_tables.methods(space)
    options = known.get(method)
    if options is None:
        tau, _, updated = method.removeprefix("tau=").partition(" ")
        like = known["nu=1 updated" if updated else "nu=1"]
        options = torus_tables.contrastive(1, like["noise"], tau=float(tau))
    return torus_tables.rated(
        torus_tables.fitted_with(simulated, options, graph, tune, draws), simulated
    )


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """A row a method, ours above the paper's."""
    lines = [f"| | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for method, rows in found.items():
        lines.append(f"| {LABELS[method]} | {cells(rows, COLUMNS)} |")
        if method in published.MEDIAN["random"]:
            coverage, *interval = published.INTERVAL["random"][method]
            figures = [f"{value:.3f}" for value in (*published.MEDIAN["random"][method], *interval)]
            figures.insert(3, f"{coverage:.1f}")
            lines.append(f"| the paper | {' | '.join(figures)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=5)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="file of finished fits")
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    _, recall, _, accuracy = published.INTERVAL["random"]["nu=5 updated"]
    edges = round(edges_of(recall, accuracy))
    seeds = list(islice(graphs(edges), options.graphs))
    length = (options.tune, options.draws)
    places = [(method, seed, *length) for seed in seeds for method in LABELS]
    rows = replications(measured, places, options.cores, options.keep)
    by_place = dict(zip(places, rows, strict=True))
    print(f"{edges} edges; graph seeds {', '.join(map(str, seeds))}\n")
    print(table({name: [by_place[name, seed, *length] for seed in seeds] for name in LABELS}))


if __name__ == "__main__":
    main()
