"""Step size and metric of a Hamiltonian sampler, adapted sweep by sweep as in Stan.

The memory is a mapping of plain arrays, so that a checkpoint in the middle is complete.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ncbayes.base import FloatArray, State

# Stan's numbers: sweeps before the first window, of the first window, and after the last one.
FIRST, WINDOW, LAST = 75, 25, 50
# Hoffman and Gelman (2014): gamma, t_0 and kappa of dual averaging.
GAMMA, STABLE, FORGETTING = 0.05, 10, 0.75
# Draws that the metric before counts for.
SHRINKAGE = 5
FEWEST = 20


def begun(inverse_mass: FloatArray, sweeps: int) -> State:
    """The memory of a chain that is to adapt in so many sweeps."""
    # With the metric of a Gaussian posterior, steps of about this size are accepted.
    step_size = np.asarray(len(inverse_mass) ** -0.25)
    kept = {"step_size": step_size, "inverse_mass": np.asarray(inverse_mass)}
    if not sweeps:
        return kept
    return {**kept, "sweep": np.asarray(0.0), **_restarted(step_size), **_emptied(inverse_mass)}


def advanced(
    memory: State, sweeps: int, position: FloatArray, acceptance: float, wanted: float
) -> State:
    """The memory after one more sweep; unchanged once ``sweeps`` of them are over.

    The step size by dual averaging of ``wanted - acceptance``; the inverse metric is the covariance
    of the positions in windows of doubling length, with a few draws' worth of the metric before.
    """
    if "sweep" not in memory:
        return memory
    sweep = int(memory["sweep"])
    slow, ends = schedule(sweeps)[sweep]
    now = {**memory, **_averaged(memory, np.nan_to_num(acceptance), wanted)}
    if slow:
        now |= _counted(memory, position)
    if ends:
        now["inverse_mass"] = _covariance(now)
        now["step_size"] = np.exp(now["log_mean"])
        now |= {**_emptied(now["inverse_mass"]), **_restarted(now["step_size"])}
    if sweep + 1 >= sweeps:
        return {"step_size": np.exp(now["log_mean"]), "inverse_mass": now["inverse_mass"]}
    return {**now, "sweep": np.asarray(sweep + 1.0)}


def _restarted(step_size: FloatArray) -> dict[str, FloatArray]:
    # Dual averaging is drawn to ten times the step size it starts with: large steps are tried.
    return {
        "anchor": np.asarray(np.log(10 * step_size)),
        "since": np.asarray(0.0),
        "error": np.asarray(0.0),
        "log_mean": np.asarray(np.log(step_size)),
    }


def _averaged(memory: State, acceptance: float, wanted: float) -> dict[str, FloatArray]:
    since = float(memory["since"]) + 1
    share = 1 / (since + STABLE)
    error = (1 - share) * memory["error"] + share * (wanted - acceptance)
    log_step = memory["anchor"] - np.sqrt(since) / GAMMA * error
    weight = since**-FORGETTING
    log_mean = weight * log_step + (1 - weight) * memory["log_mean"]
    return {
        "since": np.asarray(since),
        "error": np.asarray(error),
        "log_mean": np.asarray(log_mean),
        "step_size": np.asarray(np.exp(log_step)),
    }


def _emptied(inverse_mass: FloatArray) -> dict[str, FloatArray]:
    return {
        "count": np.asarray(0.0),
        "mean": np.zeros(len(inverse_mass)),
        "squares": np.zeros_like(inverse_mass),
    }


def _counted(memory: State, position: FloatArray) -> dict[str, FloatArray]:
    """Welford's update of mean and sum of squares."""
    count = memory["count"] + 1
    before = position - memory["mean"]
    mean = memory["mean"] + before / count
    after = position - mean
    dense = memory["squares"].ndim == 2
    squares = memory["squares"] + (np.outer(before, after) if dense else before * after)
    return {"count": np.asarray(count), "mean": mean, "squares": squares}


def _covariance(memory: State) -> FloatArray:
    count = float(memory["count"])
    found = memory["squares"] / max(count - 1, 1.0)
    return np.asarray(
        (count * found + SHRINKAGE * memory["inverse_mass"]) / (count + SHRINKAGE), dtype=float
    )


@cache
def schedule(sweeps: int) -> tuple[tuple[bool, bool], ...]:
    """For every sweep, whether the metric learns from it, and whether a window ends with it."""
    if sweeps < FEWEST:
        return ((False, False),) * sweeps
    first, window, last = FIRST, WINDOW, LAST
    if first + window + last > sweeps:
        first, last = int(0.15 * sweeps), int(0.1 * sweeps)
        window = sweeps - first - last
    plan, begin = [(False, False)] * sweeps, first
    while begin < sweeps - last:
        end = begin + window
        # The next window would be twice as long: if that does not fit, this one takes the rest.
        if end + 2 * window > sweeps - last:
            end = sweeps - last
        plan[begin:end] = [(True, False)] * (end - begin - 1) + [(True, True)]
        begin, window = end, 2 * window
    return tuple(plan)
