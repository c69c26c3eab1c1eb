"""Adaptive noise: the settings, and the guard that lets no poor noise through."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ncbayes.base import (
    FloatArray,
    InputError,
    Model,
    Noise,
    shown,
)
from ncbayes.noise.carried import Carried, Path, kernels
from ncbayes.noise.distributions import Uniform
from ncbayes.noise.tempered import (
    FEW_EFFECTIVE,
    GROWS,
    MOST_ENTRIES,
    UNCERTAIN,
    ZERO_WEIGHTS,
    Annealed,
    Refused,
    Resampled,
    Tempering,
    anneal,
    annealing_path,
    anneals,
    effective_size,
    grows,
    log_mean,
    log_tilt,
    tempered_by,
)
from ncbayes.spaces import Box, is_continuous, is_numeric, is_whole

METHODS = ("auto", "resampling", "annealed", "carried")
# The paper's studies use 0.1 and 0.2 from the uniform; annealing can go further.
PAPER_ALPHA = 0.1
HALFWAY = 0.5
# Below this a tempered uniform is uniform for all purposes, and an update is not worth making.
LEAST_ALPHA = 0.02
# Proposals whose weights are held at once, 160 MB of them; their error is then small in any case.
MOST_TILTS = 20_000_000
# Particles that measure an annealing path even where little noise is wanted.
FEWEST_PARTICLES = 500


@dataclass(frozen=True)
class Adaptive:
    """Noise that moves toward the fitted model before the chains start (Algorithm 3).

    One chain runs against the ``noise`` so far; after each batch of sweeps the noise
    becomes ``q_0^(1 - alpha) model^alpha`` at the batch's average theta. All chains then share the
    last one, so that the kept draws have one target.

    Parameters
    ----------
    noise
        Where to start; None: matched to the data.
    alpha
        How far toward the model, from 0 to 1. None: 0.5, or for resampling from the uniform the
        paper's 0.1.
    method
        "resampling" is the paper's importance resampling from ``base``. "annealed" draws by
        annealed importance sampling through the model's own conditionals, and holds in many
        dimensions; "carried" does so from ``base`` by moves on continuous spaces, without
        conditionals. "auto": "annealed" if the model has ``sweep`` and no base is given, else
        "resampling".
    base
        q_0 of "resampling" and "carried": a distribution; "box": uniform over the data's range
        widened by ``margin`` of it on each side, as in the paper; "start": the noise to start from;
        None: the space's uniform, or "start" where there is none.
    batch
        Sweeps between updates; theta is averaged over the second half of them.
    updates
        At most so many; None: one for each batch in ``tune``. After one that was no better, the
        next goes half as far; they end when the noise stops improving.
    proposals, most_proposals
        "resampling": proposals for each noise point at first, and at most.
    steps, most_steps
        "annealed" and "carried": annealing steps at first, and at most.
    least_effective
        The guard: the effective sample size must be this share of the noise points...
    largest_error
        ...and log Z_alpha must have at most this standard error. If not, there are more
        proposals or steps; if those are at their most, alpha is lowered; if that does not help
        or the noise would be worth less than before, the update is not made.
    """

    noise: Noise | Mapping[str, Noise] | None = None
    alpha: float | None = None
    method: Literal["auto", "resampling", "annealed", "carried"] = "auto"
    base: Noise | Literal["box", "start"] | None = None
    margin: float = 0.1
    batch: int = 100
    updates: int | None = None
    proposals: int = 10
    most_proposals: int = 80
    steps: int = 10
    most_steps: int = 80
    least_effective: float = 0.8
    largest_error: float = 0.1

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_counts(self)
        _check_shares(self)

    def update_count(self, tune: int) -> int:
        """How many updates to make at most, before a run with so many sweeps of tuning."""
        return max(1, tune // self.batch) if self.updates is None else self.updates

    def is_annealed(self, model: Model) -> bool:
        """Whether noise for this model is annealed; an InputError if it can't be but was asked."""
        able = anneals(model)
        if self.method == "annealed" and not able:
            raise InputError(
                'Adaptive(method="annealed") needs a model with sweep(theta, x, rng), one sweep of '
                "its conditionals, on a space of finite volume such as a torus, got "
                f'{shown(model)}; use method="resampling"'
            )
        return able and self.base is None and self.method in ("auto", "annealed")

    def starting_base(self, model: Model, start: Noise, data: FloatArray) -> Noise | None:
        """q_0 for one group's data; None where noise is annealed from the model at 0."""
        if self.is_annealed(model):
            return None
        if isinstance(self.base, str) and self.base == "box":
            low, high = data.min(axis=0), data.max(axis=0)
            # A column of equal values still needs a box with an inside.
            wide = np.where(high > low, high - low, 1.0)
            return Uniform(Box(low - self.margin * wide, high + self.margin * wide))
        if self.base is not None and not isinstance(self.base, str):
            return self.base
        bounded = math.isfinite(model.space.log_volume)
        return Uniform(model.space) if bounded and self.base is None else start

    def wanted_alpha(self, base: Noise | None) -> float:
        """Alpha as given, or its default."""
        if self.alpha is not None:
            return float(self.alpha)
        resampled = isinstance(base, Uniform) and self.method != "carried"
        return PAPER_ALPHA if resampled else HALFWAY

    def temper(
        self,
        model: Model,
        theta: FloatArray,
        base: Noise | None,
        size: int,
        rng: np.random.Generator,
    ) -> Tempering | Refused:
        """The tempered density at theta for ``size`` noise points, once it passes the guard."""
        if self.method == "carried" and not is_continuous(model.space):
            raise InputError(
                'Adaptive(method="carried") moves points, which can only be on a continuous space, '
                f'got {shown(model)}; use method="resampling"'
            )
        if base is None or self.method == "carried":
            return self._annealed(model, theta, base, size, rng)
        return self._resampled(model, theta, base, size, rng)

    def built(self, model: Any, base: Noise | None, tempering: Tempering) -> Noise:
        """The noise that a tempering describes."""
        if base is None:
            return Annealed(model, tempering)
        if self.method == "carried":
            return Carried(model, base, tempering)
        return Resampled(model, base, tempering)

    def _passes(self, log_weights: FloatArray, size: int) -> bool:
        return self._refused(log_weights, size) is None

    def _refused(self, log_weights: FloatArray, size: int) -> Refused | None:
        """What the guard has against weights; None if nothing."""
        log_z, error = log_mean(log_weights)
        if not math.isfinite(log_z):
            return Refused(ZERO_WEIGHTS)
        share = min(effective_size(log_weights) / size, 1.0)
        if share < self.least_effective:
            return Refused(FEW_EFFECTIVE, share, error)
        return None if error <= self.largest_error else Refused(UNCERTAIN, share, error)

    def _resampled(
        self, model: Model, theta: FloatArray, base: Noise, size: int, rng: np.random.Generator
    ) -> Tempering | Refused:
        alpha, work = self.wanted_alpha(base), self.proposals
        tilt = np.zeros(0)
        while True:
            tilt = np.concatenate([tilt, *_tilts(model, theta, base, work * size - len(tilt), rng)])
            most = 2 * work > self.most_proposals or 2 * work * size > MOST_TILTS
            if most or self._passes(tempered_by(alpha, tilt), size):
                break
            work *= 2
        alpha = self._largest_alpha(tilt, alpha, size)
        if _grows(model, theta, base, alpha, rng):
            return Refused(GROWS)
        least = min(LEAST_ALPHA, self.wanted_alpha(base))
        if alpha < least:
            return self._refused(tempered_by(least, tilt), size) or Refused(FEW_EFFECTIVE)
        weights = tempered_by(alpha, tilt)
        log_z, error = log_mean(weights)
        effective = min(effective_size(weights) / size, 1.0)
        return Tempering(theta, alpha, log_z, error, effective, work)

    def _largest_alpha(self, tilt: FloatArray, alpha: float, size: int) -> float:
        """The largest alpha up to the one wanted that passes with these proposals; 0 if none."""
        if self._passes(tempered_by(alpha, tilt), size):
            return alpha
        low, high = 0.0, alpha
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self._passes(tempered_by(middle, tilt), size) else (low, middle)
            )
        return low

    def _annealed(
        self,
        model: Any,
        theta: FloatArray,
        base: Noise | None,
        size: int,
        rng: np.random.Generator,
    ) -> Tempering | Refused:
        """By the model's conditionals; with a base, carried from there."""
        alpha, steps = self.wanted_alpha(base), self.steps
        particles = max(size, FEWEST_PARTICLES)
        while True:
            path = _log_weights(model, theta, base, alpha, steps, particles, rng)
            fine = [k for k, weights in enumerate(path) if self._passes(weights, particles)]
            if fine[-1:] == [steps - 1]:
                break
            if 2 * steps <= self.most_steps:
                steps *= 2
                continue
            # The variance of the log weights goes as alpha^2 / steps. The path was good up to a
            # fraction f of the way, so with all its steps it will be up to sqrt(f).
            fraction = (fine[-1] + 1 if fine else 0.25) / steps
            alpha *= min(math.sqrt(fraction), 0.9)
            if alpha < LEAST_ALPHA:
                return self._refused(path[-1], particles) or Refused(FEW_EFFECTIVE)
        if base is not None and _grows(model, theta, base, alpha, rng):
            return Refused(GROWS)
        log_z, error = log_mean(path[-1])
        effective = effective_size(path[-1]) / particles
        return Tempering(theta, alpha, log_z, error, effective, steps)


