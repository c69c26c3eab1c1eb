"""The plain spaces: angles, boxes, real and positive numbers, zeros and ones, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.spaces.points import check_numbers, is_whole, offenders

TWO_PI = 2 * math.pi

# 2 pi stored as float32 lies 1.7e-7 above 2 pi.
ANGLE_SLACK = 1e-6
# A column of angles with so many rows or more and only two values, both whole numbers up to this
# size, in radians or degrees, is one of labels: 0 and 1, 1 and 2, -1 and 1.
LABELLED_ROWS, LARGEST_LABEL = 5, 2


@dataclass(frozen=True)
class Torus:
    """Angles in radians: the points with ``0 <= x < 2 pi``; ``check`` brings others there."""

    dimension: int
    continuous: ClassVar[bool] = True
    periodic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_dimension("Torus", self.dimension)

    @property
    def log_volume(self) -> float:
        return self.dimension * math.log(TWO_PI)

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        if np.any(np.abs(points) > TWO_PI + ANGLE_SLACK):
            raise InputError(
                "angles must be in radians, between -2 pi and 2 pi, got values from "
                f"{points.min():.6g} to {points.max():.6g}: pass np.deg2rad(data) if they are "
                "degrees, data % (2 * np.pi) if they are unwrapped phases"
            )
        labelled = label_columns(points)
        if labelled:
            column = labelled[0]
            values = " and ".join(f"{value:.4g}" for value in np.unique(points[:, column]))
            raise InputError(
                f"column {columns[column]} holds only {values}, which looks like labels, such as "
                "those of conditions, and not like angles: leave it out (choose columns by "
                "--columns in the command), or make groups of it, as in fit(model, {label: rows, "
                "...}) (--group); angles that are so pass less a full turn, as data - 2 * np.pi"
            )
        return wrapped(points)

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows((points >= 0) & (points < TWO_PI))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(0.0, TWO_PI, (size, self.dimension))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(points), np.zeros_like(points)


@dataclass(frozen=True, eq=False)
class Box:
    """The points with ``low <= x <= high`` in every coordinate.

    >>> Box(low=(0.0, 0.0), high=(1.0, 2.0)).dimension
    2
    """

    low: ArrayLike
    high: ArrayLike
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_numbers("Box", low=self.low, high=self.high)
        low, high = self.bounds
        if low.ndim != 1 or low.shape != high.shape:
            raise InputError(
                "Box(low, high) needs one lower and one upper bound for each column, "
                f"got shapes {low.shape} and {high.shape}"
            )
        if not np.all((low < high) & np.isfinite(low) & np.isfinite(high)):
            raise InputError(
                "Box(low, high) needs finite bounds with low < high in every column, "
                f"got low={shown(low.tolist())}, high={shown(high.tolist())}"
            )

    # The generated comparison is ambiguous for arrays.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and np.array_equal(self.bounds, other.bounds)

    def __hash__(self) -> int:
        return hash(tuple(np.concatenate(self.bounds).tolist()))

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds, each (dimension,)."""
        low, high = (np.atleast_1d(np.asarray(b, np.float64)) for b in (self.low, self.high))
        return low, high

    @property
    def dimension(self) -> int:
        return len(self.bounds[0])

    @property
    def log_volume(self) -> float:
        low, high = self.bounds
        return float(np.log(high - low).sum())

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        low, high = self.bounds
        outside = (points < low) | (points > high)
        if outside.any():
            column = np.argwhere(outside)[0, 1]
            raise InputError(
                f"data must lie in the box, got {offenders(outside, points, columns)}, where the "
                f"bounds are {low[column]:.6g} and {high[column]:.6g}: drop these rows or widen "
                "the box"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        low, high = self.bounds
        return _rows((low <= points) & (points <= high))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        low, high = self.bounds
        return rng.uniform(low, high, (size, len(low)))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.bounds
        depth = (points - low) * (high - points) / (high - low)
        return depth**2, 2 * depth * (low + high - 2 * points) / (high - low)


@dataclass(frozen=True)
class Reals:
    """All real vectors."""

    dimension: int
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_dimension("Reals", self.dimension)

    @property
    def log_volume(self) -> float:
        return math.inf

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows(np.isfinite(points))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        raise InputError(no_uniform(self))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(points), np.zeros_like(points)


@dataclass(frozen=True)
class Orthant:
    """Vectors with ``x >= 0`` in every coordinate; zeros belong to it."""

    dimension: int
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_dimension("Orthant", self.dimension)

    @property
    def log_volume(self) -> float:
        return math.inf

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        negative = points < 0
        if negative.any():
            raise InputError(
                "data must be zero or positive, got "
                f"{offenders(negative, points, columns)}: drop these rows or use a model of real "
                "numbers"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows(np.isfinite(points) & (points >= 0))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        raise InputError(no_uniform(self))

    def score_weight(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return points**2, 2 * points


@dataclass(frozen=True)
class Binary:
    """Vectors of zeros and ones, or with ``spins`` of -1 and +1.

    The volume is the number of points, 2^dimension.
    """

    dimension: int
    spins: bool = False
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_dimension("Binary", self.dimension)
        if not isinstance(self.spins, bool | np.bool_):
            raise InputError(f"Binary(spins=...) must be True or False, got {shown(self.spins)}")

    @property
    def lower(self) -> float:
        """The lower of the two states; the upper one is 1."""
        return -1.0 if self.spins else 0.0

    @property
    def log_volume(self) -> float:
        return self.dimension * math.log(2)

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        other = (points != self.lower) & (points != 1)
        if other.any():
            states, rivals = ("-1 or 1", (0, 1)) if self.spins else ("0 or 1", (-1, 1))
            remedy = f"recode the data as {states.replace('or', 'and')}"
            if np.isin(points, rivals).all():
                turned = "2 * data - 1" if self.spins else "(data + 1) / 2"
                asked = "zeros and ones" if self.spins else "spins"
                name = "01" if self.spins else "spins"
                remedy = f'pass {turned}, or ask for {asked}, as in Ising(..., coding="{name}")'
            raise InputError(
                f"data must be {states}, got {offenders(other, points, columns)}: {remedy}"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        return _rows((points == self.lower) | (points == 1))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        bits = rng.integers(0, 2, (size, self.dimension)).astype(np.float64)
        return 2 * bits - 1 if self.spins else bits


@dataclass(frozen=True)
class Counts:
    """Vectors of whole numbers from 0 up, or from 0 to ``most``, the same in every coordinate.

    The volume is the number of points, (most + 1)^dimension.
    """

    dimension: int
    most: int | None = None
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_dimension("Counts", self.dimension)
        if self.most is not None and not (is_whole(self.most) and self.most >= 1):
            raise InputError(
                "Counts(most=...) must be a whole number of at least 1, the largest count, or "
                f"None, got {shown(self.most)}"
            )

    @property
    def log_volume(self) -> float:
        return math.inf if self.most is None else self.dimension * math.log(self.most + 1)

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        wrong = (points < 0) | (points != np.floor(points))
        if wrong.any():
            raise InputError(
                "data must be counts, whole numbers from 0 up, got "
                f"{offenders(wrong, points, columns)}: drop these rows or use a model of real "
                "numbers"
            )
        if self.most is not None and (points > self.most).any():
            raise InputError(
                f"data must be counts up to {self.most}, got "
                f"{offenders(points > self.most, points, columns)}: raise the limit most=... to "
                f"{points.max():.0f} or more"
            )
        return points

    def contains(self, points: FloatArray) -> BoolArray:
        most = math.inf if self.most is None else self.most
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(points) & (points == np.floor(points))
        return _rows(whole & (points >= 0) & (points <= most))

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        if self.most is None:
            raise InputError(no_uniform(self))
        return rng.integers(0, self.most + 1, (size, self.dimension)).astype(np.float64)


def label_columns(values: FloatArray) -> list[int]:
    """Columns of supposed angles, in radians or degrees, that hold two small whole numbers.

    >>> label_columns(np.array([[0.0, 0.1], [1.0, 0.2], [1.0, 3.0], [0.0, 4.0], [1.0, 5.0]]))
    [0]
    """
    if len(values) < LABELLED_ROWS:
        return []
    found = []
    for column in range(values.shape[1]):
        low, high = values[:, column].min(), values[:, column].max()
        if low < high and np.isin(values[:, column], (low, high)).all():
            ends = np.array([low, high])
            wholes = [each for each in (ends, np.rad2deg(ends)) if _are_labels(each)]
            found += [column] if wholes else []
    return found


def _are_labels(ends: FloatArray) -> bool:
    # A degree in radians and back is whole but for rounding.
    return bool(
        np.all(np.abs(ends - np.round(ends)) < 1e-9) and np.abs(ends).max() < LARGEST_LABEL + 0.5
    )


def wrapped(angles: FloatArray) -> FloatArray:
    """The angles modulo 2 pi, in [0, 2 pi)."""
    remainder = np.mod(angles, TWO_PI)
    # A tiny negative angle is rounded up to 2 pi itself.
    return np.where(remainder >= TWO_PI, 0.0, remainder)


def no_uniform(space: object) -> str:
    """What to tell someone who wants uniform points on an unbounded space."""
    return (
        f"there is no uniform distribution on {space}, its volume is infinite: "
        "use Normal or StudentT noise (Gamma for positive numbers, NegativeBinomial for counts), "
        "or a bounded space"
    )


def _rows(fine: BoolArray) -> BoolArray:
    return np.asarray(fine.all(axis=1), dtype=np.bool_)


def _check_dimension(name: str, dimension: object) -> None:
    if not is_whole(dimension) or dimension < 1:
        raise InputError(
            f"{name}(dimension) needs a whole number of at least 1, got {shown(dimension)}"
        )
