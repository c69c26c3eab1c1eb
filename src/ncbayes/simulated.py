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
            'needs; write it, or fit against noise with engine="gibbs"'
        )
    found = pilot(model, data, rng)
    gram, shift, theta = _expansion(model, sample, found, len(data), rng)
    began = time.perf_counter()
    _rows(sample, theta, MOMENT_ROWS, rng)
    seconds = (time.perf_counter() - began) * len(data) / MOMENT_ROWS
    return SimulatedLoss(found.total, data, model, gram, shift, seconds)


def _expansion(
    model: Model,
    sample: Callable[..., FloatArray],
    found: Pilot,
    rows: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``n Cov`` and ``total - n E + gram theta``, at an estimate by Newton's method; that too."""
    theta = found.theta
    size = max(MOMENT_ROWS, 10 * len(theta))
    for step in range(MOST_STEPS):
        statistics = np.asarray(model.statistics(_first_rows(model, sample, theta, size, rng)))
        gram = rows * np.atleast_2d(np.cov(statistics, rowvar=False))
        gradient = found.total - rows * statistics.mean(axis=0)
        precision = gram + found.penalty
        move = np.linalg.solve(precision, gradient - found.penalty @ theta)
        length = float(np.sqrt(move @ precision @ move / len(move)))
        if length < NEAR or step == MOST_STEPS - 1:
            break
        theta = _possible(sample, theta, move * min(1.0, LONGEST / max(length, 1e-300)), rng)
    return gram, gradient + gram @ theta, theta


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
            'other, or fit against noise with engine="gibbs"'
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
