"""Noise drawn from the model itself at one theta: the part of self-consistent noise that matters.

    log q(x) = theta . statistics(x) + log_base(x) - log Z(theta)

log Z is the model's own, or estimated by annealing. In a mixture with other parts its error shifts
their shares a little, and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ncbayes.base import FloatArray, Noise, shown
from ncbayes.noise.tempered import (
    SETTLE,
    anneal,
    annealing_path,
    anneals,
    effective_size,
    log_mean,
    log_unnormalized,
    systematic,
)

# Points that measure an annealing path; steps one after the other until log Z has at most this
# standard error, and so many of the points are effective.
PARTICLES, STEPS, ENOUGH, EFFECTIVE = 1000, (16, 64, 256), 0.05, 0.3
# Sweeps of points that start at rows of the data.
SWEEPS = 50


@dataclass(frozen=True, eq=False)
class Drawn:
    """Points of the model at theta with log weights, and log Z.

    ``effective`` is the share of points that count; ``steps`` of annealing, 0 where points were
    drawn exactly or took sweeps from the ``base``.
    """

    points: FloatArray
    log_weights: FloatArray
    log_z: float
    error: float
    effective: float
    steps: int
    base: Noise | None = None

    def resampled(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Points of equal weight."""
        return np.asarray(self.points[systematic(self.log_weights, size, rng)])


def is_exact(model: Any) -> bool:
    """Whether rows of the model are independent draws and log Z is known."""
    known = hasattr(model, "sample") and hasattr(model, "log_partition")
    return known and not hasattr(model, "sweep")


def simulates(model: Any) -> bool:
    """Whether the model can draw points of its own, by conditionals or exactly."""
    return anneals(model) or is_exact(model)


def drawn(
    model: Any, theta: FloatArray, rows: FloatArray, base: Noise | None, rng: np.random.Generator
) -> Drawn:
    """Points of the model at theta: exact, or annealed more slowly until log Z is known.

    Where that fails and there is a ``base`` that resembles the rows, points are swept from it and
    from the rows, and log Z comes from the ratio of model and base at both (a bridge).
    """
    if is_exact(model):
        points = np.asarray(model.sample(theta, PARTICLES, rng), dtype=float)
        log_z = float(model.log_partition(theta))
        return Drawn(points, np.zeros(PARTICLES), log_z, 0.0, 1.0, 0)
    for steps in STEPS:
        start, end = annealing_path(model, theta, 1.0)
        points, path = anneal(model, end, steps, PARTICLES, rng, start)
        log_z, error = log_mean(path[-1])
        effective = effective_size(path[-1]) / PARTICLES
        if error <= ENOUGH and effective >= EFFECTIVE:
            break
    found = Drawn(points, path[-1], log_z, error, effective, steps)
    if base is None or effective >= EFFECTIVE:
        return found
    other = _bridged(model, theta, rows, base, rng)
    return other if other.error < error else found


def _bridged(
    model: Any, theta: FloatArray, rows: FloatArray, base: Noise, rng: np.random.Generator
) -> Drawn:
    """log Z such that the model's points and the base's are told apart as well as they can be."""
    start = base.sample(PARTICLES, rng)
    from_rows = swept(model, theta, rows[rng.permutation(PARTICLES) % len(rows)], rng)
    from_base = swept(model, theta, start, rng)

    def ratio(x: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            found = log_unnormalized(model, theta, x) - base.log_density(x)
        return np.clip(np.nan_to_num(found, nan=-1e9), -1e9, 1e9)

    both = np.concatenate([ratio(from_rows), ratio(start)])

    def surplus(log_z: float) -> float:
        return float(expit(both - log_z).sum() - PARTICLES)

    log_z = float(brentq(surplus, both.min() - 1, both.max() + 1))
    chance = expit(both - log_z)
    told = float(np.sum(chance * (1 - chance)))
    error = math.sqrt(max(1 / max(told, 1e-12) - 2 / PARTICLES, 0.0))
    points = np.concatenate([from_rows, from_base])
    weights = np.full(len(points), log_z)
    return Drawn(
        points, weights, log_z, error, min(1.0, ENOUGH**2 / max(error, 1e-9) ** 2), 0, base
    )


def swept(
    model: Any, theta: FloatArray, x: FloatArray, rng: np.random.Generator, count: int = SWEEPS
) -> FloatArray:
    """Points moved by sweeps of the model's conditionals."""
    for _ in range(count if len(x) else 0):
        x = model.sweep(theta, x, rng)
    return x


@dataclass(frozen=True, eq=False, repr=False)
class ModelPart:
    """The model at theta. Half of its points come from its base, half from the data's ``rows``.

    Those of the base are annealed in so many ``steps`` and resampled, or swept from the ``base``
    that is given; those of rows are copies that took sweeps of the model's conditionals. Where
    chains are slow to leave a mode, each finds what the other does not. A model that draws its rows
    exactly does so.
    """

    model: Any
    theta: FloatArray
    log_z: float
    steps: int
    rows: FloatArray
    base: Noise | None = None

    def __post_init__(self) -> None:
        # A copy: log Z is of this theta, and whoever passed it goes on to another.
        theta = np.array(self.theta, dtype=float)
        theta.setflags(write=False)
        object.__setattr__(self, "theta", theta)

    def __repr__(self) -> str:
        return f"ModelPart({shown(self.model, 40)})"

    @property
    def dimension(self) -> int:
        return int(self.model.space.dimension)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        if is_exact(self.model):
            return np.asarray(self.model.sample(self.theta, size, rng), dtype=float)
        start, theta = annealing_path(self.model, self.theta, 1.0)
        half = size - size // 2
        if self.base is None:
            points, path = anneal(self.model, theta, self.steps, half, rng, start)
            points = swept(self.model, theta, points[systematic(path[-1], half, rng)], rng, SETTLE)
        else:
            points = swept(self.model, theta, self.base.sample(half, rng), rng)
        copies = self.rows[rng.permutation(size // 2) % len(self.rows)]
        both = np.concatenate([points, swept(self.model, theta, copies, rng)])
        return np.asarray(both[rng.permutation(size)])

    def log_density(self, x: FloatArray) -> FloatArray:
        return log_unnormalized(self.model, self.theta, x) - self.log_z
