"""Does edge selection in sparse torus graphs come out as in the paper? (Its section 5.3 and S4.)

    python studies/torus_tables.py [--scenarios chain cycle random]
        [--methods nc-1-fixed-stated ...] [--replications 20] [--cores 2] [--keep rows.jsonl]

Recall, precision and accuracy of the selected edges by the median rule (threshold 0.1) and by the
90 % interval rule (an edge is selected when one of its intervals excludes zero), coverage of the
90 % intervals of all of theta, and seconds a fit; means over replications with their standard
errors, and the paper's figure in parentheses. One chain of 1000 + 2000 sweeps a replication.

Methods: ``nc-RATIO-NOISE-PRIOR`` is NC-Bayes and ``h-RATE`` H-Bayes under the plain grouped
horseshoe. NOISE: "fixed" uniform; "fresh": uniform and new in every sweep, the Algorithm 2 that the
paper says it uses for torus graphs; "resampled": the paper's update of fixed noise, alpha = 0.1;
"annealed": ours. PRIOR: the regularized horseshoe that the paper "stated" and the one that its
algorithm "sampled"; the paper's figures belong to the latter. "paper" is that prior with the
paper's own sampler: all of coef at once, scales given coef.

All methods of a replication meet the same data. Replication r uses seed r, whatever the number.
Precision is not defined where nothing is selected; it counts as 1 there, since nothing selected is
false. With --keep every fit is written to a file when it is done, and not run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ncbayes as ncb
from kept import replications

TUNE, DRAWS = 1000, 2000
THRESHOLD, LEVEL = 0.1, 0.9
RULES = ("median", "interval")
NAMES = ("recall", "precision", "accuracy")
SCENARIOS: dict[str, Callable[..., Any]] = {
    "chain": ncb.datasets.torus_chain,
    "cycle": ncb.datasets.torus_cycle,
    "random": ncb.datasets.torus_random,
}
NOISES: dict[str, Callable[[Any], Any]] = {
    "fixed": ncb.noise.Uniform,
    "fresh": lambda space: ncb.noise.Fresh(ncb.noise.Uniform(space)),
    "resampled": lambda space: ncb.noise.Adaptive(
        ncb.noise.Uniform(space), method="resampling", alpha=0.1
    ),
    "annealed": lambda space: ncb.noise.Adaptive(),
}
FORMS = {"stated": "conditional", "sampled": "likelihood", "paper": "likelihood"}


@dataclass(frozen=True)
class Method:
    """How to fit: the options of ``fit`` for a model's space, and the paper's name for it."""

    options: Callable[[Any], dict[str, Any]]
    paper: str


def contrastive(ratio: int, noise: str, form: str) -> Method:
    """NC-Bayes under the regularized grouped horseshoe."""

    def options(space: Any) -> dict[str, Any]:
        prior = ncb.priors.Horseshoe(slab=1.0, slab_form=FORMS[form])
        found = {"noise": NOISES[noise](space), "noise_ratio": ratio, "prior": prior}
        if form == "paper":
            found["engine"] = ncb.engines.Gibbs(method="cholesky", leap=False)
        return found

    return Method(options, f"nu={ratio} {'fixed' if noise in ('fixed', 'fresh') else 'updated'}")


def scored(rate: float) -> Method:
    """H-Bayes under the plain grouped horseshoe."""
    options = {
        "engine": ncb.engines.Hyvarinen(learning_rate=rate),
        "prior": ncb.priors.Horseshoe(slab=None),
    }
    return Method(lambda space: options, f"w={rate:g}")


METHODS = {
    f"nc-{ratio}-{noise}-{form}": contrastive(ratio, noise, form)
    for ratio in (1, 5)
    for noise in NOISES
    for form in FORMS
} | {f"h-{rate:g}": scored(rate) for rate in (0.2, 0.5, 1.0)}

# tab:results_Median, tab:results_star_Median, tab:results_ER_Median: recall, precision, accuracy.
PAPER_MEDIAN = {
    "chain": {
        "nu=1 fixed": (0.996, 0.999, 0.999),
        "nu=1 updated": (1.000, 0.985, 0.997),
        "nu=5 fixed": (1.000, 0.998, 1.000),
        "nu=5 updated": (1.000, 0.874, 0.976),
        "w=0.2": (1.000, 0.699, 0.928),
        "w=0.5": (1.000, 0.198, 0.323),
        "w=1": (1.000, 0.174, 0.207),
    },
    "cycle": {
        "nu=1 fixed": (1.000, 1.000, 1.000),
        "nu=1 updated": (1.000, 1.000, 1.000),
        "nu=5 fixed": (1.000, 1.000, 1.000),
        "nu=5 updated": (1.000, 1.000, 1.000),
        "w=0.2": (1.000, 1.000, 1.000),
        "w=0.5": (1.000, 0.988, 0.994),
        "w=1": (1.000, 0.926, 0.960),
    },
    "random": {
        "nu=1 fixed": (0.973, 1.000, 0.997),
        "nu=1 updated": (0.987, 0.991, 0.998),
        "nu=5 fixed": (1.000, 0.998, 1.000),
        "nu=5 updated": (0.741, 0.110, 0.409),
        "w=0.2": (0.998, 1.000, 1.000),
        "w=0.5": (1.000, 0.973, 0.997),
        "w=1": (1.000, 0.669, 0.953),
    },
}
# tab:results_CI, tab:results_star_CI, tab:results_ER_CI: recall, precision, accuracy, coverage.
PAPER_INTERVAL = {
    "chain": {
        "nu=1 fixed": (0.507, 1.000, 0.918, 0.979),
        "nu=1 updated": (0.734, 1.000, 0.956, 0.986),
        "nu=5 fixed": (0.985, 1.000, 0.998, 0.985),
        "nu=5 updated": (0.999, 0.999, 1.000, 0.990),
        "w=0.2": (1.000, 0.941, 0.990, 0.972),
        "w=0.5": (1.000, 0.246, 0.490, 0.704),
        "w=1": (1.000, 0.182, 0.250, 0.451),
    },
    "cycle": {
        "nu=1 fixed": (1.000, 1.000, 1.000, 0.997),
        "nu=1 updated": (1.000, 1.000, 1.000, 0.991),
        "nu=5 fixed": (1.000, 0.998, 0.999, 0.980),
        "nu=5 updated": (1.000, 0.998, 0.999, 0.970),
        "w=0.2": (1.000, 1.000, 1.000, 0.991),
        "w=0.5": (1.000, 0.935, 0.965, 0.933),
        "w=1": (1.000, 0.744, 0.828, 0.805),
    },
    "random": {
        "nu=1 fixed": (0.776, 1.000, 0.979, 0.989),
        "nu=1 updated": (0.841, 1.000, 0.985, 0.984),
        "nu=5 fixed": (0.997, 1.000, 1.000, 0.967),
        "nu=5 updated": (0.110, 0.998, 0.916, 0.996),
        "w=0.2": (0.988, 1.000, 0.999, 0.929),
        "w=0.5": (1.000, 0.947, 0.995, 0.846),
        "w=1": (1.000, 0.266, 0.740, 0.672),
    },
}


def scores(selected: np.ndarray, true: np.ndarray) -> list[float]:
    """Recall, precision and accuracy; recall and precision of nothing are 1."""
    hits = np.sum(selected & true)
    recall = hits / np.sum(true) if true.any() else 1.0
    precision = hits / np.sum(selected) if selected.any() else 1.0
    return [float(recall), float(precision), float(np.mean(selected == true))]


def coverage(theta: np.ndarray, truth: np.ndarray) -> float:
    """The share of parameters whose equal-tailed interval, from draws as rows, holds the truth."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(theta, [tail, 1 - tail], axis=0)
    return float(np.mean((low <= truth) & (truth <= high)))


