"""Phases of a recording from four regions of the brain: Figures 4 to 7 (section 5.4).

From a MATLAB file with the angles ``anglebeta``, channels x trials, and the names ``subregions`` of
the channels' regions: CA3, DG, Sub and PFCv. The recording itself may be passed on by its owners
only; without a file there is a simulated stand-in of the same shape, which the figures then say.

NC-Bayes has the regularized grouped horseshoe with tau fixed by the paper's rule and noise updated
with alpha = 0.1, H-Bayes the plain grouped horseshoe, both as in the tables. The paper does not say
how many noise points there are; here there are five for each row of data.

What is found in a stand-in depends on how it was made, and the paper's claims are about the
recording. In trials of 200 + 400 sweeps with couplings of 1, 1.5 and 2 within regions, NC-Bayes
found 32, 32 and 24 of the 32 true edges and 38, 19 and 7 others; with one noise point for each row
32, 32 and 29, and 77, 48 and 31 others; H-Bayes with w = 0.2 found all 32, and 0, 2 and 17 others.
So in the stand-in H-Bayes with w = 0.2 is not the denser one, as the paper has it of the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

import ncbayes as ncb
from ncbayes_paper import torus_tables
from ncbayes_paper.posteriors import convergence, kept, worst_r_hat
from ncbayes_paper.study import Figure, Settings

SWEEPS = (1000, 2000)
CHAINS = 2
SEED = 1
RATIO = 5
# The paper's: an edge has a posterior median above the threshold, in size.
THRESHOLD, LEVEL = 0.02, 0.5
REGIONS = ("CA3", "DG", "Sub", "PFCv")
# Pairs of regions that the paper finds connected, and those that it does not.
CONNECTED = (("CA3", "PFCv"), ("Sub", "PFCv"), ("CA3", "DG"), ("DG", "Sub"))
APART = (("DG", "PFCv"), ("CA3", "Sub"))
METHODS = {
    "NC-Bayes": None,
    "H-Bayes, w = 0.2": 0.2,
    "H-Bayes, w = 0.5": 0.5,
    "H-Bayes, w = 1": 1.0,
}
STAND_IN = "simulated stand-in, not the recording"
# The stand-in: trials, channels a region, and the couplings of neighbours within a region and of
# channels in connected regions, as concentration and lag.
TRIALS, CHANNELS = 840, 6
WITHIN, BETWEEN = (1.5, 0.2), (0.5, 0.6)
# What the coefficients of an edge are called, with colours and marks that anyone can tell apart.
KINDS = {
    "cos_minus": ("cos of the difference", "#0072B2", "o"),
    "sin_minus": ("sin of the difference", "#D55E00", "s"),
    "cos_plus": ("cos of the sum", "#009E73", "^"),
    "sin_plus": ("sin of the sum", "#6B6B6B", "D"),
}


@dataclass(frozen=True, eq=False)
class Recording:
    """Angles with the names and regions of their channels; of a stand-in also what is true."""

    angles: ncb.datasets.PhaseAngles
    model: ncb.models.TorusGraph
    theta: np.ndarray | None = None

    @property
    def edges(self) -> list[tuple[str, str]] | None:
        """The true edges, where they are known."""
        if self.theta is None:
            return None
        sizes = sum(np.abs(self.theta[columns]) for columns in self.model.edge_columns.values())
        return [edge for edge, size in zip(self.model.edges, sizes, strict=True) if size > 0]


def loaded(settings: Settings) -> Recording:
    """The recording in the MATLAB file, or the stand-in."""
    file = settings.files.get(".mat")
    if file is None:
        return stand_in()
    angles = ncb.datasets.load_phase_angles(file)
    missing = [name for name in REGIONS if name not in angles.regions.values()]
    if missing:
        raise ncb.InputError(
            f"{file.name} must have channels in {', '.join(REGIONS)}, got none in "
            f"{', '.join(missing)}: pass the paper's recording, or no file for a simulated one"
        )
    return Recording(angles, ncb.models.TorusGraph(angles.nodes))


def stand_in() -> Recording:
    """Angles of a sparse torus graph with the paper's pattern of connected regions."""
    numbers = range(1, CHANNELS + 1)
    nodes = tuple(f"{region}.{k}" for region in REGIONS for k in numbers)
    model = ncb.models.TorusGraph(nodes)
    links = {
        (f"{region}.{k}", f"{region}.{k + 1}"): WITHIN for region in REGIONS for k in numbers[:-1]
    }
    links |= {
        (f"{one}.{k}", f"{other}.{CHANNELS + 1 - k}"): BETWEEN
        for one, other in CONNECTED
        for k in numbers[::2]
    }
    theta = np.zeros(sum(map(len, model.groups.values())))
    for (concentration, lag), edge in zip(links.values(), links, strict=True):
        place, columns = model.edges.index(edge), model.edge_columns
        theta[columns["cos_minus"][place]] = concentration * np.cos(lag)
        theta[columns["sin_minus"][place]] = concentration * np.sin(lag)
    data = model.sample(theta, TRIALS, np.random.default_rng(SEED))
    regions = {node: node.split(".")[0] for node in nodes}
    return Recording(ncb.datasets.PhaseAngles(data, nodes, regions), model, theta)


