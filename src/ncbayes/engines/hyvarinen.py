"""Generalized Bayes with the Hyvarinen score (the paper's H-Bayes, supplement S2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ncbayes.base import Block, Draw, FloatArray, InputError, State, shown
from ncbayes.contrast import Kernel, Stepwise, Target
from ncbayes.engines.bound import Bound
from ncbayes.engines.coordinates import Structure, pieces
from ncbayes.engines.joint import JointKernel
from ncbayes.linalg import gaussian

# Sweeps that bring the scales from their prior near the posterior, before theta is spread out.
APPROACH = 20


@dataclass(frozen=True)
class Hyvarinen(Bound):
    """theta and scales by ``prior(theta) exp(-learning_rate * loss(theta))``; no noise, no log Z.

    The loss is the Hyvarinen score summed over the data. It is quadratic in theta, so that theta
    given the scales is Gaussian: ``precision = prior + w n Gamma``, ``shift = prior + w n H``,
    where w is the ``learning_rate``. Without scales theta is drawn from that; with scales both move
    in one trajectory, as by ``Joint``. How wide the posterior is depends on w, and no w is right
    for all of theta. 0.2 did best of the paper's 0.2, 0.5 and 1.
    """

    learning_rate: float = 0.2
    tune: int = field(default=0, repr=False)
    likelihood: ClassVar[str] = "score"

    def __post_init__(self) -> None:
        rate = self.learning_rate
        number = isinstance(rate, int | float | np.number) and not isinstance(rate, bool)
        if not (number and 0 < rate < np.inf):
            raise InputError(
                "Hyvarinen(learning_rate=...) must be a positive number, such as 0.2, got "
                f"{shown(rate)}"
            )

    def adapting(self, sweeps: int) -> Hyvarinen:
        """The same engine, which adapts in so many sweeps from the start."""
        return replace(self, tune=sweeps)

    def kernel(self, target: Target) -> Kernel:
        """Joint trajectories where the prior has scales that it can tell; else Gaussian draws."""
        found = pieces(target.prior, target.shape)
        if found is None or all(each.coordinates is None for each in found):
            return Stepwise(_Draws(self.learning_rate), target)
        losses = tuple(
            _Quadratic(self.learning_rate * each.gram, self.learning_rate * each.shift)
            for each in target.losses
        )
        inner = Target((), target.prior, losses=losses, normalizer=False)
        return _Trajectories(
            JointKernel(inner, Structure(found, target.shape), self.tune), self.learning_rate
        )


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """A log likelihood ``shift . theta - theta' gram theta / 2``."""

    gram: FloatArray
    shift: FloatArray

    @property
    def size(self) -> int:
        return len(self.shift)

    def curvature(self, theta: FloatArray) -> FloatArray:
        return self.gram


@dataclass(frozen=True, eq=False)
class _Trajectories:
    """Joint trajectories, with facts about the loss in the place of those about labels."""

    inner: JointKernel
    rate: float

    def start(self, rng: np.random.Generator) -> Draw:
        return self.inner.start(rng)

    def sweeps(self, draw: Draw, rng: np.random.Generator, count: int) -> Block:
        block = self.inner.sweeps(draw, rng, count)
        facts = dict(block.stats)
        facts["score_loss"] = -facts.pop("log_likelihood") / self.rate
        del facts["largest_log_odds"]
        return replace(block, stats=facts)


@dataclass(frozen=True)
class _Draws:
    """theta of all groups from its Gaussian given the scales, then the scales given theta."""

    rate: float

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """Twice a draw less another: the same mean, sqrt(5) times the spread."""
        draw = Draw(np.zeros(target.shape), target.prior.draw(target.shape, rng))
        for _ in range(APPROACH if draw.scales else 0):
            draw = self.step(target, draw, rng)
        near, far = (self._theta(target, draw.scales, rng) for _ in range(2))
        return Draw(2 * near - far, draw.scales)

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        theta = self._theta(target, draw.scales, rng)
        scales = target.prior.update(draw.scales, theta, rng)
        pairs = zip(target.losses, theta, strict=True)
        return Draw(theta, scales, {"score_loss": sum(each.value(row) for each, row in pairs)})

    def _theta(self, target: Target, scales: State, rng: np.random.Generator) -> FloatArray:
        prior, shift = target.prior.gaussian(scales, target.shape)
        grams = [self.rate * each.gram for each in target.losses]
        shifts = [self.rate * each.shift for each in target.losses]
        normals = rng.standard_normal(target.shape)
        return gaussian.given_grams(grams, prior, shift + np.array(shifts), normals)
