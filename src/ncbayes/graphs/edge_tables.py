"""Tables of edges: which there are, how strong, and how sure that is."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.couplings import (
    Couplings,
    check_level,
    couplings,
    region_of,
)
from ncbayes.inputs import checked_flag
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

RULES = ("interval", "median")
WEIGHTS = ("strength", "probability", None)
# Of draws that have an edge, to tell an interval by.
LEAST_DRAWS = 50
WAVES = {"difference": ("cos_minus", "sin_minus"), "sum": ("cos_plus", "sin_plus")}


def edges(
    posterior: Posterior,
    rule: str = "interval",
    threshold: float = 0.1,
    level: float = 0.9,
    group: str | None = None,
    conditional: bool = False,
) -> pd.DataFrame:
    """One row an edge of the model, the strongest first.

    ``node1, node2``; ``selected``: the interval of some coefficient excludes zero (of the edges
    that this selects, about one in thirty was false where graphs were known, docs/graphs.md), or
    by ``rule="median"`` some median exceeds ``threshold``; ``strength``; ``norm``, its median;
    ``probability`` that the norm exceeds ``threshold``; then for each coefficient its posterior
    median, under its own name, and the ends of its interval, ``..._low`` and ``..._high``.

    Priors that shrink pull weak couplings to zero, so that intervals hold an edge that is there but
    weak less often than ``level`` says (docs/calibration.md). With ``conditional=True`` they answer
    "how strong, given that there is an edge": they are those of the draws whose norm exceeds
    ``threshold``, NaN where these are fewer than 50. What is selected stays the same.

    ``attrs["expected_fdr"]`` is the expected share of false edges among the selected ones, the mean
    of 1 - probability over them (0 if there are none): an edge counts as false if its norm does
    not exceed ``threshold``. The other arguments are in ``attrs`` too. If the fit has failed
    (``posterior.verdict()``), a column ``fit`` says so.
    """
    found, table = _read("graphs.edges", posterior, rule, threshold, level, group)
    table.attrs["conditional"] = checked_flag("conditional", conditional)
    if conditional:
        _narrow_to_edges(found, table, threshold, level)
    if posterior.data.attrs.get("grade") == "failed":
        table["fit"] = "failed"
    return _strongest_first(table)


def adjacency(
    posterior: Posterior,
    rule: str = "interval",
    threshold: float = 0.1,
    level: float = 0.9,
    group: str | None = None,
    weight: str | None = "strength",
    only_selected: bool = True,
) -> pd.DataFrame:
    """The symmetric matrix of the graph, with the nodes as labels and zeros where no edge is.

    ``weight`` is what an edge is worth: "strength", "probability" or None for 1.
    ``only_selected=False`` keeps every edge of the model.
    """
    import pandas as pd

    if weight is not None and weight not in WEIGHTS:
        raise InputError(f'weight must be "strength", "probability" or None, got {shown(weight)}')
    found, table = _read("graphs.adjacency", posterior, rule, threshold, level, group)
    nodes = found.graph.nodes
    kept = table["selected"].to_numpy() | (not only_selected)
    one, other = found.graph.ends[kept].T
    worth = np.ones(len(one), dtype=int) if weight is None else table[weight].to_numpy()[kept]
    matrix = np.zeros((len(nodes), len(nodes)), dtype=worth.dtype)
    matrix[one, other] = matrix[other, one] = worth
    return pd.DataFrame(matrix, index=nodes, columns=nodes)


def to_networkx(
    posterior: Posterior,
    rule: str = "interval",
    threshold: float = 0.1,
    level: float = 0.9,
    group: str | None = None,
    only_selected: bool = True,
) -> nx.Graph:
    """The graph for NetworkX: all nodes in their order, and the selected edges.

    An edge has ``strength``, ``norm``, ``probability`` and the posterior medians of its
    coefficients as attributes. ``only_selected=False`` keeps every edge of the model.
    """
    import networkx as nx

    found, table = _read("graphs.to_networkx", posterior, rule, threshold, level, group)
    names = ("strength", "norm", "probability", *found.graph.kinds)
    graph = nx.Graph()
    graph.add_nodes_from(found.graph.nodes)
    for row in table.to_dict("records"):
        if row["selected"] or not only_selected:
            graph.add_edge(row["node1"], row["node2"], **{name: float(row[name]) for name in names})
    return graph


def phase_difference(
    posterior: Posterior,
    level: float = 0.9,
    threshold: float = 0.1,
    kind: str = "difference",
    group: str | None = None,
) -> pd.DataFrame:
    """The preferred lag of each pair of angles and how firmly it is held, in the model's order.

    An edge adds ``a cos(xj - xk) + b sin(xj - xk) = r cos(xj - xk - angle)`` to the log density:
    given all other angles, xj - xk prefers the lag ``angle = atan2(b, a)`` with concentration
    ``r = hypot(a, b)``. A positive lag: node1 is ahead of node2. With ``kind="sum"`` it
    is xj + xk that prefers ``angle``.

    ``angle`` is the circular mean of the draws, in (-pi, pi]; ``angle_median`` their median,
    counted from there. ``angle_low`` to ``angle_high`` is the shortest arc that holds ``level`` of
    the draws and the circular mean, and not the point opposite to it; ``low <= angle <= high``, so
    that an end may lie beyond pi or -pi. ``concentration`` is a posterior median with its
    equal-tailed interval, ``probability`` that the concentration exceeds ``threshold``. Where that
    is low, the lag may be any angle and means little.
    """
    import pandas as pd

    check_posterior("graphs.phase_difference", posterior)
    check_level(level)
    check_threshold(threshold)
    if not isinstance(kind, str) or kind not in WAVES:
        raise InputError(f'kind must be "difference" or "sum", got {shown(kind)}')
    found = couplings(posterior.data, group)
    if not set(WAVES[kind]) <= set(found.graph.kinds):
        flag = "rotational" if kind == "difference" else "reflectional"
        raise InputError(
            f"{posterior.data.attrs.get('model', 'the model')} has no statistics of the {kind} of "
            f"two angles; fit ncbayes.models.TorusGraph(..., {flag}=True)"
        )
    a, b = (found.draws[:, :, found.graph.kinds.index(wave)] for wave in WAVES[kind])
    concentration = np.hypot(a, b)
    low, median, high = interval(concentration, level)
    arcs = [_arc(angles, level) for angles in np.arctan2(b, a).T]
    names = ("angle", "angle_median", "angle_low", "angle_high")
    return pd.DataFrame(
        {
            **node_columns(found),
            **{name: [arc[position] for arc in arcs] for position, name in enumerate(names)},
            "concentration": median,
            "concentration_low": low,
            "concentration_high": high,
            "probability": (concentration > threshold).mean(axis=0),
        }
    )


def regions(
    posterior: Posterior,
    regions: Mapping[str, str] | Sequence[str],
    rule: str = "interval",
    threshold: float = 0.1,
    level: float = 0.9,
    group: str | None = None,
) -> pd.DataFrame:
    """One row a pair of regions (or a region with itself) that edges of the model connect.

    ``regions`` maps every node to its region, or lists the regions in the order of the nodes.
    ``possible`` is the number of edges in the model, ``selected`` how many the rule selects,
    ``share`` their ratio, ``strength`` the mean strength of the possible edges. ``count`` is how
    many norms exceed ``threshold`` in a draw: posterior median and interval of ``level``.
    """
    import pandas as pd

    found, table = _read("graphs.regions", posterior, rule, threshold, level, group)
    names = region_of(found.graph, regions)
    order = {name: j for j, name in enumerate(dict.fromkeys(names))}
    pairs = [
        tuple(sorted((names[j], names[k]), key=order.__getitem__)) for j, k in found.graph.ends
    ]
    rows: list[tuple[Any, ...]] = []
    for pair in sorted(set(pairs), key=lambda each: (order[each[0]], order[each[1]])):
        ours = np.array([each == pair for each in pairs])
        counts = (found.norms[:, ours] > threshold).sum(axis=1)
        low, median, high = interval(counts, level, method="inverted_cdf")
        selected, strength = table["selected"][ours], table["strength"][ours]
        edge_numbers = len(selected), int(selected.sum()), selected.mean(), strength.mean()
        rows.append((*pair, *edge_numbers, int(median), int(low), int(high)))
    names_of_columns = "region1 region2 possible selected share strength count count_low count_high"
    return pd.DataFrame(rows, columns=names_of_columns.split())


def _read(
    name: str, posterior: Posterior, rule: str, threshold: float, level: float, group: str | None
) -> tuple[Couplings, pd.DataFrame]:
    check_posterior(name, posterior)
    found = couplings(posterior.data, group)
    return found, _table(found, rule, threshold, level)


def _table(found: Couplings, rule: str, threshold: float, level: float) -> pd.DataFrame:
    """The table of ``edges``, in the order of the model."""
    import pandas as pd

    check_level(level)
    check_threshold(threshold)
    low, median, high = interval(found.draws, level)
    selected = _selected(rule, threshold, low, median, high)
    probability = (found.norms > threshold).mean(axis=0)
    columns: dict[str, Any] = {
        **node_columns(found),
        "selected": selected,
        "strength": np.abs(median).sum(axis=1),
        "norm": np.median(found.norms, axis=0),
        "probability": probability,
    }
    for position, kind in enumerate(found.graph.kinds):
        columns[kind] = median[:, position]
        columns[f"{kind}_low"], columns[f"{kind}_high"] = low[:, position], high[:, position]
    table = pd.DataFrame(columns)
    false = 1 - probability[selected]
    table.attrs = {
        "rule": rule,
        "threshold": float(threshold),
        "level": float(level),
        "expected_fdr": float(false.mean()) if len(false) else 0.0,
    }
    return table


def _narrow_to_edges(found: Couplings, table: pd.DataFrame, threshold: float, level: float) -> None:
    """Write the intervals of the draws in which there is an edge into the table."""
    ends = np.full((2, *found.draws.shape[1:]), np.nan)
    for edge, is_there in enumerate((found.norms > threshold).T):
        if is_there.sum() >= LEAST_DRAWS:
            ends[0, edge], _, ends[1, edge] = interval(found.draws[is_there, edge], level)
    for position, kind in enumerate(found.graph.kinds):
        table[f"{kind}_low"], table[f"{kind}_high"] = ends[:, :, position]


def _strongest_first(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("strength", ascending=False, kind="stable", ignore_index=True)


def _selected(
    rule: str, threshold: float, low: FloatArray, median: FloatArray, high: FloatArray
) -> BoolArray:
    if not isinstance(rule, str) or rule not in RULES:
        raise InputError(f'rule must be "interval" or "median", got {shown(rule)}')
    found = np.abs(median) > threshold if rule == "median" else (low > 0) | (high < 0)
    return np.asarray(found.any(axis=1))


def node_columns(found: Couplings) -> dict[str, list[str]]:
    """The names of the nodes of every edge."""
    pairs = found.graph.edges
    return {"node1": [one for one, _ in pairs], "node2": [other for _, other in pairs]}


def interval(
    draws: NDArray[Any], level: float, method: str = "linear"
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end of the equal-tailed interval, over the first axis."""
    tail = (1 - level) / 2
    options: Any = {"method": method}
    low, median, high = np.quantile(draws, [tail, 0.5, 1 - tail], axis=0, **options)
    return low, median, high


