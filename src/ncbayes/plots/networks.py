"""Pictures of graphs: the network, and its matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from ncbayes import graphs
from ncbayes.base import FloatArray, InputError, shown
from ncbayes.couplings import Graph, graph_in, region_of
from ncbayes.plots.style import BLUE, COLOURS, ORANGE, check_posterior, failed_line, short
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The widest edge, in points; below the thinnest nothing is seen.
WIDEST, THINNEST = 6.0, 0.8
# Up to here labels stand upright, beyond they point away from the circle.
MOST_UPRIGHT = 16
# How far the longest edges bend towards the middle of the circle; neighbours' hardly do.
BEND = 0.6
# The space between two regions, in nodes.
GAP = 1.0
DOTTED = (0, (1, 1))
MARKERS = "os^Dv"
# White would not be seen on white.
GREYS = ListedColormap(mpl.colormaps["Greys"](np.linspace(0.2, 1, 256)), "dark_greys")

Places = Mapping[str, Sequence[float]]


def network(
    posterior: Posterior,
    *,
    rule: str = "interval",
    threshold: float = 0.1,
    level: float = 0.9,
    group: str | None = None,
    regions: Mapping[str, str] | Sequence[str] | None = None,
    layout: str | Places | None = None,
    true_edges: Sequence[tuple[str, str]] | None = None,
) -> Figure:
    """The graph of the edges that the rule selects, as ``graphs.edges`` does.

    The width of an edge is proportional to its strength, the sum of the sizes of the posterior
    medians of its coefficients; the darker it is, the higher the posterior probability that its
    norm exceeds ``threshold``. Nodes without an edge are shown as well.

    ``layout`` is "circular", the nodes in their order; "regions", the nodes of a region side by
    side, with gaps between regions; or a mapping from nodes to places (x, y), such as sites of
    electrodes. None: "regions" if ``regions`` are given (a mapping from nodes, or a list in
    their order), "circular" if not. With ``true_edges``, edges that are not among them are
    dotted, and those that were missed are dashed.
    """
    check_posterior("plots.network", posterior)
    graph = graph_in(posterior.data)
    table = graphs.edges(posterior, rule, threshold, level, group)
    areas = None if regions is None else region_of(graph, regions)
    places = _places(graph, areas, layout)
    on_circle = layout is None or isinstance(layout, str)
    truth = None if true_edges is None else checked_edges("true_edges", true_edges, graph)
    figure, axis = _canvas(graph.nodes, places, on_circle)
    handles = _draw_edges(axis, table, places, truth, BEND if on_circle else 0.0)
    handles += _draw_nodes(axis, graph.nodes, places, areas)
    _draw_labels(axis, graph.nodes, places, on_circle)
    figure.suptitle(failed_line(posterior) + _heading(table), fontsize="medium")
    if handles:
        figure.legend(handles=handles, loc="outside right center", frameon=False, fontsize="small")
    return figure


def adjacency(
    posterior: Posterior,
    *,
    weight: str = "strength",
    rule: str = "interval",
    threshold: float = 0.1,
    level: float = 0.9,
    group: str | None = None,
    regions: Mapping[str, str] | Sequence[str] | None = None,
) -> Figure:
    """A heat map of all pairs of nodes, with a dot where the rule selects an edge.

    ``weight`` is what the colours show: "strength", the sum of the sizes of the posterior medians,
    or "probability", that the norm exceeds ``threshold``. With ``regions`` the nodes
    are in the order of their regions, with lines between them. Grey: no edge of the model.
    """
    check_posterior("plots.adjacency", posterior)
    if weight not in ("strength", "probability"):
        raise InputError(f'weight must be "strength" or "probability", got {shown(weight)}')
    graph = graph_in(posterior.data)
    options: dict[str, Any] = {"threshold": threshold, "level": level, "group": group}
    values = graphs.adjacency(posterior, rule, weight=weight, only_selected=False, **options)
    selected = graphs.adjacency(posterior, rule, weight=None, **options).to_numpy()
    areas = None if regions is None else region_of(graph, regions)
    order = np.arange(len(graph.nodes)) if areas is None else _by_region(areas)
    known = np.zeros(selected.shape, dtype=bool)
    known[tuple(graph.ends.T)] = known[tuple(graph.ends.T[::-1])] = True
    matrix = np.where(known, values.to_numpy(), np.nan)[np.ix_(order, order)]
    side = min(11.0, max(4.5, 3.0 + 0.11 * len(order)))
    figure, axis = plt.subplots(figsize=(side + 1.2, side), layout="constrained")
    axis.set_facecolor("0.85")
    top = 1.0 if weight == "probability" else float(values.to_numpy().max()) or 1.0
    image = axis.imshow(matrix, cmap="Blues", vmin=0, vmax=top)
    label = _probability_label(threshold) if weight == "probability" else "strength"
    figure.colorbar(image, ax=axis, shrink=0.8, label=label)
    title = f"{failed_line(posterior)}dot: selected by the {rule} rule"
    _draw_dots(axis, selected[np.ix_(order, order)] > 0, matrix > 0.6 * top, title)
    _name_cells(axis, [graph.nodes[j] for j in order])
    if areas is not None:
        _draw_borders(axis, [areas[j] for j in order])
    return figure


def checked_edges(name: str, given: Any, graph: Graph) -> list[tuple[str, str]]:
    """Edges of the model by the names of their nodes, in the graph's order of the two."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InputError(
            f"{name} must be a list of pairs of nodes, such as [({graph.nodes[0]!r}, "
            f"{graph.nodes[-1]!r})], got {shown(given)}"
        )
    known = graph.edges
    found = []
    for pair in given:
        ends = () if isinstance(pair, str) or not hasattr(pair, "__len__") else tuple(pair)
        either = [each for each in (ends, ends[::-1]) if each in known]
        if not either:
            raise InputError(
                f"{name} must name edges of the model, pairs of the nodes "
                f"{shown(list(graph.nodes))}, got {shown(pair)}"
            )
        found.append(either[0])
    return found


