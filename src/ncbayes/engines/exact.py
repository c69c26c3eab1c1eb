"""The exact posterior where log Z can be computed: the answer that others are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from ncbayes.base import Block, Draw, FloatArray, InputError, State, shown
from ncbayes.contrast import Kernel, Stepwise, Target
from ncbayes.engines.around import approached, conditional, gaussian
from ncbayes.engines.bound import Bound
from ncbayes.engines.coordinates import Structure, pieces
from ncbayes.engines.joint import JointKernel

# What the Gaussian takes of the likelihood's expansion: all of it, and half of it, which has
# heavier tails than the likelihood.
SHARES = (1.0, 0.5)
# A bracket that has shrunk so often has reached the point it started from.
MOST_TRIALS = 100


METHODS = ("auto", "joint", "slices")


@dataclass(frozen=True)
class Exact(Bound):
    """theta and scales, from the likelihood ``theta . sum of statistics - n log Z(theta)``.

    ``method="joint"``: one trajectory, as by ``Joint``, for models whose states can be listed, so
    that log Z has derivatives. ``"slices"``: theta given the scales by elliptical slice sampling
    (Murray, Adams and MacKay 2010) around prior and expansion of the likelihood, of all groups
    together, then of one after the other; then the scales. A sweep evaluates log Z about five times
    for each group. "auto" is the first where it can be. coef holds c = -log Z in its last column.
    """

    method: Literal["auto", "joint", "slices"] = "auto"
    tune: int = field(default=0, repr=False)
    likelihood: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"Exact(method=...) must be one of {', '.join(map(repr, METHODS))}, got "
                f"{shown(self.method)}"
            )

    def __repr__(self) -> str:
        return "Exact()" if self.method == "auto" else f"Exact({self.method!r})"

    def adapting(self, sweeps: int) -> Exact:
        """The same engine, which adapts in so many sweeps from the start."""
        return replace(self, tune=sweeps)

    def kernel(self, target: Target) -> Kernel:
        """Trajectories where states are listed and the prior tells its coordinates, else slices."""
        found = pieces(target.prior, target.shape)
        listed = all(each.states is not None for each in target.losses)
        if self.method == "slices" or (self.method == "auto" and (found is None or not listed)):
            return Stepwise(_Slices(), target)
        if found is None or not listed:
            raise InputError(
                "Exact(method='joint') needs a model with at most 65536 states and a prior of "
                "ncbayes.priors; use engine='exact'"
            )
        theta = replace(target, normalizer=False)
        return _Trajectories(JointKernel(theta, Structure(found, theta.shape), self.tune))


@dataclass(frozen=True, eq=False)
class _Trajectories:
    """Joint trajectories of theta, with c beside it."""

    inner: JointKernel

    def start(self, rng: np.random.Generator) -> Draw:
        draw = self.inner.start(rng)
        return replace(draw, coef=self._with_c(draw.coef))

    def sweeps(self, draw: Draw, rng: np.random.Generator, count: int) -> Block:
        theta = np.ascontiguousarray(draw.coef[:, : self.inner.target.shape[1]])
        block = self.inner.sweeps(replace(draw, coef=theta), rng, count)
        facts = {name: each for name, each in block.stats.items() if name != "largest_log_odds"}
        return replace(block, coef=self._with_c(block.coef), stats=facts)

    def _with_c(self, theta: FloatArray) -> FloatArray:
        # Groups share their states.
        c = -self.inner.target.losses[0].states.log_partitions(theta)
        return np.concatenate([theta, c[..., None]], axis=-1)


@dataclass(frozen=True)
class _Slices:
    """theta -> scales, sweep by sweep."""

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """Around the mode, sqrt(5) times as wide as the posterior, where log Z is finite."""
        scales = approached(target, rng)
        mean, near = gaussian(target, scales, 1.0, rng)
        wide = 5**0.5
        for _ in range(MOST_TRIALS):
            coef = _with_c(target, mean + wide * (near - mean))
            if np.isfinite(coef).all():
                break
            wide /= 2
        return Draw(coef, scales)

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        known = draw.coef.shape[1] > target.shape[1]
        coef = draw.coef if known else _with_c(target, draw.coef)
        coef, trials = _together(target, coef, draw.scales, rng)
        for g in range(len(coef)):
            coef, more = _alone(target, coef, draw.scales, g, rng)
            trials += more
        scales = target.prior.update(draw.scales, coef[:, :-1].copy(), rng)
        value = sum(
            _log_likelihood(each, row) for each, row in zip(target.losses, coef, strict=True)
        )
        return Draw(coef, scales, {"log_likelihood": value, "evaluations": float(trials)})


def _together(
    target: Target, coef: FloatArray, scales: State, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """A slice step of all groups' theta around their joint Gaussian."""
    mean, normal = gaussian(target, scales, SHARES[0], rng)

    def residual(at: FloatArray) -> float:
        pairs = zip(target.losses, at, strict=True)
        return sum(_residual(each, row, SHARES[0]) for each, row in pairs)

    found, trials = _slice(coef, mean, normal, residual, lambda theta: _with_c(target, theta), rng)
    return found, trials * len(coef)


def _alone(
    target: Target, coef: FloatArray, scales: State, group: int, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """A slice step of one group's theta given the others."""
    loss = target.losses[group]
    mean, normal = conditional(target, scales, coef[:, :-1], group, SHARES[1], rng)
    found, trials = _slice(
        coef[group],
        mean,
        normal,
        lambda at: _residual(loss, at, SHARES[1]),
        lambda theta: np.append(theta, -loss.log_z(theta)),
        rng,
    )
    moved = np.array(coef)
    moved[group] = found
    return moved, trials


def _slice(
    coef: FloatArray,
    mean: FloatArray,
    normal: FloatArray,
    residual: Callable[[FloatArray], float],
    completed: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
) -> tuple[FloatArray, int]:
    """A step along the ellipse through theta and a draw of the Gaussian; with evaluations of log Z.

    ``residual``: log likelihood less the part that the Gaussian has, at coef = (theta, c).
    """
    theta = coef[..., :-1]
    level = residual(coef) - rng.standard_exponential()
    angle = rng.uniform(0, 2 * math.pi)
    low, high = angle - 2 * math.pi, angle
    for trial in range(1, MOST_TRIALS + 1):
        there = completed(
            mean + (theta - mean) * math.cos(angle) + (normal - mean) * math.sin(angle)
        )
        if residual(there) > level:
            return there, trial
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)
    return coef, MOST_TRIALS


def _log_likelihood(loss: Any, coef: FloatArray) -> float:
    value = loss.log_likelihood(coef[:-1], -coef[-1])
    return float(value) if value == value else -math.inf


def _residual(loss: Any, coef: FloatArray, share: float) -> float:
    theta = coef[:-1]
    if not math.isfinite(coef[-1]):
        return -math.inf
    return _log_likelihood(loss, coef) - share * float(
        loss.shift @ theta - theta @ loss.gram @ theta / 2
    )


def _with_c(target: Target, theta: FloatArray) -> FloatArray:
    c = [-each.log_z(row) for each, row in zip(target.losses, theta, strict=True)]
    return np.column_stack([theta, c])
