"""The fit of an energy: checked, set against noise, and run by NUTS.

One that is linear in its parameters is an exponential family, and runs as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ncbayes.autodiff import double_precision, jax_module
from ncbayes.base import FloatArray, InputError, NoiseSet, Schedule, in_group, shown
from ncbayes.checkpoints import RunFolder
from ncbayes.contrast import Engine, model_name
from ncbayes.energies import Energy
from ncbayes.engines import Joint, Nuts, joint
from ncbayes.fingerprints import asked_of, identity
from ncbayes.inputs import (
    check_consistency,
    checked_noises,
    checked_sizes,
)
from ncbayes.noise.adaptive import Adaptive
from ncbayes.posterior import Run
from ncbayes.priors.blocks import blocks
from ncbayes.problem import Problem, Source
from ncbayes.progress import Progress
from ncbayes.resources import Size, affordable_processes
from ncbayes.threads import single_threaded

# Parameters that are looked at one by one.
MOST_CHECKED = 100
VMAP = "jax.vmap(log_density, (None, 0))"


def energy_run(
    energy: Energy,
    data: Mapping[str, FloatArray],
    schedule: Schedule,
    making: Any,
    prior: Any,
    noise_ratio: float | None,
    engine: Engine | None,
    entropy: int,
    counts: Mapping[str, int],
    cores: int | None,
    folder: RunFolder | None,
    progress: Progress,
) -> Run:
    """The run, not begun; ``counts`` holds draws, tune and chains. No engine: the best there is.

    ``making`` is automatic noise, to be chosen before the run begins; None: the schedule's own.
    """
    draws, tune, chains = (counts[name] for name in ("draws", "tune", "chains"))
    if prior is not None:
        raise InputError(
            f"the priors of an Energy stand in its params, got prior={shown(prior)}; leave prior "
            "out, and give the parameters other priors"
        )
    if isinstance(making, Adaptive):
        raise InputError(
            f"noise={shown(making)} needs an exponential family, and an Energy is none; use "
            '"auto", "matched", a distribution such as ncbayes.noise.gaussian_mixture(data), or '
            "ncbayes.noise.Pooled()"
        )
    sizes = checked_sizes(noise_ratio, data)
    rows = tuple(len(points) + m for points, m in zip(data.values(), sizes, strict=True))
    size = Size(rows, len(energy.start), energy.space.dimension, structured=False)
    affordable_processes(size, draws, chains, cores)
    plan = schedule.plan(draws, tune)
    with single_threaded():
        problem = _problem(energy, data, schedule, sizes, engine, entropy, tune)
        noises = problem.source.noises
        settings = {
            "model": model_name(energy),
            "engine": model_name(problem.engine),
            "noise": ", ".join(dict.fromkeys(map(model_name, noises))),
            "schedule": type(making or schedule).__name__,
            "noise_ratio": 1.0 if noise_ratio is None else float(noise_ratio),
            "seed": str(entropy),
            **counts,
        }
        if folder is not None:
            shapes = str([leaf.parameter.shape for leaf in energy.leaves])
            first = problem.source.fixed(0)
            same = identity(problem, first, problem.target(first), plan)
            asked = {} if making is None else asked_of(making, noise_ratio)
            folder.claim({**settings, **asked, "shapes of the parameters": shapes, **same})
    return Run(problem, plan, chains, tune, cores, size, folder, progress, settings)


def _problem(
    energy: Energy,
    data: Mapping[str, FloatArray],
    schedule: Schedule,
    sizes: tuple[int, ...],
    engine: Engine | None,
    entropy: int,
    tune: int,
) -> Problem:
    """The problem, once it has passed every check."""
    noises = checked_noises(schedule.noise, energy, data)
    check_consistency(noises if schedule.noise is not None else (), energy.space, entropy)
    source = Source(tuple(data), noises, tuple(data.values()), sizes, entropy)
    for points, noise, label in zip(source.data, source.fixed(0).sets, data, strict=True):
        with in_group(label, len(data)):
            check_energy(energy, points, noise)
    full = blocks(energy.priors, energy.groups, _no_default, energy)
    full.check(len(data))
    problem = Problem(energy, source, schedule, full, engine or Nuts().adapting(tune))
    if isinstance(engine, Nuts):
        return problem
    target = problem.target(source.fixed(0))
    lasts = getattr(schedule, "lasting", False)
    if lasts and joint.usable(target) and all(each.is_linear() for each in target.curves):
        return replace(problem, engine=Joint(tune))
    if engine is not None:
        raise InputError(
            "engine 'joint' is for an Energy whose log_density is linear in all of its parameters, "
            "with noise that stays and priors of ncbayes.priors; leave engine out"
        )
    return problem


def _no_default(start: int, stop: int) -> Any:
    raise AssertionError("every parameter of an Energy has a prior")


def check_energy(energy: Energy, data: FloatArray, noise: NoiseSet) -> None:
    """Refuse a function that is not a JAX function (n, d) -> (n,), finite and differentiable."""
    inside = energy.inside(noise.points)
    if not inside.any():
        raise InputError(
            f"none of the {len(inside)} noise points lies in {energy.space}, so noise and data "
            "cannot be compared; choose noise on the space of the Energy"
        )
    points = np.concatenate([data, noise.points[inside]])
    values = _values(energy, points)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        where = f"row {row} of the data" if row < len(data) else "a noise point"
        raise InputError(
            f"log_density is {values[row]} at {where} ({points[row].tolist()}) with the parameters "
            "at their starting values; it must be finite all over the space: change the function, "
            "the space or initial=..."
        )
    _check_gradient(energy, points)


def _values(energy: Energy, points: FloatArray) -> FloatArray:
    jax = jax_module("Energy")
    try:
        with double_precision():
            # Under jit, as it will run; NumPy functions fail here.
            values = jax.jit(energy.flat_log_density)(energy.start, points)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise InputError(
            "log_density can't be compiled by JAX; use jax.numpy for numpy, and jnp.where for if "
            f"({_first_line(error)})"
        ) from error
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise InputError(
            f"log_density(params, x) fails for x of shape {points.shape}: "
            f"{type(error).__name__}: {_first_line(error)}; it gets all points at once (a function "
            f"of one point becomes such by {VMAP}), and params as in Energy(..., params)"
        ) from error
    shape = getattr(values, "shape", None)
    if shape != (len(points),):
        got = shown(values) if shape is None else f"shape {shape}"
        raise InputError(
            f"log_density(params, x) must return one number a point, shape ({len(points)},) for x "
            f"of shape {points.shape}, got {got}; a function of one point becomes such by {VMAP}"
        )
    if values.dtype.kind != "f":
        raise InputError(
            f"log_density must return real numbers that can be differentiated, got {values.dtype}; "
            "multiply by 1.0 what is whole, and compute with real parameters"
        )
    return np.asarray(values, dtype=float)


def _check_gradient(energy: Energy, points: FloatArray) -> None:
    jax = jax_module("Energy")
    # Away from the starting values, where a symmetry may make derivatives vanish.
    row = energy.start + energy.spread * np.random.default_rng(0).standard_normal(len(energy.start))

    def spread(params: Any) -> Any:
        values = energy.flat_log_density(params, points)
        return values @ np.random.default_rng(1).standard_normal(len(points))

    with double_precision():
        gradient = np.asarray(jax.jit(jax.grad(spread))(row), dtype=float)
    bad = np.flatnonzero(~np.isfinite(gradient))
    if len(bad):
        names = [name for names in energy.groups.values() for name in names]
        raise InputError(
            f"the derivative of log_density by {names[bad[0]]!r} is {gradient[bad[0]]} near the "
            "starting values; keep functions such as sqrt, log and division away from where they "
            "have no derivative, also in the branch that jnp.where does not take"
        )
    _check_constants(energy, points, row, gradient)
    if not gradient.any():
        raise InputError(
            "log_density does not change with any of its parameters near the starting values, so "
            "there is nothing to learn; rounding, comparisons and whole numbers have no derivative"
        )


def _check_constants(
    energy: Energy, points: FloatArray, row: FloatArray, gradient: FloatArray
) -> None:
    """Refuse a number that is only added to log_density: log Z takes it away again."""
    jax = jax_module("Energy")
    names = [name for names in energy.groups.values() for name in names]
    with double_precision():
        slope = jax.jit(lambda way: jax.jvp(
            lambda each: energy.flat_log_density(each, points), (row,), (way,))[1])  # fmt: skip
        # Few: one pass each, and networks have thousands that are no constants.
        for k in np.flatnonzero(gradient)[:MOST_CHECKED]:
            values = np.asarray(slope(np.eye(1, len(row), k)[0]), dtype=float)
            if np.ptp(values) <= 1e-10 * np.abs(values).max():
                raise InputError(
                    f"the parameter {names[k]!r} adds the same number to log_density at every "
                    "point, which the normalizing constant takes away again; leave it out"
                )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