def _places(
    graph: Graph, areas: list[str] | None, layout: str | Places | None
) -> dict[str, FloatArray]:
    if isinstance(layout, Mapping):
        return _given_places(graph, layout)
    wanted = ("circular" if areas is None else "regions") if layout is None else layout
    if wanted not in ("circular", "regions"):
        raise InputError(
            'layout must be "circular", "regions" or a mapping from nodes to places (x, y), got '
            f"{shown(layout)}"
        )
    if wanted == "circular":
        return _on_circle([[name] for name in graph.nodes], 0.0)
    if areas is None:
        raise InputError(
            'layout="regions" needs regions, a mapping from nodes to regions such as '
            f"{{{graph.nodes[0]!r}: 'left'}}"
        )
    arcs = [
        [node for node, area in zip(graph.nodes, areas, strict=True) if area == region]
        for region in dict.fromkeys(areas)
    ]
    return _on_circle(arcs, GAP if len(arcs) > 1 else 0.0)


def _on_circle(arcs: list[list[str]], gap: float) -> dict[str, FloatArray]:
    """Places on the unit circle, clockwise from the top, a gap after every arc."""
    steps = [1 + (gap if name == arc[-1] else 0.0) for arc in arcs for name in arc]
    before = np.concatenate([[0.0], np.cumsum(steps)])
    turns = 2 * np.pi * before[:-1] / before[-1]
    names = [name for arc in arcs for name in arc]
    spots = np.column_stack([np.sin(turns), np.cos(turns)])
    return dict(zip(names, spots, strict=True))


def _given_places(graph: Graph, layout: Places) -> dict[str, FloatArray]:
    named = {str(node): place for node, place in layout.items()}
    missing = [node for node in graph.nodes if node not in named]
    unknown = [node for node in named if node not in graph.nodes]
    if missing or unknown:
        what = f"lacks {shown(missing)}" if missing else f"names {shown(unknown)}, which are none"
        raise InputError(f"layout must hold a place for each of the nodes; it {what}")
    for node, place in named.items():
        try:
            spot = np.asarray(place, dtype=np.float64)
        except (TypeError, ValueError):
            spot = np.empty(0)
        if spot.shape != (2,) or not np.isfinite(spot).all():
            raise InputError(
                f"layout must map nodes to two finite numbers (x, y), got {shown(place)} for "
                f"{node!r}"
            )
    return {node: np.asarray(named[node], dtype=np.float64) for node in graph.nodes}


