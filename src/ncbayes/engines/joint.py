"""Sweeps for priors with learned scales, or that couple groups: all of coef jointly.

A sweep is: Polya-Gamma weights; scales that all of coef shares, with coef integrated out, since
given coef they hardly move; coef of all groups at once; scales of one statistic each, stretched
together with it; a leap of coef on the likelihood itself, where weights hold it back; and once
more the scales, given coef.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ncbayes.base import BoolArray, Draw, FloatArray, Precision, State
from ncbayes.contrast import Target
from ncbayes.engines import population
from ncbayes.engines.leap import LARGEST_STEP, QUARTER_TURN
from ncbayes.engines.starts import at_zero
from ncbayes.engines.weights import polya_gamma
from ncbayes.linalg.designs import Dense

# Sweeps that find out where the likelihood is curved and how wide the scales are, once a target.
PILOT_SWEEPS = 60
# Beyond this many columns the loops compiled here fall behind LAPACK.
MOST_COLUMNS = 400
# Proposals of a scale: as wide as the pilot found it times this, with tails of few degrees of
# freedom; and steps from where it is, for where the pilot was wrong.
WIDER, FREEDOM, STEP = 1.3, 5.0, 2.0
# Steps of leaps: their energy error grows with the number of coefficients to the 1/4.
LEAP_STEP = 1.3
# A pilot that saw a scale hardly move has not seen its width.
LEAST_WIDTH = 0.05


@dataclass(frozen=True, eq=False)
class Layout:
    """All groups' points in one table: rows ``bounds[g]`` to ``bounds[g + 1]`` are group g's."""

    design: FloatArray
    bounds: NDArray[np.int64]
    offset: FloatArray
    is_data: BoolArray

    @cached_property
    def rows(self) -> tuple[slice, ...]:
        """The rows of each group."""
        return tuple(slice(*ends) for ends in pairwise(self.bounds.tolist()))


@dataclass(frozen=True, eq=False)
class Pilot:
    """Near the mode: the Gram matrices weighted by curvature; centres and widths of log scales."""

    grams: FloatArray
    center: FloatArray
    width: FloatArray


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The law of coef given weights and scales: ``U^-1 (white + normals)``, U in two parts.

    ``log_weight``: the log of its normalizer, by which scales are weighed.
    """

    upper: FloatArray
    side: FloatArray
    white: FloatArray
    log_weight: float

    def draw(self, normals: FloatArray) -> FloatArray:
        from ncbayes.linalg.tridiagonal import backward

        coef: FloatArray = self.white + normals
        backward(self.upper, self.side, coef)
        return coef


_LAYOUTS: WeakKeyDictionary[Target, Layout] = WeakKeyDictionary()
_PILOTS: WeakKeyDictionary[Target, Pilot] = WeakKeyDictionary()


def usable(target: Target, scales: State) -> bool:
    """Whether sweeps of this kind are for this target: dense designs, scales or coupled groups."""
    if not target.lasting or target.shape[1] > MOST_COLUMNS:
        return False
    if not all(isinstance(each.design, Dense) for each in target.contrasts):
        return False
    return bool(scales) or target.prior.gaussian(scales, target.shape)[0].between is not None


