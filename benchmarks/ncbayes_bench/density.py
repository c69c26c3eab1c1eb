"""Tables 3 and 4 of the comparison: densities over time.

3. Effective draws a second: ncbayes, the paper's sampler in dense NumPy, NumPyro's NUTS.
4. Errors of the density: ncbayes, the paper's settings, SciPy's kernels time by time.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde
from threadpoolctl import threadpool_limits

import ncbayes as ncb
from ncbayes_bench.density_mixing import Measured, Problem, difference, ours, stacked, theirs
from ncbayes_bench.page import (
    FEWEST_EFFECTIVE,
    SEED,
    Part,
    Say,
    Sizes,
    clock,
    digits,
    table,
    with_error,
)
from ncbayes_bench.paper_gibbs import density_start, density_sweep

SCENARIOS = {1: ncb.datasets.moving_mixture, 2: ncb.datasets.growing_ring}
KDE = "SciPy KDE, time by time"
SETTINGS: dict[str, dict[str, Any] | None] = {
    "ncbayes, defaults": {},
    "ncbayes, the paper's settings": {
        "noise": "common",
        "noise_ratio": 1.0,
        "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk"),
    },
    KDE: None,
}
Split = tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]


def by_time(posterior: ncb.Posterior, problem: Problem) -> Split:
    """Basis functions, offsets and labels of the points of a fit, a list of arrays each."""
    statistics, offset, is_data, times = stacked(posterior, problem)
    own = [times == t for t in range(times.max() + 1)]
    designs = [np.ascontiguousarray(statistics[rows]) for rows in own]
    return designs, [offset[rows] for rows in own], [is_data[rows] for rows in own]


def dense(problem: Problem, posterior: ncb.Posterior, tune: int, draws: int) -> Measured:
    """The paper's sampler from zero."""
    parts, rng = by_time(posterior, problem), np.random.default_rng(SEED)
    times, basis = posterior.theta.shape[2:]
    state = density_start(times, basis)
    theta, beta, variance = np.empty((draws, times, basis)), np.empty((draws, times)), []
    began = middle = clock()
    with threadpool_limits(1):
        for k in range(-tune, draws):
            if k == 0:
                middle = clock()
            state = density_sweep(*parts, state, rng)
            if k >= 0:
                theta[k], beta[k] = state.theta, state.beta
                variance.append([state.variance])
    ended = clock()
    density = problem.log_densities(theta)
    return Measured(density, beta, np.log(variance), ended - middle, middle - began)


def samplers(sizes: Sizes, nuts: bool, say: Say) -> Part:
    """Table 3."""
    problem = Problem(SEED, sizes.times_per_density, sizes.points_per_time)
    say("density: ncbayes")
    own, posterior = ours(problem, "auto", *sizes.sweeps, clock)
    say("density: dense NumPy")
    found = {"ncbayes": own, "dense NumPy Gibbs": dense(problem, posterior, *sizes.sweeps)}
    if nuts:
        say("density: NUTS")
        half = sizes.nuts_draws
        found["NumPyro NUTS"] = theirs(problem, posterior, half, half, clock)
    rates = {name: _rates(each) for name, each in found.items()}
    rows, ratios = [], {}
    for name, each in found.items():
        cells = [[digits(second), digits(rate)] for second, rate in zip(*rates[name], strict=True)]
        factors = rates["ncbayes"][1] / rates[name][1]
        marks = [""] * 2 if each is own else [digits(value) for value in factors]
        effective = [digits(value) for value in each.worst]
        rows.append([name, *effective, *cells[0], marks[0], *cells[1], marks[1]])
        if each is not own:
            for words, value in zip(("whole run", "kept draws"), factors, strict=True):
                ratios[f"density, worst quantity, {words}, {name}"] = value
    text = "\n\n".join([_intro(sizes, posterior), _table(rows), _notes(found)])
    title = "3. Density over time: effective draws a second"
    return Part(title, text, ratios, _reading(found, rates))


def _rates(each: Measured) -> tuple[np.ndarray, np.ndarray]:
    """Seconds, and effective draws a second of the worst of density and beta; whole and kept."""
    seconds = np.array([each.kept + each.tuning + each.compilation, each.kept])
    return seconds, each.worst[:2].min() / seconds


def _table(rows: list[list[str]]) -> str:
    return table(
        ["sampler", "effective, density", "beta", "lambda", "whole run, s", "worst a second",
         "ratio", "kept draws, s", "worst a second", "ratio"], rows,
    )  # fmt: skip


def _intro(sizes: Sizes, posterior: ncb.Posterior) -> str:
    (times, basis), n = posterior.theta.shape[2:], sizes.points_per_time
    tune, draws = sizes.sweeps
    return (
        f"Scenario 2 of the paper, T = {times}, L = {basis}, n = m = {n}, its prior "
        f"its random walk; one chain each. ncbayes and dense NumPy {tune} + {draws} sweeps, NUTS "
        f"{sizes.nuts_draws} + {sizes.nuts_draws}. Effective draws of the worst of the normalized "
        "log densities at 20 places and all times, of the worst beta_t = -log Z_t, and of log "
        "lambda; then a second of the worst of density and beta, over the whole run (tuning, and "
        "for NUTS compilation) and of kept draws alone. Ratio: how many times as many ncbayes has. "
        "Dense NumPy has N(0, 1000) for beta_t itself, as in the paper, ncbayes and NUTS for "
        "beta_t + theta_t . (mean statistics)."
    )


