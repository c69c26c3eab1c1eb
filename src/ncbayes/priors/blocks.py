"""The prior of all of coef: one prior a block of statistics, and one for the free normalizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ncbayes.base import (
    Clusters,
    FloatArray,
    InputError,
    Precision,
    Prior,
    Shrinkage,
    State,
    shown,
)
from ncbayes.priors.normal import Normal

NORMALIZER = "normalizer"
# The paper's N(0, 1000): flat wherever a log normalizer of a sensibly scaled model can be.
NORMALIZER_PRIOR = Normal(scale=1000.0**0.5)


@dataclass(frozen=True)
class Part:
    """The prior of the columns ``start`` to ``stop`` of coef; ``name`` prefixes its scales."""

    name: str
    prior: Prior
    start: int
    stop: int


@dataclass(frozen=True)
class Blocks:
    """Independent priors side by side; a Prior of coef (group, coefficient)."""

    parts: tuple[Part, ...]

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        return {
            _key(part, name): value
            for part in self.parts
            for name, value in part.prior.draw((shape[0], part.stop - part.start), rng).items()
        }

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        pieces = [
            part.prior.gaussian(_own(part, state), (shape[0], part.stop - part.start))
            for part in self.parts
        ]
        precisions = [precision for precision, _ in pieces]
        shift = np.concatenate([shift for _, shift in pieces], axis=1)
        return Precision(self._within(precisions, shape), self._between(precisions, shape)), shift

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        moved: dict[str, FloatArray] = {}
        for part in self.parts:
            columns = theta[:, part.start : part.stop]
            moved |= _named(part, part.prior.update(_own(part, state), columns, rng))
        return moved

    @cached_property
    def shrinking(self) -> tuple[tuple[Part, Shrinkage], ...]:
        """The parts whose local scales can be drawn together with their coefficients."""
        return tuple((part, part.prior) for part in self.parts if isinstance(part.prior, Shrinkage))

    def clusters(self, state: State, shape: tuple[int, int]) -> Clusters | None:
        """The runs of all shrinking parts, in columns of coef; None without any."""
        if not self.shrinking:
            return None
        found = [
            (part, prior.clusters(_own(part, state), (shape[0], part.stop - part.start)))
            for part, prior in self.shrinking
        ]
        if len(found) == 1:
            part, each = found[0]
            return replace(each, starts=part.start + each.starts)
        return Clusters(
            np.concatenate([part.start + each.starts for part, each in found]),
            np.concatenate([each.sizes for _, each in found]),
            np.concatenate([each.log_local for _, each in found], axis=1),
            np.concatenate([each.multiplier for _, each in found]),
            np.concatenate([each.slab for _, each in found]),
            np.concatenate([each.fictitious for _, each in found]),
        )

    def relocated(self, state: State, log_local: FloatArray) -> State:
        moved, column = dict(state), 0
        for part, prior in self.shrinking:
            own, stop = _own(part, state), log_local.shape[1]
            if len(self.shrinking) > 1:
                shape = (len(log_local), part.stop - part.start)
                stop = column + prior.clusters(own, shape).sizes.size
            moved |= _named(part, prior.relocated(own, log_local[:, column:stop]))
            column = stop
        return moved

    def update_global(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        """The global scales of shrinking parts, and all scales of the others."""
        moved = dict(state)
        names = {part.name for part, _ in self.shrinking}
        for part in self.parts:
            own, columns = _own(part, state), theta[:, part.start : part.stop]
            update = (
                part.prior.update_global  # type: ignore[attr-defined]
                if part.name in names
                else part.prior.update
            )
            moved |= _named(part, update(own, columns, rng))
        return moved

    def rescaled(self, state: State, value: float) -> State:
        moved = dict(state)
        for part, prior in self.shrinking:
            moved |= _named(part, prior.rescaled(_own(part, state), value))
        return moved

    def check(self, groups: int) -> None:
        """InputError if a part is not a prior of its columns."""
        for part in self.parts:
            shape = (groups, part.stop - part.start)
            state = part.prior.draw(shape, np.random.default_rng(0))
            precision, shift = part.prior.gaussian(state, shape)
            _check_gaussian(part.name, precision, np.asarray(shift), shape)

    def _within(self, precisions: list[Precision], shape: tuple[int, int]) -> FloatArray:
        if all(precision.within.ndim == 2 for precision in precisions):
            return np.concatenate([precision.within for precision in precisions], axis=1)
        within = np.zeros((*shape, shape[1]))
        for part, precision in zip(self.parts, precisions, strict=True):
            columns = np.arange(part.start, part.stop)
            if precision.within.ndim == 2:
                within[:, columns, columns] = precision.within
            else:
                within[:, columns[:, None], columns] = precision.within
        return within

    def _between(self, precisions: list[Precision], shape: tuple[int, int]) -> FloatArray | None:
        if all(precision.between is None for precision in precisions):
            return None
        between = np.zeros((shape[0] - 1, shape[1]))
        for part, precision in zip(self.parts, precisions, strict=True):
            if precision.between is not None:
                between[:, part.start : part.stop] = precision.between
        return between


def blocks(
    prior: Prior | Mapping[str, Prior] | None,
    groups: Mapping[str, Sequence[str]],
    default: Callable[[int, int], Prior],
    model: Any = None,
    normalizer: bool = True,
    units: Callable[[], FloatArray] | None = None,
) -> Blocks:
    """The prior of coef from what the user passed: one prior of theta, or a mapping by block.

    Columns without a prior get ``default(start, stop)``; the key "normalizer" sets that of c.
    Priors that ask for it (``bound``) are told which columns of which model are theirs.
    ``normalizer=False``: coef has no c. ``units``: how much of theta counts as one, by statistic,
    for priors whose scales are in these (``in_units``).
    """
    chosen = dict(prior) if isinstance(prior, Mapping) else {}
    known = [*groups, NORMALIZER] if normalizer else list(groups)
    if NORMALIZER in chosen and not normalizer:
        raise InputError(
            f"prior has a block {NORMALIZER!r}, but without noise there is no normalizing "
            f"constant to estimate; leave it out, allowed are {', '.join(map(repr, known))}"
        )
    unknown = [name for name in chosen if name not in known]
    if unknown:
        allowed = ", ".join(map(repr, known))
        raise InputError(f"prior has an unknown block {shown(unknown[0])}; allowed are {allowed}")
    total = sum(len(names) for names in groups.values())
    if prior is not None and not isinstance(prior, Mapping):
        parts = [Part("theta", _checked("theta", prior), 0, total)]
    elif not chosen.keys() & groups.keys() and not _has_edge_block(model):
        parts = [Part("theta", default(0, total), 0, total)]
    else:
        parts, start = [], 0
        for name, names in groups.items():
            stop = start + len(names)
            own = _checked(name, chosen[name]) if name in chosen else default(start, stop)
            parts.append(Part(name, own, start, stop))
            start = stop
    parts = [
        Part(part.name, part.prior.bound(model, part.start, part.stop), part.start, part.stop)
        if hasattr(part.prior, "bound")
        else part
        for part in parts
    ]
    if units is not None and any(hasattr(part.prior, "in_units") for part in parts):
        parts = [_in_units(part, units()[part.start : part.stop]) for part in parts]
    if normalizer:
        own = _checked(NORMALIZER, chosen.get(NORMALIZER, NORMALIZER_PRIOR))
        parts.append(Part(NORMALIZER, own, total, total + 1))
    return Blocks(tuple(parts))


def _in_units(part: Part, units: FloatArray) -> Part:
    prior: Any = part.prior
    own = prior.in_units(units) if hasattr(prior, "in_units") else prior
    return Part(part.name, own, part.start, part.stop)


def _has_edge_block(model: Any) -> bool:
    """Whether edges have statistics of their own, one each, whose default prior differs."""
    return hasattr(model, "edge_units")


def _checked(name: str, prior: object) -> Prior:
    if isinstance(prior, type) or not isinstance(prior, Prior):
        raise InputError(
            f"the prior of {name} must be one such as ncbayes.priors.Normal(1), got {shown(prior)}"
        )
    return prior


def _check_gaussian(
    name: str, precision: Precision, shift: FloatArray, shape: tuple[int, int]
) -> None:
    within, between = np.asarray(precision.within), precision.between
    wanted = {shape, (*shape, shape[1])}
    coupling = (shape[0] - 1, shape[1]) if between is None else np.shape(between)
    if within.shape not in wanted or shift.shape != shape or coupling != (shape[0] - 1, shape[1]):
        raise InputError(
            f"the prior of {name} must return a precision of shape {shape} or "
            f"{(*shape, shape[1])} and a shift of shape {shape}, got {within.shape} and "
            f"{shift.shape}; see ncbayes.testing.check_prior"
        )
    diagonal = within if within.ndim == 2 else np.einsum("gii->gi", within)
    finite = all(
        np.isfinite(each).all() for each in (within, shift, 0 if between is None else between)
    )
    if not finite or not (diagonal >= 0).all():
        raise InputError(
            f"the prior of {name} returns a precision or shift that is not finite, or a negative "
            "precision; see ncbayes.testing.check_prior"
        )


def _key(part: Part, name: str) -> str:
    return f"{part.name}.{name}"


def _named(part: Part, state: State) -> State:
    return {_key(part, name): value for name, value in state.items()}


def _own(part: Part, state: State) -> State:
    prefix = _key(part, "")
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }
