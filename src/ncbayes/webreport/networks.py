"""The network of a graphical model: places of the nodes, and all that a page tells of the edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes import graphs
from ncbayes.base import FloatArray
from ncbayes.couplings import Couplings, Graph, couplings, graph_in
from ncbayes.posterior import Posterior
from ncbayes.webreport.packing import packed, plain

if TYPE_CHECKING:
    import pandas as pd

# Up to here nodes stand on a circle, in their order.
MOST_ON_CIRCLE = 12
# The threshold that the page starts with, that of graphs.edges.
START = 0.1
# Positions of the slider, if there is room for them, and if there is not.
STEPS, FEWEST_STEPS = 100, 20
# What all edges of all groups may take, in bytes before base64, which adds a third: of 5 MB.
MOST_BYTES = 3_000_000
# Rounds of pushing apart, and how close two nodes may be, in shares of the mean distance.
ROUNDS, CLOSEST = 60, 0.55


def network(posterior: Posterior, labels: Sequence[str], level: float) -> dict[str, Any]:
    """Nodes with places, and for every group the numbers of every edge."""
    graph = graph_in(posterior.data)
    tables = [_table(posterior, graph, label, level) for label in labels]
    strength = np.max([table["strength"].to_numpy() for table in tables], axis=0)
    kept, steps = _room(graph, len(labels))
    edges = np.sort(np.argsort(-strength, kind="stable")[:kept])
    highest = max(_highest(table, graph) for table in tables)
    thresholds = slider(highest, steps)
    selected = np.max([table["selected"].to_numpy() for table in tables], axis=0)
    places = _places(graph, np.where(selected, strength, 0.0))
    groups = [
        _group(posterior, label, table, edges, thresholds, level)
        for label, table in zip(labels, tables, strict=True)
    ]
    return {
        "nodes": list(graph.nodes),
        "x": [plain(x, 5) for x in places[:, 0]],
        "y": [plain(y, 5) for y in places[:, 1]],
        "circle": len(graph.nodes) <= MOST_ON_CIRCLE,
        "ends": packed(graph.ends[edges], "u2"),
        "kinds": list(graph.kinds),
        "thresholds": thresholds,
        "start": int(np.argmin(np.abs(np.array(thresholds) - START))),
        "level": level,
        "edges": len(edges),
        "possible": len(graph.ends),
        "groups": groups,
    }


def slider(highest: float, steps: int) -> list[float]:
    """Round thresholds from 0 to beyond ``highest``, in at most so many steps, and the usual one.

    >>> slider(0.34, 4)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    rough = max(highest, 1e-3) / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(each for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9))
    count = math.ceil(highest / step - 1e-9) if highest > 0 else 1
    # Twelve digits: 3 * 0.1 is 0.3 and a little more.
    return sorted({float(f"{step * k:.12g}") for k in range(count + 1)} | {START})