def rated(posterior: ncb.Posterior, simulated: Any) -> dict[str, Any]:
    """The scores of a posterior by both rules, and its coverage."""
    found: dict[str, Any] = {}
    for rule in RULES:
        table = ncb.graphs.edges(posterior, rule=rule, threshold=THRESHOLD, level=LEVEL)
        pairs = zip(table["node1"], table["node2"], strict=True)
        true = np.array([pair in set(simulated.edges) for pair in pairs])
        found[rule] = scores(table["selected"].to_numpy(), true)
    draws = posterior.theta.to_numpy().reshape(-1, len(simulated.theta))
    return found | {"coverage": coverage(draws, simulated.theta)}


def measured(
    simulated: Any, method: str, seed: int, tune: int = TUNE, draws: int = DRAWS
) -> dict[str, Any]:
    """The scores of one fit, and its seconds with the making of the noise."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            simulated.model,
            simulated.data,
            tune=tune,
            draws=draws,
            chains=1,
            cores=1,
            seed=seed,
            progress=False,
            **METHODS[method].options(simulated.model.space),
        )
    seconds = time.perf_counter() - began
    return rated(posterior, simulated) | {"seconds": seconds}


def replication(scenario: str, method: str, seed: int) -> dict[str, Any]:
    """One fit of the tables."""
    simulated = SCENARIOS[scenario](seed=np.random.default_rng([11, seed]))
    return measured(simulated, method, seed)


def cell(values: np.ndarray, paper: float) -> str:
    """Mean, its Monte Carlo standard error, and the paper's figure."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.3f} ± {error:.3f} ({paper:.3f})"


def tables(scenario: str, done: dict[str, list[dict[str, Any]]]) -> str:
    """Both tables of a scenario in Markdown, a row a method."""
    papers = {"median": PAPER_MEDIAN[scenario], "interval": PAPER_INTERVAL[scenario]}
    titles = {"median": f"median rule, threshold {THRESHOLD}", "interval": f"{LEVEL:.0%} intervals"}
    lines = []
    for rule in RULES:
        last = ["seconds"] if rule == "median" else ["coverage"]
        lines += [f"\n{scenario}, {titles[rule]}: ours (the paper's)\n"]
        lines += [f"| method | {' | '.join([*NAMES, *last])} |", "|---" * (len(NAMES) + 2) + "|"]
        for method, found in done.items():
            paper = papers[rule][METHODS[method].paper]
            columns = np.array([each[rule] for each in found]).T
            cells = [cell(*each) for each in zip(columns, paper, strict=False)]
            if rule == "median":
                cells.append(f"{np.median([each['seconds'] for each in found]):.1f}")
            else:
                cells.append(cell(np.array([each["coverage"] for each in found]), paper[-1]))
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of finished fits")
    options = parser.parse_args()
    count = options.replications
    print(f"{count} replications, {TUNE} + {DRAWS} sweeps, one chain; the paper has 100")
    for scenario in options.scenarios:
        # Seed by seed, so that of a run that was stopped all methods have the same number.
        seeds = range(1, count + 1)
        places = [(scenario, method, seed) for seed in seeds for method in options.methods]
        found = replications(replication, places, options.cores, options.keep)
        width = len(options.methods)
        done = {method: found[k::width] for k, method in enumerate(options.methods)}
        print(tables(scenario, done), flush=True)


if __name__ == "__main__":
    main()
