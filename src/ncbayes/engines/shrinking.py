"""Sweeps for priors with local scales, such as the horseshoe: run by run, each with its scale.

A sweep is: the global scales; Polya-Gamma weights; every run of coefficients with its local scale
(linalg.clusters); the other coefficients. Two more moves look at the likelihood itself, because
Polya-Gamma weights hold back what moves all log odds at once: theta, the scales and c stretched
together, and a leap of all coefficients that the data speak about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.special import expit

from ncbayes.base import Clusters, Design, Draw, FloatArray, State
from ncbayes.contrast import Target
from ncbayes.engines.layout import Layout, blocks_of, layout_of, picked
from ncbayes.engines.leap import LARGEST_STEP
from ncbayes.engines.starts import at_zero
from ncbayes.engines.weights import polya_gamma
from ncbayes.linalg.designs import rows as rows_of

# Sweeps that find out where the likelihood is curved, once for a target.
PILOT_SWEEPS = 60
# The global scale that they, and chains, begin at.
SMALL = 0.01
# A coefficient leaps if the data tell at least this share of what the prior tells about it.
ACTIVE = 0.3
# Three quarters of a half turn in a standard normal: the slow directions are wider than that.
TURN = 2.4
# The metric of leaps is cut from a Gram matrix of up to so many columns, 32 MB; else made anew.
MOST_GRAM = 2000


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a target's sweeps need to know about it, one entry a group.

    ``curvature``: weights p (1 - p) of all points near the posterior's mode. ``slope``: how c
    falls when theta is stretched. ``diagonal``: of the design's Gram matrix with those weights, and
    ``gram`` itself where it is small.
    """

    curvature: FloatArray
    slope: FloatArray
    diagonal: tuple[FloatArray, ...]
    gram: tuple[FloatArray | None, ...]


@dataclass(eq=False)
class Sweep:
    """A sweep under way: its scales' Gaussian stands, coefficients and log odds change in place.

    ``log_local`` are the logarithms of the local scales now; ``stretched``: that of the factor
    that all scales have been stretched by since.
    """

    scales: State
    clusters: Clusters
    precision: FloatArray
    shift: FloatArray
    coef: FloatArray
    log_local: FloatArray
    psi: FloatArray
    stretched: float = 0.0

    def draw(self, target: Target) -> Draw:
        prior: Any = target.prior
        scales = prior.relocated(self.scales, self.log_local)
        return Draw(self.coef, prior.rescaled(scales, self.stretched))

    def precision_now(self) -> FloatArray:
        """Of every coefficient."""
        found = self.clusters
        base = (np.exp(self.log_local + self.stretched) * found.multiplier) ** -2
        each = np.repeat(np.minimum(found.slab + base, 1e200), found.sizes, axis=1)
        now = np.array(self.precision)
        now[:, np.repeat(found.starts - np.cumsum(found.sizes) + found.sizes, found.sizes)
            + np.arange(each.shape[1])] = each  # fmt: skip
        return now


# By target, for as long as the target is in use.
_PILOTS: WeakKeyDictionary[Target, Pilot] = WeakKeyDictionary()


def usable(target: Target, scales: State) -> bool:
    """Whether the target's prior has runs, and little else."""
    return layout_of(target, scales) is not None


def step(target: Target, draw: Draw, stretches: bool, rng: np.random.Generator) -> Draw:
    """One sweep; ``stretches``: with the moves that look at the likelihood itself."""
    from ncbayes.linalg.trajectories import log_likelihood

    layout = layout_of(target, draw.scales)
    if layout is None:
        raise TypeError("the prior of this target has no runs")
    pilot = _pilot(target, layout) if stretches and target.lasting else None
    sweep, accepted = _swept(target, layout, draw, rng), np.nan
    if pilot is not None:
        _stretch(layout, sweep, pilot.slope, rng)
        accepted = _leap(target, layout, sweep, pilot, rng)
    done = sweep.draw(target)
    facts = {
        "log_likelihood": log_likelihood(sweep.psi, layout.is_data),
        "largest_log_odds": float(np.max(np.abs(sweep.psi))),
        "cg_iterations": 0.0,
        "leap_acceptance": accepted,
    }
    return Draw(done.coef, done.scales, facts)


