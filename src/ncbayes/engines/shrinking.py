"""Sweeps for priors with local scales, such as the horseshoe: run by run, each with its scale.

A sweep is: Polya-Gamma weights; every run of coefficients with its local scale (linalg.clusters);
the other coefficients; the global scales. Two more moves look at the likelihood itself, because
Polya-Gamma weights hold back what moves all log odds at once: theta, the scales and c stretched
together in every sweep, and now and then a leap of all coefficients that the data speak about.
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
from ncbayes.contrast import Contrast, Target
from ncbayes.engines.leap import LARGEST_STEP, Laplace, LogPosterior, leap
from ncbayes.engines.weights import polya_gamma
from ncbayes.linalg.designs import Dense
from ncbayes.linalg.designs import rows as rows_of

# Entries of a design whose columns are kept as rows, 128 MB; of larger ones they are made anew
# for every sweep, in blocks of 2 MB, which stay in cache.
KEPT_ENTRIES, BLOCK_ENTRIES = 2**24, 2**18
# Coefficients without a local scale are drawn jointly; more of them than this want another method.
MOST_FREE = 200
# Sweeps that find out where the likelihood is curved, once for a target.
PILOT_SWEEPS = 60
# The global scale that they, and chains, begin at.
SMALL = 0.01
# A coefficient leaps if the data tell at least this share of what the prior tells about it.
ACTIVE = 0.3
# Leaps are made in this share of the sweeps, or in fewer if they would take most of the time: a
# flop of theirs takes about three times as long as one of a sweep, which reads nothing twice.
LEAPS, SLOWER = 1 / 3, 3.0
# Three quarters of a half turn in a standard normal: the slow directions are wider than that.
TURN = 2.4
# The metric of leaps is cut from a Gram matrix of up to so many columns, 32 MB; else made anew.
MOST_GRAM = 2000


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a target's sweeps need to know about it, one entry a group.

    ``curvature``: weights p (1 - p) of the points near the posterior's mode. ``slope``: how c
    falls when theta is stretched. ``diagonal``: of the design's Gram matrix with those weights, and
    ``gram`` itself where it is small. ``share``: of sweeps with a leap.
    """

    curvature: tuple[FloatArray, ...]
    slope: FloatArray
    diagonal: tuple[FloatArray, ...]
    gram: tuple[FloatArray | None, ...]
    share: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns stand outside all runs, and the columns as rows, one entry a group.

    ``rows`` is None where they are too many to be kept.
    """

    free: NDArray[np.intp]
    free_rows: tuple[FloatArray, ...]
    rows: tuple[FloatArray | None, ...]


# By target, for as long as the target is in use; None where sweeps by run can't draw from it.
_LAYOUTS: WeakKeyDictionary[Target, Layout | None] = WeakKeyDictionary()
_PILOTS: WeakKeyDictionary[Target, Pilot] = WeakKeyDictionary()


def usable(target: Target, scales: State) -> bool:
    """Whether the target's prior has runs, and little else."""
    return _layout(target, scales) is not None


def step(target: Target, draw: Draw, stretches: bool, rng: np.random.Generator) -> Draw:
    """One sweep; ``stretches``: with the moves that look at the likelihood itself."""
    layout = _layout(target, draw.scales)
    if layout is None:
        raise TypeError("the prior of this target has no runs")
    pilot = _pilot(target, layout) if stretches and target.lasting else None
    draw, psi = _swept(target, layout, draw, rng)
    accepted = np.nan
    if pilot is not None:
        draw, psi = _stretched(target, layout, draw, psi, pilot.slope, rng)
        if rng.random() < pilot.share:
            draw, psi, accepted = _leapt(target, layout, draw, psi, pilot, rng)
    pairs = zip(target.contrasts, psi, strict=True)
    facts = {
        "log_likelihood": sum(each.log_likelihood(values) for each, values in pairs),
        "largest_log_odds": max(float(np.max(np.abs(values))) for values in psi),
        "cg_iterations": 0.0,
        "leap_acceptance": accepted,
    }
    return Draw(draw.coef, draw.scales, facts)


def _swept(
    target: Target, layout: Layout, draw: Draw, rng: np.random.Generator
) -> tuple[Draw, list[FloatArray]]:
    """Weights, runs with their scales, the other coefficients, global scales; and the log odds."""
    prior: Any = target.prior
    clusters = prior.clusters(draw.scales, target.shape)
    precision, shift = prior.gaussian(draw.scales, target.shape)
    coef, log_local, log_odds = np.array(draw.coef), np.array(clusters.log_local), []
    for g, contrast in enumerate(target.contrasts):
        rows = layout.rows[g]
        psi = contrast.log_odds(coef[g]) if rows is None else contrast.offset + coef[g] @ rows
        points = polya_gamma(psi, rng), np.where(contrast.is_data, 0.5, -0.5), psi
        _sweep_runs(contrast.design, rows, clusters, points, coef[g], log_local[g], rng)
        free, own = layout.free, (precision.within[g], shift[g])
        _draw_free(layout.free_rows[g], free, points, coef[g], own, rng)
        log_odds.append(psi)
    scales = prior.update_global(prior.relocated(draw.scales, log_local), coef, rng)
    return Draw(coef, scales), log_odds


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
    for first, last in whole if kept is not None else _blocks(clusters, design.shape[0]):
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


