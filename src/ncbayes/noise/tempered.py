"""Noise made from a fitted model: part of the way from a base to the model, drawn and normalized.

    log q(x) = (1 - alpha) log q_0(x) + alpha (theta . statistics(x) + log_base(x)) - log Z_alpha

An error in log Z_alpha moves the free normalizer c by as much, and theta not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, Model, Noise, Space, log_density_at_rows, shown

# Entries of a matrix of statistics or proposals held at once: 16 MB.
MOST_ENTRIES = 2_000_000
# Noise points resampled from proposals of their own; many, because their weights share a mean.
FEWEST_AT_ONCE = 1000
# How many times farther from the median than the base's own draws a density must have fallen.
FAR = (5.0, 25.0, 125.0)
# Sweeps after the last resampling: they part the points that came from one.
SETTLE = 3


class Sweeping(Model, Protocol):
    """A model that can simulate its conditionals."""

    def sweep(self, theta: FloatArray, x: FloatArray, rng: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True)
class Tempering:
    """A tempered density's parameters, and how well it could be drawn and normalized.

    ``effective`` is the effective sample size by the number of points wanted, ``work`` the number
    of proposals for each point or of annealing steps, and ``log_z`` has standard error
    ``log_z_error``.
    """

    theta: FloatArray
    alpha: float
    log_z: float
    log_z_error: float
    effective: float
    work: int


@dataclass(frozen=True)
class Refused:
    """No tempered density, and why; ``effective`` and ``log_z_error`` at the least alpha tried.

    ``reason`` is one of ``REASONS``.
    """

    reason: str
    effective: float = math.nan
    log_z_error: float = math.nan


# How an update of the noise ended that the guard let through.
MADE, LOWERED, NOT_BETTER = "made", "made with less alpha", "not better"
# Why there is no new noise: words that are stored with an update, and what they mean.
NO_POINTS, ZERO_WEIGHTS, UNCERTAIN = "no points", "zero weights", "uncertain normalizer"
FEW_EFFECTIVE, GROWS = "few effective points", "grows"
REASONS = {
    NO_POINTS: "the group has no points, and so no noise",
    ZERO_WEIGHTS: "no proposal lies where the model has mass",
    UNCERTAIN: "the normalizer of the new noise is too uncertain (largest_error) at any alpha",
    FEW_EFFECTIVE: "too few of its points are effective (least_effective) at any alpha",
    GROWS: "the model at the estimate grows without limit where the noise before is thin",
}


@dataclass(frozen=True, eq=False, repr=False)
class Resampled:
    """``q_0^(1 - alpha) model^alpha`` by importance resampling from q_0 (Algorithm 3).

    The paper's q_alpha where q_0 is uniform and log_base is 0. ``work`` proposals are made for each
    point, and points are chosen by systematic resampling, which repeats fewer of them than
    independent choices would.
    """

    model: Model
    base: Noise
    tempering: Tempering

    def __repr__(self) -> str:
        return f"Resampled({shown(self.model, 40)}, alpha={self.tempering.alpha:.3g})"

    @property
    def dimension(self) -> int:
        return self.model.space.dimension

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        block = max(FEWEST_AT_ONCE, MOST_ENTRIES // (self.tempering.work * self.dimension))
        sizes = [min(block, size - start) for start in range(0, size, block)]
        none = np.zeros((0, self.dimension))
        return np.concatenate([none, *(self._block(each, rng) for each in sizes)])

    def _block(self, size: int, rng: np.random.Generator) -> FloatArray:
        proposals = self.base.sample(size * self.tempering.work, rng)
        tilt = log_tilt(self.model, self.tempering.theta, self.base, proposals)
        return np.asarray(proposals[systematic(tempered_by(self.tempering.alpha, tilt), size, rng)])

    def log_density(self, x: FloatArray) -> FloatArray:
        return self._log_density(x, self.base.log_density(x))

    def log_density_at_rows(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        return self._log_density(x, log_density_at_rows(self.base, x, rows))

    def _log_density(self, x: FloatArray, log_base: FloatArray) -> FloatArray:
        """The log density at x, where the base has log density ``log_base``."""
        model = log_unnormalized(self.model, self.tempering.theta, x)
        with np.errstate(invalid="ignore"):  # where both are -inf there is no density at all
            value = log_base + tempered_by(self.tempering.alpha, _tilt(model, log_base))
            value -= self.tempering.log_z
        return np.where(np.isnan(value), -np.inf, value)


@dataclass(frozen=True, eq=False, repr=False)
class Annealed:
    """The model at ``alpha theta``, by annealed importance sampling from the model at 0.

    The q_0 of the formula is the model at theta = 0: uniform where log_base is 0. A model with
    ``path(theta, alpha)`` has another start and end.
    Points start there, take ``work`` sweeps of the model's conditionals while theta grows, are
    resampled by their weights and take a few more.
    """

    model: Sweeping
    tempering: Tempering

    def __repr__(self) -> str:
        return f"Annealed({shown(self.model, 40)}, alpha={self.tempering.alpha:.3g})"

    @property
    def dimension(self) -> int:
        return self.model.space.dimension

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        start, theta = annealing_path(self.model, self.tempering.theta, self.tempering.alpha)
        points, path = anneal(self.model, theta, self.tempering.work, size, rng, start)
        points = points[systematic(path[-1], size, rng)]
        for _ in range(SETTLE):
            points = self.model.sweep(theta, points, rng)
        return points

    def log_density(self, x: FloatArray) -> FloatArray:
        _, theta = annealing_path(self.model, self.tempering.theta, self.tempering.alpha)
        value = log_unnormalized(self.model, theta, x)
        return value - self.tempering.log_z


def log_unnormalized(model: Model, theta: FloatArray, x: FloatArray) -> FloatArray:
    """``theta . statistics(x) + log_base(x)``, -inf outside the model's space."""
    inside = model.space.contains(x)
    value = np.full(len(x), -np.inf)
    within = x[inside]
    value[inside] = exponent(model, theta, within) + np.ravel(model.log_base(within))
    return value