def _swept(target: Target, layout: Layout, draw: Draw, rng: np.random.Generator) -> Sweep:
    """Global scales, weights, runs with their scales, and the other coefficients."""
    prior: Any = target.prior
    scales = prior.update_global(draw.scales, draw.coef, rng)
    clusters = prior.clusters(scales, target.shape)
    precision, shift = prior.gaussian(scales, target.shape)
    coef, log_local, psi = np.array(draw.coef), np.array(clusters.log_local), layout.offset.copy()
    for g, (contrast, points) in enumerate(zip(target.contrasts, layout.points, strict=True)):
        rows = layout.rows[g]
        psi[points] += contrast.design.matvec(coef[g]) if rows is None else coef[g] @ rows
    weights, half = polya_gamma(psi, rng), np.where(layout.is_data, 0.5, -0.5)
    for g, (contrast, points) in enumerate(zip(target.contrasts, layout.points, strict=True)):
        own, rows = (weights[points], half[points], psi[points]), layout.rows[g]
        _sweep_runs(contrast.design, rows, clusters, own, coef[g], log_local[g], rng)
        free_rows, free = layout.free_rows[:, points], layout.free
        _draw_free(free_rows, free, own, coef[g], (precision.within[g], shift[g]), rng)
    return Sweep(scales, clusters, precision.within, shift, coef, log_local, psi)


