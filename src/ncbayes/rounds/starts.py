"""A first estimate for noise: without noise, under the prior's own shrinkage, and simulated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Noise
from ncbayes.checks.verification import Nearness
from ncbayes.conditionals import conditionals_loss
from ncbayes.contrast import Target, kernel_of
from ncbayes.engines import Hyvarinen, Pseudolikelihood
from ncbayes.pilots import pilot
from ncbayes.priors import Normal
from ncbayes.priors.blocks import NORMALIZER, Blocks, Part
from ncbayes.problem import Problem
from ncbayes.rounds.looks import FEWEST_ROWS, looked
from ncbayes.score import score_loss

# Sweeps of the first estimate, without noise.
SWEEPS = 200
# Points and steps of moment matching, and the longest step, in sds of the log density.
MATCHED_POINTS, MATCHED_STEPS, LONGEST = 1000, 100, 0.5
# Statistics up to which there is an estimate without noise, and up to which moments are matched;
# entries of change statistics that are held, 128 MB.
MOST_QUICK, MOST_MATCHED, MOST_ENTRIES = 2000, 500, 2**24
# How far from the edge-less model the first estimate may go, one after the other.
PULLED = (0.5, 0.25, 0.0)
# Prior sds in units of 1 / sd of a statistic, and how many times smaller those of no edge are.
WEAK, NO_EDGE = 10.0, 1e-4


def first_estimate(
    problem: Problem,
    near: dict[int, Nearness],
    bases: dict[int, Noise | None],
    rng: np.random.Generator,
) -> tuple[FloatArray, set[int], str]:
    """A first estimate by group that simulation does not contradict, and how it was found.

    Also the groups for which there is none.
    """
    prior = problem.prior
    assert isinstance(prior, Blocks)
    whole = Blocks(tuple(part for part in prior.parts if part.name != NORMALIZER))
    quick, words = _noiseless(problem, whole, rng)
    found = np.zeros((len(problem.data), whole.parts[-1].stop))
    used, failed = dict.fromkeys(near, words), set()
    edgeless = None

    def passes(g: int, theta: FloatArray) -> bool:
        return looked(problem, g, theta, near[g], bases[g], rng)[0].is_start

    for g in near:
        if quick is not None and passes(g, quick[g]):
            found[g] = quick[g]
            continue
        if quick is None and found.shape[1] > MOST_MATCHED:
            failed.add(g)
            used[g] = "fitted noise, since there are very many parameters"
            continue
        begin = None if quick is None else quick[g]
        found[g], used[g] = _moment_matched(problem, g, begin, rng), "moment matching"
        if passes(g, found[g]):
            continue
        edgeless = _edgeless(problem, whole, rng) if edgeless is None else edgeless
        begin = found[g] if begin is None else begin
        for share in PULLED:
            found[g] = share * begin + (1 - share) * edgeless[g]
            used[g] = f"{words or 'moment matching'}, pulled to {share:g} of its edges"
            if passes(g, found[g]):
                break
        else:
            failed.add(g)
            used[g] = "fitted noise, since no estimate passed"
    return found, failed, ", ".join(dict.fromkeys(used.values()))


def _moment_matched(
    problem: Problem, group: int, begin: FloatArray | None, rng: np.random.Generator
) -> FloatArray:
    """theta at which simulated means are those of the rows, by chains that start at rows.

    From an estimate, or else from a quick contrast with noise; Newton steps of a falling size by
    the covariance of the simulated statistics, under a weak prior, and the mean of the second half.
    """
    model: Any = problem.model
    rows = problem.data[group]
    begun = pilot(model, rows, rng)
    theta, data = begun.theta if begin is None else begin, begun.total / len(rows)
    ridge = begun.penalty / len(rows)
    if not hasattr(model, "sweep") or len(theta) > MOST_MATCHED:
        return theta
    points = np.array(rows[np.arange(MATCHED_POINTS) % len(rows)], dtype=float)
    kept = np.zeros_like(theta)
    for step in range(MATCHED_STEPS):
        try:
            points = model.sweep(theta, points, rng)
        except InputError:  # no distribution there: back toward where it was one
            theta = theta / 2
            continue
        simulated = np.asarray(model.statistics(points), dtype=float)
        covariance = np.atleast_2d(np.cov(simulated, rowvar=False)) + ridge
        pull = data - simulated.mean(axis=0) - ridge @ theta
        size = np.diag(covariance) * 1e-6
        change = np.linalg.solve(covariance + np.diag(size + 1e-12), pull)
        length = math.sqrt(max(float(change @ covariance @ change), 1e-300))
        gain = min(1.0, 10 / (step + 10)) * min(1.0, LONGEST / length)
        theta = theta + gain * change
        if step >= MATCHED_STEPS // 2:
            kept += theta
    return np.asarray(kept / (MATCHED_STEPS - MATCHED_STEPS // 2))


def _noiseless(
    problem: Problem, prior: Blocks, rng: np.random.Generator
) -> tuple[FloatArray | None, str]:
    """The mean of a short posterior without noise, under the prior's own shrinkage."""
    made: tuple[Any, Any, str]
    if hasattr(problem.model, "change_statistics"):
        made = conditionals_loss, Pseudolikelihood(), "pseudolikelihood"
    elif hasattr(problem.model, "score_statistics"):
        made = score_loss, Hyvarinen(1.0), "score matching"
    else:
        return None, ""
    loss, engine, words = made
    shape = len(problem.data), prior.parts[-1].stop
    if shape[1] > MOST_QUICK:
        return None, ""
    most = max(FEWEST_ROWS, MOST_ENTRIES // (shape[1] * problem.model.space.dimension))
    found, filled = np.zeros(shape), [g for g, rows in enumerate(problem.data) if len(rows) > 1]
    try:
        losses = tuple(
            loss(problem.model, problem.data[g][:: -(-len(problem.data[g]) // most)], rng)
            for g in filled
        )
        target = Target((), prior, losses=losses, normalizer=False)
        kernel = kernel_of(engine.adapting(SWEEPS), target)
        draw = kernel.sweeps(kernel.start(rng), rng, SWEEPS).last
        found[filled] = kernel.sweeps(draw, rng, SWEEPS).coef.mean(axis=0)
    except (InputError, np.linalg.LinAlgError):
        return None, ""
    return found, words


def _edgeless(problem: Problem, prior: Blocks, rng: np.random.Generator) -> FloatArray:
    """The estimate as if edges were none, under a weak prior of the rest."""
    names = getattr(problem.model, "edge_columns", {})
    edges = [int(k) for columns in names.values() for k in np.ravel(columns)]
    rows = np.concatenate(problem.data)
    spread = np.asarray(problem.model.statistics(rows), dtype=float).std(axis=0)
    scales = WEAK / np.where(spread > 0, spread, 1.0)
    scales[edges] *= NO_EDGE
    weak = Blocks((Part("theta", Normal(scales), 0, len(scales)),))
    found, _ = _noiseless(problem, weak, rng)
    return np.zeros((len(problem.data), len(scales))) if found is None else found
