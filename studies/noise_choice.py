"""Is adaptive noise ever worse than fixed, and does automatic noise choose well?

    python studies/noise_choice.py [--models von_mises ...] [--replications 50] [--keep rows.jsonl]

Models of known truth, noise ratios 1 and 5. For each noise: the squared error of theta's posterior
mean, averaged over parameters and relative to that of matched noise; the posterior variance,
the same way; both against the noise picked by hand with the least variance; coverage of 90 %
intervals; and the seconds that one chain of the default length (1000 + 1000 sweeps) takes with the
making of its noise, from the sweeps that were run. All noise of a replication meets the same data,
so ratios come with a paired standard error. Replication r uses seed r, whatever the number. With
--keep every replication is written to a file when it is done, and not run again.

torus_30 and torus_wide have nearly as many, and more than half as many, parameters as data points,
and a horseshoe prior: there squared error and posterior variance need not go together. torus_wide,
ising_10 and truncated_4 were not looked at when any rule about noise was made.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_paper.kept import replications

RATIOS = (1.0, 5.0)
Maker = Callable[[Any, np.ndarray], Any]
MATCHED: dict[str, Maker] = {"matched": lambda model, data: "matched"}
UNIFORM: dict[str, Maker] = {"uniform": lambda model, data: ncb.noise.Uniform(model.space)}
TREE: dict[str, Maker] = {"tree": lambda model, data: ncb.noise.Tree.match(data)}
ADAPTIVE: dict[str, Maker] = {
    "adaptive": lambda model, data: ncb.noise.Adaptive(batch=50, updates=5),
    "auto": lambda model, data: "auto",
}
TORUS: dict[str, Maker] = {
    **MATCHED,
    **UNIFORM,
    **TREE,
    "resampling": lambda model, data: ncb.noise.Adaptive(
        ncb.noise.Uniform(model.space), method="resampling", batch=50, updates=5
    ),
    "adaptive .9": lambda model, data: ncb.noise.Adaptive(alpha=0.9, batch=50, updates=5),
    **ADAPTIVE,
}


@dataclass(frozen=True)
class Case:
    """A model with its truth, the rows of data, the noise to try, and how to fit."""

    model: Any
    theta: np.ndarray
    rows: int
    noises: dict[str, Maker]
    options: dict[str, Any]


def cases() -> dict[str, Case]:
    """The grid."""
    small = {"tune": 100, "draws": 500}
    sparse = {"tune": 300, "draws": 500, "prior": ncb.priors.Horseshoe()}
    angle = ncb.models.VonMises()
    gaussian = ncb.models.Gaussian(5)
    margins: dict[str, Maker] = {"margins": lambda m, data: ncb.noise.margins(data, m.space)}
    normal: dict[str, Maker] = {"normal": lambda m, data: ncb.noise.Normal.match(data)}
    mixture: dict[str, Maker] = {"mixture": lambda m, data: ncb.noise.gaussian_mixture(data)}
    return {
        "von_mises": Case(
            angle, np.array([1.5, 1.0]), 200, {**MATCHED, **UNIFORM, **margins, **ADAPTIVE}, small
        ),
        "gaussian_5": Case(
            gaussian, precision(5), 300, {**MATCHED, **normal, **mixture, **ADAPTIVE}, small
        ),
        "torus_12": Case(*chain(12), 1000, TORUS, {**small, "prior": ncb.priors.Normal(1.0)}),
        "torus_30": Case(*random_graph(30), 1000, TORUS, sparse),
        "torus_wide": Case(ncb.models.TorusGraph(12), full_chain(12), 500, TORUS, sparse),
        "ising_10": Case(
            *spin_chain(10), 200, {**MATCHED, **UNIFORM, **ADAPTIVE},
            {**small, "prior": ncb.priors.Normal(1.0)},
        ),
        "truncated_4": Case(
            ncb.models.TruncatedGaussian(4), precision(4), 200, {**MATCHED, **margins, **ADAPTIVE},
            {**small, "prior": ncb.priors.Normal(1.0)},
        ),
    }  # fmt: skip


def spin_chain(nodes: int) -> tuple[Any, np.ndarray]:
    """Zeros and ones, neighbours coupled by 0.8."""
    rows, columns = np.triu_indices(nodes, 1)
    coupled = np.where(columns == rows + 1, 0.8, 0.0)
    return ncb.models.Ising(nodes), np.concatenate([np.full(nodes, -0.5), coupled])


def precision(size: int) -> np.ndarray:
    """theta of a Gaussian chain: mean 0.5, precision 1 on and 0.4 beside the diagonal."""
    matrix = np.eye(size) + 0.4 * (np.eye(size, k=1) + np.eye(size, k=-1))
    rows, columns = np.triu_indices(size, 1)
    return np.concatenate([matrix @ np.full(size, 0.5), np.diag(matrix), matrix[rows, columns]])


def chain(nodes: int) -> tuple[Any, np.ndarray]:
    """A chain: neighbours coupled by 0.3 in cosine and sine of the difference."""
    model = ncb.models.TorusGraph(nodes, marginal=False, reflectional=False)
    rows, columns = np.triu_indices(nodes, 1)
    return model, np.repeat(np.where(columns == rows + 1, 0.3, 0.0), 2)


def full_chain(nodes: int) -> np.ndarray:
    """theta of the paper's chain: neighbours coupled by 0.3 in all four ways, in the full model."""
    rows, columns = np.triu_indices(nodes, 1)
    coupled = np.repeat(np.where(columns == rows + 1, 0.3, 0.0), 4)
    return np.concatenate([np.zeros(2 * nodes), coupled])


