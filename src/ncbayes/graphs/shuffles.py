"""Do two conditions differ by more than conditions whose labels were shuffled?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.contrast import model_name
from ncbayes.couplings import Graph, graph_of
from ncbayes.diagnostics import FitWarning
from ncbayes.graphs.differences import Selection, contrast, two_labels
from ncbayes.inputs import (
    Seed,
    checked_count,
    checked_data,
    checked_entropy,
    checked_model,
    checked_progress,
)
from ncbayes.progress import Progress, watched

if TYPE_CHECKING:
    import pandas as pd

# What the two parts of a mapping of shuffled rows are called.
LABELS = ("first", "second")


@dataclass(frozen=True, eq=False, repr=False)
class PermutationCheck:
    """Differences as observed, and with shuffled labels.

    ``table`` has one row an edge of the model, the surest difference first: ``p_value``, the share
    of shuffles (the observed labels among them) with as much evidence for a difference of this
    edge, and ``p_familywise``, for some edge. ``observed`` is how many edges are selected,
    ``shuffled`` (shuffle,) how many are where labels mean nothing. ``p_value`` is that of the edge
    with the most evidence, ``p_value_of_count`` that of the number selected.
    """

    table: pd.DataFrame
    observed: int
    shuffled: NDArray[np.intp]
    p_value: float
    p_value_of_count: float

    def __repr__(self) -> str:
        return (
            f"<PermutationCheck: {self.observed} of {len(self.table)} edges selected, "
            f"{self.shuffled.mean():.2g} in the mean of {len(self.shuffled)} shuffles; p = "
            f"{self.p_value:.3g} for the surest difference, {self.p_value_of_count:.3g} for the "
            "number selected>"
        )


def permutation_check(
    model: Any,
    data: Mapping[str, Any],
    groups: tuple[str, str] | None = None,
    *,
    shuffles: int | None = None,
    level: float = 0.9,
    control: str = "edge",
    refit: Mapping[str, Any] | None = None,
    seed: Seed = None,
    progress: Progress = None,
) -> PermutationCheck:
    """Compare the differences of two groups with those of shuffled labels.

    Rows of both groups are dealt out anew, in groups of the same sizes, ``shuffles`` times. If the
    labels mean nothing, the observed evidence is one among equals, so that the p values are exact,
    whatever the model, the prior, the sizes of the groups and the quality of the estimates; rows
    must be independent of each other. The groups must be alike in everything under the null: where
    only their margins differ, the check is approximate.

    Parameters
    ----------
    model, data
        A graphical model and a mapping from labels to points, as for ``fit``.
    groups
        The labels of the two groups; they may be left out where there are two.
    shuffles
        None: 999, or 19 with ``refit``, the fewest that allow a p value of .05.
    level, control
        As in ``contrast``, for the number of selected edges.
    refit
        None: score tests at a quick estimate from all rows (the pseudolikelihood of binary models,
        else a contrast with matched noise), which is made once; 999 shuffles of a dozen nodes take
        seconds. A mapping of arguments of ``fit``, such as ``{"draws": 500}`` or ``{}``: every
        shuffle is fitted and read by ``contrast``, which takes shuffles + 1 fits; it may hold
        ``rule`` and ``threshold`` of ``contrast``. Shuffles that ``fit`` refuses are dealt again.
    seed, progress
        As for ``fit``; progress counts shuffles.
    """
    model = checked_model(model)
    graph = graph_of(model)
    if graph is None or not len(graph.ends):
        raise InputError(
            "graphs.permutation_check needs a graphical model with edges, such as "
            f"ncbayes.models.TorusGraph(3), got {model_name(model)}"
        )
    count = (999 if refit is None else 19) if shuffles is None else shuffles
    checked_count("shuffles", count, 1)
    first, second = _two_groups(model, data, groups)
    rows = np.concatenate([first, second])
    rng = np.random.default_rng(checked_entropy(seed, None))
    options = dict(_checked_refit(refit))
    selection = Selection(
        options.pop("rule", "region"), options.pop("threshold", 0.0), level, control
    )
    selection.check()
    evidence: Evidence
    if refit is None:
        evidence = _quick(model, graph, rows, len(first), selection, rng)
    else:
        evidence = _refitted(model, graph, rows, len(first), selection, options, rng)
    return _compared(graph, *_dealt(evidence, len(rows), count, rng, checked_progress(progress)))


# Evidence for a difference, larger for more, and which edges are selected, given an order of rows.
Evidence = Callable[[NDArray[np.intp]], tuple[FloatArray, BoolArray]]


def _dealt(
    evidence: Evidence, rows: int, count: int, rng: np.random.Generator, progress: Progress
) -> tuple[FloatArray, BoolArray]:
    """Evidence and selections (1 + shuffle, edge), those of the observed labels first."""
    found, refused = [evidence(np.arange(rows))], 0
    with watched(1, count, progress, "shuffles") as board:
        while len(found) <= count:
            # Dealing again what can't be fitted leaves equals among equals: the observed can.
            try:
                found.append(evidence(rng.permutation(rows)))
            except InputError as error:
                refused += 1
                if refused > count:
                    raise InputError(
                        f"{refused} shuffles can't be fitted, the last one because {error}; leave "
                        "out columns that hardly vary, or check without refit"
                    ) from error
            board.report(0, len(found) - 1)
    return np.array([each for each, _ in found]), np.array([each for _, each in found])


def _compared(graph: Graph, evidence: FloatArray, selected: BoolArray) -> PermutationCheck:
    import pandas as pd

    largest = evidence.max(axis=1)
    each = (evidence >= evidence[0]).mean(axis=0)
    some = (largest[:, None] >= evidence[0]).mean(axis=0)
    order = np.lexsort([-evidence[0], each])
    table = pd.DataFrame(
        {
            "node1": [one for one, _ in graph.edges],
            "node2": [other for _, other in graph.edges],
            "selected": selected[0],
            "p_value": each,
            "p_familywise": some,
        }
    )
    counts = selected.sum(axis=1)
    return PermutationCheck(
        table.iloc[order].reset_index(drop=True),
        int(counts[0]),
        counts[1:],
        float((largest >= largest[0]).mean()),
        float((counts >= counts[0]).mean()),
    )


def _quick(
    model: Any,
    graph: Graph,
    rows: FloatArray,
    split: int,
    selection: Selection,
    rng: np.random.Generator,
) -> Evidence:
    """Score tests: squared lengths of the differences, in the metric of their covariance."""
    from scipy.stats import chi2

    from ncbayes.group_tests import influence

    of_edges = influence(model, rows, rng)[:, graph.columns]  # (row, edge, kind)
    of_edges = of_edges - of_edges.mean(axis=0)
    # The covariance of a difference of two means of rows dealt at random.
    scale = len(rows) / (split * (len(rows) - split) * (len(rows) - 1))
    covariance = scale * np.einsum("nek,nel->ekl", of_edges, of_edges)
    precision = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    weight = 1 / split + 1 / (len(rows) - split)  # both means follow from the first sum

    def evidence(order: NDArray[np.intp]) -> tuple[FloatArray, BoolArray]:
        change = weight * of_edges[order[:split]].sum(axis=0)
        distance = np.einsum("ek,ekl,el->e", change, precision, change)
        # Sums of the same rows in another order must tie.
        distance = np.round(distance, 9)
        return distance, selection.selected(chi2.sf(distance, len(graph.kinds)))

    return evidence


def _refitted(
    model: Any,
    graph: Graph,
    rows: FloatArray,
    split: int,
    selection: Selection,
    options: dict[str, Any],
    rng: np.random.Generator,
) -> Evidence:
    """Fits of both groups at once, read by ``contrast``."""
    from ncbayes.fitting import fit

    place = {pair: number for number, pair in enumerate(graph.edges)}

    def evidence(order: NDArray[np.intp]) -> tuple[FloatArray, BoolArray]:
        data = dict(zip(LABELS, (rows[order[:split]], rows[order[split:]]), strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            posterior = fit(
                model, data, seed=int(rng.integers(2**31)), **{"progress": False, **options}
            )
        table = contrast(posterior, groups=LABELS, **vars(selection))
        numbers = [place[pair] for pair in zip(table["node1"], table["node2"], strict=True)]
        found, selected = np.empty(len(place)), np.empty(len(place), dtype=bool)
        found[numbers], selected[numbers] = 1 - table["p_value"], table["selected"]
        return found, selected

    return evidence


def _two_groups(model: Any, data: Any, groups: Any) -> tuple[FloatArray, FloatArray]:
    if not isinstance(data, Mapping) or (groups is None and len(data) != 2):
        held = f"the labels {shown(list(data))}" if isinstance(data, Mapping) else shown(data)
        raise InputError(
            "data must map the labels of two groups to their points, such as {'task': x, 'rest': "
            f"y}}, or of more with groups=('task', 'rest'), got {held}"
        )
    labels = tuple(data) if groups is None else two_labels(groups)
    missing = [label for label in labels if label not in data]
    if missing or labels[0] == labels[1]:
        raise InputError(
            f"groups must be two different labels of the data, {shown(list(data))}, got "
            f"{shown(labels)}"
        )
    first, second = checked_data(model, {label: data[label] for label in labels}).values()
    return first, second


def _checked_refit(refit: Any) -> Mapping[str, Any]:
    if refit is not None and not isinstance(refit, Mapping):
        raise InputError(
            "refit must be None or a mapping of arguments of ncbayes.fit, such as "
            f"{{'draws': 500}}, got {shown(refit)}"
        )
    taken = sorted({"seed", "checkpoint", "model", "data"} & set(refit or {}))
    if taken:
        raise InputError(f"refit can't hold {taken[0]!r}: every shuffle has its own; leave it out")
    return refit or {}
