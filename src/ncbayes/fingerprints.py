"""What a run is, by content: a checkpoint of another run must not be taken for this one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from ncbayes.base import NoiseState, Segment
from ncbayes.contrast import Target
from ncbayes.problem import Problem


def identity(
    problem: Problem, noise: NoiseState, target: Target, plan: Sequence[Segment]
) -> dict[str, Any]:
    """Hashes that change when data, model, noise, prior or engine change, and what made them."""
    state = problem.prior.draw(target.shape, np.random.default_rng(0))
    precision, shift = problem.prior.gaussian(state, target.shape)
    theta = np.linspace(0.5, 1.5, shift.size).reshape(shift.shape)
    updated = problem.prior.update(state, theta, np.random.default_rng(0))
    names = {key: list(names) for key, names in problem.model.groups.items()}
    points = [np.concatenate([d, s.points]) for d, s in zip(problem.data, noise.sets, strict=True)]
    return {
        "plan": [[segment.noise_set, segment.tune, segment.draws] for segment in plan],
        "groups of data": digest(list(problem.labels), problem.data, exact=True),
        "statistics of the model": digest(
            names,
            [problem.model.statistics(x[problem.model.space.contains(x)]) for x in points],
            [each.offset for each in target.contrasts],
        ),
        "noise points": digest(
            "",
            [each.points for each in noise.sets],
            [each.log_density for each in noise.sets],
            [each.log_density_at_data for each in noise.sets],
        ),
        "prior of theta": digest(
            sorted(state),
            [precision.within, shift],
            [] if precision.between is None else [precision.between],
            [state[name] for name in sorted(state)],
            [updated[name] for name in sorted(updated)],
        ),
        "settings of the engine": repr(sorted(vars(problem.engine).items()))
        if hasattr(problem.engine, "__dict__")
        else "",
        "versions": {name: version(name) for name in ("ncbayes", "numpy", "polyagamma")},
    }


def digest(text: object, *arrays: Iterable[Any], exact: bool = False) -> str:
    """A hash of names and numbers.

    Unless ``exact``, to six digits of the largest: another processor computes a cosine with
    another last bit, and that alone must not keep a run from being resumed.
    """
    found = hashlib.sha256(json.dumps(text).encode())
    for each in (each for group in arrays for each in group):
        array = np.asarray(each, dtype=float)
        found.update(repr(array.shape).encode())
        if not exact:
            largest = float(np.abs(array).max(initial=0.0)) or 1.0
            found.update(f"{largest:.6g}".encode())
            array = np.round(array / largest, 6) + 0.0  # + 0.0: no negative zeros
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