def _room(graph: Graph, groups: int) -> tuple[int, int]:
    """How many edges and how many steps of the slider the page has room for."""
    edges, fixed = len(graph.ends), 4 * (3 * len(graph.kinds) + 5)
    for steps in (STEPS, STEPS // 2, FEWEST_STEPS):
        if edges * groups * (fixed + 2 * (steps + 2)) <= MOST_BYTES:
            return edges, steps
    return max(1, MOST_BYTES // (groups * (fixed + 2 * (FEWEST_STEPS + 2)))), FEWEST_STEPS


def _table(posterior: Posterior, graph: Graph, label: str, level: float) -> pd.DataFrame:
    """``graphs.edges`` in the order of the model."""
    table = graphs.edges(posterior, "median", START, level, label)
    order = {pair: k for k, pair in enumerate(zip(table["node1"], table["node2"], strict=True))}
    return table.iloc[[order[pair] for pair in graph.edges]]


def _highest(table: pd.DataFrame, graph: Graph) -> float:
    """Beyond this threshold the median rule selects nothing, and few norms are."""
    if not len(table):
        return 0.0
    return float(max(table["norm"].max(), table[list(graph.kinds)].abs().to_numpy().max()))


def _group(
    posterior: Posterior,
    label: str,
    table: pd.DataFrame,
    edges: Any,
    thresholds: list[float],
    level: float,
) -> dict[str, Any]:
    found, rows = couplings(posterior.data, label), table.iloc[edges]
    kinds = list(found.graph.kinds)
    counts = _counts(found, edges, thresholds)
    result: dict[str, Any] = {
        "label": label,
        "draws": len(found.draws),
        "strength": packed(rows["strength"], "f4"),
        "norm": packed(rows["norm"], "f4"),
        "counts": packed(counts, "u2" if len(found.draws) < 2**16 else "u4"),
        "lag": None,
    }
    for name, end in (("median", ""), ("low", "_low"), ("high", "_high")):
        result[name] = packed(rows[[kind + end for kind in kinds]], "f4")
    if set(graphs.WAVES["difference"]) <= set(kinds):
        lags = graphs.phase_difference(posterior, level=level, group=label).iloc[edges]
        result["lag"] = packed(lags[["angle", "angle_low", "angle_high"]], "f4")
    return result


def _counts(found: Couplings, edges: Any, thresholds: list[float]) -> Any:
    """How many draws of the norm exceed each threshold, (edge, threshold)."""
    norms = np.sort(found.norms[:, edges], axis=0)
    below = [np.searchsorted(own, thresholds, side="right") for own in norms.T]
    return len(norms) - np.array(below, dtype=np.int64).reshape(-1, len(thresholds))


def _places(graph: Graph, weights: FloatArray) -> FloatArray:
    """Where the nodes stand, (node, 2), between 0 and 1, y downward."""
    count = len(graph.nodes)
    if count <= MOST_ON_CIRCLE:
        turns = 2 * np.pi * np.arange(count) / max(count, 1) - np.pi / 2
        return np.asarray(0.5 + 0.5 * np.stack([np.cos(turns), np.sin(turns)], axis=1))
    places = _apart(_forced(graph, weights))
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - low) / np.maximum(high - low, 1e-9))


def _forced(graph: Graph, weights: FloatArray) -> FloatArray:
    """Springs pull linked nodes together; nodes without a link stand around the others."""
    import networkx as nx

    linked = nx.Graph()
    top = float(weights.max()) or 1.0
    for (one, other), weight in zip(graph.ends.tolist(), weights, strict=True):
        if weight > 0:
            linked.add_edge(one, other, weight=0.2 + float(weight) / top)
    places, alone = np.zeros((len(graph.nodes), 2)), []
    if len(linked):
        # Kamada and Kawai's start keeps the springs from knots; both are the same every time.
        begin = nx.circular_layout(sorted(linked))
        spread = 1.5 / math.sqrt(len(linked))
        found = nx.spring_layout(linked, k=spread, pos=begin, iterations=300, seed=1)
        for node, place in found.items():
            places[node] = place
    alone = [node for node in range(len(graph.nodes)) if node not in linked]
    reach = 1.15 * float(np.linalg.norm(places, axis=1).max()) or 1.0
    for k, node in enumerate(alone):
        turn = 2 * np.pi * (k + 0.5) / len(alone)
        places[node] = reach * np.cos(turn), reach * np.sin(turn)
    return places


def _apart(places: FloatArray) -> FloatArray:
    """The same with nodes pushed from each other where they would overlap."""
    count = len(places)
    area = float(np.prod(np.ptp(places, axis=0))) or 1.0
    least = CLOSEST * math.sqrt(area / count)
    # Two nodes in one place have no direction: a hair's turn for each node gives them one.
    turns = 2.4 * np.arange(count)
    moved = places + 1e-6 * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    for _ in range(ROUNDS):
        gaps = moved[:, None] - moved[None]
        lengths = np.linalg.norm(gaps, axis=2)
        np.fill_diagonal(lengths, np.inf)
        push = np.maximum(least - lengths, 0) / lengths
        moved = moved + 0.5 * (gaps * push[:, :, None]).sum(axis=1)
    return moved