def _canvas(
    nodes: Sequence[str], places: dict[str, FloatArray], on_circle: bool
) -> tuple[Figure, Axes]:
    """A figure that fits the places, with room for the labels around them."""
    spots = np.array([places[node] for node in nodes])
    low, span = spots.min(axis=0), np.ptp(spots, axis=0)
    inches = min(9.0, 3.2 + 0.08 * len(nodes))
    unit = inches / (span.max() or 1.0)
    letters = max(len(short(node)) for node in nodes)
    # A letter is about 0.65 of its size wide; 72 points are an inch, and the node takes some.
    length = 0.65 * letters * _label_size(nodes) / 72 + 0.25
    upright = len(nodes) <= MOST_UPRIGHT or not on_circle
    room = np.array([length, 0.4 if upright else length])
    width, height = span * unit + 2 * room
    figure, axis = plt.subplots(figsize=(max(5.0, width + 1.6), height + 1.3), layout="constrained")
    axis.set_xlim(low[0] - room[0] / unit, low[0] + span[0] + room[0] / unit)
    axis.set_ylim(low[1] - room[1] / unit, low[1] + span[1] + room[1] / unit)
    axis.set_aspect("equal")
    axis.set_axis_off()
    return figure, axis


def _label_size(nodes: Sequence[str]) -> float:
    """In points."""
    return 10.0 if len(nodes) <= 24 else max(4.0, 10.0 - 0.05 * (len(nodes) - 24))


def _draw_edges(
    axis: Axes,
    table: pd.DataFrame,
    places: dict[str, FloatArray],
    truth: list[tuple[str, str]] | None,
    bend: float,
) -> list[Line2D]:
    """The selected edges and those missed; returns what the legend shows of them."""
    pairs = list(zip(table["node1"], table["node2"], strict=True))
    chosen = table["selected"].to_numpy()
    true = np.array([truth is None or pair in truth for pair in pairs], dtype=bool)
    greatest = float(table["strength"][chosen].max()) if chosen.any() else 0.0
    lines, handles = None, []
    for part, style in ((chosen & true, "-"), (chosen & ~true, DOTTED)):
        ours = np.flatnonzero(part)[::-1]  # the strongest last, on top
        widths = WIDEST * table["strength"].to_numpy()[ours] / (greatest or 1.0)
        curves = [_curve(places[pairs[e][0]], places[pairs[e][1]], bend) for e in ours]
        lines = LineCollection(
            curves, linewidths=np.maximum(widths, THINNEST), linestyles=[style], cmap=GREYS,
            norm=Normalize(0, 1), array=table["probability"].to_numpy()[ours], zorder=1,
            capstyle="butt",
        )  # fmt: skip
        axis.add_collection(lines)
    if greatest > 0 and lines is not None:
        label = _probability_label(table.attrs["threshold"])
        axis.figure.colorbar(
            lines, ax=axis, location="bottom", shrink=0.6, aspect=30, pad=0.02, label=label
        )
        handles += [_line(f"strength {part * greatest:.2g}", part * WIDEST) for part in (1, 0.5)]
    if truth is not None:
        missed = [pairs[e] for e in np.flatnonzero(~chosen & true)]
        curves = [_curve(places[one], places[other], bend) for one, other in missed]
        axis.add_collection(LineCollection(curves, colors=ORANGE, linestyles="--", zorder=1))
        wrong, right = int((chosen & ~true).sum()), int((chosen & true).sum())
        handles += [
            _line(f"true, found ({right})", 2.5),
            _line(f"not true ({wrong})", 2.5, linestyle=DOTTED),
            _line(f"missed ({len(missed)})", 1.5, linestyle="--", color=ORANGE),
        ]
    return handles


def _line(label: str, width: float, **options: Any) -> Line2D:
    return Line2D([], [], linewidth=width, label=label, **{"color": "0.15", **options})


def _curve(one: FloatArray, other: FloatArray, bend: float) -> FloatArray:
    """A quadratic Bezier curve; its control point is the middle, drawn towards the origin.

    By the share ``bend`` of the way for nodes at a distance of 2, less for nearer ones.
    """
    t = np.linspace(0, 1, 31 if bend else 2)[:, None]
    control = (1 - bend * math.dist(one, other) / 2) * (one + other) / 2
    return np.asarray((1 - t) ** 2 * one + 2 * t * (1 - t) * control + t**2 * other)


