"""Polya-Gamma Gibbs sampling of the contrastive posterior (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ncbayes.base import Draw, FloatArray, InputError, State
from ncbayes.contrast import Target, label_probability
from ncbayes.engines import one_at_a_time, runs
from ncbayes.engines.weights import polya_gamma
from ncbayes.linalg import gaussian

# Sweeps that bring a start from zero near the posterior, before it is spread out.
APPROACH = 20


@dataclass(frozen=True)
class Gibbs:
    """weights -> coef -> scales, each from its full conditional; all groups drawn jointly.

    ``method`` is how coef is drawn: jointly by "cholesky", "block_tridiagonal", "woodbury" or
    "conjugate_gradients"; "runs": under a prior with local scales, such as the horseshoe, run by
    run with its scale; "auto": by runs where that can be, else jointly by predicted cost.
    "one_at_a_time": the paper's sampler for densities over time, for comparison.
    """

    method: gaussian.Method | Literal["auto", "runs", "one_at_a_time"] = "auto"

    def __repr__(self) -> str:
        return f"Gibbs(method={self.method!r}: weights > coef > scales)"

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """Around a Newton step from a short run, sqrt(5) times as wide as the posterior."""
        draw = Draw(np.zeros(target.shape), target.prior.draw(target.shape, rng))
        if self.method in ("auto", "runs") and runs.usable(target, draw.scales):
            draw = runs.shrunk(target, rng)
        for _ in range(APPROACH):
            draw = self.step(target, draw, rng)
        conditional, method = _laplace(target, draw), self._joint
        near, _ = gaussian.draw(conditional, rng, start=draw.coef, method=method)
        far, _ = gaussian.draw(conditional, rng, start=near, method=method)
        # Twice a draw less another: the same mean, sqrt(5) times the spread.
        return Draw(2 * near - far, draw.scales)

    @property
    def uncentred(self) -> bool:
        """The paper's sampler draws c given theta, not c + theta . mean: that is why it is slow."""
        return self.method == "one_at_a_time"

    @property
    def _joint(self) -> gaussian.Method | Literal["auto"]:
        """How all of coef is drawn at once."""
        if self.method == "runs" or self.method == "one_at_a_time":
            return "auto"
        return self.method

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        if self.method in ("auto", "runs"):
            if runs.usable(target, draw.scales):
                return self._by_runs(target, draw, rng)
            if self.method == "runs":
                raise InputError(
                    "method 'runs' needs a prior with local scales that leaves groups apart, such "
                    "as ncbayes.priors.Horseshoe(), on all but a few statistics; use 'auto'"
                )
        weights = tuple(
            polya_gamma(each.log_odds(row), rng)
            for each, row in zip(target.contrasts, draw.coef, strict=True)
        )
        conditional = self._conditional(target, draw.scales, weights)
        if self.method == "one_at_a_time":
            coef, info = one_at_a_time.drawn(conditional, draw.coef, rng), {"cg_iterations": 0.0}
        else:
            coef, info = gaussian.draw(conditional, rng, start=draw.coef, method=self._joint)
        scales = target.prior.update(draw.scales, coef, rng)
        return Draw(coef, scales, {**label_fit(target, coef), **info})

    def _by_runs(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        done, log_odds = runs.step(target, draw, rng)
        return Draw(
            done.coef, done.scales, {**_label_facts(target, log_odds), "cg_iterations": 0.0}
        )

    def _conditional(
        self, target: Target, scales: State, weights: tuple[FloatArray, ...]
    ) -> gaussian.Conditional:
        prior, shift = target.prior.gaussian(scales, target.shape)
        score = [
            each.design.rmatvec(each.is_data - 0.5 - weight * each.offset)
            for each, weight in zip(target.contrasts, weights, strict=True)
        ]
        designs = tuple(each.design for each in target.contrasts)
        return gaussian.Conditional(designs, weights, prior, shift + np.array(score))


def _laplace(target: Target, draw: Draw) -> gaussian.Conditional:
    """The Gaussian at a Newton step from the draw, with the curvature of the log posterior.

    Where labels are certain that curvature vanishes; a tenth of the Polya-Gamma weight keeps the
    spread finite.
    """
    prior, shift = target.prior.gaussian(draw.scales, target.shape)
    weights, score = [], []
    for each, row in zip(target.contrasts, draw.coef, strict=True):
        log_odds = each.log_odds(row)
        chance = label_probability(log_odds)
        size = np.maximum(np.abs(log_odds), 1e-6)
        weight = np.maximum(chance * (1 - chance), 0.1 * np.tanh(size / 2) / (2 * size))
        weights.append(weight)
        score.append(each.design.rmatvec(each.is_data - chance + weight * (log_odds - each.offset)))
    designs = tuple(each.design for each in target.contrasts)
    return gaussian.Conditional(designs, tuple(weights), prior, shift + np.array(score))


def label_fit(target: Target, coef: FloatArray) -> dict[str, float]:
    """Numbers about a sweep that tell how well coef separates data from noise."""
    pairs = zip(target.contrasts, coef, strict=True)
    return _label_facts(target, np.concatenate([each.log_odds(row) for each, row in pairs]))


def _label_facts(target: Target, log_odds: FloatArray) -> dict[str, float]:
    """The same, from the log odds of all groups' points."""
    is_data = np.concatenate([each.is_data for each in target.contrasts])
    return {
        "log_likelihood": float(np.sum(log_odds[is_data]) - np.sum(np.logaddexp(0.0, log_odds))),
        "largest_log_odds": float(np.max(np.abs(log_odds), initial=0.0)),
    }