def _stretched(
    target: Target,
    layout: Layout,
    draw: Draw,
    psi: list[FloatArray],
    slope: FloatArray,
    rng: np.random.Generator,
) -> tuple[Draw, list[FloatArray]]:
    """theta of the runs and their scales times exp(t), c less its slope times t."""
    from ncbayes.linalg.clusters import stretch

    prior: Any = target.prior
    clusters: Clusters = prior.clusters(draw.scales, target.shape)
    precision, shift = prior.gaussian(draw.scales, target.shape)
    free = layout.free
    still = [
        each.offset + row[free] @ rows
        for each, row, rows in zip(target.contrasts, draw.coef, layout.free_rows, strict=True)
    ]
    linear = [values - rest for values, rest in zip(psi, still, strict=True)]
    # Sums from one start to the next would take what stands between two runs as well.
    ends = np.column_stack([clusters.starts, clusters.starts + clusters.sizes]).ravel()
    squares = np.ascontiguousarray(np.add.reduceat(draw.coef**2, ends, axis=1)[:, ::2])
    points = [len(values) for values in psi]
    t = stretch(
        np.concatenate(still),
        np.concatenate(linear),
        np.repeat(slope, points),
        np.concatenate([each.is_data for each in target.contrasts]),
        np.column_stack([draw.coef[:, -1], slope]),
        np.ascontiguousarray(precision.within[:, -1]),
        np.ascontiguousarray(shift[:, -1]),
        clusters.log_local + np.log(clusters.multiplier),
        (squares, clusters.sizes, clusters.slab, clusters.fictitious, clusters.heads),
        rng,
    )
    coef = np.exp(t) * draw.coef
    coef[:, free] = draw.coef[:, free]
    coef[:, -1] -= slope * t
    moved = [
        rest + np.exp(t) * part - own * t
        for rest, part, own in zip(still, linear, slope, strict=True)
    ]
    return Draw(coef, prior.rescaled(draw.scales, t)), moved


def _leapt(
    target: Target,
    layout: Layout,
    draw: Draw,
    psi: list[FloatArray],
    pilot: Pilot,
    rng: np.random.Generator,
) -> tuple[Draw, list[FloatArray], float]:
    """A Hamiltonian trajectory of the coefficients that the data speak about, given the scales."""
    precision, shift = target.prior.gaussian(draw.scales, target.shape)
    coef, moved, accepted = np.array(draw.coef), list(psi), []
    for g, contrast in enumerate(target.contrasts):
        active = np.flatnonzero(pilot.diagonal[g] > ACTIVE * precision.within[g])
        if not len(active):
            continue
        own = precision.within[g][active]
        rows = _picked(contrast.design, layout.rows[g], active)
        gram = pilot.gram[g]
        if gram is None:
            metric = (rows * pilot.curvature[g]) @ rows.T
        else:
            metric = gram[np.ix_(active, active)]
        np.einsum("ii->i", metric)[...] += own
        factor, failed = dpotrf(metric, lower=1)
        if failed:
            continue
        rest = psi[g] - coef[g, active] @ rows
        local = Contrast(Dense(rows.T), rest, contrast.is_data)
        posterior = LogPosterior(local, np.diag(own), shift[g][active])
        found = Laplace(posterior, np.zeros(len(active)), factor)
        coef[g, active], went = leap(found, coef[g, active], rng, TURN)
        moved[g] = rest + coef[g, active] @ rows
        accepted.append(went)
    return Draw(coef, draw.scales), moved, float(np.mean(accepted)) if accepted else np.nan


def _picked(design: Design, kept: FloatArray | None, columns: NDArray[np.intp]) -> FloatArray:
    """Some columns of a design as rows."""
    if kept is not None:
        return np.asarray(kept[columns])
    out = np.empty((len(columns), design.shape[0]))
    breaks = np.flatnonzero(np.diff(columns) > 1) + 1
    for part in np.split(np.arange(len(columns)), breaks):
        out[part] = rows_of(design, int(columns[part[0]]), int(columns[part[-1]]) + 1)
    return out


