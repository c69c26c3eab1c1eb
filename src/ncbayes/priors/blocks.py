"""The prior of all of coef: one prior a block of statistics, and one for the free normalizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, InputError, Precision, Prior, State, shown
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
        return {
            _key(part, name): value
            for part in self.parts
            for name, value in part.prior.update(
                _own(part, state), theta[:, part.start : part.stop], rng
            ).items()
        }

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
    normalizer: bool = True,
) -> Blocks:
    """The prior of coef from what the user passed: one prior of theta, or a mapping by block.

    Columns without a prior get ``default(start, stop)``; the key "normalizer" sets that of c.
    ``normalizer=False``: coef has no c.
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
    elif not chosen.keys() & groups.keys():
        parts = [Part("theta", default(0, total), 0, total)]
    else:
        parts, start = [], 0
        for name, names in groups.items():
            stop = start + len(names)
            own = _checked(name, chosen[name]) if name in chosen else default(start, stop)
            parts.append(Part(name, own, start, stop))
            start = stop
    if normalizer:
        own = _checked(NORMALIZER, chosen.get(NORMALIZER, NORMALIZER_PRIOR))
        parts.append(Part(NORMALIZER, own, total, total + 1))
    return Blocks(tuple(parts))


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


def _own(part: Part, state: State) -> State:
    prefix = _key(part, "")
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }
