"""Can the model be normalized? Its log density far from the data, in many directions.

A density in k dimensions has an integral only if it falls faster than r^-k in most directions. By
Fubini's theorem that holds in every set of parallel planes of dimension k: where a log density
falls by less than ``k log 10`` from 100 to 1000 times the data's spread, in most directions within
such planes and from several rows of the data, its integral does not exist, and what a contrast
calls log Z is nothing. Lines are planes of dimension 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, Model, Space
from ncbayes.spaces import is_continuous

# How far out, in units of the data's spread.
RADII = (10.0, 100.0, 1000.0)
# Draws looked at, and rows to start from; as many others to look again from.
DRAWS, STARTS = 6, 3
# Directions in all of the space; random planes, and directions in each; axes at most, with two
# signs each, and principal axes as many.
ANYWHERE, PLANES, IN_PLANE, MOST_AXES = 64, 12, 8, 32
# Rounds of the search, each with steps this much shorter, around so many of the best.
ROUNDS, SHORTER, KEPT = 20, 0.7, 8
# At 100 spreads the rows that lines start from, which are a few apart, still matter by this much.
MARGIN = 0.1
# What a search found must fall by less than this: it looked for the flattest, and found accidents.
FLAT = 1.15

LogDensity = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Directions:
    """Unit vectors (direction, d), and ``sets`` of them: the indices that lie in planes of size k.

    Every direction by itself is a line, k = 1.
    """

    vectors: FloatArray
    sets: tuple[tuple[NDArray[np.intp], int], ...]


@dataclass(frozen=True)
class Slow:
    """The change of log p over the last decade, in a direction within planes of some size."""

    change: float
    vector: FloatArray
    plane: int

    @property
    def excess(self) -> float:
        """By how much less log p falls than it must; not positive is fine."""
        return self.change + self.plane * math.log(10)


def is_unbounded(space: Space) -> bool:
    """Whether points of the space have a density and can lie any distance away."""
    return is_continuous(space) and math.isinf(space.log_volume)


def log_density_of(model: Model) -> LogDensity:
    """The function of parameters and points that is log p up to log Z."""
    evaluated: Callable[..., FloatArray] | None = getattr(model, "evaluated", None)
    if evaluated is not None:
        return lambda row, x: evaluated(row[None], x)[0]
    return partial(_family, model)


def _family(model: Model, theta: FloatArray, x: FloatArray) -> FloatArray:
    structured = getattr(model, "design", None)
    if structured is not None:
        values = np.asarray(structured(x).matvec(theta))
    else:
        # What is infinite times a parameter of zero is left out of the sum.
        values = np.asarray(model.statistics(x))[:, theta != 0] @ theta[theta != 0]
    return np.asarray(values + np.ravel(model.log_base(x)), dtype=float)


def tail_concern(
    log_density: LogDensity, draws: FloatArray, data: FloatArray, space: Space, name: str
) -> str | None:
    """The line that says that the integral does not exist, None if nothing speaks against it.

    ``draws`` are rows for ``log_density``, which the line calls ``name``.
    """
    rng = np.random.default_rng(0)
    chosen = draws[np.linspace(0, len(draws) - 1, min(DRAWS, len(draws))).astype(int)]
    starts = data[rng.permutation(len(data))[: 2 * STARTS]]
    spread = data.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    directions = _directions(data / spread, rng)
    inside = _turned(directions, Lines(lambda x: x[:, 0], starts, spread, space))
    if inside is None:
        return None
    found, unknown = [], 0
    for draw in chosen:
        lines = Lines(partial(log_density, draw), starts, spread, space)
        try:
            with np.errstate(all="ignore"):
                slow, seen = _slowest(lines, inside, rng)
        except (ArithmeticError, IndexError, ValueError):
            slow, seen = None, False
        unknown += not seen
        found += [] if slow is None else [slow]
    if found:
        return _divergence(found, len(chosen), name)
    if unknown == len(chosen):
        return (
            f"{name} can't be evaluated or is not a number at 10 and 100 times the data's spread, "
            "so it was not seen whether the model has an integral; make it finite there, or choose "
            "a bounded space such as ncbayes.spaces.Box(low, high)"
        )
    return None


def _directions(scaled: FloatArray, rng: np.random.Generator) -> Directions:
    """Directions for data in units of their spread: axes, principal axes, planes, anywhere."""
    d = scaled.shape[1]
    axes = np.eye(d)[rng.permutation(d)[:MOST_AXES]]
    _, _, principal = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    # Those of least spread last: both ends, if there are too many.
    ends = np.r_[: len(principal)] if len(principal) <= MOST_AXES else np.r_[:16, -16:0]
    single = np.concatenate([axes, -axes, principal[ends], -principal[ends]])
    sets, blocks, count = [], [single], len(single)
    sizes = [*(rng.integers(2, d, PLANES) if d > 2 else []), *([d] if d > 1 else [])]
    for size in sizes:
        block = np.zeros((ANYWHERE if size == d else IN_PLANE, d))
        # Not normal: a coordinate that hardly moves would not be far out yet.
        columns = rng.permutation(d)[:size]
        length = rng.uniform(0.5, 1.5, (len(block), size))
        block[:, columns] = length * rng.choice([-1.0, 1.0], (len(block), size))
        sets.append((np.arange(count, count + len(block)), int(size)))
        blocks.append(block)
        count += len(block)
    return Directions(_unit(np.concatenate(blocks)), tuple(sets))


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@dataclass(frozen=True)
class Lines:
    """Straight lines from some rows of the data, and what log p is far out on them."""

    log_density: Callable[[FloatArray], FloatArray]
    starts: FloatArray
    spread: FloatArray
    space: Space

    def points(self, vectors: FloatArray) -> FloatArray:
        """Points in these directions, (direction, start, radius, d)."""
        steps = np.array(RADII)[:, None] * (vectors * self.spread)[:, None, None, :]
        return np.asarray(self.starts[None, :, None, :] + steps)

    def stay(self, vectors: FloatArray) -> NDArray[np.bool_]:
        """Which directions never leave the space."""
        far = self.points(vectors)
        inside = self.space.contains(far.reshape(-1, far.shape[-1])).reshape(far.shape[:-1])
        return np.asarray(inside.all(axis=(1, 2)))

    def changes(self, vectors: FloatArray) -> FloatArray:
        """``changes`` in these directions, (direction, start)."""
        far = self.points(vectors)
        levels = np.asarray(self.log_density(far.reshape(-1, far.shape[-1])))
        return changes(levels.reshape(far.shape[:-1]))


def _turned(directions: Directions, lines: Lines) -> Directions | None:
    """Directions in which lines stay in the space: turned into it, or left out."""
    vectors = directions.vectors.copy()
    wrong = ~lines.stay(vectors)
    vectors[wrong] = np.abs(vectors[wrong])
    fine = lines.stay(vectors)
    place = np.cumsum(fine) - 1
    kept = [(place[chosen[fine[chosen]]], size) for chosen, size in directions.sets]
    sets = tuple((chosen, size) for chosen, size in kept if len(chosen))
    return Directions(vectors[fine], sets) if fine.any() else None


def changes(levels: FloatArray) -> FloatArray:
    """The change of log p (..., radius) over the last decade in which it is a number, else nan.

    Density 0 has fallen, and what is infinite has risen.
    """
    near, middle, far = np.moveaxis(levels, -1, 0)
    steps = []
    for before, after in ((near, middle), (middle, far)):
        with np.errstate(invalid="ignore"):
            step = np.where(after == -np.inf, -np.inf, after - before)
        steps.append(np.where(after == np.inf, np.inf, step))
    return np.where(np.isnan(steps[1]), steps[0], steps[1])


def _slowest(
    lines: Lines, directions: Directions, rng: np.random.Generator
) -> tuple[Slow | None, bool]:
    """Where log p falls too slowly from most rows, if anywhere; and whether it was seen."""
    vectors = directions.vectors
    change = np.median(lines.changes(vectors), axis=1)  # nan if one is
    seen = [Slow(float(c), v, 1) for c, v in zip(change, vectors, strict=True)]
    for chosen, size in directions.sets:
        middle = chosen[np.argsort(change[chosen])[(len(chosen) - 1) // 2]]
        seen.append(Slow(float(change[middle]), vectors[middle], size))
    slow = [each for each in seen if each.excess > -MARGIN]
    if not slow and np.isfinite(change).any():
        vector = _searched(lines, vectors, change, rng)
        again = lines.changes(np.repeat(vector[None], len(change), axis=0))[0]
        # By starts that the search did not see: it looked for what is flat at its own.
        found = Slow(float(np.median(again[STARTS:] if len(again) > STARTS else again)), vector, 1)
        slow = [found] if found.change > -FLAT else []
    if slow:
        return max(slow, key=lambda each: each.excess), True
    return None, bool(np.any(~np.isnan(change)))


def _searched(
    lines: Lines, vectors: FloatArray, change: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The direction of slowest fall that random steps lead to, by half of the starts."""
    size, d = vectors.shape
    best, value = _best(vectors, change)
    step = 1.0
    for _ in range(ROUNDS):
        step *= SHORTER
        around = best[np.arange(size) % len(best)]
        moved = _unit(around + step * rng.standard_normal((size, d)) / math.sqrt(d))
        moved = np.where(lines.stay(moved)[:, None], moved, around)
        found = lines.changes(moved)[:, :STARTS].min(axis=1)
        best, value = _best(np.concatenate([best, moved]), np.concatenate([value, found]))
    return np.asarray(best[-1])


