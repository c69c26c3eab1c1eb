"""What graphical models share: nodes and edges as users write them, and clear words about theta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces import default_names, is_whole

Nodes: TypeAlias = int | Sequence[str]
Edges: TypeAlias = Sequence[tuple[str | int, str | int]]
EdgeNames: TypeAlias = tuple[tuple[str, str], ...]
Pairs: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]
# How often means that depend on each other are worked out one after the other.
ROUNDS = 30


def node_names(owner: str, nodes: object) -> tuple[str, ...]:
    """The names of the nodes; x1, x2, ... if only their number is given.

    >>> node_names("Ising", 3)
    ('x1', 'x2', 'x3')
    """
    if is_whole(nodes) and nodes >= 1:
        return default_names(int(nodes))
    listed = isinstance(nodes, Iterable) and not isinstance(
        nodes, str | bytes | AbstractSet | Mapping
    )
    names = list(nodes) if isinstance(nodes, Iterable) and listed else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"{owner}(nodes) needs a whole number of at least 1, or a list of names that are not "
            f"empty, such as ['left', 'right'], got {shown(nodes)}"
        )
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(
            f"{owner}(nodes) needs names that differ, got {shown(repeated[0])} more than once"
        )
    return tuple(str(name) for name in names)


def edge_names(owner: str, edges: object, names: tuple[str, ...]) -> EdgeNames:
    """The edges as pairs of names, by the order of the nodes; None: all pairs, row by row.

    An end of an edge is the name of a node or its number, counted from 0.

    >>> edge_names("Ising", [("c", "a"), (0, 1)], ("a", "b", "c"))
    (('a', 'b'), ('a', 'c'))
    """
    if edges is None:
        return tuple((one, other) for j, one in enumerate(names) for other in names[j + 1 :])
    if not isinstance(edges, Iterable) or isinstance(edges, str | bytes):
        raise InputError(
            f"{owner}(edges=...) must be a list of pairs of nodes, such as "
            f"[({shown(names[0])}, {shown(names[-1])})] or [(0, {len(names) - 1})], or None for "
            f"all pairs, got {shown(edges)}"
        )
    number = {name: j for j, name in enumerate(names)}
    found = [_ends(owner, edge, number) for edge in edges]
    repeated = [edge for edge, times in Counter(found).items() if times > 1]
    if repeated:
        one, other = repeated[0]
        raise InputError(
            f"{owner}(edges=...) must hold each edge once, got "
            f"{shown((names[one], names[other]))} more than once, in one order or both"
        )
    return tuple((names[j], names[k]) for j, k in sorted(found))


def _ends(owner: str, edge: Any, number: Mapping[str, int]) -> tuple[int, int]:
    """The numbers of the two nodes of an edge, the smaller first."""
    ends = [] if isinstance(edge, str | bytes) or not isinstance(edge, Iterable) else list(edge)
    known = [number.get(end) if isinstance(end, str) else end for end in ends]
    ours = [end for end in known if is_whole(end) and 0 <= end < len(number)]
    if len(ends) != 2 or len(ours) != 2 or ours[0] == ours[1]:
        raise InputError(
            f"{owner}(edges=...) must hold pairs of two different nodes, by name or by number "
            f"from 0 to {len(number) - 1}, got {shown(edge)}; the nodes are "
            f"{shown(list(number))}"
        )
    return int(min(ours)), int(max(ours))


def positions(edges: Iterable[tuple[Any, Any]], names: Sequence[str]) -> Pairs:
    """The numbers j < k of the two nodes of each edge, as two arrays."""
    number = {name: j for j, name in enumerate(names)}
    ends = np.array([(number[one], number[other]) for one, other in edges], dtype=np.intp)
    ends = ends.reshape(-1, 2)
    ends.setflags(write=False)
    return ends[:, 0], ends[:, 1]


def grid_edges(rows: int, columns: int, periodic: bool = False) -> list[tuple[int, int]]:
    """The pairs of neighbours on a grid whose nodes are numbered row by row from 0.

    ``periodic`` also joins opposite ends of every row and column that has three nodes or more.

    >>> grid_edges(2, 2)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    for name, value in (("rows", rows), ("columns", columns)):
        if not is_whole(value) or value < 1:
            raise InputError(
                f"grid_edges({name}=...) must be a whole number of at least 1, got {shown(value)}"
            )
    number = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    if periodic:
        pairs += [(number[:, :1], number[:, -1:])] * (columns > 2)
        pairs += [(number[:1], number[-1:])] * (rows > 2)
    ends = [np.stack([one.ravel(), other.ravel()], axis=1) for one, other in pairs]
    return sorted((int(one), int(other)) for one, other in np.concatenate(ends))


def check_word(owner: str, name: str, value: object, words: Sequence[object]) -> None:
    """Refuse an option that is none of the words."""
    if not any(value is word or (isinstance(word, str) and value == word) for word in words):
        *most, last = (repr(word) for word in words)
        raise InputError(
            f"{owner}({name}=...) must be {', '.join(most)} or {last}, got {shown(value)}"
        )


def check_flags(model: Any, *flags: str) -> None:
    """Refuse switches that are neither True nor False."""
    for flag in flags:
        value = getattr(model, flag)
        if not isinstance(value, bool | np.bool_):
            raise InputError(
                f"{type(model).__name__}({flag}=...) must be True or False, got {shown(value)}"
            )


def checked_theta(model: object, size: int, theta: FloatArray) -> FloatArray:
    """Theta as floats, if it has ``size`` finite numbers, one for each statistic."""
    values = np.asarray(theta, dtype=np.float64)
    if values.shape != (size,):
        raise InputError(
            f"theta must hold {size} numbers, one for each statistic of {shown(model)}, got shape "
            f"{values.shape}"
        )
    lost = np.flatnonzero(~np.isfinite(values))
    if len(lost):
        raise InputError(
            f"theta must hold finite numbers, got {values[lost[0]]} at position {lost[0]} "
            "(counted from 0)"
        )
    return values


def short_repr(model: Any) -> str:
    """The model as one would write it, with what differs from the defaults.

    >>> from ncbayes.models import TorusGraph
    >>> TorusGraph(12, marginal=False)
    TorusGraph(12, marginal=False)
    """
    count = len(model.nodes)
    default_names = model.nodes == node_names("", count)
    parts = [repr(count) if default_names else repr(list(model.nodes))]
    for field in fields(model)[1:]:
        value = getattr(model, field.name)
        usual = edge_names("", None, model.nodes) if field.name == "edges" else field.default
        if value != usual:
            parts.append(f"{field.name}={list(value) if field.name == 'edges' else value!r}")
    return f"{type(model).__name__}({', '.join(parts)})"


def settled_means(mean: Callable[[int, FloatArray], float], count: int) -> FloatArray:
    """Means of nodes that each follow from those of the others, ``mean(k, others)``, nearly.

    Going round with half steps: what it ends at is only where something else begins.
    """
    found = np.zeros(count)
    for k in range(count):
        found[k] = mean(k, np.zeros(count))
    for _ in range(ROUNDS):
        for k in range(count):
            found[k] += (mean(k, found) - found[k]) / 2
    return found
