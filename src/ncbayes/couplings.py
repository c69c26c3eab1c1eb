"""The graph of a model, and the draws of the coefficients of its edges."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, Space, shown

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, edges, and which statistics belong to an edge.

    ``ends`` (edge, 2) are the numbers of an edge's nodes, ``kinds`` name what is known of every
    edge ("cos_minus", "coupling", ...), ``columns`` (edge, kind) say which statistic it is.
    """

    nodes: tuple[str, ...]
    ends: NDArray[np.intp]
    kinds: tuple[str, ...]
    columns: NDArray[np.intp]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges as pairs of names."""
        return [(self.nodes[j], self.nodes[k]) for j, k in self.ends]

    def dataset(self) -> xr.Dataset:
        """The graph as a tree's group ``graph`` holds it."""
        import xarray as xr

        return xr.Dataset(
            {"ends": (("edge", "end"), self.ends), "columns": (("edge", "kind"), self.columns)},
            coords={"node": np.array(self.nodes), "kind": np.array(self.kinds, dtype=str)},
        )


def graph_of(model: Any) -> Graph | None:
    """The graph of a model with ``nodes``, ``edges`` and ``edge_columns``; None for others.

    ``edges`` are pairs of names of nodes; ``edge_columns`` maps each kind of edge statistic to
    its columns, one an edge. An edge without statistics is none.
    """
    if not all(hasattr(model, name) for name in ("nodes", "edges", "edge_columns")):
        return None
    nodes = tuple(str(name) for name in model.nodes)
    kinds = {str(kind): np.asarray(columns) for kind, columns in model.edge_columns.items()}
    pairs = [tuple(edge) for edge in model.edges] if kinds else []
    if any(len(pair) != 2 or not set(pair) <= set(nodes) for pair in pairs):
        raise InputError(
            f"edges of {shown(model)} must be pairs of names of its nodes {shown(list(nodes))}, "
            f"got {shown(model.edges)}"
        )
    size = sum(len(names) for names in model.groups.values())
    if not all(_are_columns(columns, len(pairs), size) for columns in kinds.values()):
        raise InputError(
            f"edge_columns of {shown(model)} must map each kind of edge statistic to "
            f"{len(pairs)} columns, one an edge, from 0 to {size - 1}, got "
            f"{shown(model.edge_columns)}"
        )
    number = {name: j for j, name in enumerate(nodes)}
    ends = np.array([[number[name] for name in pair] for pair in pairs], dtype=np.intp)
    columns = np.array(list(kinds.values()), dtype=np.intp).reshape(len(kinds), len(pairs))
    return Graph(nodes, ends.reshape(-1, 2), tuple(kinds), columns.T)


def _are_columns(columns: NDArray[Any], edges: int, size: int) -> bool:
    whole = columns.dtype.kind in "iu" or edges == 0
    return whole and columns.shape == (edges,) and bool(np.all((columns >= 0) & (columns < size)))


def graph_in(tree: xr.DataTree) -> Graph:
    """The graph that a posterior's tree holds."""
    if "graph" not in tree.children:
        raise InputError(
            f"{tree.attrs.get('model', 'the model')} has no graph; this read-out is for "
            "graphical models such as ncbayes.models.TorusGraph and Ising, or your own with "
            "nodes, edges and edge_columns"
        )
    stored = tree["graph"].to_dataset()
    return Graph(
        tuple(str(name) for name in stored["node"].to_numpy()),
        stored["ends"].to_numpy().astype(np.intp),
        tuple(str(kind) for kind in stored["kind"].to_numpy()),
        stored["columns"].to_numpy().astype(np.intp),
    )


@dataclass(frozen=True, eq=False)
class Couplings:
    """Draws of the coefficients of every edge, (draw, edge, kind), chain after chain."""

    graph: Graph
    draws: FloatArray

    @cached_property
    def norms(self) -> FloatArray:
        """The Euclidean norm of an edge's coefficients, (draw, edge)."""
        return np.asarray(np.sqrt(np.einsum("tek,tek->te", self.draws, self.draws)))


