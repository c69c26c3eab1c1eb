"""Where the couplings of two conditions differ, and how sure that is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.contrast import model_name
from ncbayes.couplings import (
    Couplings,
    Graph,
    check_level,
    check_same_graph,
    couplings,
    graph_of,
    group_label,
    paired,
)
from ncbayes.diagnostics import FitWarning
from ncbayes.graphs.edge_tables import check_posterior, check_threshold, interval, node_columns
from ncbayes.graphs.evidence import adjusted, normal_mass, shared_direction, tail_mass, unit
from ncbayes.group_tests import Difference, difference
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

RULES = ("region", "strength")
CONTROLS = ("fdr", "edge")


@dataclass(frozen=True)
class Selection:
    """How differences are selected; the arguments of ``contrast``."""

    rule: str
    threshold: float
    level: float
    control: str

    def check(self) -> None:
        """Raise InputError unless every setting is one of the allowed ones."""
        check_level(self.level)
        check_threshold(self.threshold)
        for name, value, allowed in (
            ("rule", self.rule, RULES),
            ("control", self.control, CONTROLS),
        ):
            if not isinstance(value, str) or value not in allowed:
                raise InputError(
                    f'{name} must be "{allowed[0]}" or "{allowed[1]}", got {shown(value)}'
                )

    def selected(self, masses: FloatArray) -> BoolArray:
        """Which edges are selected, given their masses at least as far out as no difference."""
        limits = adjusted(masses) if self.control == "fdr" else masses
        return np.asarray(limits < 1 - self.level)

    def expected_false(self, masses: FloatArray) -> float:
        """How many edges would be selected at the same limit if none of them differed."""
        limit = 1 - self.level
        if self.control == "fdr":
            limit = float(np.max(masses[self.selected(masses)], initial=0.0))
        return limit * len(masses)


def contrast(
    first: Posterior,
    second: Posterior | None = None,
    rule: str = "region",
    threshold: float = 0.0,
    level: float = 0.9,
    groups: tuple[str, str] | None = None,
    control: str = "fdr",
    model: Any = None,
) -> pd.DataFrame:
    """How the couplings of two conditions differ, edge by edge, the surest difference first.

    Two posteriors of the same graph, which must be independent; or one posterior with ``groups``,
    the labels of two of its groups, whose draws are joint; or two, with the group of each.

    ``p_value`` says how far out no difference lies (or, with a ``threshold``, the nearest one that
    does not exceed it): the posterior mass at least as far from the centre of the draws, 1 - the
    level of the largest joint region that excludes it. A prior that shrinks pulls the smaller group
    further toward zero, and the draws can't tell that from a difference; so the p value is at least
    that of a score test without the prior, at an estimate in which both conditions have the same
    couplings. Where nothing differs it is uniform or larger. It is no posterior probability of
    a difference: without one, an edge in ten has a p value below .1. ``rule`` says of what it is:

        "region"      all coefficients of the difference, first less second
        "strength"    the signed difference of strengths alone: one number, so more power where
                      a coupling is stronger but of the same kind, and none where its lag turns

    ``control`` says what ``level`` promises: "fdr" that at most a share of 1 - level of the
    selected edges is expected to be false (Benjamini and Hochberg; where nothing differs, at most
    that share of data sets has any edge selected); "edge" that an edge that does not differ
    is selected with a probability of at most 1 - level, each on its own.

    ``strength_difference`` is the difference along the direction that both conditions share, so
    that it is positive where the first has the stronger edge: posterior median and interval of
    ``level``, and ``probability_stronger`` that it is positive. ``p_adjusted`` is the smallest
    1 - level at which "fdr" selects the edge. Then the norm of the difference (a posterior median;
    a size and no evidence, being positive where nothing differs) and, for each coefficient, the
    median of its difference with its interval.

    ``attrs["expected_false"]`` is the number of edges that would be selected if none differed,
    ``attrs["expected_fdr"]`` that number by the number selected, at most 1 (0 if none is): no
    edge is assumed to differ, so it errs on the safe side. The arguments are in ``attrs`` too.

    ``model`` is the model that was fitted; only posteriors that were loaded from a file need it,
    for the score test. ``attrs["score_test"]`` tells whether there was one.

    Draws of independent posteriors are paired in the order of the chains, the second turned by half
    its length, so that fits with the same seed do not share random numbers in a pair; the longer
    one is thinned evenly.
    """
    selection = Selection(rule, threshold, level, control)
    conditions = _conditions(first, second, groups)
    selection.check()
    before, after = _paired(conditions)
    test = _score_test(conditions, before.graph, model)
    change = Couplings(before.graph, before.draws - after.draws)
    return _table(before, change, test, selection)


# A posterior and the label of one of its groups, None for the only one.
Condition = tuple[Posterior, Any]


def _conditions(first: Any, second: Any, groups: Any) -> tuple[Condition, Condition]:
    check_posterior("graphs.contrast", first)
    other = first if second is None else second
    check_posterior("graphs.contrast", other)
    known = [each.theta["group"].to_numpy().tolist() for each in (first, other)]
    if groups is None and (other is first or max(map(len, known)) > 1):
        raise InputError(
            "graphs.contrast needs two posteriors of one group each, or groups=(a, b), the labels "
            "of two groups of one posterior, or of one group of each of two; the first has "
            f"{shown(known[0])}, the second {shown(known[1])}"
        )
    labels = (None, None) if groups is None else two_labels(groups)
    return (first, labels[0]), (other, labels[1])


def _paired(conditions: tuple[Condition, Condition]) -> tuple[Couplings, Couplings]:
    """The draws of both conditions, in pairs."""
    before, after = (couplings(posterior.data, label) for posterior, label in conditions)
    check_same_graph(before.graph, after.graph)
    joint = conditions[0][0] is conditions[1][0]
    return (before, after) if joint else paired(before, after)


def _score_test(
    conditions: tuple[Condition, Condition], graph: Graph, model: Any
) -> Difference | None:
    """The difference without the prior; None, with a warning, where it can't be had."""
    if model is None:
        runs = [posterior.run for posterior, _ in conditions if posterior.run is not None]
        model = runs[0].problem.model if runs else None
    else:
        of_model = graph_of(model)
        if of_model is None:
            raise InputError(f"model must be the one that was fitted, got {model_name(model)}")
        check_same_graph(graph, of_model)
    stored = all("observed_data" in posterior.data.children for posterior, _ in conditions)
    why = "a posterior from a file holds no model: pass model="
    if model is not None and stored and len(graph.ends):
        points = [_points(*condition) for condition in conditions]
        rng = np.random.default_rng(0)  # the same table every time
        try:
            return difference(model, points, graph.columns.ravel(), rng)
        except InputError as error:
            why = str(error)
    if len(graph.ends):
        warnings.warn(
            f"the p values of graphs.contrast rest on the draws alone ({why}); where the prior "
            "shrinks, groups of unequal size seem to differ; graphs.permutation_check tells",
            FitWarning,
            stacklevel=3,
        )
    return None


