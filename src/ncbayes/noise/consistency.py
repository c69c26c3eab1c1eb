"""Do the draws of a noise distribution follow its density, and is that normalized?

A fair coin decides whether a point is drawn from the noise or from a reference r that is known to
be right. Given the point u, the coin then shows noise with probability ``q(u) / (q(u) + r(u))``,
whatever the space: bounded, and wrong if q is not normalized or the draws follow another density.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, ndtri

from ncbayes.base import BoolArray, FloatArray, Noise, Space
from ncbayes.noise.distributions import StudentT, matched
from ncbayes.spaces import Counts

FALSE_ALARM = 1e-6
# The share of the reference's points in the space, below which it is no reference.
LEAST_COMMON = 1e-3
# Bisections of an interval of 100, to a hundredth of what could be seen.
STEPS = 30


def complaint(
    noise: Noise,
    space: Space,
    draws: FloatArray,
    rng: np.random.Generator,
    *,
    normalized: bool = True,
) -> str:
    """What is wrong with noise that gave these draws, as the end of a sentence; "" if nothing.

    Half of the draws make the reference, the other half is tested, with a false-alarm rate of one
    in a million. ``normalized=False``: the density may be off by a constant.
    """
    half = len(draws) // 2
    reference, own = _reference(draws[:half], space), draws[half:]
    coin = rng.random(len(own)) < 0.5
    others = reference.sample(len(own), rng)
    if space.contains(own).all() and space.contains(others).mean() < LEAST_COMMON:
        return ""  # a space of whole numbers, say, to which no reference is known
    points = np.where(coin[:, None], own, others)
    # Noise that stays in the space need not have a log_density outside, as where it takes logs.
    asked = space.contains(points) | (not space.contains(draws).all())
    log_density = np.full(len(points), -np.inf)
    with np.errstate(divide="ignore"):
        log_density[asked] = noise.log_density(points[asked])
    bad = int(np.sum(~np.isfinite(log_density[coin])))
    if bad:
        return f"has no finite log density at {bad} of its own draws"
    if np.isnan(log_density).any():
        return "has a log_density that is NaN somewhere"
    log_ratio = log_density - reference.log_density(points)
    features, names = _features(points, log_density, log_ratio)
    limit = -float(ndtri(FALSE_ALARM / 2 / len(names)))
    # With the constant that makes noise as frequent as it is, the rest must fit.
    constant = _constant(log_ratio, coin)
    scores = _scores(coin, log_ratio + constant, features)
    worst = int(np.argmax(np.abs(scores)))
    if abs(scores[worst]) > limit:
        return (
            f"draws points that do not follow its log_density: the residual times {names[worst]} "
            f"is off by {scores[worst]:.1f} standard errors (limit {limit:.1f})"
        )
    chance = expit(log_ratio)
    surprise = (coin - chance)[:, None]
    error = math.sqrt(_variances(surprise, chance, np.ones_like(surprise))[0])
    if normalized and abs(surprise.sum()) > limit * error:
        return f"has a density that is not normalized: it integrates to {math.exp(-constant):.3g}"
    return ""


def _reference(draws: FloatArray, space: Space) -> Noise:
    """A density near the draws; heavy-tailed where the space is unbounded."""
    if math.isfinite(space.log_volume) or isinstance(space, Counts):
        return matched(space, draws)
    center = np.median(draws, axis=0)
    width = np.subtract(*np.quantile(draws, [0.75, 0.25], axis=0)) + 1e-12
    # Cut, because there are draws without a variance.
    cut = np.clip(draws, center - 5 * width, center + 5 * width)
    matrix = np.atleast_2d(np.cov(cut, rowvar=False)) + np.diag(1e-6 * width**2)
    return StudentT(center, matrix, df=2.0)


def _features(
    points: FloatArray, log_density: FloatArray, log_ratio: FloatArray
) -> tuple[FloatArray, list[str]]:
    """Bounded functions of a point: coordinates, squares, neighbours, and the densities.

    The latter see what no single coordinate does, such as dependence that is too strong: the
    reference was made from the draws, so its ratio to the density points at what is wrong.
    """
    scaled = _bounded(points)
    heights = [_bounded(_finite(each)[:, None]) for each in (log_density, log_ratio)]
    columns = [scaled, scaled**2, scaled[:, 1:] * scaled[:, :-1], *heights]
    names = [f"x{k + 1}" for k in range(points.shape[1])]
    pairs = [f"{a} {b}" for a, b in zip(names[1:], names[:-1], strict=True)]
    names = [*names, *(f"{name}^2" for name in names), *pairs, "log_density", "the log ratio"]
    return np.hstack(columns), names


def _finite(values: FloatArray) -> FloatArray:
    fine = np.isfinite(values)
    return np.where(fine, values, values[fine].min(initial=0.0))


def _bounded(values: FloatArray) -> FloatArray:
    spread = values.std(axis=0) + 1e-12
    return np.asarray(np.tanh((values - np.median(values, axis=0)) / spread))


def _constant(log_ratio: FloatArray, coin: BoolArray) -> float:
    """What has to be added to the log ratio for the residuals to have mean zero."""
    low, high = -50.0, 50.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if expit(log_ratio + middle).sum() < coin.sum() else (low, middle)
        )
    return (low + high) / 2


def _variances(products: FloatArray, chance: FloatArray, features: FloatArray) -> FloatArray:
    """Of the sums of the products of surprises and features, by column.

    Where noise and reference hardly meet, surprises are rare, and their squares do not show
    those that did not happen to occur.
    """
    expected = (chance * (1 - chance)) @ features**2
    return np.asarray(np.maximum((products**2).sum(axis=0), expected))


def _scores(coin: BoolArray, log_ratio: FloatArray, features: FloatArray) -> FloatArray:
    """z-scores of the residual times each feature, the constant having been estimated."""
    chance = expit(log_ratio)
    weight = chance * (1 - chance)
    if not weight.sum() > 0:
        return np.zeros(features.shape[1])
    centred = features - weight @ features / weight.sum()
    products = (coin - chance)[:, None] * centred
    error = np.sqrt(_variances(products, chance, centred))
    z = np.divide(products.sum(axis=0), error, out=np.zeros_like(error), where=error > 1e-9)
    return np.asarray(z)
