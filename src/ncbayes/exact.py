"""The exact likelihood, for models that know their normalizer: ``theta . total - n log Z(theta)``.

Besides the likelihood itself an engine gets its expansion to second order near the mode,
``theta . shift - theta' gram theta / 2``, by finite differences of log Z.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Model
from ncbayes.contrast import model_name
from ncbayes.pilots import Pilot, pilot

# A second derivative takes p^2 evaluations of log Z: 6400 of them are seconds.
MOST_STATISTICS = 80
# Differences over a tenth of a posterior sd: their error is far below what a proposal needs.
STEP = 0.1
# Newton's method starts near the mode; half the squared decrement that no proposal notices.
NEWTON_STEPS, CONVERGED = 20, 1e-3
# Evaluations of log Z in a sweep, about.
EVALUATIONS = 5


@dataclass(frozen=True, eq=False)
class ExactLoss:
    """The log likelihood of one group's rows, ``theta . total - rows log_partition(theta)``.

    ``gram`` and ``shift`` are those of its expansion near the mode.
    """

    total: FloatArray
    rows: int
    log_partition: Callable[[FloatArray], float]
    gram: FloatArray
    shift: FloatArray
    seconds: float = 1e-3

    @property
    def size(self) -> int:
        return len(self.total)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        return (self.total,)

    @property
    def sweep_seconds(self) -> float:
        return EVALUATIONS * self.seconds

    def log_z(self, theta: FloatArray) -> float:
        """log Z; infinite where theta has none."""
        value = float(self.log_partition(theta))
        return value if value > -np.inf else np.inf

    def log_likelihood(self, theta: FloatArray, log_z: float) -> float:
        """Up to the log base of the data, which does not depend on theta."""
        return float(theta @ self.total - self.rows * log_z)


def exact_loss(model: Model, data: FloatArray, rng: np.random.Generator) -> ExactLoss:
    """The exact likelihood of the data, and its expansion near the mode."""
    count = sum(len(names) for names in model.groups.values())
    partition = getattr(model, "log_partition", None)
    if partition is None:
        raise InputError(
            f"{model_name(model)} has no log_partition(theta), which the exact likelihood needs; "
            'write it, or fit against noise with engine="auto"'
        )
    if count > MOST_STATISTICS:
        raise InputError(
            f"the exact likelihood is for at most {MOST_STATISTICS} statistics, got {count} of "
            f'{model_name(model)}; fit against noise with engine="auto"'
        )
    found = pilot(model, data, rng)
    start = _inside(model, found)
    began = time.perf_counter()
    gram, shift = _expansion(partition, found, start, len(data))
    seconds = (time.perf_counter() - began) / (count + 1) ** 2
    return ExactLoss(found.total, len(data), partition, gram, shift, seconds)


def _evaluated(partition: Any, theta: FloatArray) -> float:
    """log Z as a number, or what the model says about why there is none."""
    try:
        return float(partition(theta))
    except InputError as error:
        raise InputError(
            f'the exact likelihood is out of reach, fit with engine="auto": {error}'
        ) from error


def _inside(model: Any, found: Pilot) -> FloatArray:
    """The pilot, or a point toward the origin of where log Z is finite."""
    for share in (1.0, 0.5, 0.25, 0.0):
        if np.isfinite(_evaluated(model.log_partition, share * found.theta)):
            return np.asarray(share * found.theta)
    raise InputError(
        f"log_partition of {model_name(model)} is not finite at a rough estimate of theta "
        f"({found.theta.round(3).tolist()}), so that nothing can start there; check it, or fit "
        'against noise with engine="auto"'
    )


def _expansion(
    partition: Any, found: Pilot, theta: FloatArray, rows: int
) -> tuple[FloatArray, FloatArray]:
    """gram and shift of the log likelihood at the mode of likelihood and penalty, by Newton."""

    def value(at: FloatArray) -> float:
        log_z = _evaluated(partition, at)
        penalized = at @ found.total - rows * log_z - at @ found.penalty @ at / 2
        return float(penalized) if log_z > -np.inf else -np.inf

    widths = np.diag(found.penalty) ** -0.5
    for _ in range(NEWTON_STEPS):
        slope, bend, widths = _differences(partition, theta, rows, widths, found.penalty)
        gradient = found.total - slope
        pull = gradient - found.penalty @ theta
        step = np.linalg.solve(bend + found.penalty, pull)
        if pull @ step / 2 < CONVERGED:
            break
        now = value(theta)
        while not value(theta + step) > now and np.abs(step).max() > 1e-8 * widths.max():
            step = step / 2
        theta = theta + step
    return bend, gradient + bend @ theta


def _differences(
    partition: Any, theta: FloatArray, rows: int, widths: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """First and second derivatives of ``rows log Z``, and the posterior sds that they imply.

    Steps are a tenth of those sds, which are found by trying, from ``widths`` on.
    """
    size, here = len(theta), _evaluated(partition, theta)

    def off(*moves: FloatArray) -> float:
        return rows * (_evaluated(partition, theta + sum(moves)) - here)

    given = zip(np.eye(size), widths, np.diag(penalty), strict=True)
    widths = np.array([_width(off, *each) for each in given])
    units = STEP * np.diag(widths)
    high = np.array([off(unit) for unit in units])
    low = np.array([off(-unit) for unit in units])
    bend = np.diag(high + low)
    for i in range(size):
        for j in range(i):
            both = off(units[i], units[j]) + off(-units[i], -units[j])
            bend[i, j] = bend[j, i] = (both - high[i] - high[j] - low[i] - low[j]) / 2
    steps = STEP * widths
    return (high - low) / (2 * steps), _positive(bend / np.outer(steps, steps)), widths


def _width(off: Callable[..., float], unit: FloatArray, width: float, penalty: float) -> float:
    """The sd of theta along a unit by the second difference over a tenth of it, and the penalty."""
    for _ in range(60):
        bend = off(STEP * width * unit) + off(-STEP * width * unit)
        if not np.isfinite(bend):
            width = width / 4  # log Z is not finite so far away
            continue
        implied = float((max(bend, 0.0) / (STEP * width) ** 2 + penalty) ** -0.5)
        if width / 2 < implied < 2 * width:
            return implied
        width = min(max(implied, width / 4), 4 * width)
    return width


def _positive(matrix: FloatArray) -> FloatArray:
    """The matrix with eigenvalues, relative to its diagonal, of at least round-off's size."""
    roots = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(roots, roots))
    kept = (vectors * np.maximum(values, 1e-8)) @ vectors.T
    return np.asarray(kept * np.outer(roots, roots))
