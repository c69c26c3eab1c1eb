"""Do the statistics of two groups have different coefficients? Tests that use no prior.

A prior that shrinks pulls the coefficients of the smaller group further toward zero. That is a
difference of sizes, and the draws can't tell it from one of conditions; a score test can. Estimates
are rough: of the pseudolikelihood for binary models, else of a contrast with matched noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ncbayes.base import FloatArray, InputError, Model
from ncbayes.conditionals import conditionals_loss
from ncbayes.conditioning import data_mean
from ncbayes.contrast import Contrast, contrast, data_alone, label_probability, model_name
from ncbayes.engines.laplace import LogPosterior, laplace
from ncbayes.linalg.designs import Dense
from ncbayes.noise import matched
from ncbayes.pilots import MOST_ENTRIES, weak_penalty, with_normalizer
from ncbayes.problem import noise_set

# Noise points for each row, at least so many, and so many at most unless there are more rows.
NOISE_RATIO, FEWEST_POINTS, MOST_POINTS = 10, 2000, 50_000
# Entries of a design that are held at once (512 MB).
MOST_HELD = 2**26


@dataclass(frozen=True, eq=False)
class Difference:
    """What two groups share, and by how much they differ: first less second.

    ``common`` (statistic,) are the coefficients if they are equal, ``change`` the estimated
    difference and ``covariance`` its own; ``rows`` those of the smaller group.
    """

    common: FloatArray
    change: FloatArray
    covariance: FloatArray
    rows: int


@dataclass(frozen=True, eq=False)
class _Part:
    """A likelihood of one group with its weak prior, and where the scores of its rows are.

    ``rows`` numbers the data row of each row of the contrast, -1 for noise. ``binary``: it is a
    pseudolikelihood, whose curvature is not the inverse of the covariance of its mode.
    """

    posterior: LogPosterior
    rows: NDArray[np.intp]
    count: int
    binary: bool

    def scores(self, coef: FloatArray) -> FloatArray:
        """The gradient of each data row's log likelihood, (row, coefficient)."""
        each = self.posterior.contrast
        residual = each.is_data - label_probability(each.log_odds(coef))
        kept = self.rows >= 0
        found = np.zeros((self.count, len(coef)))
        np.add.at(found, self.rows[kept], (residual[:, None] * each.design.dense())[kept])
        return found


def influence(model: Model, data: FloatArray, rng: np.random.Generator) -> FloatArray:
    """What each row adds to a rough theta, (row, statistic): n curvature^-1 score.

    To first order, the estimate from some of the rows is that of all plus the mean of their
    influences. The noise's own part is the same whatever the rows, and is left out.
    """
    part = _part(model, data, _center(model, data), rng)
    coef, size = _mode(part.posterior, model), _size(model, data)
    solved = np.linalg.solve(part.posterior.curvature(coef), part.scores(coef).T)
    return np.asarray(len(data) * solved[:size].T)


def difference(
    model: Model,
    groups: Sequence[FloatArray],
    shared: NDArray[np.intp],
    rng: np.random.Generator,
) -> Difference:
    """Difference of the ``shared`` statistics' coefficients in two groups.

    One Newton step of each group from the estimate in which these coefficients are equal and all
    others are each group's own. There the curvature is known better than at the estimate of a small
    group alone, whose coefficients are too large where there are many of them.
    """
    center = _center(model, np.concatenate(groups))
    parts = [_part(model, data, center, rng) for data in groups]
    coefs = _restricted(parts, shared, model)
    steps, covariances = [], []
    total = sum(part.count for part in parts)
    for part, coef in zip(parts, coefs, strict=True):
        inverse = np.linalg.inv(part.posterior.curvature(coef))
        steps.append(inverse @ part.posterior.gradient(coef))
        if part.binary:
            moved = part.scores(coef) @ inverse
            moved = moved - moved.mean(axis=0)
            # At an estimate scores are smaller than at the truth: its rows pay for its own
            # coefficients and for a part of the shared ones.
            paid = len(coef) - len(shared) + len(shared) * part.count / total
            inverse = moved.T @ moved * (part.count / max(part.count - paid, 1))
        covariances.append(inverse)
    return Difference(
        coefs[0][shared],
        (steps[0] - steps[1])[shared],
        np.add(*covariances)[np.ix_(shared, shared)],
        min(part.count for part in parts),
    )