def _pilot(target: Target, layout: Layout) -> Pilot:
    """Made once for a target, from its own random numbers: the chain has no influence on it."""
    if target in _PILOTS:
        return _PILOTS[target]
    rng = np.random.default_rng(0)
    draw = shrunk(target, rng)
    curvature = [np.zeros_like(each.offset) for each in target.contrasts]
    slopes, actives = [], []
    for k in range(PILOT_SWEEPS):
        draw, psi = _swept(target, layout, draw, rng)
        weights = [expit(values) * expit(-values) for values in psi]
        slopes.append(_slope(target, layout, draw, psi, weights))
        draw, psi = _stretched(target, layout, draw, psi, slopes[-1], rng)
        if k >= PILOT_SWEEPS // 2:
            curvature = [sum_ + each for sum_, each in zip(curvature, weights, strict=True)]
            actives.append(target.prior.gaussian(draw.scales, target.shape)[0].within)
    half = PILOT_SWEEPS - PILOT_SWEEPS // 2
    mean = tuple(each / half for each in curvature)
    pairs = list(zip(target.contrasts, mean, strict=True))
    diagonal = tuple(each.design.gram_diagonal(weights) for each, weights in pairs)
    small = target.shape[1] <= MOST_GRAM
    gram = tuple(each.design.gram(weights) if small else None for each, weights in pairs)
    active = int(np.mean([np.sum(np.array(diagonal) > ACTIVE * each) for each in actives]))
    share = _leap_share(max(map(len, mean)), target.shape[1], active // len(mean))
    slope = np.mean(slopes[PILOT_SWEEPS // 2 :], axis=0)
    _PILOTS[target] = Pilot(mean, slope, diagonal, gram, share)
    return _PILOTS[target]


def shrunk(target: Target, rng: np.random.Generator) -> Draw:
    """Where sweeps find the posterior soon: theta zero and its scales small, c fitted to that.

    From small scales coefficients enter as the data ask for them; from large ones they all have
    to find their way back to zero.
    """
    prior: Any = target.prior
    scales = prior.draw(target.shape, rng)
    heads = prior.clusters(scales, target.shape).heads
    coef = np.zeros(target.shape)
    for row, each in zip(coef, target.contrasts, strict=True):
        # Newton's method for the c that makes as many points likely data as there are data.
        for _ in range(50):
            chance = expit(each.offset + row[-1])
            excess, curvature = np.sum(each.is_data - chance), np.sum(chance * (1 - chance))
            row[-1] += np.clip(excess / max(curvature, 1e-10), -2.0, 2.0)
    return Draw(coef, prior.rescaled(scales, float(np.log(SMALL) - np.mean(heads))))


def _slope(
    target: Target, layout: Layout, draw: Draw, psi: list[FloatArray], weights: list[FloatArray]
) -> FloatArray:
    """The change of c that keeps the labels' fit when theta is stretched, one a group."""
    slopes = []
    for g, contrast in enumerate(target.contrasts):
        rest = contrast.offset + draw.coef[g, layout.free] @ layout.free_rows[g]
        slopes.append(float(weights[g] @ (psi[g] - rest) / max(weights[g].sum(), 1e-300)))
    return np.array(slopes)


def _leap_share(points: int, columns: int, active: int) -> float:
    """The share of sweeps with a leap, from the flops of both."""
    if active == 0:
        return 0.0
    steps = np.ceil(TURN / min(LARGEST_STEP, 1.3 * active**-0.25))
    gram = points * active**2 if columns > MOST_GRAM else 0
    leap_flops = 4 * (steps + 1) * points * active + gram + active**3 / 3
    return float(min(LEAPS, 12 * points * columns / (SLOWER * leap_flops)))


def _layout(target: Target, scales: State) -> Layout | None:
    """Made once for a target; None if its prior has no runs, or couples groups or coefficients."""
    if target in _LAYOUTS:
        return _LAYOUTS[target]
    prior: Any = target.prior
    clusters = prior.clusters(scales, target.shape) if hasattr(prior, "clusters") else None
    made = None
    if clusters is not None:
        inside = np.zeros(target.shape[1], dtype=bool)
        for start, size in zip(clusters.starts, clusters.sizes, strict=True):
            inside[start : start + size] = True
        free = np.flatnonzero(~inside)
        precision, _ = prior.gaussian(scales, target.shape)
        if len(free) <= MOST_FREE and precision.between is None and precision.within.ndim == 2:
            made = Layout(
                free,
                tuple(_picked(each.design, None, free) for each in target.contrasts),
                _kept([each.design for each in target.contrasts]),
            )
    _LAYOUTS[target] = made
    return made


def _kept(designs: list[Design]) -> tuple[FloatArray | None, ...]:
    small = sum(math.prod(design.shape) for design in designs) <= KEPT_ENTRIES
    return tuple(rows_of(each, 0, each.shape[1]) if small else None for each in designs)


def _blocks(clusters: Clusters, points: int) -> list[tuple[int, int]]:
    """Neighbouring runs in blocks of rows that stay in cache."""
    most = max(1, BLOCK_ENTRIES // points)
    blocks, first = [], 0
    for e in range(1, len(clusters.starts) + 1):
        if e < len(clusters.starts):
            adjacent = clusters.starts[e] == clusters.starts[e - 1] + clusters.sizes[e - 1]
            width = clusters.starts[e] + clusters.sizes[e] - clusters.starts[first]
            if adjacent and width <= most:
                continue
        blocks.append((first, e))
        first = e
    return blocks
