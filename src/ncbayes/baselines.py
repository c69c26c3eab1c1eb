"""What to compare densities over time with: kernel density estimates, time by time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.dates import DateStyle
from ncbayes.diagnostics import FitWarning
from ncbayes.events import events
from ncbayes.progress import Progress, tell
from ncbayes.spaces import Box, Projection, Reals, Region, as_points, column_count
from ncbayes.spaces.rows import match_rows

# Spread of a time's points in any direction, as a share of that of all points, below which they
# count as lying on a line.
THIN = 1e-3
# Cells of the grid that normalizes over a domain, and how many kernel sds it reaches beyond the
# points: 5 leave 6e-7 of a normal outside.
CELLS, REACH = 2**16, 5.0
# Points of the lattice in a cell at the border, and its generator: odd, and about PARTS divided by
# the golden ratio, for points that are well apart.
PARTS, GENERATOR = 64, 39
# Numbers at a time, of points times kernels: 1 MB, which stays in the cache.
CHUNK = 2**17


@dataclass(frozen=True, eq=False)
class Kernels:
    """``f(x) = mean_i N(x; centers_i, covariance)``, over all of space."""

    centers: FloatArray
    covariance: FloatArray

    def log_density(self, x: FloatArray) -> FloatArray:
        count, dimension = self.centers.shape
        root = np.linalg.cholesky(self.covariance)
        at, points = (solve_triangular(root, each.T, lower=True) for each in (self.centers, x))
        constant = dimension / 2 * math.log(2 * math.pi) + np.log(np.diag(root)).sum()
        logs, size = np.empty(len(x)), max(1, CHUNK // count)
        for start in range(0, len(x), size):
            chosen = slice(start, start + size)
            squares = sum(
                np.subtract.outer(p[chosen], c) ** 2 for p, c in zip(points, at, strict=True)
            )
            nearest = squares.min(axis=1)
            mass = np.exp((nearest[:, None] - squares) / 2).sum(axis=1)
            logs[chosen] = np.log(mass) - nearest / 2
        return np.asarray(logs - constant - math.log(count))


@dataclass(frozen=True, eq=False)
class TimewiseKDE:
    """A kernel density estimate for each time, from the points of that time alone.

    The estimates are those of ``scipy.stats.gaussian_kde``: normal kernels at the points, with
    the covariance of the points times Scott's factor ``n^(-2 / (dimension + 4))``. Times
    whose points do not say how wide a kernel should be (too few of them, or all on a line, or
    nearly so) take the covariance of the points of all times, with the factor of their own n. A
    time without points takes the estimate from the points of all times.

    Densities are those over all of space, or with a ``domain`` 0 outside and divided by the mass
    inside, ``exp(log_mass)``: a sum over a grid, right to about 0.0005 in the
    plane.
    """

    labels: tuple[Any, ...]
    kernels: tuple[Kernels, ...]
    log_mass: tuple[float, ...]
    domain: Space | None = None

    @classmethod
    def of(
        cls,
        points: object,
        times: Any,
        domain: Space | None = None,
        *,
        labels: Sequence[Any] | None = None,
    ) -> TimewiseKDE:
        """The estimates from points (rows) and their times.

        ``labels`` are the times to estimate, in order, for which there may be no points; None:
        those that occur, sorted.

        >>> kde = TimewiseKDE.of([[0.0, 0], [1, 0], [0, 2], [1, 1]], [1, 1, 1, 2], labels=[1, 2, 3])
        >>> kde.density([[0.0, 0.0], [1.0, 1.0]]).shape
        (3, 2)
        """
        if domain is not None and not isinstance(domain, Space):
            raise InputError(
                "domain must be a space, such as ncbayes.spaces.Box(low, high), or None for all of "
                f"space, got {shown(domain)}"
            )
        space = Reals(column_count(points)) if domain is None else domain
        rows = as_points(points, space, "TimewiseKDE", minimum=1)
        stamps, order = _labelled(match_rows(points, times), len(rows), labels)
        pooled = _spread(rows)
        if pooled is None:
            raise InputError(
                f"points must have at least {rows.shape[1] + 1} rows that vary in every direction, "
                f"got {len(rows)} that all lie on a line or in a plane: use fewer columns"
            )
        kernels = tuple(_kernels(rows[stamps == k], rows, pooled) for k in range(len(order)))
        if domain is None:
            return cls(order, kernels, (0.0,) * len(order))
        return cls(order, kernels, tuple(_log_mass(each, domain) for each in kernels), domain)

    def log_density(self, label: Any, x: object) -> FloatArray:
        """The log density of the time with this label, at the rows of x."""
        if label not in self.labels:
            raise InputError(
                f"label must be one of the times {shown(list(self.labels))}, got {shown(label)}"
            )
        return self._at(self.labels.index(label), self._rows(x))

    def density(self, x: object) -> FloatArray:
        """The densities of all times at the rows of x, (time, row)."""
        rows = self._rows(x)
        return np.exp([self._at(k, rows) for k in range(len(self.labels))])

    def _rows(self, x: object) -> FloatArray:
        dimension = self.kernels[0].centers.shape[1]
        return as_points(x, Reals(dimension), "TimewiseKDE", minimum=1)

    def _at(self, k: int, rows: FloatArray) -> FloatArray:
        logs = self.kernels[k].log_density(rows) - self.log_mass[k]
        if self.domain is None:
            return logs
        return np.where(self.domain.contains(rows), logs, -np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class KDEOverTime:
    """A kernel density estimate for each time, as ``ncbayes.densities`` reads it.

    ``estimate`` and ``points``, those of each time by label, are in the coordinates of ``space``:
    in km with a ``projection``. ``times`` are datetimes or numbers, None where there are labels
    only, and ``style`` is how dates were read. ``dropped`` points lay outside the space and were
    left out.
    """

    estimate: TimewiseKDE
    space: Box | Region
    axes: tuple[str, ...]
    times: NDArray[Any] | None
    points: Mapping[str, FloatArray]
    projection: Projection | None = None
    dropped: int = 0
    style: DateStyle = field(default_factory=DateStyle)

    @property
    def labels(self) -> tuple[str, ...]:
        """What the times are called, in order."""
        return self.estimate.labels

    def __repr__(self) -> str:
        counts = [len(own) for own in self.points.values()]
        span = self.labels[0] if len(counts) == 1 else f"{self.labels[0]} to {self.labels[-1]}"
        facts = [f"axes {', '.join(self.axes)}", f"times {len(counts)} ({span})"]
        if 0 in counts:
            facts.append(f"{counts.count(0)} of them without points")
        if self.dropped:
            facts.append(f"{self.dropped} points outside the domain dropped")
        return f"<KDEOverTime of {sum(counts)} points: {', '.join(facts)}>"


def kde_over_time(
    points: Any,
    times: Any,
    *,
    domain: Any = None,
    every: str | float | None = None,
    coordinates: str | None = None,
    outside: str = "error",
    day_first: bool | None = None,
    tz: str | None = None,
    progress: Progress = None,
) -> KDEOverTime:
    """Kernel density estimates time by time, from what ``fit_density_over_time`` takes.

    All arguments are those of ``ncbayes.fit_density_over_time``: the same points, periods, domain
    and map; ``progress=False`` silences the lines that say what was taken for what.
    The estimates are those of ``TimewiseKDE``, zero outside the domain and normalized inside. A
    period without points takes the estimate from all points.

    ``densities.density`` and ``change``, ``scores.log_score`` and ``plots.density_maps``,
    ``density_bands`` and ``animation`` take the result like a posterior. It has no draws,
    and so neither standard deviations nor intervals.

    >>> heights, years = [1.0, 1.4, 1.9, 1.1, 1.5, 2.2], [2021, 2021, 2021, 2023, 2023, 2023]
    >>> kde_over_time(heights, years, every=1, progress=False)
    <KDEOverTime of 6 points: axes x1, times 3 (2021 to 2023), 1 of them without points>
    """
    found = events(
        "kde_over_time", points, times, domain=domain, every=every, coordinates=coordinates,
        outside=outside, day_first=day_first, tz=tz,
    )  # fmt: skip
    tell(found.notes, progress)
    for line in found.warnings:
        warnings.warn(line, FitWarning, stacklevel=2)
    labels, groups = list(found.groups), found.groups
    stamps = np.repeat(labels, [len(own) for own in groups.values()])
    rows = np.concatenate(list(groups.values()))
    estimate = TimewiseKDE.of(rows, stamps, found.space, labels=labels)
    return KDEOverTime(
        estimate, found.space, found.axes, found.times, groups, found.projection, found.dropped,
        found.style,
    )  # fmt: skip


def _labelled(
    times: Any, rows: int, labels: Sequence[Any] | None
) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    """The number of each row's time among the labels, and the labels."""
    import pandas as pd

    stamps = pd.Index(times) if np.ndim(times) == 1 else pd.Index([])
    if len(stamps) != rows:
        raise InputError(
            f"times must be a list of {rows} times, one for each row of points, got "
            f"shape {np.shape(times)}"
        )
    if stamps.hasnans:
        row = int(np.argmax(stamps.isna()))
        raise InputError(
            f"times must not be missing, got {stamps[row]} in row {row} "
            "(counted from 0): drop these rows"
        )
    try:
        order = stamps.unique().sort_values() if labels is None else pd.Index(labels)
    except TypeError as unlike:
        raise InputError(
            f"times must be of one kind, to be sorted, got {shown(stamps.unique().tolist())}: turn "
            "them into numbers or dates, or pass labels"
        ) from unlike
    if not len(order) or order.has_duplicates:
        raise InputError(
            f"labels must be different times, at least one, got {shown(labels)}: list each once"
        )
    found = order.get_indexer(stamps)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise InputError(
            f"labels must hold every time that occurs, got {stamps[row]} in row {row} "
            "(counted from 0), which is not among them: add it or drop these rows"
        )
    return found, tuple(order)


