"""Edge selection in sparse torus graphs: Tables 2 and 3, S1 to S4 (section 5.3 and supplement).

Recall, precision and accuracy of the selected edges by the median rule (threshold 0.1) and by the
90 % interval rule (an edge is selected when one of its intervals excludes zero), and coverage of
the 90 % intervals of all of theta. One chain a fit, of 1000 + 2000 sweeps as in the paper for the
chain; fewer for the other two graphs, where they mix better.

The paper's rows are our reading of it, which the notes on the paper explain: the prior that it
states; new noise in every sweep (its Algorithm 2); where noise is updated, q_alpha by importance
resampling from the uniform with alpha = 0.1 (its Algorithm 3), of which every sweep then has new
draws; for H-Bayes the plain grouped horseshoe.

All methods of a replication meet the same data; replication r has seed r. Precision is not defined
where nothing is selected; it counts as 1 there, since nothing selected is false.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

import ncbayes as ncb
from ncbayes_paper import published
from ncbayes_paper.study import Column, Measured, Row, Table

SWEEPS = {"chain": (1000, 2000), "cycle": (300, 700), "random": (500, 1000)}
THRESHOLD, LEVEL = 0.1, 0.9
RULES = ("median", "interval")
NAMES = ("recall", "precision", "accuracy")
SCENARIOS: dict[str, Callable[..., Any]] = {
    "chain": ncb.datasets.torus_chain,
    "cycle": ncb.datasets.torus_cycle,
    "random": ncb.datasets.torus_random,
}
# Data sets for the rows that we add: enough to see what they do.
BEYOND = {"chain": 20, "cycle": 20, "random": 5}
TITLES = {
    "chain": "12 angles in a chain, n = 200",
    "cycle": "5 angles in a cycle, n = 1000",
    "random": "30 angles in a random graph, n = 1000",
}
# With alpha = 0.1 nine tenths of the proposals count, so a few for each noise point are enough;
# the guard asks for more where they are not.
ALPHA, PROPOSALS = 0.1, 3


def contrastive(
    ratio: float | None, noise: Any, form: str = "conditional", tau: float | None = None
) -> dict[str, Any]:
    """Options of ``fit`` for NC-Bayes under the regularized grouped horseshoe."""
    prior = ncb.priors.Horseshoe(slab=1.0, slab_form=form, tau=tau)
    return {"noise": noise, "noise_ratio": ratio, "prior": prior}


def scored(rate: float) -> dict[str, Any]:
    """Options of ``fit`` for H-Bayes under the plain grouped horseshoe."""
    prior = ncb.priors.Horseshoe(slab=None)
    return {"engine": ncb.engines.Hyvarinen(learning_rate=rate), "prior": prior}


def fixed_tau(angles: int, points: int) -> float:
    """The global scale that the paper fixes for its recording (section 5.4)."""
    nonzero = np.floor(1.7 * angles**2 + 0.5)
    return ncb.priors.global_scale(nonzero, 2 * angles**2, points)


def methods(space: Any) -> dict[str, dict[str, Any]]:
    """The options of ``fit`` by method."""
    uniform = ncb.noise.Uniform(space)
    new = ncb.noise.Fresh(uniform)
    updated = ncb.noise.Fresh(
        ncb.noise.Adaptive(uniform, alpha=ALPHA, method="resampling", proposals=PROPOSALS)
    )
    return {
        "nu=1": contrastive(1, new),
        "nu=1 updated": contrastive(1, updated),
        "nu=5": contrastive(5, new),
        "nu=5 updated": contrastive(5, updated),
        "w=0.2": scored(0.2),
        "w=0.5": scored(0.5),
        "w=1": scored(1.0),
        "nu=1 sampled": contrastive(1, new, "likelihood"),
        "nu=1 tau": contrastive(1, new, tau=fixed_tau(space.dimension, 2000)),
        "nu=5 annealed": contrastive(5, ncb.noise.Adaptive()),
        "auto": contrastive(None, "auto"),
    }


PAPER_ROWS = (
    Row("nu=1", "NC-Bayes, nu = 1"),
    Row("nu=1 updated", "NC-Bayes, nu = 1, noise updated"),
    Row("nu=5", "NC-Bayes, nu = 5"),
    Row("nu=5 updated", "NC-Bayes, nu = 5, noise updated"),
    Row("w=0.2", "H-Bayes, w = 0.2"),
    Row("w=0.5", "H-Bayes, w = 0.5"),
    Row("w=1", "H-Bayes, w = 1"),
)
SAMPLED = Row("nu=1 sampled", "nu = 1, the prior that the paper's algorithm samples", paper=False)
TAU = Row("nu=1 tau", "nu = 1, tau fixed as in the paper's section 5.4", paper=False)
ANNEALED = Row("nu=5 annealed", "nu = 5, one noise set, annealed", paper=False)
AUTO = Row("auto", "one noise set, kind and ratio chosen (the defaults)", paper=False)
ROWS = {
    "chain": (*PAPER_ROWS, SAMPLED, ANNEALED, AUTO),
    "cycle": (*PAPER_ROWS, AUTO),
    "random": (*PAPER_ROWS, TAU, ANNEALED),
}
COLUMNS = {
    "median": tuple(Column(f"median_{name}", name, "high") for name in NAMES),
    "interval": (
        Column("coverage", "coverage, %", 100 * LEVEL, 1),
        *(Column(f"interval_{name}", name, "high") for name in NAMES),
    ),
}
CHAINS = (
    Column("ess", "worst ESS", digits=0, median=True),
    Column("r_hat", "worst R-hat", median=True),
)


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


def rated(posterior: ncb.Posterior, simulated: Any) -> Measured:
    """The scores of a posterior by both rules, its coverage, and how its chain has mixed."""
    found: Measured = {}
    for rule in RULES:
        table = ncb.graphs.edges(posterior, rule=rule, threshold=THRESHOLD, level=LEVEL)
        pairs = zip(table["node1"], table["node2"], strict=True)
        true = np.array([pair in set(simulated.edges) for pair in pairs])
        values = scores(table["selected"].to_numpy(), true)
        found |= {f"{rule}_{name}": value for name, value in zip(NAMES, values, strict=True)}
    draws = posterior.theta.to_numpy()
    chain = draws.reshape(-1, len(simulated.theta))
    return found | {"coverage": 100 * coverage(chain, simulated.theta)} | mixing(draws)


def mixing(draws: np.ndarray) -> Measured:
    """The smallest bulk ESS and, between the halves of the chain, the largest R-hat of draws."""
    columns = draws[0].reshape(draws.shape[1], -1)
    half = len(columns) // 2
    axes = {"chain_axis": 0, "draw_axis": 1}
    ess = array_stats.ess(columns[None], **axes)
    # R-hat needs two chains.
    r_hat = array_stats.rhat(np.stack([columns[:half], columns[-half:]]), **axes)
    return {"ess": float(np.min(ess)), "r_hat": float(np.max(r_hat))}


def fitted(simulated: Any, method: str, seed: int, tune: int, draws: int) -> ncb.Posterior:
    """The fit by one of the methods."""
    options = methods(simulated.model.space)[method]
    return fitted_with(simulated, options, seed, tune, draws)


def fitted_with(
    simulated: Any, options: dict[str, Any], seed: int, tune: int, draws: int
) -> ncb.Posterior:
    """One fit, without its warnings: the tables have columns for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            simulated.model,
            simulated.data,
            tune=tune,
            draws=draws,
            chains=1,
            cores=1,
            seed=seed,
            progress=False,
            **options,
        )


