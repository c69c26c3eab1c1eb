"""Polya-Gamma Gibbs sampling of the contrastive posterior (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from ncbayes.base import Draw, FloatArray, InputError, Precision, State
from ncbayes.contrast import Target, label_probability
from ncbayes.engines import joint, one_at_a_time, population, shrinking
from ncbayes.engines.leap import Laplace, LogPosterior, laplace, leap
from ncbayes.engines.weights import polya_gamma
from ncbayes.linalg import gaussian

# Laplace approximations by target, for as long as the target is in use.
_APPROXIMATIONS: WeakKeyDictionary[Target, tuple[Laplace, ...]] = WeakKeyDictionary()
# What does not change from sweep to sweep under a prior without scales, by target: the prior's
# Gaussian, and whether sweeps are joint. Of small models they were a third of a sweep.
_PRIORS: WeakKeyDictionary[Target, tuple[Precision, FloatArray]] = WeakKeyDictionary()
_JOINT: WeakKeyDictionary[Target, bool] = WeakKeyDictionary()
# Sweeps that bring a start from zero near the posterior, before it is spread out.
APPROACH = 20


@dataclass(frozen=True)
class Gibbs:
    """weights -> coef -> scales, each from its full conditional; all groups drawn jointly.

    ``method`` is how coef is drawn: jointly by "cholesky", "block_tridiagonal", "woodbury" or
    "conjugate_gradients"; "runs": under a prior with local scales, such as the horseshoe, run by
    run with its scale; "auto": by runs where that can be, else jointly by predicted cost.
    "one_at_a_time": the paper's sampler for densities over time, for comparison.
    ``leap``: with moves on the likelihood itself, which take coef where Polya-Gamma weights hold
    it back, and scales that all of coef shares drawn with coef integrated out; False: none of
    them, the paper's Algorithm 1.
    """

    method: gaussian.Method | Literal["auto", "runs", "one_at_a_time"] = "auto"
    leap: bool = True

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """A draw from a Laplace approximation, sqrt(5) times as wide."""
        draw = Draw(np.zeros(target.shape), target.prior.draw(target.shape, rng))
        approximations = self._approximations(target, draw.scales)
        if approximations:
            normals = 5**0.5 * rng.standard_normal(target.shape)
            pairs = zip(approximations, normals, strict=True)
            return Draw(np.array([each.coef(row) for each, row in pairs]), draw.scales)
        if self.method in ("auto", "runs") and shrinking.usable(target, draw.scales):
            draw = shrinking.shrunk(target, rng)
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
            if shrinking.usable(target, draw.scales):
                return shrinking.step(target, draw, self.leap, rng)
            if self.method == "runs":
                raise InputError(
                    "method 'runs' needs a prior with local scales that leaves groups apart, such "
                    "as ncbayes.priors.Horseshoe(), on all but a few statistics; use 'auto'"
                )
        if self._sweeps_jointly(target, draw.scales):
            return joint.step(target, draw, rng)
        weights = tuple(
            polya_gamma(each.log_odds(row), rng)
            for each, row in zip(target.contrasts, draw.coef, strict=True)
        )
        if self.method != "one_at_a_time":
            terms = partial(population.label_terms, target, weights)
            draw = population.moved(target, draw, terms, rng)
        conditional = self._conditional(target, draw.scales, weights)
        if self.method == "one_at_a_time":
            coef, info = one_at_a_time.drawn(conditional, draw.coef, rng), {"cg_iterations": 0.0}
        else:
            coef, info = gaussian.draw(conditional, rng, start=draw.coef, method=self._joint)
        approximations = self._approximations(target, draw.scales)
        moved = [leap(each, row, rng) for each, row in zip(approximations, coef, strict=False)]
        if moved:
            coef = np.array([row for row, _ in moved])
        info["leap_acceptance"] = float(np.mean([a for _, a in moved])) if moved else np.nan
        scales = target.prior.update(draw.scales, coef, rng)
        return Draw(coef, scales, {**label_fit(target, coef), **info})

    def _sweeps_jointly(self, target: Target, scales: State) -> bool:
        direct = self.method in ("auto", "block_tridiagonal", "cholesky")
        if not self.leap or not direct:
            return False
        if scales or not target.lasting:
            return joint.usable(target, scales)
        if target not in _JOINT:
            _JOINT[target] = joint.usable(target, scales)
        return _JOINT[target]

    def _approximations(self, target: Target, scales: State) -> tuple[Laplace, ...]:
        """One a group, made once for a target; none where they would not pay."""
        plain = not self.leap or self.method == "one_at_a_time"
        if scales or plain or not target.lasting:
            return ()
        if target not in _APPROXIMATIONS:
            _APPROXIMATIONS[target] = self._fresh_approximations(target)
        return _APPROXIMATIONS[target]

    def _fresh_approximations(self, target: Target) -> tuple[Laplace, ...]:
        weights = tuple(np.full(len(each.offset), 0.25) for each in target.contrasts)
        method = gaussian.usable_method(self._conditional(target, {}, weights), self._joint)
        # The other methods are for problems too large for one factor a group, or coupled ones.
        if method != "cholesky":
            return ()
        prior, shift = target.prior.gaussian({}, target.shape)
        made = []
        for each, within, own in zip(target.contrasts, prior.within, shift, strict=True):
            precision = np.diag(within) if within.ndim == 1 else np.array(within)
            made.append(laplace(LogPosterior(each, precision, np.array(own))))
        return tuple(each for each in made if each) if all(made) else ()

    def _conditional(
        self, target: Target, scales: State, weights: tuple[FloatArray, ...]
    ) -> gaussian.Conditional:
        prior, shift = _prior(target, scales)
        score = [
            each.design.rmatvec(each.is_data - 0.5 - weight * each.offset)
            for each, weight in zip(target.contrasts, weights, strict=True)
        ]
        designs = tuple(each.design for each in target.contrasts)
        return gaussian.Conditional(designs, weights, prior, shift + np.array(score))


def _prior(target: Target, scales: State) -> tuple[Precision, FloatArray]:
    """Precision and shift of the prior of coef, given its scales."""
    if scales or not target.lasting:
        return target.prior.gaussian(scales, target.shape)
    if target not in _PRIORS:
        _PRIORS[target] = target.prior.gaussian(scales, target.shape)
    return _PRIORS[target]


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
    log_odds = [each.log_odds(row) for each, row in zip(target.contrasts, coef, strict=True)]
    pairs = zip(target.contrasts, log_odds, strict=True)
    return {
        "log_likelihood": sum(each.log_likelihood(values) for each, values in pairs),
        "largest_log_odds": max(float(np.max(np.abs(values), initial=0.0)) for values in log_odds),
    }
