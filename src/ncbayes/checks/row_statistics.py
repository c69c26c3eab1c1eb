"""What a fitted model is asked about data, by the space of its points: statistics of single rows.

Each is a function of a row whose mean over the data is compared with its mean under the model. The
bins of margins are quantiles of simulated rows, so they are fixed before the data are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, singledispatch
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray
from ncbayes.checks.graph_statistics import Stacks, graph_looks
from ncbayes.checks.look import Bins, Look, bins_of
from ncbayes.spaces import Binary, Counts, Graphs, GraphSets, Torus, default_names

# Numbers beyond so many simulated standard deviations count as that many in powers.
FARTHEST = 6.0
# Pairs and triples of columns that are looked at, chosen evenly if there are more.
MAX_PAIRS = 500


def looks(space: Any, simulated: FloatArray, names: Sequence[str] = ()) -> list[Look]:
    """What to compare on a space, of columns with these names; ``simulated`` rows set the bins."""
    own = list(names) or list(default_names(simulated.shape[1]))
    return [each for each in _looks(space, simulated, own) if each.labels]


@singledispatch
def _looks(space: Any, simulated: FloatArray, names: list[str]) -> Iterator[Look]:
    """Numbers: margins by bins, powers, and products of pairs."""
    middle, scale = simulated.mean(axis=0), simulated.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def standard(x: FloatArray) -> FloatArray:
        return np.asarray(np.clip((x - middle) / scale, -FARTHEST, FARTHEST))

    yield _margins(simulated, names)
    yield Look(
        "shapes",
        tuple(f"{name} {power}" for power in ("squared", "cubed", "to the 4th") for name in names),
        lambda x: np.hstack([standard(x) ** power for power in (2, 3, 4)]),
        "spread, skewness or tails of a column differ",
        partial(_column, names),
    )
    chosen = _chosen(len(names), 2)
    yield _products("pairs", names, chosen, standard, "correlations differ")
    bent = tuple(f"{names[j]}^2 {names[k]}" for i, k in chosen for j, k in ((i, k), (k, i)))
    one, other = _ends(chosen)

    def crooked(x: FloatArray) -> FloatArray:
        z = standard(x)
        both = np.stack([z[:, one] ** 2 * z[:, other], z[:, other] ** 2 * z[:, one]], axis=2)
        return both.reshape(len(x), -1)

    yield Look("bent pairs", bent, crooked, "columns depend on each other in a bent way")


@_looks.register
def _(space: Torus, simulated: FloatArray, names: list[str]) -> Iterator[Look]:
    """Angles: first and second harmonics of columns, and of differences and sums of pairs."""
    chosen = _chosen(len(names), 2)
    one, other = _ends(chosen)
    yield _harmonic("directions", names, 1, lambda x: x, "directions or their spread differ")
    yield _harmonic(
        "second harmonics", names, 2, lambda x: x,
        "angles lie on two opposite sides, or are more or less peaked than the model can be",
    )  # fmt: skip
    for sign, word in ((-1, "differences"), (1, "sums")):
        mark = "-" if sign < 0 else "+"
        labels = [f"{names[j]} {mark} {names[k]}" for j, k in chosen]
        combined = partial(_combined, one, other, sign)
        yield _harmonic(word, labels, 1, combined, f"{word} of pairs of angles differ")
        yield _harmonic(
            f"second harmonics of {word}", labels, 2, combined,
            f"{word} of pairs lie on two opposite sides, or are more or less peaked",
        )  # fmt: skip


def _combined(
    one: NDArray[np.intp], other: NDArray[np.intp], sign: int, x: FloatArray
) -> FloatArray:
    return np.asarray(x[:, one] + sign * x[:, other])


def _harmonic(
    name: str, labels: Sequence[str], order: int, of: Callable[[FloatArray], FloatArray], says: str
) -> Look:
    def values(x: FloatArray) -> FloatArray:
        angles = order * of(x)
        return np.hstack([np.cos(angles), np.sin(angles)])

    def axis(k: int) -> tuple[str, Callable[[FloatArray], FloatArray]]:
        column = k % len(labels)
        return labels[column], lambda x: np.angle(np.exp(1j * of(x)[:, column]))

    times = "" if order == 1 else f"{order} "
    both = [f"{wave} {times}({label})" for wave in ("cos", "sin") for label in labels]
    return Look(name, tuple(both), values, says, axis)


@_looks.register
def _(space: Binary, simulated: FloatArray, names: list[str]) -> Iterator[Look]:
    """Two values: shares of columns and pairs, and how many there are in a row."""

    def ones(x: FloatArray) -> FloatArray:
        return np.asarray(x == 1, dtype=float)

    yield Look("shares", tuple(names), ones, "shares of ones in a column differ")
    yield _products("pairs", names, _chosen(len(names), 2), ones, "correlations differ")
    three = _chosen(len(names), 3)
    yield Look(
        "triples",
        tuple(", ".join(names[j] for j in each) for each in three),
        lambda x: np.prod([ones(x)[:, [each[k] for each in three]] for k in range(3)], axis=0),
        "three columns are one together more or less often than pairs of them explain",
    )
    total = bins_of(ones(simulated).sum(axis=1))

    def in_row(k: int) -> tuple[str, Callable[[FloatArray], FloatArray]]:
        return "ones in a row", lambda x: ones(x).sum(axis=1)

    labels = tuple(f"{words} ones in a row" for words in total.labels)
    yield Look(
        "ones in a row",
        labels,
        lambda x: total.shares(ones(x).sum(axis=1)),
        "rows with few or many ones are more or less frequent",
        in_row,
    )
    yield Look(
        "rows alike",
        ("all zero", "all one"),
        lambda x: np.column_stack([~ones(x).any(axis=1), ones(x).all(axis=1)]).astype(float),
        "rows of zeros (or ones) alone are more or less frequent",
        in_row,
    )


@_looks.register
def _(space: Counts, simulated: FloatArray, names: list[str]) -> Iterator[Look]:
    """Counts: margins, dispersion, pairs, and totals of a row."""
    scale = np.maximum(simulated.std(axis=0), 0.5)
    middle = simulated.mean(axis=0)

    def standard(x: FloatArray) -> FloatArray:
        return np.asarray(np.clip((x - middle) / scale, -FARTHEST, FARTHEST))

    yield _margins(simulated, names)
    yield Look(
        "dispersion",
        tuple(f"{name} squared" for name in names),
        lambda x: standard(x) ** 2,
        "counts vary more or less than the model allows",
        partial(_column, names),
    )
    yield _products("pairs", names, _chosen(len(names), 2), standard, "correlations differ")
    if len(names) > 1:
        total = _margins(simulated.sum(axis=1, keepdims=True), ["total"])
        yield Look(
            "totals",
            total.labels,
            lambda x: total.values(x.sum(axis=1, keepdims=True)),
            "totals of rows differ",
            lambda k: ("total of a row", lambda x: x.sum(axis=1)),
        )


@_looks.register
def _(space: Graphs, simulated: FloatArray, names: list[str]) -> Iterator[Look]:
    """Graphs: degrees, shared partners of edges, distances, and dyads in both directions."""
    yield from graph_looks(lambda x: [(np.arange(len(x)), space.adjacency(x))], simulated, space)


@_looks.register
def _(space: GraphSets, simulated: FloatArray, names: list[str]) -> Iterator[Look]:
    def stacks(x: FloatArray) -> Stacks:
        parts = zip(space.split(x), space.sets, strict=True)
        return [(rows, each.adjacency(dyads)) for (rows, dyads), each in parts if len(rows)]

    yield from graph_looks(stacks, simulated, space.sets[0])


def _margins(simulated: FloatArray, names: Sequence[str]) -> Look:
    """The share of each column's numbers between quantiles of simulated ones."""
    bins = [bins_of(column) for column in simulated.T]
    labels = tuple(
        f"{name} {label}"
        for name, each in zip(names, bins, strict=True)
        for label in _between(each)
    )

    def values(x: FloatArray) -> FloatArray:
        return np.hstack([each.shares(x[:, j]) for j, each in enumerate(bins)])

    owner = np.repeat(np.arange(len(bins)), [len(each.labels) for each in bins])
    return Look(
        "margins",
        labels,
        values,
        "the distribution of a column differs",
        lambda k: _column(names, int(owner[k])),
    )