def _draw_nodes(
    axis: Axes, nodes: Sequence[str], places: dict[str, FloatArray], areas: list[str] | None
) -> list[Line2D]:
    size = 90.0 if len(nodes) <= 24 else 45.0
    handles = []
    for k, area in enumerate([None] if areas is None else dict.fromkeys(areas)):
        ours = [places[node] for j, node in enumerate(nodes) if areas is None or areas[j] == area]
        colour = BLUE if area is None else COLOURS[k % len(COLOURS)]
        marker = MARKERS[k // len(COLOURS) % len(MARKERS)]
        x, y = np.transpose(ours)
        axis.scatter(x, y, s=size, color=colour, marker=marker, edgecolors="black",
                     linewidths=0.7, zorder=2)  # fmt: skip
        if area is not None:
            handles.append(_line(short(area), 0, color=colour, marker=marker, markersize=8,
                                 markeredgecolor="black", markeredgewidth=0.7))  # fmt: skip
    return handles


def _draw_labels(
    axis: Axes, nodes: Sequence[str], places: dict[str, FloatArray], on_circle: bool
) -> None:
    upright = len(nodes) <= MOST_UPRIGHT or not on_circle
    # A white rim, so that names can be read where edges pass.
    options: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": _label_size(nodes),
        "path_effects": [withStroke(linewidth=2.5, foreground="white")],
    }
    for node in nodes:
        x, y = places[node]
        if not on_circle:
            axis.annotate(short(node), (x, y), (0, 7), ha="center", va="bottom", **options)
            continue
        turn, left = math.degrees(math.atan2(y, x)), x < -1e-9
        middle = upright and abs(x) < 0.2
        sideways = "center" if middle else "right" if left else "left"
        upward = "center"
        if upright and abs(y) > 0.6:
            upward = "bottom" if y > 0 else "top"
        rotation = 0 if upright else turn + 180 * left
        axis.annotate(short(node), (x, y), (10 * x, 10 * y), ha=sideways, va=upward,
                      rotation=rotation, rotation_mode="anchor", **options)  # fmt: skip


def _heading(table: pd.DataFrame) -> str:
    rule, attrs = str(table.attrs["rule"]), table.attrs
    how = f"|median| > {attrs['threshold']:g}"
    if rule == "interval":
        how = f"{100 * attrs['level']:g} % interval excludes 0"
    return f"{int(table['selected'].sum())} of {len(table)} edges selected: {how}"


def _probability_label(threshold: float) -> str:
    return f"posterior probability that the norm exceeds {threshold:g}"


def _by_region(areas: list[str]) -> NDArray[np.intp]:
    rank = {area: k for k, area in enumerate(dict.fromkeys(areas))}
    return np.argsort([rank[area] for area in areas], kind="stable")


def _draw_dots(axis: Axes, selected: Any, dark: Any, title: str) -> None:
    size = min(20.0, 2500 / len(selected) ** 1.5)
    for part, colour in ((selected & ~dark, "black"), (selected & dark, "white")):
        rows, columns = np.nonzero(part)
        axis.scatter(columns, rows, s=size, color=colour, linewidths=0)
    axis.set_title(title, fontsize="medium")


def _name_cells(axis: Axes, names: list[str]) -> None:
    size = 9.0 if len(names) <= 24 else max(4.0, 9.0 - 0.08 * (len(names) - 24))
    labels = [short(name) for name in names]
    axis.set_xticks(range(len(names)), labels, rotation=90, fontsize=size)
    axis.set_yticks(range(len(names)), labels, fontsize=size)
    axis.tick_params(length=0)


def _draw_borders(axis: Axes, areas: list[str]) -> None:
    """Lines between regions, and their names on the right."""
    changes = [k for k in range(1, len(areas)) if areas[k] != areas[k - 1]]
    for change in changes:
        axis.axhline(change - 0.5, color="black", linewidth=1)
        axis.axvline(change - 0.5, color="black", linewidth=1)
    starts, stops = [0, *changes], [*changes, len(areas)]
    for start, stop in zip(starts, stops, strict=True):
        axis.annotate(short(areas[start]), (1, (start + stop - 1) / 2), (4, 0),
                      xycoords=axis.get_yaxis_transform(), textcoords="offset points",
                      rotation=270, ha="left", va="center", fontsize="small")  # fmt: skip
