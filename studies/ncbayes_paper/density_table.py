"""Densities over time: Table 1 (section 4.2).

ABE, CP and AL (``ncbayes.metrics``) at 500 uniform points of the data's rectangle, T = 10, n = 100
points a time, L = 30 basis functions, one chain. CP and AL by intervals of mean +- 1.96 sd: the
paper's level can only be had with these (docs/intervals.md); and CP of quantile intervals where the
true density exceeds 1 % of its peak.

N1, N2 and aN have the paper's random walk and as many noise points as data. "the
defaults" is ``fit_density_over_time`` as it comes: a separate variance for the first time, noise
ratio 5. KDE: SciPy's kernels time by time. All methods of a replication meet the same data;
replication r has seed r.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_paper import published
from ncbayes_paper.study import Column, Measured, Row, Table
from ncbayes_paper.torus_tables import mixing

# Fewer than the paper's 2000 + 3000: a third of these draws are effective, of its own hardly any.
SWEEPS = (300, 1000)
SCENARIOS = {"1": ncb.datasets.moving_mixture, "2": ncb.datasets.growing_ring}
PAPER_PRIOR = {"prior": ncb.priors.RandomWalk(rate=1.0, initial="walk"), "noise_ratio": 1.0}
ONE_AT_A_TIME = ncb.engines.Gibbs(method="one_at_a_time")
# By method: the options of the fit, and its name here.
METHODS: dict[str, tuple[dict[str, Any], str]] = {
    "common": ({"noise": "common", **PAPER_PRIOR}, "N1, common noise"),
    "per_time": ({"noise": "per_time", **PAPER_PRIOR}, "N2, noise of each time"),
    "adaptive": ({"noise": "adaptive", **PAPER_PRIOR}, "aN, adaptive noise"),
    "kde": ({}, "KDE"),
    "one_at_a_time": (
        {"noise": "common", "engine": ONE_AT_A_TIME, **PAPER_PRIOR},
        "N1 by the paper's sampler",
    ),
    "auto": (
        {"noise": "auto", "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk")},
        "noise and ratio chosen",
    ),
    "default": ({}, "the defaults"),
}
LEVEL = 0.95
COLUMNS = (
    Column("abe", "ABE", "low"),
    Column("cp", "CP, %", 100 * LEVEL, 1),
    Column("al", "AL"),
    Column("quantile_cp", "CP by quantiles where the density matters, %", None, 1),
    Column("ess", "worst ESS", digits=0, median=True),
    Column("r_hat", "worst R-hat", median=True),
)
# Places at which the mixing of the density is looked at.
PLACES = 20


def measured(scenario: str, method: str, replication: int, tune: int, draws: int) -> Measured:
    """One fit of one data set; ``method`` begins with the number of the paper's scenario."""
    number, _, name = method.partition(" ")
    simulated = SCENARIOS[number](seed=replication)
    at = ncb.metrics.evaluation_points(simulated.points, seed=replication)
    volume = float(np.exp(ncb.metrics.rectangle(simulated.points).log_volume))
    truth = np.array([simulated.density(t, at) for t in np.unique(simulated.times)])
    began = time.process_time()
    if name == "kde":
        estimate = ncb.baselines.TimewiseKDE.of(simulated.points, simulated.times).density(at)
        seconds = time.process_time() - began
        abe = ncb.metrics.absolute_error(estimate, truth, volume)
        return {"abe": abe, "seconds": seconds}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit_density_over_time(
            simulated.points, simulated.times, tune=tune, draws=draws, chains=1, cores=1,
            seed=replication, progress=False, **METHODS[name][0],
        )  # fmt: skip
    seconds = time.process_time() - began
    return rated(posterior, at, truth, volume) | {"seconds": seconds}


def rated(posterior: ncb.Posterior, at: np.ndarray, truth: np.ndarray, volume: float) -> Measured:
    """Errors, intervals and mixing of the densities of a posterior at some points."""
    draws = ncb.metrics.rescaled(ncb.densities.density_draws(posterior, at).to_numpy(), volume)
    true = ncb.metrics.rescaled(truth, volume)
    found = {"abe": ncb.metrics.absolute_error(draws.mean(axis=0), truth, volume)}
    low, high = ncb.metrics.intervals(draws, volume, LEVEL, "sd")
    found["cp"] = 100 * ncb.metrics.coverage(low, high, true)
    found["al"] = ncb.metrics.average_length(low, high)
    low, high = ncb.metrics.intervals(draws, volume, LEVEL, "quantile")
    where = ncb.metrics.high_density(true)
    found["quantile_cp"] = 100 * ncb.metrics.coverage(low, high, true, where)
    kept = posterior.theta.sizes["draw"]
    few = ncb.densities.density_draws(posterior, at[:PLACES], draws=kept).to_numpy()
    quantities = np.concatenate([np.log(few), posterior.log_z.to_numpy()[0][:, :, None]], axis=2)
    return found | mixing(quantities[None])


def _rows() -> tuple[Row, ...]:
    return tuple(
        Row(f"{number} {name}", f"scenario {number}: {label}", name in published.DENSITY[number])
        for number in SCENARIOS
        for name, (_, label) in METHODS.items()
    )


ITEMS = {
    "table1": Table(
        "table1",
        "Densities over time, T = 10, n = 100 a time",
        "density",
        measured,
        _rows(),
        COLUMNS,
        {
            (f"{number} {name}", column.name): value
            for number, rows in published.DENSITY.items()
            for name, values in rows.items()
            for column, value in zip(COLUMNS, values, strict=False)
        },
        200,
        SWEEPS,
        10,
        "AL is not marked: the paper does not state its unit. Ours is that of the density.",
    )
}
