"""Where the posterior is, roughly: for likelihoods that are too costly to search from nowhere."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, InputError, Model
from ncbayes.conditionals import conditionals_loss
from ncbayes.conditioning import data_mean, weak_normal
from ncbayes.contrast import Contrast, contrast, data_alone
from ncbayes.engines.laplace import LogPosterior, laplace
from ncbayes.noise import matched
from ncbayes.problem import noise_set

# Noise points for each row, and at least so many: then the pilot lies within a posterior sd or so.
NOISE_RATIO, FEWEST_POINTS = 10, 2000
# Entries of change statistics that a pilot may hold (128 MB), and rows below which it has none.
MOST_ENTRIES, FEWEST_ROWS = 2**24, 20


@dataclass(frozen=True, eq=False)
class Pilot:
    """A rough ``theta``, the ``total`` of the statistics, and a weak prior as a penalty.

    ``penalty`` is the precision of ``N(0, 100 Cov(statistics)^-1)``: it keeps estimates finite
    where the data alone do not.
    """

    theta: FloatArray
    total: FloatArray
    penalty: FloatArray


def pilot(model: Model, data: FloatArray, rng: np.random.Generator) -> Pilot:
    """Of binary models the mode of the pseudolikelihood, else of a quick contrast with noise.

    Noise that ignores how coordinates depend on each other leads a contrast astray where they
    depend strongly: on a grid of spins near its critical coupling, by forty posterior sds.
    """
    alone = data_alone(model, data)
    total = alone.design.rmatvec(np.ones(len(data)))[:-1]
    size = len(total)
    penalty = weak_penalty(alone)
    rows = min(len(data), MOST_ENTRIES // (data.shape[1] * size))
    if rows >= min(len(data), FEWEST_ROWS):
        with suppress(InputError):  # a model that is not binary
            each = conditionals_loss(model, data[:rows], rng).contrast
            return Pilot(_mode(each, penalty), total, penalty)
    return Pilot(_against_noise(model, data, penalty, rng), total, penalty)


def weak_penalty(alone: Contrast) -> FloatArray:
    """The precision of a weak prior on the scale of these data."""
    size = alone.design.shape[1] - 1
    within = weak_normal((alone,), 0, size).gaussian({}, (1, size))[0].within[0]
    return np.diag(within) if within.ndim == 1 else np.array(within)


def with_normalizer(penalty: FloatArray) -> FloatArray:
    """The penalty for theta and a free normalizer."""
    return np.pad(penalty, ((0, 1), (0, 1)))


def _against_noise(
    model: Model, data: FloatArray, penalty: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The mode of a contrast with noise matched to the data; zero if there is none."""
    points = max(NOISE_RATIO * len(data), FEWEST_POINTS)
    try:
        noise = noise_set(matched(model.space, data), data, points, rng)
        center = data_mean((data_alone(model, data),))
        each = contrast(model, data, noise, None if hasattr(model, "design") else center)
    except InputError:
        return np.zeros(len(penalty))  # a space without noise of its own
    return _mode(each, with_normalizer(penalty))[: len(penalty)]


def _mode(each: Contrast, precision: FloatArray) -> FloatArray:
    found = laplace(LogPosterior(each, precision, np.zeros(len(precision))))
    return np.zeros(len(precision)) if found is None else found.mode