def _restricted(parts: Sequence[_Part], shared: NDArray[np.intp], model: Model) -> list[FloatArray]:
    """Both groups' coefficients at the joint mode with the ``shared`` ones equal."""
    size = len(parts[0].posterior.shift)
    own = np.setdiff1d(np.arange(size), shared)
    total = 2 * len(own) + len(shared)
    places = []
    for number in range(2):
        place = np.empty(size, dtype=np.intp)
        place[own] = number * len(own) + np.arange(len(own))
        place[shared] = 2 * len(own) + np.arange(len(shared))
        places.append(place)
    designs, precision = [], np.zeros((total, total))
    for part, place in zip(parts, places, strict=True):
        each = part.posterior.contrast.design.dense()
        wide = np.zeros((len(each), total))
        wide[:, place] = each
        designs.append(wide)
        precision[np.ix_(place, place)] += part.posterior.precision
    joint = Contrast(
        Dense(np.concatenate(designs)),
        np.concatenate([part.posterior.contrast.offset for part in parts]),
        np.concatenate([part.posterior.contrast.is_data for part in parts]),
    )
    mode = _mode(LogPosterior(joint, precision, np.zeros(total)), model)
    return [mode[place] for place in places]


def _part(model: Any, data: FloatArray, center: FloatArray | None, rng: Any) -> _Part:
    alone = data_alone(model, data)
    penalty = weak_penalty(alone)
    if hasattr(model, "change_statistics") and data.size * len(penalty) <= MOST_ENTRIES:
        with suppress(InputError):  # a model that is not binary
            each = conditionals_loss(model, data, rng).contrast
            # Rows of the contrast are those that can change, coordinate by coordinate.
            changing = (
                np.asarray(model.change_statistics(data, j)).any(axis=1)
                for j in range(data.shape[1])
            )
            rows = np.concatenate([np.flatnonzero(each) for each in changing])
            return _Part(_log_posterior(each, penalty), rows, len(data), True)
    points = max(min(NOISE_RATIO * len(data), MOST_POINTS), FEWEST_POINTS, len(data))
    if (len(data) + points) * (len(penalty) + 1) > MOST_HELD:
        raise InputError(f"{model_name(model)} has too many statistics for a quick estimate")
    noise = noise_set(matched(model.space, data), data, points, rng)
    each = _balanced(contrast(model, data, noise, center))
    rows = np.where(each.is_data, np.arange(len(each.offset)), -1)
    return _Part(_log_posterior(each, with_normalizer(penalty)), rows, len(data), False)


def _balanced(each: Contrast) -> Contrast:
    """The contrast with a normalizer that gives as many data as there are where theta is zero.

    Newton's method starts there. Far from it labels are certain, and its first step leads nowhere.
    """
    share = float(np.mean(each.is_data))

    def excess(shift: float) -> float:
        return float(np.mean(label_probability(each.offset + shift))) - share

    middle = -float(np.median(each.offset))
    reach = 50.0 + float(np.ptp(each.offset))
    shift = brentq(excess, middle - reach, middle + reach)
    return Contrast(each.design, each.offset + shift, each.is_data)


def _log_posterior(each: Contrast, precision: FloatArray) -> LogPosterior:
    return LogPosterior(each, precision, np.zeros(len(precision)))


def _center(model: Model, data: FloatArray) -> FloatArray | None:
    return None if hasattr(model, "design") else data_mean((data_alone(model, data),))


def _size(model: Model, data: FloatArray) -> int:
    return data_alone(model, data[:1]).design.shape[1] - 1


def _mode(posterior: LogPosterior, model: Model) -> FloatArray:
    found = laplace(posterior)
    if found is None:
        raise InputError(
            f"a quick estimate of {model_name(model)} does not converge; look for columns that "
            "hardly vary or copy each other"
        )
    return found.mode
