"""Generalized Bayes with the Hyvarinen score (the paper's H-Bayes, supplement S2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ncbayes.base import Draw, FloatArray, InputError, State, shown
from ncbayes.contrast import Target
from ncbayes.linalg import gaussian

# Sweeps that bring the scales from their prior near the posterior, before theta is spread out.
APPROACH = 20


@dataclass(frozen=True)
class Hyvarinen:
    """theta -> scales, from ``prior(theta) exp(-learning_rate * loss(theta))``; no noise, no log Z.

    The loss is the Hyvarinen score summed over the data. It is quadratic in theta, so that theta
    given the scales is Gaussian: ``precision = prior + w n Gamma``, ``shift = prior + w n H``,
    where w is the ``learning_rate``. How wide the posterior is depends on w, and no w is right for
    all of theta. 0.2 did best of the paper's 0.2, 0.5 and 1.
    """

    learning_rate: float = 0.2
    uses_noise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        rate = self.learning_rate
        number = isinstance(rate, int | float | np.number) and not isinstance(rate, bool)
        if not (number and 0 < rate < np.inf):
            raise InputError(
                "Hyvarinen(learning_rate=...) must be a positive number, such as 0.2, got "
                f"{shown(rate)}"
            )

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
        grams = [self.learning_rate * each.gram for each in target.losses]
        shifts = [self.learning_rate * each.shift for each in target.losses]
        normals = rng.standard_normal(target.shape)
        return gaussian.given_grams(grams, prior, shift + np.array(shifts), normals)
