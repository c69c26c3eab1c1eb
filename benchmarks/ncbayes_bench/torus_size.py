"""What a sweep of a sparse torus graph costs as graphs grow, in time and memory.

    python -m ncbayes_bench.torus_size [--plot FILE] [--large] [--brain]

Without flags two tables: a sweep at 30 angles, n = 1000, nu = 5 by our engine and by a dense Gram
matrix with its Cholesky factor (the paper's algorithm, supplement S2.2, in plain NumPy), on the
same points, one BLAS thread, in one run; and the seconds of a sweep against the number of angles
and of points, with the slopes of their logarithms; --plot draws that. --large and --brain each run
a whole fit instead: 61 angles, n = 1000, two chains; 24 angles, n = 840, four chains; both nu = 5,
1000 + 2000 sweeps, two cores. Their memory is that of the process and all its children at its
largest: proportional set sizes (shared pages counted once) by psutil every half second, resident
sizes where there are none.

Data: random graphs of the paper's kind, one in ten pairs an edge, independent rows, uniform noise.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ncbayes as ncb
from ncbayes_bench.paper_gibbs import TorusState, torus_sweep
from ncbayes_bench.pooled import Pooled, pooled

NODES = (12, 20, 30, 45, 61)
ROWS = (125, 250, 500, 1000, 2000)
RATIO = 5.0
# A dense sweep beyond this many angles takes more than a second.
MOST_DENSE = 30


def bordered(contrast: Pooled) -> np.ndarray:
    """The statistics and a column of ones."""
    return np.column_stack([contrast.statistics, np.ones(len(contrast.offset))])


def dense_sweep(
    contrast: Pooled, design: np.ndarray, state: TorusState, rng: np.random.Generator
) -> TorusState:
    """One sweep of the paper's algorithm, with its slab of 1."""
    return torus_sweep(design, contrast.offset, contrast.is_data, contrast.runs, state, rng)


def first_state(posterior: ncb.Posterior) -> TorusState:
    """Where our chain ended."""
    last = posterior.data["posterior"].to_dataset().isel(chain=0, draw=-1)
    last_c = posterior.data["normalizer"]["contrast_log_z"].isel(chain=0, draw=-1)
    coef = np.append(last["theta"].to_numpy().ravel(), -last_c.to_numpy())
    local = last["theta.local"].to_numpy().ravel() ** 2
    tau = float(last["theta.tau"].to_numpy()[0]) ** 2
    return TorusState(coef, local, 1 + 1 / local, tau, 1 + 1 / tau)


