"""Connectomes of mice as a population of graphs. (docs/random_graphs.md)

    python studies/mice.py --data folder [--threshold 1000] [--decay 0.5] [--draws 1000]

The folder holds mouse_connectome_pallium_L_edges.csv (subject, node_i, node_j, streamlines) and
mouse_connectome_pallium_L_nodes.csv (node, Structure, Abbreviation): 32 mice, 20 structures. An
edge is there if more than ``threshold`` streamlines join two structures. Structures are alike
whose names hold one of the words in WORDS; homophily counts edges between such.

Two models: edges, homophily and gwesp; and the same with a degree for each structure but the first.
For each it prints the summary, warnings, the noise report, and how graphs replicated at posterior
draws compare with the mice: 90 % intervals of numbers about such a population.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

import ncbayes as ncb

EDGES = "mouse_connectome_pallium_L_edges.csv"
NODES = "mouse_connectome_pallium_L_nodes.csv"
WORDS = ("Entorhinal", "Claustrum", "ubiculum")
REPLICATIONS = 100


def connectomes(folder: Path, threshold: float) -> tuple[list[str], list[str], np.ndarray]:
    """Names of the structures, the class of each, and adjacency matrices (mouse, node, node)."""
    with open(folder / NODES, newline="") as file:
        rows = list(csv.DictReader(file))
    number = {row["node"]: k for k, row in enumerate(rows)}
    classes = [next((w for w in WORDS if w in row["Structure"]), row["Structure"]) for row in rows]
    mice: dict[str, np.ndarray] = {}
    with open(folder / EDGES, newline="") as file:
        for row in csv.DictReader(file):
            matrix = mice.setdefault(row["subject"], np.zeros((len(rows), len(rows))))
            j, k = number[row["node_i"]], number[row["node_j"]]
            matrix[j, k] = matrix[k, j] = float(row["streamlines"]) > threshold
    return [row["Abbreviation"] for row in rows], classes, np.array(list(mice.values()))


def described(matrices: np.ndarray) -> dict[str, float]:
    """Numbers about a population of graphs."""
    degrees = matrices.sum(axis=2)
    shared = matrices.mean(axis=0)[np.triu_indices(matrices.shape[1], 1)]
    triangles = np.einsum("njk,njk->n", matrices @ matrices, matrices) / 6
    return {
        "mean degree": degrees.mean(),
        "sd of degrees in a graph": degrees.std(axis=1).mean(),
        "triangles": triangles.mean(),
        "sd of triangles between graphs": triangles.std(),
        "dyads alike in 90 % of graphs": np.mean((shared >= 0.9) | (shared <= 0.1)),
    }


def report(model: ncb.models.ERGM, matrices: np.ndarray, draws: int) -> None:
    """Fit and print."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = ncb.fit(model, matrices, seed=1, draws=draws, progress=False)
        made = replicated(model, posterior, len(matrices))
    columns = ["mean", "sd", "eti90_low", "eti90_high", "ess_bulk", "r_hat"]
    print(posterior.summary()[columns].round(2).to_string())
    print("\n".join([*posterior.warning_lines(), *posterior.noise_report().lines]))
    print(f"{posterior.data.attrs['wall_seconds']:.0f} seconds")
    for name, value in described(matrices).items():
        low, high = np.quantile([each[name] for each in made], [0.05, 0.95])
        print(f"{name}: {value:.2f}, replicated {low:.2f} to {high:.2f}")
    print()


def replicated(
    model: ncb.models.ERGM, posterior: ncb.Posterior, mice: int
) -> list[dict[str, float]]:
    """Populations of as many graphs, simulated at draws spread over the chains."""
    rng = np.random.default_rng(1)
    theta = posterior.theta.to_numpy().reshape(-1, len(model.terms))
    chosen = theta[np.arange(REPLICATIONS) * len(theta) // REPLICATIONS]
    return [described(model.space.adjacency(model.sample(each, mice, rng))) for each in chosen]


def main(folder: Path, threshold: float, decay: float, draws: int) -> None:
    """A model in which all structures are alike, and one in which they are not."""
    names, classes, matrices = connectomes(folder, threshold)
    density = matrices.sum(axis=2).mean() / (len(names) - 1)
    print(f"{len(matrices)} mice, {len(names)} structures, density {density:.2f}\n")
    terms = ncb.models.terms
    alike = ["edges", terms.homophily(classes, "region"), terms.gwesp(decay)]
    for each in (alike, [*alike, *terms.sociality(names[1:])]):
        report(ncb.models.ERGM(names, each), matrices, draws)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threshold", type=float, default=1000)
    parser.add_argument("--decay", type=float, default=0.5)
    parser.add_argument("--draws", type=int, default=1000)
    arguments = parser.parse_args()
    main(arguments.data, arguments.threshold, arguments.decay, arguments.draws)