def options(method: str, rows: int, channels: int) -> dict[str, Any]:
    """The options of ``fit``."""
    rate = METHODS[method]
    if rate is not None:
        return torus_tables.scored(rate)
    noise = torus_tables.methods(ncb.spaces.Torus(channels))["nu=5 updated"]["noise"]
    tau = torus_tables.fixed_tau(channels, (1 + RATIO) * rows)
    return torus_tables.contrastive(RATIO, noise, tau=tau)


def fitted(settings: Settings, recording: Recording, method: str) -> ncb.Posterior:
    """The posterior, kept: Figures 5, 6 and 7 share their fits."""
    data, sweeps = recording.angles.data, settings.sweeps or SWEEPS
    given = {**options(method, *data.shape), "chains": CHAINS, "seed": SEED}
    tune, draws = sweeps
    name = f"recording-{method.lower().replace(', w = ', '-')}"

    def fit() -> ncb.Posterior:
        return ncb.fit(
            recording.model, data, tune=tune, draws=draws, cores=settings.cores, progress=False,
            **given,
        )  # fmt: skip

    return kept(settings.folder, name, sweeps, (recording.angles.nodes, data, given), fit)


def pairs(settings: Settings) -> tuple[Any, str]:
    """Figure 4: the first channel of each region, two by two."""
    recording = loaded(settings)
    nodes, regions = recording.angles.nodes, recording.angles.regions
    columns = [next(node for node in nodes if regions[node] == name) for name in REGIONS]
    figure = ncb.plots.pairs(recording.angles.data, columns, nodes)
    caption = (
        f"Phases of one channel from each of {_listed(REGIONS)}, two by two, "
        f"{len(recording.angles.data)} trials. Above the diagonal the lengths of the mean "
        "resultants of the difference and the sum of the two phases."
    )
    return _told(figure, caption, recording)


def network(method: str, settings: Settings) -> tuple[Any, str]:
    """Figures 5 and 6: the graph that a method finds."""
    recording = loaded(settings)
    posterior = fitted(settings, recording, method)
    figure = ncb.plots.network(
        posterior, threshold=THRESHOLD, regions=recording.angles.regions,
        true_edges=recording.edges,
    )  # fmt: skip
    figure.suptitle(f"{method}: {figure.get_suptitle()}")
    table = ncb.graphs.edges(posterior, threshold=THRESHOLD)
    counts = ncb.graphs.regions(posterior, recording.angles.regions, threshold=THRESHOLD)
    between = {
        frozenset((one, other)): int(selected)
        for one, other, selected in zip(
            counts["region1"], counts["region2"], counts["selected"], strict=True
        )
    }
    found = ", ".join(
        f"{one}-{other} {between[frozenset((one, other))]}" for one, other in (*CONNECTED, *APART)
    )
    caption = (
        f"The torus graph of {len(recording.angles.nodes)} channels by {method}: "
        f"{int(table['selected'].sum())} of {len(table)} edges have a posterior median above "
        f"{THRESHOLD} in size. Between regions: {found}. {_truth(recording, table)}{_noise(method)}"
        f"{convergence(posterior)}"
    )
    return _told(figure, caption, recording)