def step(target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
    """One sweep."""
    from ncbayes.linalg.trajectories import log_likelihood

    layout, pilot = _layout(target), _pilot(target)
    coef, scales, moved = _swept(target, layout, draw, pilot, rng)
    coef, psi, accepted = _leap(target, layout, coef, scales, pilot, rng)
    scales = target.prior.update(scales, coef, rng)
    facts = {
        "log_likelihood": log_likelihood(psi, layout.is_data),
        "largest_log_odds": float(np.max(np.abs(psi))),
        "cg_iterations": 0.0,
        "leap_acceptance": accepted,
        "scale_acceptance": moved,
    }
    return Draw(coef, scales, facts)


def _layout(target: Target) -> Layout:
    if target not in _LAYOUTS:
        sizes = [len(each.offset) for each in target.contrasts]
        _LAYOUTS[target] = Layout(
            np.concatenate([each.design.dense() for each in target.contrasts]),
            np.cumsum([0, *sizes]),
            np.concatenate([each.offset for each in target.contrasts]),
            np.concatenate([each.is_data for each in target.contrasts]),
        )
    return _LAYOUTS[target]


def _log_odds(layout: Layout, coef: FloatArray) -> FloatArray:
    parts = [layout.design[rows] @ own for rows, own in zip(layout.rows, coef, strict=True)]
    return np.concatenate(parts) + layout.offset


def _grams(layout: Layout, weights: FloatArray) -> FloatArray:
    """``design_g' diag(weights_g) design_g`` of every group, (group, P, P)."""
    grams = np.empty((len(layout.rows), layout.design.shape[1], layout.design.shape[1]))
    roots = np.sqrt(weights)[:, None]
    for out, rows in zip(grams, layout.rows, strict=True):
        # A matrix times its own transpose goes to BLAS syrk: half the work of a general product.
        scaled = layout.design[rows] * roots[rows]
        np.matmul(scaled.T, scaled, out=out)
    return grams


def _swept(
    target: Target, layout: Layout, draw: Draw, pilot: Pilot | None, rng: np.random.Generator
) -> tuple[FloatArray, State, float]:
    """Weights, shared scales, coef, and single scales; with the share of scales that moved."""
    weights = polya_gamma(_log_odds(layout, draw.coef), rng)
    grams = _grams(layout, weights)
    pull = layout.is_data - 0.5 - weights * layout.offset
    score = np.array([pull[rows] @ layout.design[rows] for rows in layout.rows])
    draw = population.moved(target, draw, lambda: (grams, score), rng)
    scales, gaussian, moved = _collapsed(target, grams, score, draw.scales, pilot, rng)
    coef = gaussian.draw(rng.standard_normal(target.shape))
    coef, scales = _stretched(target, grams, score, coef, scales, rng)
    return coef, scales, moved


def _gaussian(target: Target, grams: FloatArray, score: FloatArray, scales: State) -> Gaussian:
    from ncbayes.linalg import tridiagonal

    prior, shift = target.prior.gaussian(scales, target.shape)
    upper, between = _blocks(grams, prior), _between(prior)
    side = np.empty((len(between), *upper.shape[1:]))
    half = tridiagonal.factorized(upper, side, between)
    if math.isnan(half):
        raise np.linalg.LinAlgError(
            "the precision of coef is not positive definite: weights or prior are not finite"
        )
    white = score + shift
    tridiagonal.forward(upper, side, white)
    log_weight = float(np.vdot(white, white)) / 2 - half + _log_determinant(prior)
    return Gaussian(upper, side, white, log_weight)


def _log_determinant(prior: Precision) -> float:
    """Log determinant of the root of the prior's precision: what a change of scales costs."""
    from ncbayes.linalg import tridiagonal

    between = _between(prior)
    if prior.within.ndim == 2:
        return float(tridiagonal.log_determinant(prior.within, between))
    upper = np.array(prior.within)
    side = np.empty((len(between), *upper.shape[1:]))
    return float(tridiagonal.factorized(upper, side, between))


def _blocks(grams: FloatArray, prior: Precision) -> FloatArray:
    if prior.within.ndim == 3:
        return np.asarray(grams + prior.within)
    blocks = grams.copy()
    np.einsum("gii->gi", blocks)[...] += prior.within
    return blocks


def _between(prior: Precision) -> FloatArray:
    """What couples the groups; without rows if nothing does."""
    size = prior.within.shape[1]
    return np.zeros((0, size)) if prior.between is None else np.ascontiguousarray(prior.between)


def _collapsed(
    target: Target,
    grams: FloatArray,
    score: FloatArray,
    scales: State,
    pilot: Pilot | None,
    rng: np.random.Generator,
) -> tuple[State, Gaussian, float]:
    """Shared scales by Metropolis steps with coef integrated out, one after the other."""
    prior: Any = target.prior
    gaussian = _gaussian(target, grams, score, scales)
    now, moved = _log_scales(prior, scales), 0
    for k in range(len(now)):
        proposed, log_ratio = now.copy(), 0.0
        if pilot is not None and rng.random() < 0.5:
            center, width = pilot.center[k], WIDER * pilot.width[k]
            proposed[k] = center + width * rng.standard_t(FREEDOM)
            log_ratio = _log_t((now[k] - center) / width) - _log_t((proposed[k] - center) / width)
        else:
            # The pilot itself knows no width yet, and tries all.
            width = math.exp(rng.uniform(-3, 1)) if pilot is None else STEP * pilot.width[k]
            proposed[k] += width * rng.standard_normal()
        there = prior.at_log_scales(scales, proposed)
        other = _gaussian(target, grams, score, there)
        log_ratio += other.log_weight - gaussian.log_weight
        log_ratio += prior.log_prior(there) - prior.log_prior(scales)
        if log_ratio > -rng.standard_exponential():
            scales, gaussian, now, moved = there, other, proposed, moved + 1
    return scales, gaussian, moved / len(now) if len(now) else np.nan


def _log_scales(prior: Any, scales: State) -> FloatArray:
    """Of what all coefficients share, where the prior can tell; else none."""
    found = prior.log_scales(scales) if hasattr(prior, "log_scales") else np.zeros(0)
    return np.asarray(found)


def _log_t(x: float) -> float:
    return -(FREEDOM + 1) / 2 * math.log1p(x * x / FREEDOM)


def _stretched(
    target: Target,
    grams: FloatArray,
    score: FloatArray,
    coef: FloatArray,
    scales: State,
    rng: np.random.Generator,
) -> tuple[FloatArray, State]:
    """Each statistic's own scale times exp(s), with the part of coef that goes with it."""
    from ncbayes.linalg.stretching import stretches

    prior: Any = target.prior
    for part, each in prior.stretches(scales, coef) if hasattr(prior, "stretches") else ():
        _, shift = prior.gaussian(scales, target.shape)
        coef, factors = coef.copy(), np.empty(len(each.columns))
        stretches(
            grams, score + shift, coef, each.columns, np.ascontiguousarray(each.part),
            each.log_variance, each.shape, each.rate, rng, factors,
        )  # fmt: skip
        scales = prior.stretched(scales, part, factors)
    return coef, scales


def _leap(
    target: Target,
    layout: Layout,
    coef: FloatArray,
    scales: State,
    pilot: Pilot,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, float]:
    """A Hamiltonian trajectory of coef given the scales: coef, log odds, whether it moved."""
    from ncbayes.linalg import tridiagonal

    prior, shift = target.prior.gaussian(scales, target.shape)
    upper, between = _blocks(pilot.grams, prior), _between(prior)
    side = np.empty((len(between), *upper.shape[1:]))
    failed = math.isnan(tridiagonal.factorized(upper, side, between))
    size = min(LARGEST_STEP, LEAP_STEP * coef.size**-0.25)
    # A random step breaks the cycles that a trajectory of a fixed length can fall into.
    step, count = size * rng.uniform(0.7, 1.0), math.ceil(QUARTER_TURN / size)
    momentum, threshold = rng.standard_normal(coef.shape), -rng.standard_exponential()
    if not failed:
        there = coef.copy()
        psi, log_acceptance = tridiagonal.leapt(
            layout.design, layout.bounds, layout.offset, layout.is_data,
            _blocks(np.zeros_like(pilot.grams), prior), between, shift,
            upper, side, there, momentum, step, count,
        )  # fmt: skip
        if log_acceptance > threshold:
            return there, psi, 1.0
    return coef, _log_odds(layout, coef), 0.0


def _pilot(target: Target) -> Pilot:
    """Made once for a target, from its own random numbers: the chain has no influence on it."""
    if target in _PILOTS:
        return _PILOTS[target]
    layout, rng, half = _layout(target), np.random.default_rng(0), PILOT_SWEEPS // 2
    coef = at_zero(target)
    scales, seen = target.prior.draw(target.shape, rng), []
    curvature = np.zeros_like(layout.offset)
    for k in range(PILOT_SWEEPS):
        coef, scales, _ = _swept(target, layout, Draw(coef, scales), None, rng)
        scales = target.prior.update(scales, coef, rng)
        if k >= half:
            chance = expit(_log_odds(layout, coef))
            curvature += chance * (1 - chance) / (PILOT_SWEEPS - half)
            seen.append(_log_scales(target.prior, scales))
    values = np.array(seen)
    width = np.maximum(values.std(axis=0), LEAST_WIDTH)
    _PILOTS[target] = Pilot(_grams(layout, curvature), values.mean(axis=0), width)
    return _PILOTS[target]
