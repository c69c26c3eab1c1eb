"""The waist: model, noise and data become a logistic regression with a known offset.

    log odds(u) = theta . statistics(u) + c + { log_base(u) - log q(u) + log n - log m }
                = (design @ coef + offset)(u)

Above the waist (models, noise) nobody sees an engine; below it (engines, linear algebra) nobody
sees a model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from ncbayes.base import (
    Block,
    BoolArray,
    Design,
    Draw,
    FloatArray,
    InputError,
    Model,
    NoiseSet,
    Prior,
)
from ncbayes.curved import Curved
from ncbayes.linalg.designs import Dense, with_intercept


@dataclass(frozen=True, eq=False)
class Contrast:
    """The pooled points of one group: a logistic regression of ``is_data`` on ``design``."""

    design: Design
    offset: FloatArray
    is_data: BoolArray

    def log_odds(self, coef: FloatArray) -> FloatArray:
        """Log odds that each pooled point is data, for coef (coefficient,)."""
        return self.design.matvec(coef) + self.offset

    def log_likelihood(self, log_odds: FloatArray) -> float:
        """Log probability of the labels: ``sum s psi - log(1 + exp(psi))``."""
        return float(np.sum(log_odds[self.is_data]) - np.sum(np.logaddexp(0.0, log_odds)))


@dataclass(frozen=True, eq=False)
class Target:
    """What an engine leaves invariant: the contrasts of all groups and the prior of coef.

    ``lasting``: there are many sweeps to come on it, so that work done once for all of them pays.
    ``losses``: for engines that do without noise, instead of contrasts: one Loss a group, of the
    kind that the engine names; coef is then theta. ``normalizer``: whether the last column of the
    contrasts is the free normalizer.
    ``curves``: instead of contrasts where log odds are not linear in coef.
    """

    contrasts: tuple[Contrast, ...]
    prior: Prior
    lasting: bool = True
    losses: tuple[Any, ...] = ()
    normalizer: bool = True
    curves: tuple[Curved, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of coef, (group, coefficient)."""
        if self.losses:
            return len(self.losses), self.losses[0].size
        if self.curves:
            return len(self.curves), len(self.curves[0].start)
        return len(self.contrasts), self.contrasts[0].design.shape[1]


class Loss(Protocol):
    """What one group's data say about theta without noise; what else it has is its kind's."""

    @property
    def size(self) -> int:
        """The number of statistics."""
        ...

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """Numbers by which a checkpoint knows it again."""
        ...

    @property
    def sweep_seconds(self) -> float:
        """A guess at the time of one sweep of its engine."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A Markov kernel for coef and the prior's scales; no storage, no warm-up, no printing.

    An engine with the attribute ``likelihood`` does without noise: it gets ``target.losses`` of
    that kind, "score", "exact", "simulated" or "conditionals", instead of contrasts. Where it
    knows log Z, coef has one column more than the target, c = -log Z. One with
    ``uncentred = True`` gets statistics as the model has them, not less their mean over the data.
    One with ``adapting(sweeps)`` is replaced by what that returns: it may adapt in its first
    sweeps, which are discarded, by what the draws' memory holds. One with ``kernel(target)``
    makes a ``Kernel`` there, which chains then use. ``packages`` names those that its draws
    depend on, whose versions a checkpoint compares.
    """

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """Where a chain begins: spread wider than the posterior, so that R-hat can see."""
        ...

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        """One sweep."""
        ...


class Kernel(Protocol):
    """An engine bound to a target: what is prepared once for it is kept here."""

    def start(self, rng: np.random.Generator) -> Draw: ...

    def sweeps(self, draw: Draw, rng: np.random.Generator, count: int) -> Block:
        """So many sweeps; they come out the same however they are cut into calls."""
        ...


@dataclass(frozen=True, eq=False)
class Stepwise:
    """The kernel of an engine that goes sweep by sweep."""

    engine: Engine
    target: Target

    def start(self, rng: np.random.Generator) -> Draw:
        return self.engine.start(self.target, rng)

    def sweeps(self, draw: Draw, rng: np.random.Generator, count: int) -> Block:
        draws = []
        for _ in range(count):
            draw = self.engine.step(self.target, draw, rng)
            draws.append(draw)
        return Block(
            np.array([each.coef for each in draws]),
            {name: np.array([each.scales[name] for each in draws]) for name in draw.scales},
            {name: np.array([each.stats[name] for each in draws]) for name in draw.stats},
            draw.memory,
        )


def kernel_of(engine: Engine, target: Target) -> Kernel:
    """The engine bound to a target."""
    bind = getattr(engine, "kernel", None)
    kernel: Kernel = Stepwise(engine, target) if bind is None else bind(target)
    return kernel


def uses_noise(engine: object) -> bool:
    """Whether an engine works on contrasts, as all do that do not say otherwise."""
    return not hasattr(engine, "likelihood")