def intervals(settings: Settings) -> tuple[Any, str]:
    """Figure 7: medians and intervals of the coefficients of some edges, by all methods."""
    recording = loaded(settings)
    fits = {method: fitted(settings, recording, method) for method in METHODS}
    tables = {method: ncb.graphs.edges(each, level=LEVEL) for method, each in fits.items()}
    edges = [_strongest(tables["NC-Bayes"], pair, recording) for pair in (*CONNECTED[:3], *APART)]
    figure, axes = plt.subplots(
        2, 2, figsize=(9, 8.2), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (method, table) in zip(axes.ravel(), tables.items(), strict=True):
        _draw_intervals(axis, table.set_index(["node1", "node2"]).loc[edges], recording)
        axis.set_title(method)
    axes[0, 0].set_yticks(range(len(edges)), [f"{one}\n{other}" for one, other in edges])
    axes[0, 0].set_ylim(len(edges) - 0.5, -0.5)
    for axis in axes[-1]:
        axis.set_xlabel(f"posterior median and {LEVEL:.0%} interval")
    handles = [
        Line2D([], [], color=colour, marker=mark, label=words)
        for words, colour, mark in KINDS.values()
    ]
    if recording.theta is not None:
        handles.append(Line2D([], [], color="black", marker="|", markersize=9, linestyle="none",
                              label="truth"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False,
                  fontsize="small")  # fmt: skip
    caption = (
        f"Posterior medians and {LEVEL:.0%} intervals of the four coefficients of five edges, by "
        "NC-Bayes and by H-Bayes with three learning rates. Above the line three pairs of regions "
        "that the paper finds connected, below two that it does not; of each pair the strongest "
        f"edge by NC-Bayes. Mean length of all intervals: {_lengths(tables)}. "
        f"Worst R-hat: {', '.join(f'{worst_r_hat(each):.3f} ({m})' for m, each in fits.items())}."
    )
    return _told(figure, caption, recording)


def _strongest(table: Any, pair: tuple[str, str], recording: Recording) -> tuple[str, str]:
    """The first edge between two regions in a table that has the strongest first."""
    regions = recording.angles.regions
    for one, other in zip(table["node1"], table["node2"], strict=True):
        if {regions[one], regions[other]} == set(pair):
            return one, other
    raise AssertionError(f"every model has edges between {pair}")


def _draw_intervals(axis: Any, table: Any, recording: Recording) -> None:
    axis.axvline(0, color="0.5", linewidth=0.8, zorder=0)
    axis.axhline(len(table) - len(APART) - 0.5, color="0.5", linewidth=0.8, linestyle="--")
    places = [recording.model.edges.index(edge) for edge in table.index]
    steps = np.linspace(-0.27, 0.27, len(KINDS))
    for step, (kind, (_, colour, mark)) in zip(steps, KINDS.items(), strict=True):
        rows = np.arange(len(table)) + step
        axis.hlines(rows, table[f"{kind}_low"], table[f"{kind}_high"], color=colour, linewidth=2)
        axis.scatter(table[kind], rows, s=24, color=colour, marker=mark, zorder=3)
        if recording.theta is not None:
            true = recording.theta[recording.model.edge_columns[kind][places]]
            axis.scatter(true, rows, s=70, color="black", marker="|", zorder=4)
    axis.tick_params(axis="y", length=0)


def _lengths(tables: dict[str, Any]) -> str:
    found = []
    for method, table in tables.items():
        lengths = [(table[f"{kind}_high"] - table[f"{kind}_low"]).mean() for kind in KINDS]
        found.append(f"{np.mean(lengths):.3f} ({method})")
    return ", ".join(found)


def _noise(method: str) -> str:
    if METHODS[method] is not None:
        return ""
    return f"{RATIO} noise points for each row of data; the paper does not say how many. "


def _truth(recording: Recording, table: Any) -> str:
    """How many of the selected edges are true, where that is known."""
    if recording.edges is None:
        return ""
    chosen = zip(table["node1"], table["node2"], table["selected"], strict=True)
    selected = [(one, other) for one, other, picked in chosen if picked]
    right = len(set(selected) & set(recording.edges))
    return (
        f"Of the {len(recording.edges)} true edges {right} are found; false ones: "
        f"{len(selected) - right}. The share of false ones in the title counts norms below "
        f"{THRESHOLD} only. The couplings of the stand-in, {WITHIN[0]} within regions and "
        f"{BETWEEN[0]} between, are our choice, and other ones give other numbers. "
    )


def _told(figure: Any, caption: str, recording: Recording) -> tuple[Any, str]:
    """The figure and its caption, both of which say so if the data are simulated."""
    if recording.theta is None:
        return figure, caption
    figure.suptitle("\n".join(filter(None, [STAND_IN, figure.get_suptitle()])), fontsize="medium")
    return figure, f"{caption} Data: {STAND_IN}."


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


_DRAWN: dict[str, tuple[str, Callable[[Settings], tuple[Any, str]]]] = {
    "figure4": ("Phases of four channels, two by two", pairs),
    "figure5": ("The torus graph of the recording by NC-Bayes", partial(network, "NC-Bayes")),
    "figure6": (
        "The torus graph of the recording by H-Bayes, w = 0.2",
        partial(network, "H-Bayes, w = 0.2"),
    ),
    "figure7": ("Coefficients of five edges by NC-Bayes and H-Bayes", intervals),
}
ITEMS = {name: Figure(name, title, drawn) for name, (title, drawn) in _DRAWN.items()}
