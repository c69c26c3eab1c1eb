"""What is fitted: model, data, noise and prior, checked; it makes the targets that chains need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ncbayes.base import (
    FloatArray,
    InputError,
    Model,
    Noise,
    NoiseSet,
    NoiseState,
    Prior,
    Schedule,
    Segment,
    in_group,
    log_density_at_rows,
)
from ncbayes.contrast import Contrast, Engine, Loss, Target, contrast, model_name, statistic_names


@dataclass(frozen=True)
class Source:
    """Noise for every group, or none; ``entropy`` is the run's seed."""

    labels: tuple[str, ...]
    noises: tuple[Noise, ...]
    data: tuple[FloatArray, ...]
    sizes: tuple[int, ...]
    entropy: int
    # The last noise sets that were made: checks, chains and results ask for the same ones.
    _made: dict[int, NoiseState] = field(default_factory=dict, init=False, repr=False)

    def fixed(self, index: int) -> NoiseState:
        if index not in self._made:
            groups = range(len(self.noises))
            state = NoiseState(tuple(self._fixed_set(index, g) for g in groups), index)
            self._made.clear()
            self._made[index] = state
        return self._made[index]

    def fixed_set(self, index: int, group: int) -> NoiseSet:
        """One group's part of ``fixed(index)``."""
        return self.fixed(index).sets[group]

    def __getstate__(self) -> dict[str, Any]:
        """Without noise points: whoever gets it makes them again."""
        return {**vars(self), "_made": {}}

    def _fixed_set(self, index: int, group: int) -> NoiseSet:
        noise, rng = self.noises[group], self._rng(index, group)
        with in_group(self.labels[group], len(self.labels)):
            return noise_set(noise, self.data[group], self.sizes[group], rng, self._rows())

    def fresh(self, rng: np.random.Generator) -> NoiseState:
        return NoiseState(self.sets(self.noises, [rng] * len(self.data)), -1)

    def _rng(self, index: int, group: int) -> np.random.Generator:
        # Keyed by set and group, so that neither depends on how many there are.
        return np.random.default_rng(
            np.random.SeedSequence(self.entropy, spawn_key=(0, index, group))
        )

    def sets(
        self, noises: Sequence[Noise], rngs: Sequence[np.random.Generator]
    ) -> tuple[NoiseSet, ...]:
        """A noise set for each group, from these distributions."""
        made, rows = [], self._rows()
        for g, label in enumerate(self.labels):
            with in_group(label, len(self.labels)):
                made.append(noise_set(noises[g], self.data[g], self.sizes[g], rngs[g], rows))
        return tuple(made)

    def _rows(self) -> FloatArray:
        """The points of all groups, since noise may be made from all of them."""
        return np.concatenate(self.data)