def random_graph(nodes: int) -> tuple[Any, np.ndarray]:
    """The paper's random graph: a tenth of the pairs coupled by 0.3 in cosine and sine."""
    model = ncb.models.TorusGraph(nodes, marginal=False, reflectional=False)
    pairs = nodes * (nodes - 1) // 2
    linked = np.random.default_rng(0).random(pairs) < 0.1
    return model, np.repeat(np.where(linked, 0.3, 0.0), 2)


def replication(name: str, ratio: float, seed: int) -> dict[str, list[float]]:
    """One data set of a case of the grid."""
    found = measured(cases()[name], ratio, seed)
    return {label: values.tolist() for label, values in found.items()}


def measured(case: Case, ratio: float, seed: int) -> dict[str, np.ndarray]:
    """By noise: mean squared error, mean posterior variance, coverage, seconds."""
    data = case.model.sample(case.theta, case.rows, np.random.default_rng([7, seed]))
    found = {}
    for label, make in case.noises.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            posterior = ncb.fit(
                case.model,
                data,
                noise=make(case.model, data),
                noise_ratio=ratio,
                chains=1,
                cores=1,
                seed=seed,
                progress=False,
                verify=False,
                **case.options,
            )
        each = float(posterior.data["sample_stats"]["sweep_seconds"].mean())
        sweeps = case.options["tune"] + case.options["draws"]
        making = max(posterior.data.attrs["wall_seconds"] - sweeps * each, 0.0)
        seconds = making + 2000 * each
        theta = posterior.theta.to_numpy()[0, :, 0]
        low, high = np.quantile(theta, [0.05, 0.95], axis=0)
        covered = np.mean((low <= case.theta) & (case.theta <= high))
        error = np.mean((theta.mean(axis=0) - case.theta) ** 2)
        found[label] = np.array([error, np.mean(theta.var(axis=0)), covered, seconds])
    return found


def ratio_with_error(values: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Mean by mean, with the standard error of the pairs (delta method)."""
    ratio = float(values.mean() / reference.mean())
    residual = (values - ratio * reference) / reference.mean()
    return ratio, float(residual.std(ddof=1) / np.sqrt(len(values)))


def table(name: str, ratio: float, done: list[Any]) -> str:
    """One cell of the grid as Markdown rows."""
    columns = {label: np.array([each[label] for each in done]) for label in done[0]}
    errors = {label: values[:, 0] for label, values in columns.items()}
    variances = {label: values[:, 1] for label, values in columns.items()}
    by_hand = [label for label in columns if label != "auto"]
    best = min(by_hand, key=lambda label: variances[label].mean())
    lines = []
    for label, values in columns.items():
        squared = ratio_with_error(errors[label], errors["matched"])
        spread = ratio_with_error(variances[label], variances["matched"])
        against = [ratio_with_error(kind[best], kind[label]) for kind in (variances, errors)]
        lines.append(
            f"| {name} | {ratio:g} | {label} | {squared[0]:.3g} ± {squared[1]:.2g} "
            f"| {spread[0]:.3g} ± {spread[1]:.2g} "
            + "".join(f"| {each[0]:.2f} ± {each[1]:.2f} " for each in against)
            + f"| {values[:, 2].mean():.3f} | {np.median(values[:, 3]):.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(cases()), choices=list(cases()))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of finished replications")
    options = parser.parse_args()
    print("| model | ratio | noise | squared error / matched | variance / matched "
          "| efficiency against the best by hand (variance) | (squared error) "
          "| coverage | seconds a chain |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.models:
        for ratio in options.ratios:
            places = [(name, ratio, seed) for seed in range(1, options.replications + 1)]
            done = replications(replication, places, options.cores, options.keep)
            print(table(name, ratio, done), flush=True)


if __name__ == "__main__":
    main()
