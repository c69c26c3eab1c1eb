"""Table 5 of the comparison: processor time of a sweep against N, p, d and T, with its picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ncbayes as ncb
from ncbayes_bench.density import by_time
from ncbayes_bench.density_mixing import Problem
from ncbayes_bench.page import SEED, Part, Say, Sizes, clock, digits, table
from ncbayes_bench.paper_gibbs import density_start, density_sweep
from ncbayes_bench.pooled import pooled
from ncbayes_bench.torus_size import RATIO, bordered, dense_sweep, first_state, fitted, graph, slope

# Sweeps in which trajectories find their step size.
TUNE = 150
# A dense sweep with more parameters takes more than a second.
MOST_DENSE = 2000
PICTURE = "comparison.png"
# Okabe and Ito's blue and vermilion.
COLOURS = {"ncbayes": "#0072B2", "dense NumPy": "#D55E00"}


@dataclass(frozen=True)
class Cost:
    """Seconds of a sweep of one problem; ``dense`` is nan where it was not measured."""

    size: int
    points: int
    parameters: int
    ours: float
    dense: float


@dataclass(frozen=True)
class Panel:
    """What is varied, what is not, and the costs."""

    name: str
    fixed: str
    costs: Sequence[Cost]

    def both(self) -> list[Cost]:
        """Where both were measured."""
        return [each for each in self.costs if not np.isnan(each.dense)]

    @property
    def slopes(self) -> tuple[float, float]:
        """Powers of the size that the costs grow by, where both were measured."""
        both = self.both()
        sizes = [float(each.size) for each in both]
        return slope(sizes, [c.ours for c in both]), slope(sizes, [c.dense for c in both])


def our_seconds(fit: Callable[[int], ncb.Posterior], seconds: float) -> tuple[float, Any]:
    """Of a sweep, and the posterior; a short fit tells how many draws the measured one has."""
    rough = float(fit(10).data["sample_stats"]["sweep_seconds"].mean())
    draws = int(np.clip(seconds / rough, 20, 1000))
    wall, began = time.perf_counter(), clock()
    posterior = fit(draws)
    spent, wall = clock() - began, time.perf_counter() - wall
    # Sweeps are timed by the wall clock, so they get their share of the processor's seconds.
    share = float(posterior.data["sample_stats"]["sweep_seconds"].mean()) / wall
    return share * spent, posterior


def dense_seconds(step: Callable[[Any], Any], state: Any, seconds: float) -> float:
    """Of a dense sweep: the mean of three or more, after a first one."""
    with threadpool_limits(1):
        state, count = step(state), 0
        began = clock()
        while count < 3 or clock() - began < seconds / 2:
            state, count = step(state), count + 1
        return (clock() - began) / count


def torus_cost(size: int, model: Any, data: np.ndarray, seconds: float) -> Cost:
    """A torus graph with five times as much noise, under the prior that both sample."""
    problem = SimpleNamespace(model=model, data=data)
    prior = ncb.priors.Horseshoe(slab_form="likelihood")
    own, posterior = our_seconds(
        lambda draws: fitted(problem, prior=prior, tune=TUNE, draws=draws), seconds
    )
    contrast, rng = pooled(posterior, model), np.random.default_rng(SEED)
    parameters, dense = contrast.statistics.shape[1] + 1, np.nan
    if parameters <= MOST_DENSE:
        design = bordered(contrast)
        dense = dense_seconds(
            lambda state: dense_sweep(contrast, design, state, rng), first_state(posterior), seconds
        )
    return Cost(size, len(contrast.offset), parameters, own, dense)


def density_cost(times: int, n: int, seconds: float) -> Cost:
    """A density over so many times, with as much noise as data."""
    problem, rng = Problem(SEED, times, n), np.random.default_rng(SEED)
    engine = "auto"
    own, posterior = our_seconds(lambda draws: problem.fit(engine, TUNE, draws), seconds)
    parts, basis = by_time(posterior, problem), posterior.theta.shape[3]
    dense = dense_seconds(
        lambda state: density_sweep(*parts, state, rng), density_start(times, basis), seconds
    )
    return Cost(times, 2 * times * n, times * (basis + 1), own, dense)


def panels(sizes: Sizes, say: Say) -> list[Panel]:
    """All costs."""
    noise, rows, seconds = 1 + RATIO, sizes.varied_rows, sizes.seconds

    def told(name: str, size: int) -> None:
        say(f"cost of a sweep: {name} = {size}")

    found: dict[str, list[Cost]] = {name: [] for name in "NpdT"}
    for size in sizes.points:
        told("N", size)
        simulated = graph(sizes.nodes, round(size / noise))
        found["N"].append(torus_cost(size, simulated.model, simulated.data, seconds))
    simulated = graph(sizes.varied_nodes, rows)
    pairs = np.random.default_rng(SEED).permutation(len(simulated.model.edges))
    for count in sizes.edges:
        edges = [simulated.model.edges[k] for k in sorted(pairs[:count])]
        model = ncb.models.TorusGraph(sizes.varied_nodes, edges=edges)
        size = 1 + sum(map(len, model.groups.values()))
        told("p", size)
        found["p"].append(torus_cost(size, model, simulated.data, seconds))
    for size in sizes.angles:
        told("d", size)
        simulated = graph(size, rows)
        found["d"].append(torus_cost(size, simulated.model, simulated.data, seconds))
    for size in sizes.times:
        told("T", size)
        found["T"].append(density_cost(size, sizes.points_per_time, seconds))
    points = round(rows * noise)
    return [
        Panel("points N", f"torus graph, d = {sizes.nodes}", found["N"]),
        Panel("parameters p", f"torus graph, d = {sizes.varied_nodes}, N = {points}", found["p"]),
        Panel("angles d", f"torus graph, all pairs, N = {points}", found["d"]),
        Panel("times T", f"density, n = m = {sizes.points_per_time} a time", found["T"]),
    ]


def costs(sizes: Sizes, folder: Path, say: Say) -> Part:
    """Table 5, and its picture."""
    found = panels(sizes, say)
    picture(found, folder / PICTURE)
    rows, slopes, ratios = [], [], {}
    for panel in found:
        for each in panel.costs:
            ratio = each.dense / each.ours
            cells = [digits(1e3 * each.ours), digits(1e3 * each.dense), digits(ratio)]
            sizes_of = [str(value) for value in (each.size, each.points, each.parameters)]
            rows.append([panel.name, *sizes_of, *cells])
            if not np.isnan(ratio):
                ratios[f"a sweep, {panel.name} = {each.size}, dense NumPy"] = ratio
        slopes.append([panel.name, panel.fixed, *(f"{each:.2f}" for each in panel.slopes)])
    header = ["varied", "size", "points", "parameters", "ncbayes, ms", "dense NumPy, ms", "ratio"]
    text = "\n\n".join([
        _INTRO, table(header, rows), f"![Milliseconds of a sweep against N, p, d and T]({PICTURE})",
        "The power of the size that a sweep's cost grows by, by least squares on logarithms, over "
        "the sizes where both were measured:",
        table(["varied", "fixed", "ncbayes", "dense NumPy"], slopes),
    ])  # fmt: skip
    reading = [_reading(panel) for panel in found if panel.both()]
    return Part("5. Cost of a sweep", text, ratios, reading)


_INTRO = (
    "Milliseconds of a sweep by ncbayes with its defaults, a trajectory of some ten gradients, and "
    "by the paper's samplers in dense NumPy, on the same points. Torus graphs (random graphs, "
    "uniform noise, "
    f'nu = {RATIO:g}, `Horseshoe(slab_form="likelihood")`): against the points, against the '
    "parameters with ever more pairs in the model, and against the angles with all pairs. "
    f"Densities: against the times. Dense NumPy is left out beyond {MOST_DENSE} parameters of a "
    "torus graph. A sweep is not a draw: tables 1 and 3 tell how much a sweep of each is worth."
)


def _reading(panel: Panel) -> str:
    last, (own, dense) = panel.both()[-1], panel.slopes
    return (
        f"Cost of a sweep against the {panel.name} ({panel.fixed}): to the power {own:.2f}, dense "
        f"NumPy {dense:.2f}. At the largest size measured for both, {last.size}, dense NumPy takes "
        f"{digits(last.dense / last.ours)} times as long."
    )


def picture(found: Sequence[Panel], path: Path) -> None:
    """Milliseconds against each size, all axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.4), sharey=True, layout="constrained")
    for axis, panel in zip(axes.flat, found, strict=True):
        x = [each.size for each in panel.costs]
        series = {
            "ncbayes": ("o-", [1e3 * each.ours for each in panel.costs]),
            "dense NumPy": ("s--", [1e3 * each.dense for each in panel.costs]),
        }
        for name, (mark, y) in series.items():
            axis.loglog(x, y, mark, color=COLOURS[name], label=name)
        axis.set_xticks(x, [f"{each:,}" for each in x])
        axis.set_xticks([], minor=True)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel(panel.name)
        axis.set_title(panel.fixed, fontsize="medium")
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("processor time of a sweep, ms")
    axes[0, 0].legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