@dataclass(frozen=True)
class Problem:
    """Everything a chain needs, and nothing that it changes.

    ``losses``: for an engine that does without noise; the source then has none.
    """

    model: Model
    source: Source
    schedule: Schedule
    prior: Prior
    engine: Engine
    center: FloatArray | None = None
    losses: tuple[Loss, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups' names."""
        return self.source.labels

    @property
    def data(self) -> tuple[FloatArray, ...]:
        """The points, one array a group."""
        return self.source.data

    @property
    def noises(self) -> dict[str, Noise]:
        """The noise distribution of each group; empty without noise."""
        return dict(zip(self.labels, self.source.noises, strict=False))

    def renew(
        self, noise: NoiseState | None, segment: Segment, rng: np.random.Generator
    ) -> NoiseState:
        """The noise for the next sweep."""
        return self.schedule.renew(self.source, noise, segment, rng)

    def target(self, noise: NoiseState) -> Target:
        """The contrastive posterior against this noise, or what stands in its place without."""
        if self.losses:
            return Target((), self.prior, losses=self.losses)
        curve = getattr(self.model, "curve", None)
        if curve is not None:
            curves = tuple(map(curve, self.data, noise.sets))
            return Target((), self.prior, lasting=noise.index >= 0, curves=curves)
        contrasts = tuple(self.contrast(g, each) for g, each in enumerate(noise.sets))
        return Target(contrasts, self.prior, lasting=noise.index >= 0)

    def parameters(self, coef: FloatArray) -> dict[str, FloatArray]:
        """What the posterior is of: theta (..., statistic), and log_z (...) if coef holds c."""
        if coef.shape[-1] == len(statistic_names(self.model)):
            return {"theta": coef}
        return {"theta": coef[..., :-1], "log_z": self.log_z(coef)}

    def log_z(self, coef: FloatArray) -> FloatArray:
        """``log Z = -c`` of coef (..., coefficient), whose last entry is c + theta . center."""
        shift = 0.0 if self.center is None else coef[..., :-1] @ self.center
        return np.asarray(shift - coef[..., -1])

    def chain_rng(self, index: int) -> np.random.Generator:
        """The random numbers of chain ``index``, whatever the number of chains."""
        sequence = np.random.SeedSequence(self.source.entropy, spawn_key=(1, index))
        return np.random.default_rng(sequence)

    def adaptation_rng(self, *key: int) -> np.random.Generator:
        """Random numbers for what happens before the chains start, by step."""
        sequence = np.random.SeedSequence(self.source.entropy, spawn_key=(2, *key))
        return np.random.default_rng(sequence)

    def normalizer_rng(self, group: int) -> np.random.Generator:
        """Random numbers for working out log Z of one group, once the chains are there."""
        sequence = np.random.SeedSequence(self.source.entropy, spawn_key=(4, group))
        return np.random.default_rng(sequence)

    def verification_rng(self, group: int) -> np.random.Generator:
        """Random numbers for the look that a fit takes at itself, by group."""
        sequence = np.random.SeedSequence(self.source.entropy, spawn_key=(5, group))
        return np.random.default_rng(sequence)

    def contrast(self, group: int, noise: NoiseSet) -> Contrast:
        """The contrast of one group's data with this noise."""
        with in_group(self.labels[group], len(self.labels)):
            return contrast(self.model, self.data[group], noise, self.center)

    def contrast_near(self, group: int, noise: NoiseSet, coef: FloatArray) -> Contrast:
        """The contrast, or what is one near coef (coefficient,), with the same log odds there."""
        curve = getattr(self.model, "curve", None)
        if curve is None:
            return self.contrast(group, noise)
        design, offset, is_data = curve(self.data[group], noise).tangent(coef)
        return Contrast(design, offset, is_data)

    def against(self, noises: tuple[Noise, ...], sizes: tuple[int, ...] | None = None) -> Problem:
        """The same problem with other noise, and other numbers of noise points."""
        source = replace(self.source, noises=noises, sizes=sizes or self.source.sizes)
        return replace(self, source=source)


def noise_set(
    noise: Noise,
    data: FloatArray,
    size: int,
    rng: np.random.Generator,
    rows: FloatArray | None = None,
) -> NoiseSet:
    """``size`` noise points with log q there and at the data, checked.

    ``rows`` are the data of all groups, None: these. Noise that was made from them row by row
    leaves each of them out of the density at itself. Noise with ``folds(data, size)`` is many: the
    rows of a fold are set against that fold's noise alone. log q then holds what a fold's own ratio
    of noise to data differs from that of all.
    """
    rows = data if rows is None else rows
    folds = noise.folds(data, size) if hasattr(noise, "folds") else []
    if not folds:
        return _plain_set(noise, data, size, rng, rows)
    at_data, sets = np.empty(len(data)), []
    for fold, part, count in folds:
        each = _plain_set(part, data[fold], count, rng, data[fold])
        shift = np.log(count / len(fold)) - np.log(size / len(data))
        at_data[fold] = each.log_density_at_data + shift
        sets.append(replace(each, log_density=each.log_density + shift))
    return NoiseSet(
        np.concatenate([each.points for each in sets]),
        np.concatenate([each.log_density for each in sets]),
        at_data,
    )


def _plain_set(
    noise: Noise, data: FloatArray, size: int, rng: np.random.Generator, rows: FloatArray
) -> NoiseSet:
    points = np.asarray(noise.sample(size, rng), dtype=float)
    if points.shape != (size, data.shape[1]):
        raise InputError(
            f"{model_name(noise)}.sample must return {size} points of dimension {data.shape[1]} "
            f"like the data, got shape {points.shape}"
        )
    at_noise = _checked(noise, noise.log_density(points), points, "its own draws")
    at_data = _checked(noise, log_density_at_rows(noise, data, rows), data, "the data")
    return NoiseSet(points, at_noise, at_data)


def _checked(noise: Noise, found: object, points: FloatArray, where: str) -> FloatArray:
    """The log densities found at these points, if there is a finite one for each."""
    values = np.asarray(found, dtype=float)
    if values.shape != (len(points),):
        raise InputError(
            f"{model_name(noise)}.log_density must return one number a point, shape "
            f"({len(points)},), got shape {values.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        raise InputError(
            f"the noise {model_name(noise)} has log density {values[row]} at {len(bad)} of "
            f"{len(points)} points of {where} (first at row {row}: {points[row].tolist()}); noise "
            "must have positive density wherever there are data: choose a wider one"
        )
    return values