def _kernels(own: FloatArray, everything: FloatArray, pooled: FloatArray) -> Kernels:
    """The estimate of a time, by its own spread where it has one."""
    if not len(own):
        return Kernels(everything, _scott(everything) * pooled)
    spread = _spread(own, pooled)
    return Kernels(own, _scott(own) * (pooled if spread is None else spread))


def _scott(points: FloatArray) -> float:
    return float(len(points) ** (-2 / (points.shape[1] + 4)))


def _spread(points: FloatArray, pooled: FloatArray | None = None) -> FloatArray | None:
    """The covariance of the points, or None where it does not fill all directions.

    Directions are measured by the pooled covariance, or without one column by column.
    """
    if len(points) <= points.shape[1]:
        return None
    covariance = np.atleast_2d(np.cov(points, rowvar=False))
    if pooled is None:
        deviations = np.sqrt(np.diag(covariance))
        if not (deviations > 0).all():
            return None
        root = np.diag(deviations)
    else:
        root = np.linalg.cholesky(pooled)
    half = solve_triangular(root, covariance, lower=True)
    relative = solve_triangular(root, half.T, lower=True)
    narrowest = np.linalg.eigvalsh((relative + relative.T) / 2)[0]
    return covariance if narrowest > THIN**2 else None


def _log_mass(kernels: Kernels, domain: Space) -> float:
    """The log of the estimate's mass in the domain, by the midpoint rule.

    In cells next to the border of the domain it is the mean over the points of a lattice, no two
    of which share a coordinate: a grid would err with a border along its lines.
    """
    from scipy.ndimage import binary_dilation

    reach = REACH * np.sqrt(np.diag(kernels.covariance))
    low, high = kernels.centers.min(axis=0) - reach, kernels.centers.max(axis=0) + reach
    dimension = len(low)
    steps = max(2, round(CELLS ** (1 / dimension)))
    sides = (high - low) / steps
    axes = [np.arange(steps) + 0.5] * dimension
    cells = low + sides * np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(
        -1, dimension
    )
    inside = np.asarray(domain.contains(cells))
    near = np.ones((3,) * dimension)
    both = (binary_dilation(each.reshape((steps,) * dimension), near) for each in (inside, ~inside))
    border = np.logical_and(*both).ravel()
    lattice = np.outer(np.arange(PARTS), [GENERATOR**j % PARTS for j in range(dimension)]) % PARTS
    moves = sides * ((lattice + 0.5) / PARTS - 0.5)
    split = (cells[border, None] + moves).reshape(-1, dimension)
    whole, split = cells[inside & ~border], split[domain.contains(split)]
    if not len(whole) + len(split):
        raise InputError(
            f"domain must have an area, got {shown(domain)}, in which the estimate has no mass: "
            "pass a Box, or None for all of space"
        )
    logs = [kernels.log_density(whole), kernels.log_density(split) - math.log(PARTS)]
    return float(logsumexp(np.concatenate(logs)) + np.log(sides).sum())