def _sweep_runs(
    design: Design,
    kept: FloatArray | None,
    clusters: Clusters,
    points: tuple[FloatArray, FloatArray, FloatArray],
    coef: FloatArray,
    log_local: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Every run of one group; psi (the last of ``points``), coef and log_local change in place."""
    from ncbayes.linalg.clusters import sweep

    whole = [(0, len(clusters.starts))]
    for first, last in whole if kept is not None else blocks_of(clusters, design.shape[0]):
        start = int(clusters.starts[first])
        stop = int(clusters.starts[last - 1] + clusters.sizes[last - 1])
        sweep(
            kept[start:stop] if kept is not None else rows_of(design, start, stop),
            clusters.starts[first:last] - start,
            clusters.sizes[first:last],
            *points,
            coef[start:stop],
            log_local[first:last],
            clusters.multiplier[first:last],
            clusters.slab[first:last],
            clusters.fictitious[first:last],
            rng,
        )


def _draw_free(
    rows: FloatArray,
    free: NDArray[np.intp],
    points: tuple[FloatArray, FloatArray, FloatArray],
    coef: FloatArray,
    prior: tuple[FloatArray, FloatArray],
    rng: np.random.Generator,
) -> None:
    """The coefficients outside all runs, jointly; psi and coef change in place."""
    if not len(free):
        return
    (weights, half, psi), (precision, shift) = points, prior
    gram = (rows * weights) @ rows.T
    right = rows @ (half - weights * psi) + gram @ coef[free] + shift[free]
    np.einsum("ii->i", gram)[...] += precision[free]
    factor, failed = dpotrf(gram, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the precision of coef is not positive definite")
    half_way, _ = dtrtrs(factor, right, lower=1)
    new, _ = dtrtrs(factor, half_way + rng.standard_normal(len(free)), lower=1, trans=1)
    psi += (new - coef[free]) @ rows
    coef[free] = new


def _stretch(layout: Layout, sweep: Sweep, slope: FloatArray, rng: np.random.Generator) -> None:
    """theta of the runs and their scales times exp(t), c less its slope times t."""
    from ncbayes.linalg.clusters import stretch

    clusters = sweep.clusters
    sweep.stretched = stretch(
        sweep.coef,
        sweep.psi,
        _still(layout, sweep.coef),
        layout.is_data,
        layout.bounds,
        slope,
        sweep.precision[:, -1].copy(),
        sweep.shift[:, -1].copy(),
        sweep.log_local,
        clusters.starts,
        clusters.sizes,
        clusters.multiplier,
        clusters.slab,
        clusters.fictitious,
        clusters.heads,
        clusters.headed,
        rng,
    )


def _still(layout: Layout, coef: FloatArray) -> FloatArray:
    """The part of the log odds that no run has a share in."""
    still = layout.offset.copy()
    for row, points in zip(coef, layout.points, strict=True):
        still[points] += row[layout.free] @ layout.free_rows[:, points]
    return still


def _leap(
    target: Target, layout: Layout, sweep: Sweep, pilot: Pilot, rng: np.random.Generator
) -> float:
    """A Hamiltonian trajectory of the coefficients that the data speak about, given the scales.

    The share of groups in which it was accepted, of those that leapt.
    """
    from ncbayes.linalg.trajectories import picked_square, trajectory

    precision, accepted = sweep.precision_now(), []
    for g, (contrast, points) in enumerate(zip(target.contrasts, layout.points, strict=True)):
        active = np.flatnonzero(pilot.diagonal[g] > ACTIVE * precision[g])
        # Which coefficients leap, and whether they do, depends on scales alone, which stand still.
        if rng.random() > _leap_share(*contrast.design.shape, len(active)):
            continue
        own, gram = precision[g, active], pilot.gram[g]
        rows = picked(contrast.design, layout.rows[g], active)
        if gram is None:
            metric = (rows * pilot.curvature[points]) @ rows.T
        else:
            metric = picked_square(gram, active)
        np.einsum("ii->i", metric)[...] += own
        factor, failed = dpotrf(metric.T, lower=0, overwrite_a=1)
        if failed:
            continue
        size, count = _steps(len(active))
        there, log_odds, log_acceptance = trajectory(
            rows,
            sweep.coef[g, active],
            sweep.psi[points],
            layout.is_data[points],
            own,
            sweep.shift[g, active],
            factor.T,
            rng.standard_normal(len(active)),
            # A random step breaks the cycles that a trajectory of a fixed length can fall into.
            size * rng.uniform(0.7, 1.0),
            count,
        )
        accepted.append(log_acceptance > -rng.standard_exponential())
        if accepted[-1]:
            sweep.coef[g, active], sweep.psi[points] = there, log_odds
    return float(np.mean(accepted)) if accepted else np.nan


def _steps(coefficients: int) -> tuple[float, int]:
    """The largest step of a trajectory, and how many it has."""
    size = min(LARGEST_STEP, 1.3 * coefficients**-0.25)
    return size, math.ceil(TURN / size)


def _pilot(target: Target, layout: Layout) -> Pilot:
    """Made once for a target, from its own random numbers: the chain has no influence on it."""
    if target in _PILOTS:
        return _PILOTS[target]
    rng = np.random.default_rng(0)
    draw, half = shrunk(target, rng), PILOT_SWEEPS // 2
    total, slopes = np.zeros_like(layout.offset), []
    # A c that is in a run itself is stretched with it, and does not follow.
    follows = target.normalizer and target.shape[1] - 1 in layout.free
    for k in range(PILOT_SWEEPS):
        sweep = _swept(target, layout, draw, rng)
        weights = expit(sweep.psi) * expit(-sweep.psi)
        slopes.append(_slope(layout, sweep, weights) * follows)
        if k >= half:
            total += weights
        _stretch(layout, sweep, slopes[-1], rng)
        draw = sweep.draw(target)
    mean = total / (PILOT_SWEEPS - half)
    pairs = [
        (each.design, mean[points])
        for each, points in zip(target.contrasts, layout.points, strict=True)
    ]
    diagonal = tuple(design.gram_diagonal(own) for design, own in pairs)
    small = target.shape[1] <= MOST_GRAM
    gram = tuple(design.gram(own) if small else None for design, own in pairs)
    _PILOTS[target] = Pilot(mean, np.mean(slopes[half:], axis=0), diagonal, gram)
    return _PILOTS[target]


def shrunk(target: Target, rng: np.random.Generator) -> Draw:
    """Where sweeps find the posterior soon: theta zero and its scales small, c fitted to that.

    From small scales coefficients enter as the data ask for them; from large ones they all have
    to find their way back to zero.
    """
    prior: Any = target.prior
    scales = prior.draw(target.shape, rng)
    found = prior.clusters(scales, target.shape)
    heads = np.append(found.heads, found.log_local[:, ~found.headed])
    return Draw(at_zero(target), prior.rescaled(scales, float(np.log(SMALL) - np.mean(heads))))


def _slope(layout: Layout, sweep: Sweep, weights: FloatArray) -> FloatArray:
    """The change of c that keeps the labels' fit when theta is stretched, one a group."""
    linear = sweep.psi - _still(layout, sweep.coef)
    return np.array(
        [
            float(weights[points] @ linear[points] / max(weights[points].sum(), 1e-300))
            for points in layout.points
        ]
    )


def _leap_share(points: int, columns: int, active: int) -> float:
    """The share of sweeps with a leap, from the flops of both: leaps take half the time at most."""
    if active == 0:
        return 0.0
    _, steps = _steps(active)
    gram = points * active**2 if columns > MOST_GRAM else 0
    leap_flops = 4 * (steps + 1) * points * active + gram + active**3 / 3
    return float(min(1.0, 12 * points * columns / leap_flops))