def _notes(found: dict[str, Measured]) -> str:
    notes = []
    for name, each in found.items():
        if name == "ncbayes":
            continue
        least = each.worst[:2].min()
        if least < FEWEST_EFFECTIVE:
            notes.append(
                f"{name} has {least:.1f} effective draws of its worst quantity: too few for its "
                "means to be compared, and for this number itself to be exact."
            )
        else:
            far = difference(found["ncbayes"], each)
            notes.append(f"ncbayes and {name}: largest difference of means {far:.1f} standard "
                         "errors.")  # fmt: skip
    return " ".join(notes)


def _reading(found: dict[str, Measured], rates: dict[str, Any]) -> list[str]:
    sentences = []
    for name in found:
        if name != "ncbayes":
            whole, kept = rates["ncbayes"][1] / rates[name][1]
            sentences.append(
                f"Density over time, against {name}: ncbayes has {digits(whole)} times as many "
                "effective draws a second of the worst quantity over the whole run, "
                f"{digits(kept)} times of kept draws alone."
            )
    return sentences


def density(simulated: Any, at: np.ndarray, name: str, sizes: Sizes, seed: int) -> np.ndarray:
    """The estimate (time, point) by one of ``SETTINGS``."""
    settings = SETTINGS[name]
    if settings is None:
        stamps = np.unique(simulated.times)
        groups = [simulated.points[simulated.times == t] for t in stamps]
        return np.array([gaussian_kde(own.T)(at.T) for own in groups])
    tune, draws = sizes.density_sweeps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit_density_over_time(
            simulated.points, simulated.times, tune=tune, draws=draws, chains=1, cores=1,
            seed=seed, progress=False, **settings,
        )  # fmt: skip
    return ncb.densities.density_draws(posterior, at).to_numpy().mean(axis=0)


def measured(scenario: int, sizes: Sizes, seed: int) -> dict[str, tuple[float, float]]:
    """ABE and seconds of every method on one data set."""
    simulated = SCENARIOS[scenario](sizes.times_per_density, sizes.points_per_time, seed=seed)
    at = ncb.metrics.evaluation_points(simulated.points, seed=seed)
    volume = float(np.exp(ncb.metrics.rectangle(simulated.points).log_volume))
    truth = np.array([simulated.density(t, at) for t in np.unique(simulated.times)])
    found = {}
    for name in SETTINGS:
        began = clock()
        with threadpool_limits(1):
            estimate = density(simulated, at, name, sizes, seed)
        seconds = clock() - began
        found[name] = ncb.metrics.absolute_error(estimate, truth, volume), seconds
    return found


def errors(sizes: Sizes, say: Say) -> Part:
    """Table 4."""
    rows, ratios, reading = [], {}, []
    for scenario in SCENARIOS:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in SETTINGS}
        for seed in range(1, sizes.data_sets + 1):
            say(f"density, errors: scenario {scenario}, data set {seed} of {sizes.data_sets}")
            for name, pair in measured(scenario, sizes, seed).items():
                found[name].append(pair)
        arrays = {name: np.array(pairs) for name, pairs in found.items()}
        base = next(iter(arrays.values()))
        for name, each in arrays.items():
            factors = each.mean(axis=0) / base.mean(axis=0)
            marks = [""] * 2 if each is base else [digits(value) for value in factors]
            cells = with_error(each[:, 0]), marks[0], digits(each[:, 1].mean()), marks[1]
            rows.append([str(scenario), name, *cells])
            if each is not base:
                for label, value in zip(("ABE", "seconds"), factors, strict=True):
                    ratios[f"density scenario {scenario}, {label}, {name}"] = value
        reading.append(_below(scenario, arrays))
    header = ["scenario", "method", "ABE", "ratio", "seconds", "ratio"]
    text = f"{_errors_intro(sizes)}\n\n{table(header, rows)}"
    return Part("4. Density over time: errors", text, ratios, reading)


def _below(scenario: int, arrays: dict[str, np.ndarray]) -> str:
    kernels = arrays[KDE]
    parts = [
        f"{name}: {each[:, 0].mean():.3f}, below KDE in {np.sum(each[:, 0] < kernels[:, 0])} of "
        f"{len(each)} data sets, {digits(each[:, 1].mean())} s"
        for name, each in arrays.items()
        if name != KDE
    ]
    return (
        f"Density, scenario {scenario}, ABE: {'; '.join(parts)}; KDE: {kernels[:, 0].mean():.3f}, "
        f"{digits(kernels[:, 1].mean())} s."
    )


def _errors_intro(sizes: Sizes) -> str:
    tune, draws = sizes.density_sweeps
    return (
        f"Both scenarios of the paper, T = {sizes.times_per_density}, n = {sizes.points_per_time} "
        f"points a time, {sizes.data_sets} data sets (seeds 1 to {sizes.data_sets}): the paper's "
        "ABE, the integrated absolute error at 500 points of the data's rectangle, mean and "
        f"standard error. One chain of {tune} + {draws} sweeps; seconds with reading the density "
        "off the draws. The paper's settings: common noise, as many noise points as data, "
        "the paper's random walk, sampled by ncbayes. KDE: `scipy.stats.gaussian_kde` with its own "
        "bandwidth; it borrows nothing from other times and has no intervals. Ratios are by the "
        "first row of the scenario, above 1 where that row is better."
    )
