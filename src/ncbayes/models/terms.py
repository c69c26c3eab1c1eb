"""Terms of random graphs: what an ``ERGM`` counts in a graph.

A term is any object with a ``name`` and ``count(adjacency)``, which takes adjacency matrices
(n, node, node) of 0 and 1 and returns (n,). Optional: ``change(adjacency, j, k)``, the count with
the edge from j to k less the count without it, the same whether it is there or not; and
``at(nodes, directed)``, the term for graphs on nodes of these names. The terms here have both, and
compiled sweeps know them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces import is_whole

SIDES = ("all", "in", "out")


@runtime_checkable
class Term(Protocol):
    """Something counted in graphs."""

    @property
    def name(self) -> str: ...

    def count(self, adjacency: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class Dyads:
    """``sum of w_jk over edges jk``.

    w_jk is 1 (kind "one"), 1 if the nodes' values are equal and else 0 ("equal"), the distance of
    the values ("distance"), or their sum ("sum"). ``values`` are in the order of the nodes, or of
    ``keys``, names; a ``default`` is that of nodes without one.
    """

    name: str
    kind: str = "one"
    values: tuple[Any, ...] = ()
    keys: tuple[str, ...] = ()
    default: float | None = None
    directed: bool = False

    def at(self, nodes: tuple[str, ...], directed: bool) -> Dyads:
        if self.kind == "one":
            return replace(self, directed=directed)
        known = dict(zip(self.keys or nodes, self.values, strict=False))
        if self.default is not None:
            known = dict.fromkeys(nodes, self.default) | known
        missing = [node for node in nodes if node not in known]
        if missing or (not self.keys and len(self.values) != len(nodes)):
            what = f"lacks {shown(missing)}" if self.keys else f"has {len(self.values)} values"
            raise InputError(
                f"the attribute of {self.name!r} must have a value for each of the {len(nodes)} "
                f"nodes {shown(list(nodes))}, and {what}; pass a list in their order or a mapping "
                "from their names"
            )
        values = tuple(known[node] for node in nodes)
        return replace(self, values=values, keys=(), default=None, directed=directed)

    def weights(self, nodes: int) -> FloatArray:
        """The matrix w."""
        if self.kind == "one":
            return np.ones((nodes, nodes))
        if self.kind == "equal":
            codes = np.unique([str(value) for value in self.values], return_inverse=True)[1]
            return np.asarray(codes[:, None] == codes, dtype=np.float64)
        places = np.array(self.values, dtype=np.float64)
        together = places[:, None] + places
        return np.asarray(np.abs(places[:, None] - places) if self.kind == "distance" else together)

    def count(self, adjacency: FloatArray) -> FloatArray:
        total = np.tensordot(adjacency, self.weights(adjacency.shape[1]), axes=2)
        return np.asarray(total if self.directed else total / 2)

    def change(self, adjacency: FloatArray, j: int, k: int) -> FloatArray:
        return np.full(len(adjacency), self.weights(adjacency.shape[1])[j, k])


@dataclass(frozen=True)
class Degrees:
    """``sum of f(degree) over nodes``, f one of CURVES.

    ``side`` of directed graphs: "out" and "in" degrees, or "all", their sum.
    """

    name: str
    curve: str
    parameter: float = 0.0
    side: str = "all"
    directed: bool = False

    def at(self, nodes: tuple[str, ...], directed: bool) -> Degrees:
        if self.side != "all" and not directed:
            raise InputError(
                f"{self.name!r} is for directed graphs; leave out side={self.side!r}, or say "
                "directed=True"
            )
        return replace(self, directed=directed)

    def table(self, largest: int) -> FloatArray:
        """f at 0, 1, ..., largest."""
        return curve_table(self.curve, self.parameter, largest)

    def count(self, adjacency: FloatArray) -> FloatArray:
        degree = self._degrees(adjacency)
        return np.asarray(self.table(2 * adjacency.shape[1])[degree].sum(axis=1))

    def change(self, adjacency: FloatArray, j: int, k: int) -> FloatArray:
        step = np.diff(self.table(2 * adjacency.shape[1]))
        ends = {"all": (j, k), "out": (j,), "in": (k,)}[self.side]
        there = adjacency[:, j, k].astype(np.intp)
        out, into = adjacency[:, ends, :].sum(axis=2), adjacency[:, :, ends].sum(axis=1)
        degree = self._side(out, into).astype(np.intp)
        return np.asarray(step[degree - there[:, None]].sum(axis=1))

    def _degrees(self, adjacency: FloatArray) -> Any:
        return self._side(adjacency.sum(axis=2), adjacency.sum(axis=1)).astype(np.intp)

    def _side(self, out: FloatArray, into: FloatArray) -> FloatArray:
        if self.side == "in":
            return into
        return out + into if self.side == "all" and self.directed else out


@dataclass(frozen=True)
class Partners:
    """``sum of f(shared partners of j and k) over edges jk``, f one of CURVES.

    A shared partner is a node h with edges jh and hk; if directed, with j -> h -> k.
    """

    name: str
    curve: str
    parameter: float = 1.0
    directed: bool = False

    def at(self, nodes: tuple[str, ...], directed: bool) -> Partners:
        return replace(self, directed=directed)

    def table(self, largest: int) -> FloatArray:
        """f at 0, 1, ..., largest."""
        return curve_table(self.curve, self.parameter, largest)

    @property
    def times(self) -> int:
        """How often the sum counts what it is to count: a triangle on each of its edges."""
        return 3 if self.curve == "linear" and not self.directed else 1

    def count(self, adjacency: FloatArray) -> FloatArray:
        shared = (adjacency @ adjacency).astype(np.intp)
        values = self.table(adjacency.shape[1])[shared]
        total = np.einsum("njk,njk->n", values, adjacency)
        return np.asarray(total / self.times if self.directed else total / (2 * self.times))

    def change(self, adjacency: FloatArray, j: int, k: int) -> FloatArray:
        """f at the edge's own partners, and one step of f at each edge that gains a partner.

        j -> k is part of j -> k -> h, for which j -> h gains a partner, and of h -> j -> k.
        """
        table = self.table(adjacency.shape[1])
        step = np.diff(table)
        there = adjacency[:, j, k][:, None]
        from_j = (adjacency[:, j, None, :] @ adjacency)[:, 0]
        to_k = (adjacency @ adjacency[:, :, k, None])[:, :, 0]
        total = table[from_j[:, k].astype(np.intp)]
        # The edge counts as a partner where it is there; it is taken out before the step.
        after = adjacency[:, j, :] * adjacency[:, k, :]
        before = adjacency[:, :, j] * adjacency[:, :, k]
        for gaining, shared in ((after, from_j), (before, to_k)):
            others = np.maximum(shared - there, 0).astype(np.intp)
            total = total + (gaining * step[np.minimum(others, len(step) - 1)]).sum(axis=1)
        return np.asarray(total / self.times)


@dataclass(frozen=True)
class Mutual:
    """``sum of x_jk x_kj over pairs j < k`` of directed graphs."""

    name: str = "reciprocity"

    def at(self, nodes: tuple[str, ...], directed: bool) -> Mutual:
        if not directed:
            raise InputError(f"{self.name!r} is for directed graphs; leave it out, or say "
                             "directed=True")  # fmt: skip
        return self

    def count(self, adjacency: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("njk,nkj->n", adjacency, adjacency) / 2)

    def change(self, adjacency: FloatArray, j: int, k: int) -> FloatArray:
        return np.array(adjacency[:, k, j])


def _geometric(m: FloatArray, decay: float) -> FloatArray:
    return np.asarray(math.exp(decay) * (1 - (1 - math.exp(-decay)) ** m))


CURVES: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "linear": lambda m, _: m,
    "pairs": lambda m, _: m * (m - 1) / 2,
    "equal": lambda m, count: (m == count).astype(np.float64),
    "geometric": _geometric,
}


def curve_table(curve: str, parameter: float, largest: int) -> FloatArray:
    """A function of CURVES at 0, 1, ..., largest."""
    return CURVES[curve](np.arange(largest + 1, dtype=np.float64), parameter)


def edges() -> Dyads:
    """The number of edges."""
    return Dyads("edges")


def triangles() -> Partners:
    """The number of triangles; if directed, of triples with j -> h -> k and j -> k."""
    return Partners("triangles", "linear")


def two_stars(side: str = "all") -> Degrees:
    """``sum over nodes of d (d - 1) / 2``: pairs of edges that meet in a node."""
    return Degrees(_sided("two_stars", side), "pairs", side=side)


def degree(count: int, side: str = "all") -> Degrees:
    """The number of nodes with this degree."""
    if not is_whole(count) or count < 0:
        raise InputError(f"degree(count) needs a whole number, 0 or more, got {shown(count)}")
    return Degrees(_sided(f"degree({count})", side), "equal", float(count), side)


def isolates() -> Degrees:
    """The number of nodes without edges."""
    return Degrees("isolates", "equal", 0.0)


def gwdegree(decay: float, side: str = "all") -> Degrees:
    """``exp(a) sum over nodes of 1 - (1 - exp(-a))^d``, a the decay and d the node's degree.

    Each further edge of a node counts 1 - exp(-a) times as much as the one before.
    """
    return Degrees(_sided(f"gwdegree({_decay(decay):g})", side), "geometric", float(decay), side)


def gwesp(decay: float) -> Partners:
    """``exp(a) sum over edges of 1 - (1 - exp(-a))^s``, a the decay, s the edge's shared partners.

    The first triangle on an edge counts 1, each further one 1 - exp(-a) times the one before.
    """
    return Partners(f"gwesp({_decay(decay):g})", "geometric", float(decay))


def homophily(attribute: Any, name: str = "") -> Dyads:
    """The number of edges between nodes of one class; ``attribute`` is the class of each node.

    A list in the order of the nodes, or a mapping from their names.
    """
    return _of_attribute("homophily", attribute, name, "equal")


def difference(attribute: Any, name: str = "") -> Dyads:
    """``sum over edges jk of |a_j - a_k|``; ``attribute`` is the number a of each node."""
    made = _of_attribute("difference", attribute, name, "distance")
    fine = [isinstance(each, numbers.Real) and math.isfinite(each) for each in made.values]
    if not all(fine):
        raise InputError(
            f"difference(attribute) needs a finite number for each node, got "
            f"{shown(made.values[fine.index(False)])}; for classes use homophily"
        )
    return made


def sociality(nodes: Sequence[str]) -> list[Dyads]:
    """A term for each of these nodes, its degree: some nodes have more edges than others.

    Where there are edges, leave out one node: all degrees add up to twice their number. In a list
    of terms: ``["edges", *sociality(names[1:])]``.
    """
    listed = isinstance(nodes, Iterable) and not isinstance(nodes, str)
    if not listed or not all(isinstance(node, str) for node in nodes):
        raise InputError(f"sociality(nodes) needs a list of names of nodes, got {shown(nodes)}")
    return [Dyads(f"degree of {node}", "sum", (1.0,), (node,), default=0.0) for node in nodes]


def reciprocity() -> Mutual:
    """The number of pairs with edges both ways; for directed graphs."""
    return Mutual()


SIMPLE: Mapping[str, Callable[[], Term]] = {
    "edges": edges,
    "triangles": triangles,
    "two_stars": two_stars,
    "isolates": isolates,
    "reciprocity": reciprocity,
}


def _of_attribute(kind: str, attribute: Any, name: str, weight: str) -> Dyads:
    if isinstance(attribute, Mapping):
        keys, values = tuple(map(str, attribute)), tuple(attribute.values())
    else:
        listed = attribute.tolist() if hasattr(attribute, "tolist") else attribute
        fine = isinstance(listed, Sequence) and not isinstance(listed, str)
        keys, values = (), tuple(listed) if fine else ()
    if not values:
        raise InputError(
            f"{kind}(attribute) needs a value for each node, as a list in their order or a mapping "
            f"from their names, got {shown(attribute)}"
        )
    return Dyads(f"{kind}({name})" if name else kind, weight, values, keys)


def _sided(name: str, side: object) -> str:
    if side not in SIDES:
        raise InputError(f'side must be "all", "in" or "out", got {shown(side)}')
    return name if side == "all" else f"{name}_{side}"


def _decay(decay: object) -> float:
    number = isinstance(decay, numbers.Real) and not isinstance(decay, bool)
    if not number or not 0 <= float(decay) < 50:  # type: ignore[arg-type]
        raise InputError(f"decay must be a number from 0 up to 50, such as 0.5, got {shown(decay)}")
    return float(decay)  # type: ignore[arg-type]
