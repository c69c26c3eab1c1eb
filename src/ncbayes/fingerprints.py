"""What a run is, by content: a checkpoint of another run must not be taken for this one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, NoiseState, Segment
from ncbayes.contrast import Target
from ncbayes.problem import Problem

# Statistics that are hashed; more would take longer to make than the first sweeps.
MOST_ENTRIES = 4_000_000


def identity(
    problem: Problem, noise: NoiseState, target: Target, plan: Sequence[Segment]
) -> dict[str, Any]:
    """Hashes that change when data, model, noise, prior or engine change, and what made them."""
    from importlib.metadata import version

    names = {key: list(names) for key, names in problem.model.groups.items()}
    points = list(problem.data)
    for g, each in enumerate(noise.sets):
        points[g] = np.concatenate([points[g], each.points])
    losses = [array for each in target.losses for array in each.arrays]
    return {
        "plan": [[segment.noise_set, segment.tune, segment.draws] for segment in plan],
        "groups of data": digest(list(problem.labels), problem.data, as_is),
        "statistics of the model": digest(
            names,
            [_some_statistics(problem, x) for x in points]
            + [each.offset for each in target.contrasts]
            + losses,
            by_column,
        ),
        "noise points": noise_digest(noise),
        "prior of theta": _prior(problem, target),
        "settings of the engine": described(problem.engine),
        "versions": {
            name: version(name)
            for name in ("ncbayes", "numpy", "polyagamma", *getattr(problem.engine, "packages", ()))
        },
    }


def _some_statistics(problem: Problem, points: FloatArray) -> FloatArray:
    """The statistics at the points, or at as many of them as a large model has time for."""
    inside = points[problem.model.space.contains(points)]
    columns = sum(map(len, problem.model.groups.values()))
    return problem.model.statistics(inside[: max(1, MOST_ENTRIES // columns)])


def asked_of(making: Any, noise_ratio: float | None) -> dict[str, str]:
    """What was asked of noise to be made; the noise itself is compared once it is there."""
    values = dict(vars(making))
    for name in ("noise", "base"):
        if name in values and not isinstance(values[name], str | None):
            values[name] = type(values[name]).__name__
    return {"settings of the noise": str(values), "noise_ratio as given": str(noise_ratio)}


def noise_digest(noise: NoiseState) -> str:
    """A hash of noise points and their densities."""
    arrays = [array for each in noise.sets for array in vars(each).values()]
    return digest("", arrays, by_column)


def _prior(problem: Problem, target: Target) -> str:
    """A prior by what it does to a state and to a theta."""
    state = problem.prior.draw(target.shape, np.random.default_rng(0))
    precision, shift = problem.prior.gaussian(state, target.shape)
    theta = np.linspace(0.5, 1.5, shift.size).reshape(shift.shape)
    updated = problem.prior.update(state, theta, np.random.default_rng(0))
    diagonal = precision.within
    correlation = np.zeros(0)
    if precision.within.ndim == 3:
        diagonal = np.einsum("gii->gi", precision.within)
        roots = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        correlation = np.round(precision.within / roots[:, :, None] / roots[:, None, :], 6)
    between = np.zeros(0) if precision.between is None else precision.between
    arrays = [diagonal, correlation, between, shift]
    arrays += [each[name] for each in (state, updated) for name in sorted(each)]
    return digest(sorted(state), arrays, by_entry)


def digest(text: object, arrays: Iterable[Any], rounded: Callable[[FloatArray], FloatArray]) -> str:
    """A hash of names and numbers, the latter ``rounded``.

    Another processor computes a cosine with another last bit, and that alone must not keep a run
    from being resumed.
    """
    found = hashlib.sha256(json.dumps(text).encode())
    for each in arrays:
        array = np.asarray(each, dtype=float)
        found.update(repr(array.shape).encode())
        # Adding zero makes negative zeros positive.
        found.update(np.ascontiguousarray(rounded(array) + 0.0).tobytes())
    return found.hexdigest()


def as_is(array: FloatArray) -> FloatArray:
    """Every bit: what the user passed."""
    return array


def by_entry(array: FloatArray) -> FloatArray:
    """Six digits of each entry."""
    mantissa, exponent = np.frexp(array)
    return np.asarray(np.ldexp(np.round(mantissa, 6), exponent))


def by_column(array: FloatArray) -> FloatArray:
    """Six digits of the largest entry of each column, and six digits of that one."""
    if array.size == 0:
        return array
    largest = np.abs(array).max(axis=0, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0)
    return np.concatenate([np.round(array / scale, 6), by_entry(largest)])


def described(value: object) -> str:
    """A value in words that do not change from one process to the next."""
    if isinstance(value, np.ndarray):
        return (
            digest(str(value.dtype), [value], as_is) if value.dtype.kind in "biuf" else str(value)
        )
    if type(value).__repr__ is not object.__repr__:
        own = "" if isinstance(value, type) else repr(value)
        return f"{type(value).__name__} {own}"
    names = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
    parts = {name: described(getattr(value, name, None)) for name in sorted(names)}
    return f"{type(value).__name__} {parts}"