def _arc(angles: FloatArray, level: float) -> tuple[float, float, float, float]:
    """Circular mean, median seen from there, and the ends of the shortest arc of ``level``."""
    center = float(np.angle(np.mean(np.exp(1j * angles))))
    turned = np.sort(np.angle(np.exp(1j * (angles - center))))
    held = max(1, math.ceil(level * len(turned) - 1e-9))  # 0.9 * 10 is a little more than 9
    low = np.minimum(turned[: len(turned) - held + 1], 0.0)
    high = np.maximum(turned[held - 1 :], 0.0)
    best = int(np.argmin(high - low))
    return center, center + float(np.median(turned)), center + low[best], center + high[best]


def check_posterior(name: str, posterior: object) -> None:
    """Raise InputError unless it is a posterior; ``name`` is what asks for it."""
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"{name} needs the posterior that ncbayes.fit or ncbayes.load returns, got "
            f"{shown(posterior)}"
        )


def check_threshold(threshold: object) -> None:
    """Raise InputError unless it is a finite number, 0 or more."""
    number = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool)
    if not number or not 0 <= float(threshold) < math.inf:  # type: ignore[arg-type]
        raise InputError(
            f"threshold must be a finite number, 0 or more, such as 0.1, got {shown(threshold)}"
        )
