"""When a chain changes its noise: never, every sweep, or a few times with the draws pooled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ncbayes.base import InputError, Noise, NoiseSource, NoiseState, Segment, shown
from ncbayes.spaces import is_whole


@dataclass(frozen=True)
class Fixed:
    """One noise set, drawn once and shared by all chains (Algorithm 1)."""

    noise: Noise | Mapping[str, Noise] | None = None
    lasting: ClassVar[bool] = True

    def plan(self, draws: int, tune: int, *, extends: bool = False) -> tuple[Segment, ...]:
        return (Segment(0, 0 if extends else tune, draws),)

    def renew(
        self,
        source: NoiseSource,
        noise: NoiseState | None,
        segment: Segment,
        rng: np.random.Generator,
    ) -> NoiseState:
        return source.fixed(0) if noise is None else noise


@dataclass(frozen=True)
class Fresh:
    """New noise before every sweep (Algorithm 2).

    The target changes with every sweep, so the chain's law is *not* the integrated posterior of
    the paper's eq. 5 (its stationary law has no closed form); ``Pooled`` is that posterior.
    """

    noise: Noise | Mapping[str, Noise] | None = None

    def plan(self, draws: int, tune: int, *, extends: bool = False) -> tuple[Segment, ...]:
        return (Segment(0, 0 if extends else tune, draws),)

    def renew(
        self,
        source: NoiseSource,
        noise: NoiseState | None,
        segment: Segment,
        rng: np.random.Generator,
    ) -> NoiseState:
        return source.fresh(rng)


@dataclass(frozen=True)
class Pooled:
    """The integrated posterior (eq. 5): the average over ``sets`` independent noise sets.

    Every chain visits every set: ``tune`` sweeps are discarded before the first, ``settle``
    (default: a fifth of tune) after each change, and each set gives an equal share of the draws.
    The spread of the posterior means between sets says how much the noise draw matters.
    """

    noise: Noise | Mapping[str, Noise] | None = None
    sets: int = 8
    settle: int | None = None
    lasting: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_whole(self.sets) or self.sets < 2:
            raise InputError(
                "Pooled(sets=...) must be a whole number, at least 2, got "
                f"{shown(self.sets)}; for one set use Fixed()"
            )
        if self.settle is not None and (not is_whole(self.settle) or self.settle < 0):
            raise InputError(
                "Pooled(settle=...) must be a whole number of sweeps and must not be negative, got "
                f"{shown(self.settle)}; leave it out for a fifth of tune"
            )

    def plan(self, draws: int, tune: int, *, extends: bool = False) -> tuple[Segment, ...]:
        if draws < self.sets:
            raise InputError(
                f"draws must be at least the number of noise sets ({self.sets}), got {draws}; "
                "raise draws or lower Pooled(sets=...)"
            )
        settle = -(-tune // 5) if self.settle is None else self.settle
        share, rest = divmod(draws, self.sets)
        return tuple(
            Segment(k, tune if k == 0 and not extends else settle, share + (k < rest))
            for k in range(self.sets)
        )

    def renew(
        self,
        source: NoiseSource,
        noise: NoiseState | None,
        segment: Segment,
        rng: np.random.Generator,
    ) -> NoiseState:
        if noise is None or noise.index != segment.noise_set:
            return source.fixed(segment.noise_set)
        return noise
