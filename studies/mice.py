"""Connectomes of mice as a population of graphs. (docs/random_graphs.md)

    python studies/mice.py --data folder [--threshold 1000] [--decay 0.5] [--draws 1000]
                           [--exchange 4000]

The folder holds mouse_connectome_pallium_L_edges.csv (subject, node_i, node_j, streamlines) and
mouse_connectome_pallium_L_nodes.csv (node, Structure, Abbreviation): 32 mice, 20 structures. An
edge is there if more than ``threshold`` streamlines join two structures. Structures are alike
whose names hold one of the words in WORDS; homophily counts edges between such.

Two models: edges, homophily and gwesp; and the same with a degree for each structure but the first.
For each it prints the summary, warnings, the noise report, and how graphs replicated at posterior
draws compare with the mice: 90 % intervals of numbers about such a population. With --exchange the
second model is fitted by engine="exchange" too, two chains of so many draws (half an hour for
4000), and means and sds of the two are compared.
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


def report(model: ncb.models.ERGM, matrices: np.ndarray, draws: int) -> ncb.Posterior:
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
    return posterior


def compare(model: ncb.models.ERGM, matrices: np.ndarray, ours: ncb.Posterior, draws: int) -> None:
    """Fit by exchange, which needs no normalizing constant, and print how far ours is from it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = ncb.fit(
            model, matrices, engine="exchange", chains=2, draws=draws, seed=1, progress=False
        )
    theta = [each.theta.stack(sample=("chain", "draw")).squeeze() for each in (ours, other)]
    means, sds = [each.mean("sample") for each in theta], [each.std("sample") for each in theta]
    far = float(np.sqrt((((means[0] - means[1]) / sds[1]) ** 2).mean()))
    wider = float(np.exp(np.log(sds[0] / sds[1]).mean()))
    effective = other.summary()["ess_bulk"].min()
    print(
        f"exchange: {other.data.attrs['wall_seconds']:.0f} seconds, least ESS {effective:.0f}; "
        f"means {far:.2f} sds away (root mean square), sds {wider:.2f} of its own (geometric mean)"
    )


def replicated(
    model: ncb.models.ERGM, posterior: ncb.Posterior, mice: int
) -> list[dict[str, float]]:
    """Populations of as many graphs, simulated at draws spread over the chains."""
    rng = np.random.default_rng(1)
    theta = posterior.theta.to_numpy().reshape(-1, len(model.terms))
    chosen = theta[np.arange(REPLICATIONS) * len(theta) // REPLICATIONS]
    return [described(model.space.adjacency(model.sample(each, mice, rng))) for each in chosen]


def main(folder: Path, threshold: float, decay: float, draws: int, exchange: int | None) -> None:
    """A model in which all structures are alike, and one in which they are not."""
    names, classes, matrices = connectomes(folder, threshold)
    density = matrices.sum(axis=2).mean() / (len(names) - 1)
    print(f"{len(matrices)} mice, {len(names)} structures, density {density:.2f}\n")
    terms = ncb.models.terms
    alike = ["edges", terms.homophily(classes, "region"), terms.gwesp(decay)]
    for each in (alike, [*alike, *terms.sociality(names[1:])]):
        model = ncb.models.ERGM(names, each)
        posterior = report(model, matrices, draws)
    if exchange is not None:
        compare(model, matrices, posterior, exchange)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", dest="folder", type=Path, required=True)
    parser.add_argument("--threshold", type=float, default=1000)
    parser.add_argument("--decay", type=float, default=0.5)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--exchange", type=int, help="draws of exchange to compare with")
    main(**vars(parser.parse_args()))
