"""Log normalizing constants at draws of a posterior, worked out with their standard error.

A contrast has a free normalizer c. That -c is log Z where data and noise tell so, at the estimate;
away from it -c follows a line where log Z is convex, and it takes over what noise inherited from
the rows. Here log Z is computed for the theta of each draw, by the first of these ways that there
is: the model's own ``log_partition``; a sum over all points (small discrete and low-dimensional
bounded spaces); else annealed importance sampling at one reference theta,

    log Z(ref) = log mean_i w_i
    log Z(theta) = log Z(ref) + log sum_i W_i exp(f_theta(x_i) - f_ref(x_i))

with W the normalized weights w of the particles x: from the model at theta = 0 by its own
conditionals where it has ``sweep``, and else from noise, by moves on continuous spaces.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ncbayes.base import FloatArray, InputError, Model, Noise
from ncbayes.noise.carried import Path, kernels
from ncbayes.noise.tempered import anneal, annealing_path, anneals, log_mean
from ncbayes.quadrature import log_partition, rule
from ncbayes.spaces import Reals, is_continuous

# Particles, and annealing steps one after the other until log Z has at most this standard error.
PARTICLES, STEPS, ENOUGH = 1000, (16, 64, 256), 0.03
# Fewer effective particles than this behind a draw: its ratio to the reference is not known.
FEWEST_EFFECTIVE = 10.0
# Entries of a table of draws by points that are held at once, 32 MB, and at most in all.
CHUNK, MOST_ENTRIES = 4_000_000, 100_000_000
# Quantiles that tell the spread of log weights upward, and the normal deviate between them.
UPPER, UPPER_DEVIATE = (0.5, 0.95), 1.645


@dataclass(frozen=True, eq=False)
class Normalizer:
    """log Z of each draw, (draw,), with the standard error that all of them share.

    ``way`` is "exact", "sum", "annealing" (from the model at theta = 0) or "noise" (annealing from
    noise), and ``lost`` the share of draws too far from the reference to be known. ``particles``
    are those at the reference with their log weights, where there are some, and
    ``reference_error`` is the error of log Z there.
    """

    log_z: FloatArray
    error: float
    way: str
    lost: float = 0.0
    particles: tuple[FloatArray, FloatArray] | None = None
    reference_error: float = 0.0

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """log Z of each draw plus a normal error, so that the draws' spread holds it."""
        return self.log_z + self.error * rng.standard_normal(len(self.log_z))


def normalizer(
    model: Model, params: FloatArray, reference: int, noise: Any, rng: np.random.Generator
) -> Normalizer:
    """log Z at rows of parameters (draw, p); flat and unconstrained, of an Energy.

    ``reference`` is the row where annealing ends; ``noise`` is where it begins for models without
    conditionals of their own, None if there is none.
    """
    found = _summed(model, params) or _known(model, params)
    if found is not None:
        return found
    if anneals(model):
        return _annealed(model, params, reference, _by_conditionals, "annealing", rng)
    if noise is None:
        raise InputError(
            f"log Z of {type(model).__name__} can't be worked out: there is no noise on "
            f"{model.space} to start from, and the model has neither log_partition nor sweep"
        )
    while hasattr(noise, "tempering"):  # its own normalizer has an error, and its base's has none
        noise = noise.base
    return _annealed(model, params, reference, partial(_from_noise, noise), "noise", rng)


def _known(model: Any, params: FloatArray) -> Normalizer | None:
    """The model's own log Z, where it has one for its size and each value is quick."""
    if not hasattr(model, "log_partition") or not is_continuous(model.space):
        return None
    try:
        return Normalizer(np.array([log_partition(model, row) for row in params]), 0.0, "exact")
    except InputError:
        return None


def _summed(model: Any, params: FloatArray) -> Normalizer | None:
    """Sums over the points of the space, or of a grid fine enough for all rows; None if not."""
    if isinstance(model.space, Reals):  # a grid that fits one row may miss another
        return None
    try:
        points, volumes, largest = rule(model.space, model, params[0])
    except InputError:
        return None
    if len(points) * len(params) > MOST_ENTRIES:
        return None
    rows = max(1, CHUNK // len(points))
    log_z = np.empty(len(params))
    for start in range(0, len(params), rows):
        mass = kernels(model, params[start : start + rows], points) + np.log(volumes)
        total = logsumexp(mass, axis=1)
        if np.exp(mass.max(axis=1) - total).max() > largest:
            return None
        log_z[start : start + rows] = total
    return Normalizer(log_z, 0.0, "sum")


_Particles = tuple[FloatArray, FloatArray, FloatArray]
_Anneal = Callable[[Any, FloatArray, int, np.random.Generator], _Particles]


def _annealed(
    model: Any,
    params: FloatArray,
    reference: int,
    run: _Anneal,
    way: str,
    rng: np.random.Generator,
) -> Normalizer:
    """Particles at the reference, annealed more slowly until log Z there is known well enough."""
    variance = 0.0
    for before, steps in zip((1, *STEPS), STEPS, strict=False):
        # Log weights vary by what a step does not follow, so in proportion to its length.
        likely = math.sqrt(math.expm1(min(variance * before / steps, 50.0)) / PARTICLES)
        if likely > ENOUGH and steps < STEPS[-1]:
            variance *= before / steps
            continue
        end, points, log_weights = run(model, params[reference], steps, rng)
        kept = log_weights > -np.inf
        error, variance = _error(log_weights[kept], len(kept))
        if error <= ENOUGH:
            break
    points, log_weights = points[kept], log_weights[kept] - math.log(max(1, len(kept)))
    terms = kernels(model, params, points) - kernels(model, end[None], points) + log_weights
    log_z = logsumexp(terms, axis=1)
    effective = np.exp(2 * log_z - logsumexp(2 * terms, axis=1))
    # Draws share their particles, so that their errors do not average out.
    typical = float(np.median(effective)) / len(kept)
    shared = max(error, math.sqrt(max(1 / typical - 1, 0) / len(kept)))
    lost = float(np.mean(effective < FEWEST_EFFECTIVE))
    return Normalizer(log_z, shared, way, lost, (points, log_weights), error)


def _error(log_weights: FloatArray, count: int) -> tuple[float, float]:
    """Standard error of the log mean of ``count`` weights, those given and others that are zero.

    The larger of two: by the weights themselves, which is too small where the rare large ones are
    missing from the sample, and as if they were log-normal, by the upper half of their logarithms
    (the lower half, which may reach far, adds next to nothing to a sum of weights). Also the
    variance of the logarithms, by their upper half.
    """
    if len(log_weights) < 2:
        return math.inf, 50.0
    _, by_weights = log_mean(log_weights)
    middle, high = np.quantile(log_weights, UPPER)
    variance = min(((high - middle) / UPPER_DEVIATE) ** 2, 50.0)
    by_logs = math.sqrt(math.expm1(variance) / len(log_weights))
    missing = (count - len(log_weights)) / len(log_weights) / count
    return math.sqrt(max(by_weights, by_logs) ** 2 + missing), variance


def _by_conditionals(
    model: Any, theta: FloatArray, steps: int, rng: np.random.Generator
) -> _Particles:
    start, end = annealing_path(model, theta, 1.0)
    points, path = anneal(model, end, steps, PARTICLES, rng, start)
    return end, points, path[-1]


def _from_noise(
    noise: Noise, model: Any, theta: FloatArray, steps: int, rng: np.random.Generator
) -> _Particles:
    points, path = Path(model, theta, noise).carried(1.0, steps, PARTICLES, rng)
    return theta, points, path[-1]


__all__ = ["Normalizer", "kernels", "normalizer"]
