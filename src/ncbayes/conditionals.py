"""The pseudolikelihood of binary data: a logistic regression of each x_j on its change statistics.

The product of full conditionals contains no log Z (Besag 1975). With ``change_j(x)`` the statistics
at x with x_j in its upper state less those in its lower state, and likewise for log_base,

    log odds(x_j is up | others) = theta . change_j(x) + change of log_base

which is a contrast without the column of the normalizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.contrast import Contrast, model_name
from ncbayes.linalg.designs import Dense

# Copies of the change statistics that are held at the same time.
COPIES = 4
# A Polya-Gamma draw and the elementwise work for a row, and the product for an entry of its square.
SECONDS_A_ROW, SECONDS_AN_ENTRY = 2.0e-7, 5e-10


@dataclass(frozen=True, eq=False)
class ConditionalsLoss:
    """The full conditionals of one group's rows, as labels with log odds."""

    contrast: Contrast

    @property
    def size(self) -> int:
        return self.contrast.design.shape[1]

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        each = self.contrast
        return each.design.rmatvec(np.where(each.is_data, 0.5, -0.5)), each.offset

    @property
    def sweep_seconds(self) -> float:
        rows, columns = self.contrast.design.shape
        return rows * (SECONDS_A_ROW + SECONDS_AN_ENTRY * columns**2)


def held_bytes(rows: Sequence[int], statistics: int, dimension: int) -> float:
    """What the change statistics take."""
    return 8.0 * COPIES * sum(rows) * dimension * statistics


def conditionals_loss(model: Model, data: FloatArray, rng: np.random.Generator) -> ConditionalsLoss:
    """The labels and change statistics of all coordinates of all rows.

    Rows whose statistics do not change tell nothing about theta, and are left out.
    """
    change = getattr(model, "change_statistics", None)
    if change is None:
        raise InputError(
            f"{model_name(model)} has no change_statistics(x, j), which the pseudolikelihood of "
            'binary data needs; write it, or fit against noise with engine="auto"'
        )
    low, high = _states(model, data)
    rows, offsets, labels = [], [], []
    for j in range(data.shape[1]):
        found = _checked(change(data, j), model, len(data))
        kept = found.any(axis=1)
        ends = [data[kept].copy(), data[kept].copy()]
        for end, state in zip(ends, (low, high), strict=True):
            end[:, j] = state
        rows.append(found[kept])
        offsets.append(np.subtract(*(np.asarray(model.log_base(end)) for end in ends[::-1])))
        labels.append(data[kept, j] == high)
    design = Dense(np.concatenate(rows))
    return ConditionalsLoss(Contrast(design, np.concatenate(offsets), np.concatenate(labels)))


def check_changes(losses: Sequence[Any], names: Sequence[str], owner: str) -> None:
    """Refuse statistics that never change, by name."""
    moved = np.any([each.contrast.design.dense().any(axis=0) for each in losses], axis=0)
    still = np.flatnonzero(~moved)
    if len(still):
        raise InputError(
            f"the statistic {names[still[0]]!r} of {owner} does not change with any coordinate of "
            "the data, so that the pseudolikelihood says nothing about it; leave it out of the "
            'model, or fit against noise with engine="auto"'
        )


def _states(model: Any, data: FloatArray) -> tuple[float, float]:
    """The lower and the upper state: 0 and 1, or -1 and 1 where the space says so."""
    low, high = getattr(model.space, "lower", 0.0), 1.0
    if not ((data == low) | (data == high)).all():
        raise InputError(
            f"the pseudolikelihood is for data of {low:g} and {high:g}, got {shown(model)} on "
            f'{shown(model.space)}; fit against noise with engine="auto"'
        )
    return float(low), high


def _checked(found: object, model: Model, rows: int) -> FloatArray:
    change = np.asarray(found, dtype=float)
    shape = (rows, sum(len(names) for names in model.groups.values()))
    if change.shape != shape or not np.isfinite(change).all():
        what = f"shape {change.shape}" if change.shape != shape else "some that are not"
        raise InputError(
            f"change_statistics(x, j) of {model_name(model)} must return finite numbers of shape "
            f"{shape}, one row a point and one column a statistic, got {what}"
        )
    return change