def statistic_names(model: Model) -> list[str]:
    """The names of the model's statistics in column order."""
    return [name for names in model.groups.values() for name in names]


def contrast(
    model: Model, data: FloatArray, noise: NoiseSet, center: FloatArray | None = None
) -> Contrast:
    """The contrast of data with noise under a model.

    With a ``center``, the design holds ``statistics - center``, and its last coefficient is
    ``c + theta . center``: the same model, in coordinates where data far from zero do no harm.

    Noise points where the model has no mass are noise with certainty, whatever coef is: they
    add log 1 = 0 to the log likelihood, so their rows are left out, while m still counts them.
    """
    if not len(data) and not len(noise.points):  # a time without points: the prior carries it
        none = with_intercept(Dense(np.zeros((0, len(statistic_names(model))))))
        return Contrast(none, np.zeros(0), np.zeros(0, dtype=bool))
    inside = has_mass(model, noise.points)
    if not inside.any():
        raise InputError(
            f"none of the {len(inside)} noise points lies where {model_name(model)} has mass, so "
            "noise and data cannot be compared; choose noise on the space of the model"
        )
    points = np.concatenate([data, noise.points[inside]])
    points.setflags(write=False)  # a model that writes into its points fails, and not silently
    log_noise = np.concatenate([noise.log_density_at_data, noise.log_density[inside]])
    design = _design(model, points, len(data), center)
    log_base = _log_base(model, points, len(data))
    offset = log_base - log_noise + np.log(len(data) / len(noise.points))
    is_data = np.arange(len(points)) < len(data)
    return Contrast(design, offset, is_data)


def data_alone(model: Model, data: FloatArray) -> Contrast:
    """A contrast without noise, for what the data say about the statistics."""
    design = _design(model, data, len(data), None)
    return Contrast(design, _log_base(model, data, len(data)), np.ones(len(data), dtype=bool))


def has_mass(model: Model, points: FloatArray) -> BoolArray:
    """Where the model's density is positive: in its space, with a base that is."""
    inside = model.space.contains(points)
    if hasattr(model, "curve"):  # an energy is finite all over its space
        return inside
    inside[inside] = np.ravel(model.log_base(points[inside])) > -np.inf
    return inside


def _design(model: Model, points: FloatArray, rows: int, center: FloatArray | None) -> Design:
    structured = getattr(model, "design", None)
    if structured is not None:
        design: Design = structured(points)
        return with_intercept(design)
    statistics = np.asarray(model.statistics(points), dtype=float)
    names = statistic_names(model)
    if statistics.shape != (len(points), len(names)):
        raise InputError(
            f"{model_name(model)}.statistics must return shape {(len(points), len(names))} (one "
            f"row a point, one column a name in groups), got {statistics.shape}"
        )
    if not np.isfinite(statistics).all():
        column = int(np.flatnonzero(~np.isfinite(statistics).all(axis=0))[0])
        _finite(statistics[:, column], f"the statistic {names[column]!r}", points, rows, model)
    return with_intercept(Dense(statistics if center is None else statistics - center))


def _log_base(model: Model, points: FloatArray, rows: int) -> FloatArray:
    log_base = np.asarray(model.log_base(points), dtype=float)
    if log_base.shape != (len(points),):
        raise InputError(
            f"{model_name(model)}.log_base must return one number a point, shape "
            f"({len(points)},), got shape {log_base.shape}"
        )
    return _finite(log_base, "log_base", points, rows, model)


def _finite(
    values: FloatArray, what: str, points: FloatArray, rows: int, model: Model
) -> FloatArray:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        where = f"row {row} of the data" if row < rows else "a noise point"
        raise InputError(
            f"{what} of {model_name(model)} is {values[row]} at {where} ({points[row].tolist()}); "
            "it must be finite: move or remove such points, or change the model or the noise"
        )
    return values


def model_name(model: object) -> str:
    """The model in an error message: its repr if it has a short one of its own, else its class."""
    text = repr(model)
    own = type(model).__repr__ is not object.__repr__
    return text if own and len(text) <= 60 else type(model).__name__


def label_probability(log_odds: FloatArray) -> FloatArray:
    """Probability that a point with these log odds is data."""
    return np.asarray(expit(log_odds))


def relabelled(target: Target, labels: tuple[BoolArray, ...]) -> Target:
    """The same target with other labels, for checks that simulate them."""
    contrasts = tuple(
        Contrast(old.design, old.offset, label)
        for old, label in zip(target.contrasts, labels, strict=False)
    )
    curves = tuple(
        replace(old, is_data=label) for old, label in zip(target.curves, labels, strict=False)
    )
    return replace(target, contrasts=contrasts, curves=curves)


__all__ = [
    "Contrast",
    "Engine",
    "Kernel",
    "Loss",
    "Stepwise",
    "Target",
    "contrast",
    "data_alone",
    "has_mass",
    "kernel_of",
    "label_probability",
    "model_name",
    "relabelled",
    "statistic_names",
    "uses_noise",
]