def couplings(tree: xr.DataTree, group: object = None) -> Couplings:
    """The couplings of one group; it may be left out where there is only one."""
    graph = graph_in(tree)
    theta = of_group(tree, group)
    return Couplings(graph, theta[:, graph.columns])


def of_group(tree: xr.DataTree, group: object = None) -> FloatArray:
    """Theta of one group, (draw, statistic), chain after chain."""
    theta = tree["posterior"].to_dataset()["theta"]
    values = theta.sel(group=group_label(tree, group)).to_numpy()
    return np.asarray(values, dtype=np.float64).reshape(-1, values.shape[-1])


def group_label(tree: xr.DataTree, group: object) -> str:
    """The label of the group, checked; that of the only one if None."""
    labels = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    if group is None and len(labels) == 1:
        return labels[0]
    if group is None or str(group) not in labels:
        asked = "leaves it open" if group is None else f"is {shown(group)}"
        raise InputError(
            f"group must be one of the posterior's groups {shown(labels)}, and the call {asked}; "
            f"pass group={labels[0]!r}"
        )
    return str(group)


def check_space(tree: xr.DataTree, space: Space, name: str) -> None:
    """Refuse a model of other data than the stored ones, such as spins for zeros and ones."""
    if "observed_data" not in tree.children:
        return
    points = tree["observed_data"]["points"].to_numpy()
    fits = points.ndim == 2 and points.shape[1] == space.dimension
    if not fits or not space.contains(points).all():
        raise InputError(
            f"model must be the one that was fitted, {tree.attrs['model']}, got {name}, whose "
            f"space {shown(space)} does not hold the data that were fitted"
        )


def check_level(level: object) -> None:
    """Refuse what is no probability of an interval."""
    number = isinstance(level, numbers.Real) and not isinstance(level, bool)
    if not number or not 0 < float(level) < 1:  # type: ignore[arg-type]
        raise InputError(f"level must be between 0 and 1, such as 0.9, got {shown(level)}")


def paired(first: Couplings, second: Couplings) -> tuple[Couplings, Couplings]:
    """Two independent posteriors with equal numbers of draws, the longer thinned evenly.

    The second is turned by half its length: fits with the same seed share random numbers, and
    draws of the same number would not be independent.
    """
    size = min(len(first.draws), len(second.draws))
    one, other = (each.draws[_even(len(each.draws), size)] for each in (first, second))
    return Couplings(first.graph, one), Couplings(second.graph, np.roll(other, size // 2, axis=0))


def _even(total: int, size: int) -> NDArray[np.intp]:
    """``size`` of ``total`` positions, evenly spread."""
    return np.arange(size) * total // size


def check_same_graph(first: Graph, second: Graph) -> None:
    """Refuse two posteriors that are not of one graph."""
    for what, one, other in (
        ("nodes", first.nodes, second.nodes),
        ("edges", first.edges, second.edges),
        ("edge statistics", first.kinds, second.kinds),
    ):
        if one != other:
            raise InputError(
                f"both posteriors must be of the same graph, their {what} differ: "
                f"{shown(list(one))} and {shown(list(other))}"
            )


def region_of(graph: Graph, regions: Any) -> list[str]:
    """The region of every node, in the order of the nodes; checked."""
    if hasattr(regions, "keys"):
        named = {str(node): region for node, region in regions.items()}
    elif isinstance(regions, str) or not hasattr(regions, "__len__"):
        raise InputError(
            "regions must map every node to its region, such as {'x1': 'left'}, or list the "
            f"regions in the order of the nodes, got {shown(regions)}"
        )
    elif len(regions) != len(graph.nodes):
        raise InputError(
            f"regions must list {len(graph.nodes)} regions, one for each of the nodes "
            f"{shown(list(graph.nodes))}, got {len(regions)}"
        )
    else:
        named = dict(zip(graph.nodes, regions, strict=True))
    missing = [node for node in graph.nodes if node not in named]
    unknown = [node for node in named if node not in graph.nodes]
    if missing or unknown:
        what = f"lacks {shown(missing)}" if missing else f"names {shown(unknown)}, which are none"
        raise InputError(
            f"regions must hold each of the nodes {shown(list(graph.nodes))}; it {what}"
        )
    return [str(named[node]) for node in graph.nodes]
