"""What checks are made of: points of a space, losses simulated at a theta, draws of a prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from ncbayes.base import BoolArray, Draw, FloatArray, Model, Precision, Prior, Space
from ncbayes.conditionals import ConditionalsLoss
from ncbayes.contrast import Contrast, Loss, Target, label_probability, uses_noise
from ncbayes.exact import ExactLoss, States
from ncbayes.linalg.designs import Dense, with_intercept
from ncbayes.priors import MultivariateNormal, Normal
from ncbayes.priors.blocks import NORMALIZER, blocks
from ncbayes.score import ScoreLoss
from ncbayes.simulated import SimulatedLoss

# How far the expansions that engines propose by are off, so that what corrects them is tested.
OFF = 1.4
# Rows of a family of few states.
ROWS_LISTED = 5
# Columns of coef under a prior of its own: two statistics and c, or three statistics.
COLUMNS = 3
# The prior of a block that a mapping leaves out: correlated, as what ``fit`` takes there.
LEFT_OUT = MultivariateNormal(np.array([[3.0, 2.2], [2.2, 2.0]]), mean=0.3)
# Points at which a model is looked at; so many are tried where fewer than ten of these have mass.
POINTS, MOST_TRIED, FEWEST_WITH_MASS = 50, 20_000, 10


@dataclass(frozen=True)
class TwoBlocks:
    """What priors ask a model for: two blocks of two statistics, each block a run."""

    groups = {"first": ("a", "b"), "second": ("c", "d")}  # noqa: RUF012
    clusters = (0, 0, 1, 1)


def prior_of(given: Prior | Mapping[str, Prior] | None, normalizer: bool) -> tuple[Prior, int]:
    """The prior of coef and its number of columns, for one prior or a mapping by block."""
    if not isinstance(given, Mapping):
        return given or Normal(0.7), COLUMNS
    named = {NORMALIZER: Normal(1.0), **given} if normalizer else given
    model = TwoBlocks()
    made = blocks(named, model.groups, lambda start, stop: LEFT_OUT, model, normalizer)
    return made, made.parts[-1].stop


def labelled_target(prior: Prior, columns: int, groups: int, rng: np.random.Generator) -> Target:
    """A target of few points, whose labels are to be drawn."""
    contrasts = []
    for group in range(groups):
        rows = 12 + 3 * group
        design = with_intercept(Dense(rng.standard_normal((rows, columns - 1))))
        offset = 1.5 + rng.standard_normal(rows)
        contrasts.append(Contrast(design, offset, np.zeros(rows, dtype=bool)))
    return Target(tuple(contrasts), prior)


@dataclass(frozen=True)
class NormalFamily:
    """A family of one row, ``N(gram theta, gram)``: its log Z is ``theta' gram theta / 2``."""

    root: FloatArray

    @property
    def gram(self) -> FloatArray:
        return np.asarray(self.root.T @ self.root)

    def log_partition(self, theta: FloatArray) -> float:
        return float(theta @ self.gram @ theta / 2)

    def statistics(self, x: FloatArray) -> FloatArray:
        return x

    def sample(self, theta: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((size, len(self.root)))
        return np.asarray(self.gram @ theta + noise @ self.root)


def normal_loss(
    engine: Any, root: FloatArray, theta: FloatArray, rng: np.random.Generator
) -> tuple[Loss, FloatArray]:
    """The loss, of the kind that the engine asks for, of ``total ~ N(gram theta, gram / rate)``.

    Also the total. The rate is the engine's learning rate, 1 if it has none.
    """
    model, rate = NormalFamily(root), float(getattr(engine, "learning_rate", 1.0))
    error = rng.standard_normal(len(root)) @ root / np.sqrt(rate)
    total, gram = model.gram @ theta + error, model.gram
    made: dict[str, Loss] = {
        "score": ScoreLoss(gram, total, len(root)),
        "exact": ExactLoss(total, 1, model.log_partition, OFF * gram, total / OFF),
        "simulated": SimulatedLoss(total, total[None], model, OFF * gram, total / OFF),
    }
    return made[engine.likelihood], total


def listed_loss(
    states: FloatArray, theta: FloatArray, rng: np.random.Generator
) -> tuple[Loss, FloatArray]:
    """The exact loss of rows drawn at theta from a family of few states; also their total."""
    listed = States(states, np.linspace(-1.0, 1.0, len(states)))
    chance = softmax(states @ theta + listed.log_weights)
    total = rng.multinomial(ROWS_LISTED, chance) @ states
    gram = OFF * ROWS_LISTED * np.eye(len(theta))
    partition = partial(_listed_partition, listed)
    return ExactLoss(total, ROWS_LISTED, partition, gram, total, states=listed), total


def _listed_partition(listed: States, theta: FloatArray) -> float:
    return float(listed.log_partitions(theta))


def posed(engine: object, target: Target) -> Target:
    """The labelled target as the engine wants it: as it is, or as if of full conditionals."""
    if uses_noise(engine):
        return target
    return Target((), target.prior, losses=tuple(map(ConditionalsLoss, target.contrasts)))


def dense_precision(precision: Precision) -> FloatArray:
    """The whole precision matrix over (group, coefficient), row by row."""
    groups, size = precision.within.shape[:2]
    full = np.zeros((groups, size, groups, size))
    columns = np.arange(size)
    for group in range(groups):
        within = precision.within[group]
        full[group, :, group, :] = np.diag(within) if within.ndim == 1 else within
    if precision.between is not None:
        for group, coupling in enumerate(precision.between):
            full[group, columns, group + 1, columns] = coupling
            full[group + 1, columns, group, columns] = coupling
    return full.reshape(groups * size, groups * size)


def gaussian_draw(precision: Precision, shift: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A draw from ``N(precision^-1 shift, precision^-1)`` by the plainest means."""
    full = dense_precision(precision)
    factor = np.linalg.cholesky(full)
    mean = np.linalg.solve(full, shift.ravel())
    noise = np.linalg.solve(factor.T, rng.standard_normal(len(full)))
    return np.asarray((mean + noise).reshape(shift.shape))


def prior_draw(target: Target, rng: np.random.Generator) -> Draw:
    """Scales from their prior, and coef given them."""
    scales = target.prior.draw(target.shape, rng)
    precision, shift = target.prior.gaussian(scales, target.shape)
    return Draw(gaussian_draw(precision, shift, rng), scales)


def drawn_labels(
    target: Target, coef: FloatArray, rng: np.random.Generator
) -> tuple[BoolArray, ...]:
    """Labels of all points given coef, one array per group."""
    return tuple(
        rng.random(len(each.offset)) < label_probability(each.log_odds(row))
        for each, row in zip(target.contrasts, coef, strict=True)
    )


def spread_points(model: Model, rng: np.random.Generator) -> FloatArray:
    """Points of the model's space to look at it, those first where log_base is above -inf."""
    x = _tried(model.space, POINTS, rng)
    mass = _mass(model, x)
    if mass.sum() < FEWEST_WITH_MASS:
        x = _tried(model.space, MOST_TRIED, rng)
        mass = _mass(model, x)
    return np.asarray(x[np.argsort(~mass, kind="stable")[:POINTS]])


def _mass(model: Model, x: FloatArray) -> BoolArray:
    """Where log_base is above -inf; everywhere if it is of another shape, which others refuse."""
    log_base = np.asarray(model.log_base(x.copy()))
    return log_base > -np.inf if log_base.shape == (len(x),) else np.ones(len(x), dtype=bool)


def _tried(space: Space, size: int, rng: np.random.Generator) -> FloatArray:
    """Uniform points, or heavy-tailed ones where there is no uniform distribution."""
    if np.isfinite(space.log_volume):
        return space.uniform(size, rng)
    x = rng.standard_t(5, size=(size, space.dimension))
    for each in (x, np.abs(x) + 0.01):
        if space.contains(each).all():
            return each
    return np.asarray(np.floor(5 * np.abs(x)))
