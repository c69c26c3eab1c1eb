"""The waist without noise: model and data become a loss that is quadratic in theta.

The Hyvarinen score of a point does not contain log Z. With d_j the derivative by x_j and weights
``h_j(x)`` that vanish where the space ends (1 where it does not end), it is

    sum_j [ h_j d_j^2 log p + (d_j h_j) d_j log p + h_j (d_j log p)^2 / 2 ]

(Hyvarinen 2005, 2007), and ``log p = (statistics, log_base) . (theta, 1) - log Z``, so that its sum
over the points is ``theta' gram theta / 2 - theta . shift`` and a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.linalg import gaussian

# Entries of the derivatives that are held at a time: 16 MB.
SLICE_ENTRIES = 2**21
# A derivative whose part not explained by the others has less than this share of its own size
# cannot be told from a linear combination of them in double precision.
COLLINEAR = 1e-10
# Beyond this many statistics the check of their derivatives takes longer than a few sweeps.
MOST_CHECKED = 3000


@dataclass(frozen=True, eq=False)
class ScoreLoss:
    """The loss of one group's points: ``theta' gram theta / 2 - theta . shift``.

    In the paper's symbols (supplement S2.3) gram is n Gamma, shift is n H.
    """

    gram: FloatArray
    shift: FloatArray
    rows: int

    @property
    def size(self) -> int:
        return len(self.shift)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        return np.diag(self.gram), self.shift

    @property
    def sweep_seconds(self) -> float:
        return gaussian.predicted_seconds("block_tridiagonal", ((0, self.size),), 0.0)

    def value(self, theta: FloatArray) -> float:
        """The loss, up to a constant."""
        return float(theta @ self.gram @ theta / 2 - theta @ self.shift)


def score_loss(model: Model, data: FloatArray, rng: np.random.Generator | None = None) -> ScoreLoss:
    """The Hyvarinen score of the data, from ``model.score_statistics`` coordinate by coordinate."""
    weight, slope = _weights(model, data)
    if not hasattr(model, "score_statistics"):
        raise InputError(
            f"{shown(model)} has no score_statistics(x, j), the derivatives by x_j that the "
            'Hyvarinen score needs; write it, or fit against noise with engine="auto"'
        )
    size = sum(len(names) for names in model.groups.values()) + 1
    gram, linear = np.zeros((size, size)), np.zeros(size)
    step = max(1, SLICE_ENTRIES // size)
    for start in range(0, len(data), step):
        part = slice(start, start + step)
        for j in range(data.shape[1]):
            first, second = _derivatives(model, data[part], j, start, size)
            # A statistic that does not depend on x_j has no part in this: most, in a graph.
            columns = np.flatnonzero(first.any(axis=0) | second.any(axis=0))
            first, second = first[:, columns], second[:, columns]
            scaled = first * np.sqrt(weight[part, j, None])
            gram[np.ix_(columns, columns)] += scaled.T @ scaled
            linear[columns] += weight[part, j] @ second + slope[part, j] @ first
    return ScoreLoss(gram[:-1, :-1].copy(), -(linear + gram[-1])[:-1], len(data))


def _weights(model: Model, data: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``h_j`` and ``d_j h_j`` at the data, each (n, d)."""
    weight = getattr(model.space, "score_weight", None)
    if weight is None:
        raise InputError(
            "the Hyvarinen score needs continuous points on a Torus, Reals, an Orthant or a Box, "
            f'got {shown(model)} on {shown(model.space)}; fit against noise with engine="auto"'
        )
    h, slope = weight(data)
    return h, slope


def _derivatives(
    model: Any, points: FloatArray, j: int, start: int, size: int
) -> tuple[FloatArray, FloatArray]:
    """First and second derivatives by x_j, each (n, p + 1), checked."""
    found = model.score_statistics(points, j)
    shape = (len(points), size)
    pair = isinstance(found, tuple | list | np.ndarray) and len(found) == 2
    arrays = [np.asarray(each, dtype=float) for each in found] if pair else []
    if [each.shape for each in arrays] != [shape, shape]:
        raise InputError(
            f"score_statistics(x, j) of {shown(model)} must return two arrays of shape {shape}, "
            "first and second derivatives by x_j, one column a statistic and a last one for "
            f"log_base, got {_shapes(found)}"
        )
    first, second = arrays
    bad = np.flatnonzero(~(np.isfinite(first) & np.isfinite(second)).all(axis=1))
    if len(bad):
        row = int(bad[0])
        raise InputError(
            f"a derivative of {shown(model)} is not finite at row {start + row} of the data "
            f"({points[row].tolist()}); move or remove such points, or change the model"
        )
    return first, second


def _shapes(found: object) -> str:
    if isinstance(found, np.ndarray):
        return f"one array of shape {found.shape}"
    if isinstance(found, tuple | list):
        return f"shapes {[np.shape(each) for each in found]}"
    return shown(found)


def check_scores(losses: Sequence[ScoreLoss], names: Sequence[str], owner: str) -> None:
    """Refuse statistics whose derivatives vanish, or are linear combinations of others, by name."""
    gram = np.sum([each.gram for each in losses], axis=0)
    diagonal = np.diag(gram)
    constant = np.flatnonzero(diagonal == 0)
    if len(constant):
        raise InputError(
            f"the statistic {names[constant[0]]!r} of {owner} has no derivative at any of the "
            "data, so that the Hyvarinen score says nothing about it; leave it out of the model"
        )
    rows = sum(each.rows for each in losses)
    # With few points some combination always vanishes: that is the prior's job.
    if rows <= len(names) or len(names) > MOST_CHECKED:
        return
    roots = np.sqrt(diagonal)
    _, pivots, rank, _ = dpstrf(gram / np.outer(roots, roots), tol=COLLINEAR, lower=1)
    if rank < len(names):
        raise InputError(
            f"the derivatives of the statistic {names[pivots[rank] - 1]!r} of {owner} are a linear "
            "combination of those of others at the data; leave one of them out of the model, or "
            "centre and rescale the data if they lie far from zero"
        )
