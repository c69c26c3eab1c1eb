"""Noise fitted to the data, so that no row is judged by noise that was fitted to that row.

The log density of fitted noise is too high at the rows it was fitted to: by about
(fitted numbers) / n in the mean over the rows, against what it is at other points of the same
distribution. A contrast takes that for a property of the data, so that log Z comes out too low and
theta is drawn toward the noise. Here the rows are dealt into folds, the noise of a fold is fitted
to the rows of all other folds, and the rows of a fold are set against noise of that fold alone.
Given the other rows this is a contrast with noise of known density, and so is their product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, Noise, log_density_at_rows, shown
from ncbayes.noise.distributions import Uniform

# A tenth of the rows is left out at a time: noise of the others is hardly worse, and quick to fit.
MOST_FOLDS = 10
# With fewer rows what is left says nothing about a spread.
FEWEST_ROWS = 4

Fitter = Callable[[Any], Noise]


@dataclass(frozen=True, eq=False, repr=False)
class CrossFitted:
    """Noise of which each row meets only what was fitted without it.

    ``whole`` is fitted to all ``rows`` and is the distribution that others see; ``parts[k]`` is
    fitted to the rows outside fold k, row i being in fold ``i % len(parts)``. A contrast with
    other data than these rows is one with ``whole``.

    >>> from ncbayes.noise import StudentT
    >>> rows = np.random.default_rng(1).standard_normal((50, 2))
    >>> CrossFitted.match(StudentT.match, rows)
    CrossFitted(StudentT)
    """

    whole: Noise
    parts: tuple[Noise, ...]
    rows: FloatArray

    def __repr__(self) -> str:
        return f"CrossFitted({type(self.whole).__name__})"

    @classmethod
    def match(cls, fitter: Fitter, data: object) -> Noise:
        """Cross-fitted noise; plain if uniform, of few rows, or without density at a row left out.

        ``fitter`` makes noise from rows, such as ``StudentT.match`` or ``gaussian_mixture``.
        """
        if not callable(fitter) or isinstance(fitter, type):
            raise InputError(
                "CrossFitted.match(fitter, data) needs a function from rows to noise, such as "
                f"ncbayes.noise.StudentT.match, got {shown(fitter)}"
            )
        whole = fitter(data)
        rows = np.array(data, dtype=float)
        if rows.ndim != 2:
            raise InputError(
                f"CrossFitted.match(fitter, data) needs rows of numbers (n, d), got {shown(data)}"
            )
        if isinstance(whole, Uniform) or len(rows) < FEWEST_ROWS:
            return whole
        fold = _folds(len(rows), MOST_FOLDS)
        try:
            parts = tuple(fitter(rows[fold != k]) for k in range(fold.max() + 1))
        except InputError:  # a column that is constant but for one row, say
            return whole
        for k, part in enumerate(parts):
            if not np.isfinite(part.log_density(rows[fold == k])).all():
                return whole
        rows.setflags(write=False)
        return cls(whole, parts, rows)

    @property
    def dimension(self) -> int:
        return int(self.rows.shape[1])

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self.whole.sample(size, rng)

    def log_density(self, x: FloatArray) -> FloatArray:
        return self.whole.log_density(x)

    def log_density_at_rows(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        """At its own rows, the density of the part that has not seen them: for noise made of this.

        Such as the model tempered from here, which is drawn from the whole.
        """
        if not np.array_equal(x, self.rows):
            return log_density_at_rows(self.whole, x, rows)
        fold, found = _folds(len(x), len(self.parts)), np.empty(len(x))
        for k, part in enumerate(self.parts):
            found[fold == k] = part.log_density(x[fold == k])
        return found

    def folds(self, data: FloatArray, size: int) -> list[tuple[NDArray[np.intp], Noise, int]]:
        """Rows of each fold, its noise, and its share of ``size`` noise points.

        Empty for other data, or with so little noise that a fold would have none.
        """
        count = len(self.parts)
        if size < count or not np.array_equal(data, self.rows):
            return []
        fold = _folds(len(data), count)
        rows = [np.flatnonzero(fold == k) for k in range(count)]
        ends = np.cumsum([len(each) for each in rows]) * size // len(data)
        sizes = np.diff(ends, prepend=0)
        return [(each, part, int(m)) for each, part, m in zip(rows, self.parts, sizes, strict=True)]


def _folds(rows: int, most: int) -> NDArray[np.intp]:
    """The fold of each row. Rows in the order of time or place fall into all folds evenly."""
    return np.arange(rows) % max(1, min(most, rows))
