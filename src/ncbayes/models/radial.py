"""Densities written with radial basis functions (the paper's section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ncbayes.base import FloatArray, InputError, Space, shown
from ncbayes.notebooks import model_html
from ncbayes.spaces import (
    as_points,
    check_numbers,
    is_continuous,
    is_numeric,
    is_periodic,
    is_whole,
)

Kernel = Literal["exponential", "gaussian"]
# The paper's number of basis functions.
BASIS = 30
# Bandwidths by the median distance between centers (studies/bandwidths.py).
RULE = {"exponential": 1.5, "gaussian": 0.5}
# Centers of more rows than this are found from so many of them.
MOST_CLUSTERED = 20_000
# Entries of the table of distances held at a time: 16 MB.
CHUNK = 2_000_000
# Distances have squares: within these they stay far from the ends of double precision (1e308).
LEAST, MOST = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class RadialBasis:
    """``log p(x) = sum_l theta_l phi(|x - center_l| / bandwidth) - log Z`` on a bounded space.

    ``phi(r) = exp(-r)`` ("exponential", the paper's) or ``exp(-r^2 / 2)`` ("gaussian"). Far from
    all centers the density is level, so the space must be bounded: a Box or a Region.
    """

    centers: ArrayLike
    bandwidth: float
    space: Space
    kernel: Kernel = "exponential"
    # Statistics of one kind: a prior in units of the data has the same for all.
    alike: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, str) or self.kernel not in get_args(Kernel):
            raise InputError(
                f'RadialBasis(kernel=...) must be "exponential" or "gaussian", got '
                f"{shown(self.kernel)}"
            )
        _check_space(self.space)
        check_numbers("RadialBasis", centers=self.centers)
        centers = np.asarray(self.centers, dtype=float)
        if centers.ndim != 2 or centers.shape[1] != self.space.dimension:
            raise InputError(
                f"RadialBasis(centers=...) must be a table with a row for each center and "
                f"{self.space.dimension} columns like its space, got shape {centers.shape}"
            )
        if len(np.unique(centers, axis=0)) < len(centers) or not np.isfinite(centers).all():
            raise InputError(
                "RadialBasis(centers=...) must be finite and differ from each other; "
                "leave out repeated rows"
            )
        fine = is_numeric(self.bandwidth) and np.ndim(self.bandwidth) == 0
        if not fine or not LEAST <= self.bandwidth <= MOST:
            raise InputError(
                "RadialBasis(bandwidth=...) must be a positive number, a distance in the units of "
                f"the points between {LEAST:g} and {MOST:g}, got {shown(self.bandwidth)}"
            )

    @classmethod
    def match(
        cls,
        data: Any,
        space: Space,
        basis: int = BASIS,
        bandwidth: float | None = None,
        kernel: Kernel = "exponential",
    ) -> RadialBasis:
        """Centers by k-means on the data, fewer than ``basis`` where fewer points differ.

        Without a bandwidth: the median distance between centers times 1.5 ("exponential") or 0.5
        ("gaussian").
        """
        _check_space(space)
        if not is_whole(basis) or basis < 2:
            raise InputError(
                "RadialBasis.match(basis=...) must be a whole number of at least 2, got "
                f"{shown(basis)}"
            )
        points = as_points(data, space, "RadialBasis.match")
        centers = k_means(points, basis)
        if len(centers) < 2:
            raise InputError(
                "RadialBasis.match needs data with at least 2 different points, got "
                f"{len(centers)}; give the centers yourself"
            )
        if bandwidth is None and isinstance(kernel, str) and kernel in RULE:
            bandwidth = RULE[kernel] * median_distance(centers)
        return cls(centers, bandwidth, space, kernel)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"RadialBasis({len(self.table)} centers, bandwidth={self.bandwidth:.4g})"

    @property
    def table(self) -> FloatArray:
        """The centers, (L, dimension)."""
        return np.asarray(self.centers, dtype=float)

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        return {"basis": tuple(f"basis{k + 1}" for k in range(len(self.table)))}

    def statistics(self, x: FloatArray) -> FloatArray:
        centers, out = self.table / self.bandwidth, np.empty((len(x), len(self.table)))
        rows = max(1, CHUNK // centers.size)
        for start in range(0, len(x), rows):
            part = x[start : start + rows, None] / self.bandwidth - centers
            squares = np.einsum("nld,nld->nl", part, part)
            exponent = np.sqrt(squares) if self.kernel == "exponential" else squares / 2
            out[start : start + rows] = np.exp(-exponent)
        return out

    def log_base(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))

    _repr_html_ = model_html


def k_means(points: FloatArray, count: int) -> FloatArray:
    """Centers of clusters of the points, always the same for the same points."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    chosen = np.linspace(0, len(points) - 1, min(len(points), MOST_CLUSTERED)).astype(int)
    some = points[chosen]
    distinct = len(np.unique(some, axis=0))
    # Sums of several threads round differently, and its threads come with the import above.
    with threadpool_limits(1):
        fitted = KMeans(min(count, distinct), n_init=4, random_state=0).fit(some)
    return np.asarray(np.unique(fitted.cluster_centers_, axis=0))


def median_distance(centers: FloatArray) -> float:
    """The median of the distances between all pairs."""
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(centers)))


def _check_space(space: object) -> None:
    is_space = isinstance(space, Space) and not isinstance(space, type)
    real = is_space and is_continuous(space) and not is_periodic(space)
    if not (real and math.isfinite(getattr(space, "log_volume", math.inf))):
        raise InputError(
            "RadialBasis(space=...) must be a bounded space of real coordinates, such as "
            f"ncbayes.spaces.Box((0, 0), (1, 1)), got {shown(space)}; far from all centers the "
            "density is level, so it has no integral over an unbounded space"
        )
