"""Hamiltonian trajectories of coefficients and scales together, compiled; imported where used.

In units z = (x - center) / sd a posterior is nearly standard normal. A step is half a kick by
``gradient + z``, what is left beyond the normal, an exact rotation of (z, momentum), and half a
kick.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ncbayes.linalg.likelihoods import gradient, value
from ncbayes.linalg.whitening import chain, log_prior, place

# Steps are jittered by this share, and are never larger than this.
JITTER, LARGEST_STEP = 0.2, 0.6
# Acceptance that the step size is adapted to, and how fast.
ACCEPTANCE, RATE = 0.8, 1.5
# An energy that is off by more than this was not integrated at all.
DIVERGED = 1000.0


class Tally(NamedTuple):
    """What warm-up sums up, in place; ``numbers``: see ``NUMBERS``."""

    weights: NDArray[np.float64]
    slopes: NDArray[np.float64]
    coef: NDArray[np.float64]
    q: NDArray[np.float64]
    x: NDArray[np.float64]
    squares: NDArray[np.float64]
    numbers: NDArray[np.float64]


# Entries of Tally.numbers: step size; sweeps summed up; sweeps since the step size began to adapt,
# -1 if it does not; sum and number of the logarithms of step sizes that will be averaged.
STEP, COUNT, SINCE, LOG_SUM, LOG_COUNT = range(5)
# Columns of a sweep's facts.
FACTS = (
    "log_likelihood",
    "largest_log_odds",
    "acceptance_rate",
    "n_steps",
    "step_size",
    "diverging",
)


@njit(cache=True, error_model="numpy")
def proposal(data, chart, center, sd, x, slope, step, steps, momentum, y, q, coef, bases, residual):
    """A trajectory from x: the position at its end; what belongs to it changes in place."""
    size = len(x)
    force = np.empty(size)
    chain(chart, x, y, q, coef, bases, slope, force)
    z = (x - center) / sd
    there = np.empty(size)
    cosine, sine = math.cos(step), math.sin(step)
    for _ in range(steps):
        for i in range(size):
            kicked = momentum[i] + 0.5 * step * (force[i] * sd[i] + z[i])
            old = z[i]
            z[i] = cosine * old + sine * kicked
            momentum[i] = cosine * kicked - sine * old
            there[i] = center[i] + sd[i] * z[i]
        place(chart, there, y, q, coef, bases)
        gradient(data, coef, slope, residual)
        chain(chart, there, y, q, coef, bases, slope, force)
        for i in range(size):
            momentum[i] += 0.5 * step * (force[i] * sd[i] + z[i])
        if not abs(momentum[0]) < 1e10:
            break
    return there


@njit(cache=True, error_model="numpy")
def sweeps(
    data,
    chart,
    center,
    sd,
    x,
    tally,
    rng,
    averaging,
    most,
    least_turn,
    most_turn,
    hidden,
    coefs,
    zetas,
    extras,
    facts,
):
    """As many sweeps as ``coefs`` has rows, from x; the last position.

    Draws go into ``coefs``, ``zetas`` (log scales) and ``extras`` (entries ``hidden`` of q).
    ``tally.numbers[SINCE]`` >= 0: the step size adapts, and sums are kept; ``averaging``: the
    logarithms of step sizes are summed up too. A trajectory has at most
    ``most`` steps, and turns by something between two angles.
    """
    size = len(x)
    groups, columns = coefs.shape[1:]
    y, q, coef = np.empty(len(chart.g)), np.empty(len(chart.g)), np.empty((groups, columns))
    slope, residual = np.empty((groups, columns)), np.zeros(len(data.label), np.float32)
    bases = np.empty(len(chart.cell) + len(chart.kinds))
    place(chart, x, y, q, coef, bases)
    gradient(data, coef, slope, residual)
    fit, largest = value(data, coef)
    scales = size - len(chart.kinds)
    for k in range(len(coefs)):
        adapts = tally.numbers[SINCE] >= 0
        size_now = tally.numbers[STEP]
        step = min(size_now * (1.0 + JITTER * (2.0 * rng.random() - 1.0)), 1.0)
        turn = least_turn + (most_turn - least_turn) * rng.random()
        steps = min(max(1, round(turn / step)), most)
        momentum = rng.standard_normal(size)
        threshold = math.log(1.0 - rng.random())
        before = fit + log_prior(chart, x, q, coef, bases) - 0.5 * np.sum(momentum * momentum)
        y1, q1, coef1 = y.copy(), q.copy(), coef.copy()
        bases1, slope1, residual1 = bases.copy(), slope.copy(), residual.copy()
        x1 = proposal(
            data,
            chart,
            center,
            sd,
            x,
            slope1,
            step,
            steps,
            momentum,
            y1,
            q1,
            coef1,
            bases1,
            residual1,
        )
        fit1, largest1 = value(data, coef1)
        after = fit1 + log_prior(chart, x1, q1, coef1, bases1) - 0.5 * np.sum(momentum * momentum)
        change = after - before
        diverged = not change > -DIVERGED
        chance = 0.0 if diverged else math.exp(min(0.0, change))
        if not diverged and change > threshold:
            x, y, q, coef, bases = x1, y1, q1, coef1, bases1
            slope, residual, fit, largest = slope1, residual1, fit1, largest1
        if adapts:
            _adapt(tally, chance, averaging)
            _add(tally, data, x, q, coef, slope, residual)
        coefs[k] = coef
        zetas[k] = x[scales:]
        for i in range(len(hidden)):
            extras[k, i] = q[hidden[i]]
        facts[k, 0], facts[k, 1], facts[k, 2] = fit, largest, chance
        facts[k, 3], facts[k, 4], facts[k, 5] = steps, size_now, diverged
    return x


@njit(cache=True, error_model="numpy")
def _adapt(tally, chance, averaging):
    numbers = tally.numbers
    change = (chance - ACCEPTANCE) * RATE / math.sqrt(1.0 + numbers[SINCE])
    numbers[STEP] = min(LARGEST_STEP, numbers[STEP] * math.exp(change))
    numbers[SINCE] += 1.0
    if averaging:
        numbers[LOG_SUM] += math.log(numbers[STEP])
        numbers[LOG_COUNT] += 1.0


@njit(cache=True, error_model="numpy")
def _add(tally, data, x, q, coef, slope, residual):
    for n in range(len(residual)):
        # In single precision a chance may be just above one, which would make a weight negative.
        chance = min(abs(data.label[n] - residual[n]), 1.0)
        tally.weights[n] += chance * (1.0 - chance)
    tally.slopes[:] += slope
    tally.coef[:] += coef
    tally.q[:] += q
    tally.x[:] += x
    tally.squares[:] += x * x
    tally.numbers[COUNT] += 1.0