def _points(posterior: Posterior, label: Any) -> FloatArray:
    observed = posterior.data["observed_data"].to_dataset()
    chosen = observed["group"].to_numpy().astype(str) == group_label(posterior.data, label)
    return np.asarray(observed["points"].to_numpy()[chosen], dtype=np.float64)


def _evidence(
    before: Couplings, change: Couplings, test: Difference | None, selection: Selection
) -> tuple[FloatArray, FloatArray]:
    """The p values, and draws of the signed difference of strengths (draw, edge)."""
    shape, threshold = change.graph.columns.shape, float(selection.threshold)
    if test is None:
        direction = shared_direction(before.draws, change.draws)
    else:
        direction = unit(test.common.reshape(shape))
    strength = np.einsum("tek,ek->te", change.draws, direction)
    draws = change.draws if selection.rule == "region" else strength[:, :, None]
    masses = tail_mass(draws, threshold)
    if test is None:
        return masses, strength
    numbers = np.arange(test.change.size).reshape(shape)
    mean = test.change.reshape(shape)
    covariance = test.covariance[numbers[:, :, None], numbers[:, None, :]]
    if selection.rule == "strength":
        mean = np.einsum("ek,ek->e", mean, direction)[:, None]
        covariance = np.einsum("ek,ekl,el->e", direction, covariance, direction)[:, None, None]
    return np.maximum(masses, normal_mass(mean, covariance, test.rows - 1, threshold)), strength


def _table(
    before: Couplings, change: Couplings, test: Difference | None, selection: Selection
) -> pd.DataFrame:
    import pandas as pd

    masses, strength = _evidence(before, change, test, selection)
    selected = selection.selected(masses)
    low, median, high = interval(strength, selection.level)
    columns: dict[str, Any] = {
        **node_columns(change),
        "selected": selected,
        "p_value": masses,
        "p_adjusted": adjusted(masses),
        "strength_difference": median,
        "strength_difference_low": low,
        "strength_difference_high": high,
        "probability_stronger": (strength > 0).mean(axis=0),
        "norm": np.median(change.norms, axis=0),
    }
    low, median, high = interval(change.draws, selection.level)
    for position, kind in enumerate(change.graph.kinds):
        columns[kind] = median[:, position]
        columns[f"{kind}_low"], columns[f"{kind}_high"] = low[:, position], high[:, position]
    order = np.lexsort([-columns["norm"], masses])
    table = pd.DataFrame(columns).iloc[order].reset_index(drop=True)
    table.attrs = {**_facts(masses, selected, selection), "score_test": test is not None}
    return table


def _facts(masses: FloatArray, selected: BoolArray, selection: Selection) -> dict[str, Any]:
    false = selection.expected_false(masses)
    return {
        "rule": selection.rule,
        "control": selection.control,
        "threshold": float(selection.threshold),
        "level": float(selection.level),
        "expected_false": false,
        "expected_fdr": min(1.0, float(false / selected.sum())) if selected.any() else 0.0,
    }


def two_labels(groups: object) -> tuple[Any, Any]:
    """The labels of two groups, checked."""
    if isinstance(groups, str) or not isinstance(groups, Sequence) or len(groups) != 2:
        raise InputError(
            f"groups must be the labels of two groups, such as ('task', 'rest'), got "
            f"{shown(groups)}"
        )
    return groups[0], groups[1]
