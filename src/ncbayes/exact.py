"""The exact likelihood, for models that know their normalizer: ``theta . total - n log Z(theta)``.

Where the model has few states log Z is a sum over them, with derivatives of every order; else it
is known by its value. Besides the likelihood itself an engine gets its expansion to second order
near the mode, ``theta . shift - theta' gram theta / 2``, by those or by finite differences.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from ncbayes.base import FloatArray, InputError, Model
from ncbayes.contrast import model_name, statistic_names
from ncbayes.pilots import Pilot, pilot
from ncbayes.quadrature import rule
from ncbayes.spaces import is_continuous

# A second derivative takes p^2 evaluations of log Z: 6400 of them are seconds.
MOST_STATISTICS = 80
# Differences over a tenth of a posterior sd: their error is far below what a proposal needs.
STEP = 0.1
# Newton's method starts near the mode; half the squared decrement that no proposal notices.
NEWTON_STEPS, CONVERGED = 20, 1e-3
# Evaluations of log Z in a sweep, about; and steps of a trajectory, with the time of one by number.
EVALUATIONS, STEPS, SECONDS_A_NUMBER = 5, 8, 1e-9
# States that are listed, and numbers in the table of their statistics, at most.
MOST_STATES, MOST_NUMBERS = 2**16, 2**23


@dataclass(frozen=True, eq=False)
class States:
    """All states of a model: ``log Z = log sum_s exp(theta . statistics[s] + log_weights[s])``.

    States with the same statistics are one, which weighs as much as all of them.
    """

    statistics: FloatArray
    log_weights: FloatArray

    def log_partitions(self, theta: FloatArray) -> FloatArray:
        """log Z of each row of theta (..., statistic)."""
        rows = theta.reshape(-1, theta.shape[-1])
        step = max(1, MOST_NUMBERS // len(self.log_weights))
        found = [
            logsumexp(rows[k : k + step] @ self.statistics.T + self.log_weights, axis=1)
            for k in range(0, len(rows), step)
        ]
        return np.concatenate([np.zeros(0), *found]).reshape(theta.shape[:-1])

    def moments(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the statistics: the first two derivatives of log Z."""
        chance = softmax(self.statistics @ theta + self.log_weights)
        mean = chance @ self.statistics
        centred = self.statistics - mean
        return mean, np.asarray((chance[:, None] * centred).T @ centred)


def states_of(model: Any) -> States | None:
    """The states of a model, None if they are not few."""
    space, count = model.space, len(statistic_names(model))
    if is_continuous(space) or not np.exp(space.log_volume) < min(
        MOST_STATES, MOST_NUMBERS / max(count, 1)
    ):
        return None
    try:
        points, _, _ = rule(space, model, np.zeros(count))
    except InputError:
        return None
    log_base = np.asarray(model.log_base(points), dtype=float)
    inside = log_base > -np.inf
    statistics = np.asarray(model.statistics(points[inside]), dtype=float)
    distinct, which = np.unique(statistics, axis=0, return_inverse=True)
    log_weights = np.full(len(distinct), -np.inf)
    np.logaddexp.at(log_weights, np.ravel(which), log_base[inside])
    return States(np.ascontiguousarray(distinct), log_weights)


@dataclass(frozen=True, eq=False)
class ExactLoss:
    """The log likelihood of one group's rows, ``theta . total - rows log_partition(theta)``.

    ``gram`` and ``shift`` are those of its expansion near the mode; ``states``: if they are few.
    """

    total: FloatArray
    rows: int
    log_partition: Callable[[FloatArray], float]
    gram: FloatArray
    shift: FloatArray
    seconds: float = 1e-3
    states: States | None = None

    @property
    def size(self) -> int:
        return len(self.total)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        return (self.total,)

    @property
    def sweep_seconds(self) -> float:
        if self.states is not None:
            return 2 * STEPS * SECONDS_A_NUMBER * self.states.statistics.size
        return EVALUATIONS * self.seconds

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Minus the second derivative of the log likelihood, where states are few."""
        return self.gram if self.states is None else self.rows * self.states.moments(theta)[1]

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
    states = states_of(model)
    if states is None and count > MOST_STATISTICS:
        raise InputError(
            f"the exact likelihood is for at most {MOST_STATISTICS} statistics, got {count} of "
            f'{model_name(model)}; fit against noise with engine="auto"'
        )
    found = pilot(model, data, rng)
    start = _inside(model, found)
    began = time.perf_counter()
    gram, shift = _expansion(partition, states, found, start, len(data))
    seconds = (time.perf_counter() - began) / (count + 1) ** 2
    return ExactLoss(found.total, len(data), partition, gram, shift, seconds, states)


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
    partition: Any, states: States | None, found: Pilot, theta: FloatArray, rows: int
) -> tuple[FloatArray, FloatArray]:
    """gram and shift of the log likelihood at the mode of likelihood and penalty, by Newton."""

    def value(at: FloatArray) -> float:
        log_z = _evaluated(partition, at)
        penalized = at @ found.total - rows * log_z - at @ found.penalty @ at / 2
        return float(penalized) if log_z > -np.inf else -np.inf

    widths = np.diag(found.penalty) ** -0.5
    for _ in range(NEWTON_STEPS):
        if states is None:
            slope, bend, widths = _differences(partition, theta, rows, widths, found.penalty)
        else:
            slope, bend = (rows * each for each in states.moments(theta))
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
