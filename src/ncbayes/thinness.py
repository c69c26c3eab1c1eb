"""Do the data fill their space? Rows on a plane or a sphere, and values that repeat too often.

A model on a continuous space has a density by volume. Rows that sum to one, unit vectors and
patches with their mean removed lie on sets without volume: no density describes them, and a
contrast with noise all over the space answers another question. An atom, one value that many rows
share exactly, is a set without volume within a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ncbayes.base import BoolArray, FloatArray, InputError, Space, in_group, shown
from ncbayes.spaces import Counts, is_continuous, is_periodic

# Fewer rows than this beyond the columns may lie on a plane by accident.
SPARE_ROWS = 10
# Spread across a set, by that along it: below the first it is round-off, below the second rounding.
EXACT, NEARLY = 1e-6, 1e-2
# Combinations other than sums are told only if they are finer than that: sensors may agree so well.
FINE = 1e-3
# An atom: the rows that share a value, their share, and how many times the rows of each of the two
# nearest values on both sides. Rounding makes many values of about equal size.
ATOM_ROWS, ATOM_SHARE, ATOM_TIMES, NEIGHBOURS = 12, 0.15, 5, 2
# Values so many times farther out than the quartiles are apart, if their share is this small at
# most, are errors rather than tails; so many rows are named.
FAR_OUT, FAR_OUT_IN_LOGS, FEW_FAR, SHOWN = 100.0, 5.0, 0.1, 5
# A column with no more values than this in so many rows is not measured on a continuous scale.
FEW_VALUES, MANY_ROWS = 3, 20


def thin_lines(
    space: Space, groups: Mapping[str, FloatArray], columns: Sequence[str] = ()
) -> list[str]:
    """Lines about atoms and nearly thin data; an InputError where rows lie on a thin set.

    ``columns`` are the columns' names, if they have some.
    """
    if not is_continuous(space):
        return _far_lines(groups, columns) if isinstance(space, Counts) else []
    lines: list[str] = [] if is_periodic(space) else _far_lines(groups, columns)
    names = [shown(each) for each in columns or range(space.dimension)]
    for label, points in groups.items():
        where = f"in group {shown(label)}: " if len(groups) > 1 else ""
        with in_group(label, len(groups)):
            found = list(_periodic(points, names) if is_periodic(space) else _flat(points, names))
        found += _atoms(points, names, is_periodic(space))
        lines += [where + line for line in found]
    return lines


def _far_lines(groups: Mapping[str, FloatArray], columns: Sequence[str]) -> list[str]:
    """Values so far out that a decimal point may have been lost, with their rows."""
    points = np.concatenate([*groups.values()])
    if len(points) < MANY_ROWS:
        return []
    middle = np.median(points, axis=0)
    far = _far_out(points, FAR_OUT)
    # Positive numbers may reach over many orders of magnitude: then also by their logarithms.
    positive = (points > 0).all(axis=0)
    far[:, positive] &= _far_out(np.log(points[:, positive]), FAR_OUT_IN_LOGS)
    names = [shown(each) for each in columns or range(points.shape[1])]
    lines = []
    for k in np.flatnonzero(far.any(axis=0) & (far.mean(axis=0) < FEW_FAR)):
        rows = np.flatnonzero(far[:, k])
        some = ", ".join(f"{row} ({points[row, k]:.6g})" for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        which = "row" if len(rows) == 1 else "rows"
        lines.append(
            f"column {names[k]} has values more than {FAR_OUT:g} times as far from its median "
            f"({middle[k]:.4g}) as its quartiles are apart, in {which} {some}{more}, counted from "
            "0: decimal points may have been lost; mend or remove these rows, since no model of "
            "this kind can hold both them and the others"
        )
    return lines


def _far_out(points: FloatArray, times: float) -> BoolArray:
    """Which values are so many times as far from their median as the quartiles are apart."""
    low, middle, high = np.quantile(points, [0.25, 0.5, 0.75], axis=0)
    return np.asarray(np.abs(points - middle) > times * np.where(high > low, high - low, np.inf))


def _flat(points: FloatArray, names: Sequence[str]) -> Iterator[str]:
    """Planes and spheres."""
    varies = np.ptp(points, axis=0) > 0  # constant columns are refused for what they are
    x, names = points[:, varies], [name for name, fine in zip(names, varies, strict=True) if fine]
    n, d = x.shape
    if d < 2 or n < d + SPARE_ROWS:
        return
    spread = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / spread
    narrowest = np.linalg.svd(scaled, compute_uv=False)[-1] / np.sqrt(n)
    whole = np.sqrt((spread**2).sum())
    total = x.sum(axis=1).std() / whole
    if narrowest < EXACT:
        raise InputError(_dependence(x, scaled, names))
    length = np.linalg.norm(points, axis=1)
    if length.std() < EXACT * whole:
        raise InputError(
            f"all rows have length {length.mean():.6g}: they lie on a sphere, which has no volume "
            f"among all vectors of {points.shape[1]} numbers, so that no density describes them; "
            f"{_off_the_sphere(points.shape[1])}"
        )
    if total < NEARLY:
        yield (
            f"rows nearly sum to {x.sum(axis=1).mean():.4g} (their sums vary by {total:.1g} of "
            "what independent columns would): they lie near a plane, and no density all over the "
            "space describes that; drop one column, or fit log ratios of the shares"
        )
    elif narrowest < FINE:
        yield (
            "a combination of the columns is nearly constant (it varies by "
            f"{narrowest:.1g} of their spread): the data lie near a plane, of which noise and "
            "model know little; drop a column that the others determine"
        )
    if length.std() < NEARLY * whole:
        yield (
            f"rows nearly have one length, {length.mean():.4g}: they lie near a sphere, and no "
            f"density all over the space describes that; {_off_the_sphere(points.shape[1])}"
        )


def _off_the_sphere(dimension: int) -> str:
    if dimension == 2:
        return "pass their angles, np.arctan2(y, x), and a model on ncbayes.spaces.Torus(1)"
    return f"describe the rows by {dimension - 1} numbers, such as angles, or keep their lengths"


def _dependence(x: FloatArray, scaled: FloatArray, names: Sequence[str]) -> str:
    """The first column that those before it determine, in words."""
    diagonal = np.abs(np.diag(np.linalg.qr(scaled, mode="r"))) / np.sqrt(len(x))
    last = int(np.argmax(diagonal < 2 * EXACT)) or int(np.argmin(diagonal))
    weights = np.linalg.lstsq(scaled[:, :last], scaled[:, last], rcond=None)[0]
    spread = x.std(axis=0)
    coefficients = np.append(-weights / spread[:last] * spread[last], 1.0)
    kept = np.flatnonzero(np.abs(np.append(weights, 1.0)) > 1e-4)
    used, chosen = coefficients[kept], [names[int(k)] for k in kept]
    constant = float((x[:, kept] @ used).mean())
    listed = _listed(chosen)
    if np.allclose(used, 1.0, rtol=1e-4):
        constant = 0.0 if abs(constant) < 1e-6 * np.abs(x[:, kept]).max() else constant
        seen = f"columns {listed} sum to {constant:.6g} in every row"
    else:
        seen = f"column {names[last]} is a linear combination of others (among columns {listed})"
    return (
        f"{seen}: the rows lie on a plane, which has no volume in {x.shape[1]} dimensions, so that "
        f"no density describes them; drop one of these columns, such as {names[last]}, and use the "
        "model with one column less (or log ratios, for shares of a whole)"
    )


def _periodic(points: FloatArray, names: Sequence[str]) -> Iterator[str]:
    """Angles that differ from others, or from their mirror images, by a constant."""
    n, d = points.shape
    turns = np.exp(1j * points)
    varies = np.abs(turns.mean(axis=0)) < 1 - 1e-9
    if d < 2 or n < d + SPARE_ROWS:
        return
    for other, words in ((turns.conj(), "minus"), (turns, "plus")):
        together = np.abs(turns.T @ other) / n
        pairs = np.argwhere(np.triu(together > 1 - 1e-9, 1) & varies & varies[:, None])
        for a, b in pairs[:1]:
            raise InputError(
                f"column {names[b]} {words} column {names[a]} is the same angle in every row, so "
                f"that no density describes both; drop one of them, such as {names[b]}"
            )
    yield from ()


def _atoms(points: FloatArray, names: Sequence[str], periodic: bool) -> Iterator[str]:
    """Columns of few values, and values that far more rows share than the values beside them."""
    n, few, atoms = len(points), [], []
    for name, column in zip(names, points.T, strict=True):
        values, counts = np.unique(column, return_counts=True)
        if len(values) <= FEW_VALUES and n >= MANY_ROWS and not periodic:
            few += [name] if len(values) > 1 else []
            continue
        beside = _beside(counts, periodic)
        large = counts >= max(ATOM_ROWS, ATOM_SHARE * n)
        for k in np.flatnonzero(large & (counts >= ATOM_TIMES * beside) & (len(values) > 1)):
            atoms.append(f"{100 * counts[k] / n:.0f} % have {values[k]:.6g} in column {name}")
    if few:
        yield (
            f"at most {FEW_VALUES} values in {n} rows occur in {_columns(few)}, which no density "
            "describes; use a model of zeros and ones or of counts, or make such a column the "
            "groups of the data"
        )
    if atoms:
        yield (
            f"many rows share one value exactly ({_listed(atoms, 3)}), an atom that no density "
            "describes: a fit makes a narrow peak of it, if anything; fit the other rows, and "
            "report the share of these beside it"
        )


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {_listed(names)}"


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _beside(counts: np.ndarray[Any, Any], periodic: bool) -> FloatArray:
    """The largest number of rows among the nearest values on both sides."""
    edge = "wrap" if periodic else "constant"
    padded = np.pad(counts, NEIGHBOURS, mode=edge)  # type: ignore[call-overload]
    shifts = [k for k in range(2 * NEIGHBOURS + 1) if k != NEIGHBOURS]
    return np.asarray(np.max([padded[k : k + len(counts)] for k in shifts], axis=0), dtype=float)
