"""Generalized Bayes with the Hyvarinen score (the paper's H-Bayes, supplement S2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ncbayes.base import Draw, FloatArray, InputError, State, shown
from ncbayes.contrast import Target
from ncbayes.linalg import gaussian

# Sweeps that bring the scales from their prior near the posterior, before theta is spread out.
APPROACH = 20
# A joint draw of p coefficients takes p^3 / 3 flops, one run by run 2 p^2. Where runs are drawn
# with their scales, more of them than this have a joint draw in the share JOINT / p of sweeps only.
JOINT = 300


@dataclass(frozen=True)
class Hyvarinen:
    """theta -> scales, from ``prior(theta) exp(-learning_rate * loss(theta))``; no noise, no log Z.

    The loss is the Hyvarinen score summed over the data. It is quadratic in theta, so that theta
    given the scales is Gaussian: ``precision = prior + w n Gamma``, ``shift = prior + w n H``,
    where w is the ``learning_rate``. How wide the posterior is depends on w, and no w is right for
    all of theta. 0.2 did best of the paper's 0.2, 0.5 and 1.
    """

    learning_rate: float = 0.2
    likelihood: ClassVar[str] = "score"

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
        theta, share = draw.coef, JOINT / target.shape[1]
        if share >= 1 or not self._has_runs(target, draw.scales) or rng.random() < share:
            theta = self._theta(target, draw.scales, rng)
        theta, scales = self._scales(target, draw.scales, theta, rng)
        pairs = zip(target.losses, theta, strict=True)
        return Draw(theta, scales, {"score_loss": sum(each.value(row) for each, row in pairs)})

    def _scales(
        self, target: Target, scales: State, theta: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, State]:
        """The scales given theta; local ones together with their part of theta."""
        prior: Any = target.prior
        if not self._has_runs(target, scales):
            return theta, prior.update(scales, theta, rng)
        from ncbayes.linalg.clusters import sweep_gram

        clusters = prior.clusters(scales, target.shape)
        theta, log_local = np.array(theta), np.array(clusters.log_local)
        for loss, row, logs in zip(target.losses, theta, log_local, strict=True):
            sweep_gram(
                loss.gram, loss.shift, self.learning_rate, clusters.starts, clusters.sizes, row,
                logs, clusters.multiplier, clusters.slab, clusters.fictitious, rng,
            )  # fmt: skip
        return theta, prior.update_global(prior.relocated(scales, log_local), theta, rng)

    def _has_runs(self, target: Target, scales: State) -> bool:
        """Whether local scales are drawn with their part of theta."""
        prior: Any = target.prior
        if not hasattr(prior, "clusters") or prior.clusters(scales, target.shape) is None:
            return False
        return prior.gaussian(scales, target.shape)[0].between is None

    def _theta(self, target: Target, scales: State, rng: np.random.Generator) -> FloatArray:
        prior, shift = target.prior.gaussian(scales, target.shape)
        grams = [self.learning_rate * each.gram for each in target.losses]
        shifts = [self.learning_rate * each.shift for each in target.losses]
        normals = rng.standard_normal(target.shape)
        return gaussian.given_grams(grams, prior, shift + np.array(shifts), normals)