def exponent(model: Model, theta: FloatArray, x: FloatArray) -> FloatArray:
    """``theta . statistics(x)``, never holding more than a slice of the statistics."""
    structured = getattr(model, "design", None)
    if structured is not None:
        return np.asarray(structured(x).matvec(theta))
    rows = max(1, MOST_ENTRIES // max(len(theta), 1))
    parts = [model.statistics(x[k : k + rows]) @ theta for k in range(0, len(x), rows)]
    return np.concatenate(parts) if parts else np.zeros(0)


def log_tilt(model: Model, theta: FloatArray, base: Noise, x: FloatArray) -> FloatArray:
    """``log (unnormalized model / base)``: what each unit of alpha adds to the base."""
    return _tilt(log_unnormalized(model, theta, x), base.log_density(x))


def _tilt(log_model: FloatArray, log_base: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        tilt = log_model - log_base
    return np.where(np.isnan(tilt), -np.inf, tilt)


def tempered_by(alpha: float, tilt: FloatArray) -> FloatArray:
    """``alpha tilt``; with alpha = 0 the base is left as it is, also where the model is zero."""
    return alpha * tilt if alpha > 0 else np.zeros_like(tilt)


def grows(
    space: Space,
    base: Noise,
    alpha: float,
    log_model: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
) -> bool:
    """Whether the tempered density is larger far out than near: then it has no integral.

    An average of draws can be a theta at which the model itself is no distribution.
    """
    near = base.sample(FEWEST_AT_ONCE, rng)
    center = np.median(near, axis=0)

    def highest(x: FloatArray) -> float:
        log_base = base.log_density(x)
        x, log_base = x[log_base > -np.inf], log_base[log_base > -np.inf]
        tilt = tempered_by(alpha, _tilt(log_model(x), log_base))
        return float(np.max(log_base + tilt, initial=-np.inf))

    def distance(x: FloatArray) -> FloatArray:
        return np.asarray(np.abs(x - center).max(axis=1, initial=0.0))

    stretched = [center + factor * (near - center) for factor in FAR]
    # What was stretched from next to the center is still near, and may be nearer to the mode.
    limit = distance(near).max()
    far = [highest(x[space.contains(x) & (distance(x) > limit)]) for x in stretched]
    return max(far) >= highest(near[space.contains(near)])


def anneals(model: Any) -> bool:
    """Whether points of the model can be annealed by its conditionals from where they are known."""
    bounded = math.isfinite(model.space.log_volume) or hasattr(model, "path")
    return hasattr(model, "sweep") and bounded


def annealing_path(
    model: Any, theta: FloatArray, alpha: float
) -> tuple[FloatArray | None, FloatArray]:
    """Where annealing begins, None for theta = 0, and where it ends."""
    if not hasattr(model, "path"):
        return None, alpha * theta
    start, end = model.path(theta, alpha)
    return start, end


def anneal(
    model: Any,
    theta: FloatArray,
    steps: int,
    size: int,
    rng: np.random.Generator,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Points near the model at theta, and their log weights after each step, (steps, size).

    Row k - 1 weights the points for the model k / steps of the way from ``start`` (None: 0) to
    theta; its mean weight estimates Z there without bias.
    """
    if start is None:
        start = np.zeros_like(theta)
        points = model.space.uniform(size, rng)
        weight = model.space.log_volume + np.ravel(model.log_base(points))
    else:
        points = model.sample(start, size, rng)
        weight = np.full(size, model.log_partition(start))
    path, way = np.empty((steps, size)), theta - start
    for k in range(1, steps + 1):
        weight = weight + exponent(model, way, points) / steps
        path[k - 1] = weight
        points = model.sweep(start + way * (k / steps), points, rng)
        if k == 1 and size > 0:
            _check_swept(model, points, size)
    return points, path


def _check_swept(model: Sweeping, points: object, size: int) -> None:
    shape = (size, model.space.dimension)
    if not (isinstance(points, np.ndarray) and points.shape == shape):
        raise InputError(
            f"sweep(theta, x, rng) of {shown(model, 40)} must return an array of shape {shape} "
            f"like x, got {shown(getattr(points, 'shape', points))}"
        )
    outside = int(np.sum(~model.space.contains(points)))
    if outside:
        raise InputError(
            f"sweep(theta, x, rng) of {shown(model, 40)} must return points of {model.space}, got "
            f"{outside} of {size} outside; angles must lie from 0 to 2 pi: x % (2 * np.pi)"
        )


def log_mean(log_weights: FloatArray) -> tuple[float, float]:
    """Log of the mean weight, and its standard error."""
    weights, largest = _scaled(log_weights)
    share = effective_size(log_weights) / len(weights)
    return math.log(weights.mean()) + largest, math.sqrt(max(1 / share - 1, 0) / len(weights))


def effective_size(log_weights: FloatArray) -> float:
    """``(sum w)^2 / sum w^2``, the paper's ESS."""
    weights, _ = _scaled(log_weights)
    return float(weights.sum() ** 2 / (weights**2).sum())


def systematic(log_weights: FloatArray, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices drawn with these weights, each as often as expected, rounded up or down."""
    if size == 0:
        return np.zeros(0, dtype=np.intp)
    weights, _ = _scaled(log_weights)
    ends = np.cumsum(weights)
    places = (np.arange(size) + rng.random()) / size * ends[-1]
    return np.asarray(np.minimum(np.searchsorted(ends, places, "right"), len(weights) - 1))


def _scaled(log_weights: FloatArray) -> tuple[FloatArray, float]:
    largest = float(log_weights.max(initial=-np.inf))
    if not math.isfinite(largest):
        return np.ones(len(log_weights)), largest
    return np.exp(log_weights - largest), largest