def _column(names: Sequence[str], k: int) -> tuple[str, Callable[[FloatArray], FloatArray]]:
    column = k % len(names)
    return names[column], lambda x: x[:, column]


def _between(bins: Bins) -> list[str]:
    lows = [None, *bins.ends]
    words = []
    for low, high in zip(lows, [*bins.ends, None], strict=True):
        if high is None:
            words.append(f"above {low:.3g}")
        elif low is None:
            words.append(f"up to {high:.3g}")
        else:
            words.append(f"from {low:.3g} to {high:.3g}")
    return words


def _products(
    name: str,
    names: Sequence[str],
    chosen: list[tuple[int, ...]],
    of: Callable[[FloatArray], FloatArray],
    says: str,
) -> Look:
    one, other = _ends(chosen)

    def values(x: FloatArray) -> FloatArray:
        z = of(x)
        return np.asarray(z[:, one] * z[:, other])

    return Look(name, tuple(f"{names[j]}, {names[k]}" for j, k in chosen), values, says)


def _chosen(columns: int, size: int) -> list[tuple[int, ...]]:
    """Sets of so many columns: all of them, or some that are evenly spread over all."""
    count = math.comb(columns, size)
    if count <= MAX_PAIRS:
        return list(combinations(range(columns), size))
    wanted = set(np.linspace(0, count - 1, MAX_PAIRS).astype(int).tolist())
    every = combinations(range(columns), size)
    return [each for number, each in enumerate(every) if number in wanted]


def _ends(chosen: list[tuple[int, ...]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    ends = np.array(chosen, dtype=np.intp).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]