def _log_weights(
    model: Any,
    theta: FloatArray,
    base: Noise | None,
    alpha: float,
    steps: int,
    particles: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Log weights along an annealing path, (step, particle)."""
    if base is not None:
        return Path(model, theta, base).carried(alpha, steps, particles, rng)[1]
    start, end = annealing_path(model, theta, alpha)
    return anneal(model, end, steps, particles, rng, start)[1]


def _grows(
    model: Any, theta: FloatArray, base: Noise, alpha: float, rng: np.random.Generator
) -> bool:
    if math.isfinite(model.space.log_volume):
        return False
    return grows(model.space, base, alpha, lambda x: kernels(model, theta[None], x)[0], rng)


def _tilts(
    model: Model, theta: FloatArray, base: Noise, size: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Log tilts of ``size`` proposals, a slice of points at a time."""
    rows = max(1, MOST_ENTRIES // model.space.dimension)
    for start in range(0, size, rows):
        yield log_tilt(model, theta, base, base.sample(min(rows, size - start), rng))


def _check_choices(settings: Adaptive) -> None:
    if settings.method not in METHODS:
        raise InputError(
            'Adaptive(method=...) must be "auto", "resampling", "annealed" or "carried", got '
            f"{shown(settings.method)}"
        )
    base = settings.base
    named = isinstance(base, str) and base in ("box", "start")
    if not (base is None or named or (isinstance(base, Noise) and not isinstance(base, type))):
        raise InputError(
            'Adaptive(base=...) must be a distribution with sample and log_density, "box", '
            f'"start" or None, got {shown(base)}'
        )
    if settings.method == "annealed" and base is not None:
        raise InputError(
            'Adaptive(base=...) is for methods "resampling" and "carried"; annealing starts at the '
            "model with theta = 0: leave base out"
        )


def _check_counts(settings: Adaptive) -> None:
    least = {"batch": 2, "proposals": 1, "most_proposals": 1, "steps": 1, "most_steps": 1}
    if settings.updates is not None:
        least["updates"] = 1
    for name, smallest in least.items():
        value = getattr(settings, name)
        if not is_whole(value) or value < smallest:
            raise InputError(
                f"Adaptive({name}=...) must be a whole number, at least {smallest}, got "
                f"{shown(value)}"
            )


def _check_shares(settings: Adaptive) -> None:
    ranges: dict[str, tuple[float, float, str]] = {
        "margin": (0.0, math.inf, "0 or more"),
        "least_effective": (0.0, 1.0, "from 0 to 1"),
        "largest_error": (0.0, math.inf, "0 or more"),
    }
    if settings.alpha is not None:
        ranges["alpha"] = (0.0, 1.0, "from 0 (the base) to 1 (the fitted model)")
    for name, (low, high, words) in ranges.items():
        value = getattr(settings, name)
        if not (is_numeric(value) and np.ndim(value) == 0 and low <= value <= high):
            raise InputError(f"Adaptive({name}=...) must be a number, {words}, got {shown(value)}")