def simulated_data(scenario: str, replication: int) -> Any:
    """The data of a replication, the same for all methods."""
    return SCENARIOS[scenario](seed=np.random.default_rng([11, replication]))


def measured(scenario: str, method: str, replication: int, tune: int, draws: int) -> Measured:
    """One fit of the tables; its seconds are the processor's, noise included."""
    simulated = simulated_data(scenario, replication)
    began = time.process_time()
    posterior = fitted(simulated, method, replication, tune, draws)
    seconds = time.process_time() - began
    return rated(posterior, simulated) | {"seconds": seconds}


def table(name: str, scenario: str, rule: str) -> Table:
    """One of the six tables."""
    columns = COLUMNS[rule]
    printed = (published.MEDIAN if rule == "median" else published.INTERVAL)[scenario]
    paper = {
        (method, column.name): value
        for method, values in printed.items()
        for column, value in zip(columns, values, strict=True)
    }
    words = {"median": f"median rule, threshold {THRESHOLD}", "interval": f"{LEVEL:.0%} intervals"}
    return Table(
        name,
        f"{TITLES[scenario]}, {words[rule]}",
        scenario,
        measured,
        ROWS[scenario],
        (*columns, *CHAINS),
        paper,
        100,
        SWEEPS[scenario],
        BEYOND[scenario],
    )


ITEMS = {
    name: table(name, scenario, rule)
    for name, scenario, rule in (
        ("table2", "chain", "median"),
        ("table3", "chain", "interval"),
        ("tableS1", "cycle", "median"),
        ("tableS2", "cycle", "interval"),
        ("tableS3", "random", "median"),
        ("tableS4", "random", "interval"),
    )
}
