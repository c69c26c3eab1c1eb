"""Where the posterior is, roughly: for likelihoods that are too costly to search from nowhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, InputError, Model
from ncbayes.conditioning import data_mean, weak_normal
from ncbayes.contrast import contrast, data_alone
from ncbayes.engines.leap import LogPosterior, laplace
from ncbayes.noise import matched
from ncbayes.problem import noise_set

# Noise points for each row, and at least so many: then the pilot lies within a posterior sd or so.
NOISE_RATIO, FEWEST_POINTS = 10, 2000


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
    """The mode of a quick contrast with noise matched to the data; zero if there is none."""
    alone = data_alone(model, data)
    total = alone.design.rmatvec(np.ones(len(data)))[:-1]
    size = len(total)
    within = weak_normal((alone,), 0, size).gaussian({}, (1, size))[0].within[0]
    penalty = np.diag(within) if within.ndim == 1 else np.array(within)
    return Pilot(_mode(model, data, penalty, rng), total, penalty)


def _mode(
    model: Model, data: FloatArray, penalty: FloatArray, rng: np.random.Generator
) -> FloatArray:
    points = max(NOISE_RATIO * len(data), FEWEST_POINTS)
    try:
        noise = noise_set(matched(model.space, data), data, points, rng)
        center = data_mean((data_alone(model, data),))
        each = contrast(model, data, noise, None if hasattr(model, "design") else center)
    except InputError:
        return np.zeros(len(penalty))  # a space without noise of its own
    precision = np.zeros((len(penalty) + 1,) * 2)
    precision[:-1, :-1] = penalty
    found = laplace(LogPosterior(each, precision, np.zeros(len(precision))))
    return np.zeros(len(penalty)) if found is None else found.mode[:-1]