def _best(vectors: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The directions of slowest fall, the slowest last."""
    order = np.argsort(np.nan_to_num(change, nan=-np.inf, posinf=np.inf, neginf=-np.inf))[-KEPT:]
    return vectors[order], change[order]


def _divergence(found: list[Slow], looked_at: int, name: str) -> str:
    worst = max(found, key=lambda each: each.excess)
    needed = worst.plane * math.log(10)
    at_draws = (
        "at all draws" if len(found) == looked_at else f"at {len(found)} of {looked_at} draws"
    )
    change = f"changes by {worst.change:+.2g}" if math.isfinite(worst.change) else "grows to inf"
    return (
        f"{name} can't be normalized {at_draws} looked at: far out {_words(worst.vector)} it "
        f"{change} from 100 to 1000 spreads and must fall by {needed:.2g}; log_z means nothing "
        "there: add a term that falls, narrow the priors, or use a bounded space "
        "(ncbayes.spaces.Box)"
    )


def _words(vector: FloatArray) -> str:
    """The direction, in units of the data's spread."""
    largest = int(np.argmax(np.abs(vector)))
    if abs(vector[largest]) > 1 - 1e-6:
        return f"{'up' if vector[largest] > 0 else 'down'} column {largest}"
    entries = ", ".join(f"{each:.1g}" for each in vector[:3])
    return f"along ({entries}{', ...' if len(vector) > 3 else ''})"
