"""What the exchange algorithm needs of the likelihood: data simulated from the model at theta."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Model
from ncbayes.contrast import model_name
from ncbayes.pilots import Pilot, pilot

# Rows that moments of the statistics are estimated from: a few per cent of error in a proposal.
MOMENT_ROWS = 1000
# Newton's method with simulated moments ends with a step of so few posterior sds, which is as near
# as these moments lead, or after so many steps.
NEAR, MOST_STEPS = 1.0, 20
# A step of which a smaller part than this leads no nearer to the data ends it.
LEAST_SHARE = 0.01
# A step is at most so many posterior sds: moments far from the pilot may say little.
LONGEST = 5.0


@dataclass(frozen=True, eq=False)
class SimulatedLoss:
    """The likelihood of one group's rows, known by simulation.

    ``total`` is the sum of the statistics over the data; ``gram`` and ``shift`` are those of the
    log likelihood's expansion at a pilot estimate, ``theta . shift - theta' gram theta / 2``.
    """

    total: FloatArray
    data: FloatArray
    model: Any = field(repr=False)
    gram: FloatArray
    shift: FloatArray
    seconds: float = 1e-3

    @property
    def size(self) -> int:
        return len(self.total)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        return (self.total,)

    @property
    def sweep_seconds(self) -> float:
        return self.seconds

    def check(self, sweeps: int | None) -> None:
        """Refuse sweeps of a model that has none."""
        if sweeps is not None and not hasattr(self.model, "sweep"):
            raise InputError(
                f"{model_name(self.model)} has no sweep(theta, x, rng), which Exchange(sweeps=...) "
                "needs; write it, or leave sweeps out"
            )

    def simulated(
        self, theta: FloatArray, sweeps: int | None, rng: np.random.Generator
    ) -> FloatArray | None:
        """The sum of the statistics over as many rows from the model; None where it has none.

        ``sweeps``: by so many Gibbs sweeps from the data; None: by the model's own sampler.
        """
        try:
            if sweeps is None:
                x = _rows(self.model.sample, theta, len(self.data), rng)
            else:
                x = self.data
                for _ in range(sweeps):
                    x = self.model.sweep(theta, x, rng)
        except InputError:
            return None
        return np.asarray(self.model.statistics(np.asarray(x)).sum(axis=0))


def simulated_loss(model: Model, data: FloatArray, rng: np.random.Generator) -> SimulatedLoss:
    """The data, the model's sampler, and where to propose."""
    sample = getattr(model, "sample", None)
    if sample is None:
        raise InputError(
            f"{model_name(model)} has no sample(theta, size, rng), which the exchange algorithm "
            'needs; write it, or fit against noise with engine="auto"'
        )
    found = pilot(model, data, rng)
    gram, shift, theta = _expansion(model, sample, found, len(data), rng)
    began = time.perf_counter()
    _rows(sample, theta, MOMENT_ROWS, rng)
    seconds = (time.perf_counter() - began) * len(data) / MOMENT_ROWS
    return SimulatedLoss(found.total, data, model, gram, shift, seconds)


@dataclass(frozen=True, eq=False)
class _Moments:
    """The log likelihood's expansion at theta, from simulated rows: ``n Cov`` and ``S - n E``."""

    theta: FloatArray
    gram: FloatArray
    gradient: FloatArray

    def pull(self, penalty: FloatArray) -> FloatArray:
        """The gradient of likelihood and penalty."""
        return np.asarray(self.gradient - penalty @ self.theta)


def _expansion(
    model: Model,
    sample: Callable[..., FloatArray],
    found: Pilot,
    rows: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``n Cov`` and ``total - n E + gram theta``, at an estimate by Newton's method; that too.

    A step is taken if it brings the means of simulated rows nearer to those of the data, else a
    part of it: near where all rows become alike, such as empty graphs, moments lead anywhere.
    """
    size = max(MOMENT_ROWS, 10 * len(found.theta))

    def moments(theta: FloatArray) -> _Moments:
        statistics = np.asarray(model.statistics(_first_rows(model, sample, theta, size, rng)))
        gram = rows * np.atleast_2d(np.cov(statistics, rowvar=False))
        return _Moments(theta, gram, found.total - rows * statistics.mean(axis=0))

    best, share = moments(found.theta), 1.0
    widths = np.sqrt(np.diag(best.gram + found.penalty))
    for _ in range(MOST_STEPS):
        precision, pull = best.gram + found.penalty, best.pull(found.penalty)
        move = np.linalg.solve(precision, pull)
        length = float(np.sqrt(move @ precision @ move / len(move)))
        if length < NEAR or share < LEAST_SHARE:
            break
        part = np.asarray(move * share * min(1.0, LONGEST / max(length, 1e-300)), dtype=float)
        there = moments(_possible(sample, best.theta, part, rng))
        nearer = np.linalg.norm(there.pull(found.penalty) / widths) < np.linalg.norm(pull / widths)
        best, share = (there, min(1.0, 2 * share)) if nearer else (best, share / 4)
    # Where no step leads nearer, proposals lie here, and not where a step would have led.
    gradient = best.gradient * min(1.0, NEAR / max(length, 1e-300))
    return best.gram, gradient + best.gram @ best.theta, best.theta


def _rows(
    sample: Callable[..., FloatArray], theta: FloatArray, size: int, rng: np.random.Generator
) -> FloatArray:
    """Rows from the model; what it says of a proposal is not about the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return sample(theta, size, rng)


def _first_rows(
    model: Model,
    sample: Callable[..., FloatArray],
    theta: FloatArray,
    size: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Rows near the data, where the model must exist."""
    try:
        return _rows(sample, theta, size, rng)
    except InputError as none:
        raise InputError(
            f"{model_name(model)} can't be simulated at a rough estimate of theta from the data, "
            "from which the exchange algorithm starts; look for columns that nearly repeat each "
            'other, or fit against noise with engine="auto"'
        ) from none


def _possible(
    sample: Callable[..., FloatArray],
    theta: FloatArray,
    move: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """As much of the move as stays where the model exists."""
    for _ in range(10):
        try:
            _rows(sample, theta + move, 1, rng)
        except InputError:
            move = move / 2
            continue
        return np.asarray(theta + move)
    return theta