def fitted(simulated: Any, **settings: Any) -> ncb.Posterior:
    """A fit against uniform noise, by default short and of one chain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            simulated.model,
            simulated.data,
            noise=ncb.noise.Uniform(simulated.model.space),
            noise_ratio=RATIO,
            seed=1,
            progress=False,
            **{"prior": ncb.priors.Horseshoe(), "chains": 1, "cores": 1, **settings},
        )


def graph(nodes: int, rows: int) -> Any:
    """A random graph with as many rows of data."""
    return ncb.datasets.torus_random(rows, nodes=nodes, independent=True, seed=1)


def our_seconds(posterior: ncb.Posterior) -> float:
    """Seconds of a sweep, the mean."""
    return float(posterior.data["sample_stats"]["sweep_seconds"].mean())


def dense_seconds(posterior: ncb.Posterior, model: Any, sweeps: int) -> float:
    """Seconds of a dense sweep on the same points: the mean after a first one."""
    contrast, state = pooled(posterior, model), first_state(posterior)
    design, rng = bordered(contrast), np.random.default_rng(0)
    with threadpool_limits(1):
        state = dense_sweep(contrast, design, state, rng)
        began = time.perf_counter()
        for _ in range(sweeps):
            state = dense_sweep(contrast, design, state, rng)
        return (time.perf_counter() - began) / sweeps


def sweep_table(nodes: int = 30, rows: int = 1000, draws: int = 200, dense: int = 10) -> str:
    """Part (a): a sweep by both methods, and the ratio."""
    simulated = graph(nodes, rows)
    lines = ["| prior | points | parameters | ours, ms | dense, ms | ratio |", "|---" * 6 + "|"]
    for form in ("likelihood", "conditional"):
        prior = ncb.priors.Horseshoe(slab_form=form)
        posterior = fitted(simulated, prior=prior, tune=150, draws=draws)
        one, other = our_seconds(posterior), dense_seconds(posterior, simulated.model, dense)
        points, size = int((1 + RATIO) * rows), len(simulated.theta) + 1
        numbers = f"{1e3 * one:.3g} | {1e3 * other:.3g} | {other / one:.1f}"
        lines.append(f"| {form} | {points} | {size} | {numbers} |")
    return "\n".join([*lines, "\nThe dense sweep is one of the first prior in both rows."])


@dataclass(frozen=True)
class Cost:
    """Seconds of a sweep of one problem; ``dense`` is nan where it was not measured."""

    nodes: int
    points: int
    parameters: int
    ours: float
    dense: float


def cost(nodes: int, rows: int, draws: int = 60) -> Cost:
    """A short run of one problem."""
    simulated = graph(nodes, rows)
    posterior = fitted(simulated, tune=150, draws=draws)
    dense = np.nan
    if nodes <= MOST_DENSE:
        dense = dense_seconds(posterior, simulated.model, 3)
    points = int((1 + RATIO) * rows)
    return Cost(nodes, points, len(simulated.theta) + 1, our_seconds(posterior), dense)


def slope(x: list[float], y: list[float]) -> float:
    """Of the logarithms, by least squares over what was measured."""
    logs = np.log([pair for pair in zip(x, y, strict=True) if np.isfinite(pair).all()])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]) if len(logs) > 1 else np.nan


def cost_table(by_nodes: list[Cost], by_points: list[Cost]) -> str:
    """Part (d): all costs, and the slopes."""
    lines = ["| angles | points | parameters | ours, ms | dense, ms | ratio |", "|---" * 6 + "|"]
    for each in [*by_nodes, *by_points]:
        dense = "" if np.isnan(each.dense) else f"{1e3 * each.dense:.3g}"
        ratio = "" if np.isnan(each.dense) else f"{each.dense / each.ours:.1f}"
        lines.append(
            f"| {each.nodes} | {each.points} | {each.parameters} | {1e3 * each.ours:.3g} "
            f"| {dense} | {ratio} |"
        )
    for name, costs in {"nodes": by_nodes, "points": by_points}.items():
        x = [getattr(each, name) for each in costs]
        found = [slope(x, [getattr(each, who) for each in costs]) for who in ("ours", "dense")]
        lines.append(f"\nslope in {name}: ours {found[0]:.2f}, dense {found[1]:.2f}")
    return "\n".join(lines)


def picture(by_nodes: list[Cost], by_points: list[Cost], path: Path) -> None:
    """Seconds of a sweep against angles and points, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    panels = [
        (by_nodes, "nodes", f"angles ({by_nodes[0].points} points)"),
        (by_points, "points", f"points ({by_points[0].nodes} angles)"),
    ]
    for axis, (costs, name, label) in zip(axes, panels, strict=True):
        x = [getattr(each, name) for each in costs]
        axis.loglog(x, [1e3 * each.ours for each in costs], "o-", label="ncbayes")
        axis.loglog(x, [1e3 * each.dense for each in costs], "s--", label="dense Cholesky")
        axis.set_xticks(x, [str(each) for each in x], minor=False)
        axis.minorticks_off()
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("a sweep, ms")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def memory() -> float:
    """Bytes of this process and its children now."""
    import psutil

    process, total = psutil.Process(os.getpid()), 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            found = each.memory_full_info()
        except psutil.Error:  # it has just ended
            continue
        total += getattr(found, "pss", found.rss)
    return total


def with_peak(function: Callable[[], Any], every: float = 0.5) -> tuple[float, float, float]:
    """Seconds of a call, bytes before it, and the most bytes during it."""
    before = memory()
    most, ended = [before], threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            most.append(memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.perf_counter()
    try:
        function()
    finally:
        ended.set()
        watcher.join()
    return time.perf_counter() - began, before, max(*most, memory())


def whole_fit(
    nodes: int, rows: int, chains: int, tune: int = 1000, draws: int = 2000, cores: int = 2
) -> str:
    """Parts (b) and (c): minutes and peak memory of a fit."""
    simulated = graph(nodes, rows)
    seconds, before, most = with_peak(
        lambda: fitted(simulated, tune=tune, draws=draws, chains=chains, cores=cores)
    )
    return (
        f"{nodes} angles, n = {rows}, nu = {RATIO:g}, {chains} chains of {tune} + {draws} sweeps, "
        f"cores={cores}: {seconds / 60:.1f} minutes, {most / 1e6:.0f} MB at most, "
        f"{before / 1e6:.0f} MB before it began"
    )


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the second table")
    parser.add_argument("--large", action="store_true", help="a whole fit of 61 angles instead")
    parser.add_argument("--brain", action="store_true", help="a whole fit of 24 angles instead")
    options = parser.parse_args()
    if options.large:
        print(whole_fit(61, 1000, chains=2), flush=True)
    if options.brain:
        print(whole_fit(24, 840, chains=4), flush=True)
    if options.large or options.brain:
        return
    print(sweep_table() + "\n", flush=True)
    by_nodes = [cost(nodes, 1000) for nodes in NODES]
    by_points = [cost(30, rows) for rows in ROWS]
    print(cost_table(by_nodes, by_points))
    if options.plot:
        picture(by_nodes, by_points, options.plot)


if __name__ == "__main__":
    main()
