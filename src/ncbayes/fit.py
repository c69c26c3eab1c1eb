"""The front door: validate -> contrast -> target -> chains -> Posterior."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ncbayes import engines, inputs
from ncbayes.base import FloatArray, InputError, Model, Noise, NoiseState, Prior, Schedule, shown
from ncbayes.checkpoints import RunFolder
from ncbayes.contrast import Engine, Target, model_name
from ncbayes.engines import Gibbs
from ncbayes.linalg import gaussian
from ncbayes.posterior import Posterior, Run, finish
from ncbayes.priors.blocks import blocks
from ncbayes.problem import Problem, Source
from ncbayes.progress import Progress

# Starting processes takes a second or two, so a run of less than this stays in one.
WORTH_PROCESSES_SECONDS = 4.0
# A Polya-Gamma draw and the elementwise work for one pooled point.
SECONDS_A_POINT = 2.5e-7


def fit(
    model: Model,
    data: Any,
    *,
    noise: Noise | Mapping[str, Noise] | Schedule | None = None,
    prior: Prior | Mapping[str, Prior] | None = None,
    noise_ratio: float = 1.0,
    engine: str | Engine = "auto",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    seed: inputs.Seed = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Posterior:
    """Fit an exponential family by contrast with noise: the paper's NC-Bayes.

    Parameters
    ----------
    model
        An object with ``space``, ``groups``, ``statistics(x)`` and ``log_base(x)``.
    data
        Points as rows: an array, list, pandas or polars frame; or a mapping from group labels to
        such, for one fit of several groups.
    noise
        A distribution, a mapping from group labels to distributions, or a schedule
        (``noise.Fixed``, ``Fresh``, ``Pooled``). None: fixed noise matched to the data.
    prior
        A prior of theta, or a mapping from blocks of statistics (the keys of ``model.groups``, and
        "normalizer") to priors. What is left out gets ``Normal(10 / sd of the statistic)``, and
        the normalizer N(0, 1000).
    noise_ratio
        Noise points for each data point; more noise, narrower posteriors, slower sweeps.
    engine
        "auto", "gibbs" or an engine such as ``engines.Gibbs(method="cholesky")``.
    draws, tune, chains
        Kept and discarded sweeps a chain, and the number of chains.
    cores
        Processes; None: as many as there are chains and cores, or one for a short run. The draws
        do not depend on it.
    seed
        A whole number or a NumPy Generator. The same seed gives the same draws.
    checkpoint
        A folder; the same call resumes a run that was killed, with the same draws.
    progress
        None: bars on a terminal, a line every ten seconds elsewhere; False: silence; or a
        function that is called with a ``ProgressEvent``.
    """
    counts = {
        "draws": inputs.checked_count("draws", draws, 1),
        "tune": inputs.checked_count("tune", tune, 0),
        "chains": inputs.checked_count("chains", chains, 1),
    }
    if cores is not None:
        inputs.checked_count("cores", cores, 1)
    model = inputs.checked_model(model)
    groups = inputs.checked_data(model, data)
    sizes = inputs.checked_sizes(noise_ratio, groups)
    schedule = inputs.checked_schedule(noise)
    plan = schedule.plan(counts["draws"], counts["tune"])
    each, together = inputs.needed_bytes(model, groups, sizes, counts["draws"], counts["chains"])
    processes = inputs.affordable_processes(
        each,
        together,
        min(counts["chains"], cores or os.cpu_count() or 1),
        inputs.available_bytes(),
        fixed=cores is not None,
    )
    progress = inputs.checked_progress(progress)
    path = inputs.checked_folder(checkpoint)
    folder = RunFolder(path) if path is not None else None
    entropy = inputs.checked_entropy(seed, _stored_seed(folder))
    noises = inputs.checked_noises(schedule.noise, model, groups)
    source = Source(tuple(groups), noises, tuple(groups.values()), sizes, entropy)
    problem, first, target = _problem(model, source, schedule, prior, engine)
    settings = {
        "model": model_name(model),
        "engine": model_name(problem.engine),
        "noise": ", ".join(dict.fromkeys(map(model_name, noises))),
        "schedule": type(schedule).__name__,
        "noise_ratio": float(noise_ratio),
        "seed": str(entropy),
        **counts,
    }
    if folder is not None:
        folder.claim({**settings, "plan": _plain(plan), **_fingerprints(problem, first, target)})
    if cores is None and _seconds(target, plan, counts["chains"]) < WORTH_PROCESSES_SECONDS:
        processes = 1
    return finish(
        Run(
            problem,
            plan,
            counts["chains"],
            counts["tune"],
            processes,
            folder,
            progress,
            settings,
        )
    )


def _problem(
    model: Model,
    source: Source,
    schedule: Schedule,
    prior: Any,
    engine: Any,
) -> tuple[Problem, NoiseState, Target]:
    """The problem with its first noise set and target, once they have passed every check."""
    first = source.fixed(0)
    draft = Problem(model, source, schedule, prior, _engine(engine))
    contrasts = draft.target(first).contrasts
    inputs.check_statistics(contrasts, model)
    sizes = {name: len(names) for name, names in model.groups.items()}
    full = blocks(prior, model.groups, sizes, inputs.default_priors(contrasts, model))
    problem = Problem(model, source, schedule, full, draft.engine)
    target = Target(contrasts, full)
    # A prior of the wrong length shows here, before any chain is started.
    full.gaussian(full.draw(target.shape, np.random.default_rng(0)), target.shape)
    return problem, first, target


def _engine(engine: Any) -> Engine:
    by_name = {name.lower(): getattr(engines, name) for name in engines.__all__}
    if isinstance(engine, str):
        if engine == "auto":
            return Gibbs()
        if engine in by_name:
            made: Engine = by_name[engine]()
            return made
    elif isinstance(engine, Engine) and not isinstance(engine, type):
        return engine
    allowed = ", ".join(repr(name) for name in ["auto", *by_name])
    raise InputError(
        f"engine must be one of {allowed} or an engine such as ncbayes.engines.Gibbs(), got "
        f"{shown(engine)}"
    )


def _stored_seed(folder: RunFolder | None) -> int | None:
    stored = folder.stored() if folder is not None else None
    return int(stored["seed"]) if stored is not None else None


def _seconds(target: Target, plan: Iterable[Any], chains: int) -> float:
    """A guess at the time of all sweeps in one process."""
    designs = [each.design for each in target.contrasts]
    shapes = tuple(design.shape for design in designs)
    flops = float(sum(design.matvec_flops for design in designs))
    method = gaussian.choose_method(shapes, flops, False, True)
    sweep = gaussian.predicted_seconds(method, shapes, flops)
    sweep += SECONDS_A_POINT * sum(rows for rows, _ in shapes)
    sweeps = chains * sum(segment.tune + segment.draws for segment in plan)
    return float(sweep * sweeps)


def _plain(plan: Iterable[Any]) -> list[list[int]]:
    return [[segment.noise_set, segment.tune, segment.draws] for segment in plan]


def _fingerprints(problem: Problem, noise: NoiseState, target: Target) -> dict[str, str]:
    """What the run is, by content: hashes that change when data, model, noise or prior change."""
    state = problem.prior.draw(target.shape, np.random.default_rng(0))
    precision, shift = problem.prior.gaussian(state, target.shape)
    updated = problem.prior.update(state, np.ones(target.shape), np.random.default_rng(0))
    statistics = [
        values
        for data in problem.data
        for values in (problem.model.statistics(data[:1000]), problem.model.log_base(data[:1000]))
    ]
    return {
        "groups of data": _digest(list(problem.labels), problem.data),
        "statistics of the model": _digest(
            {key: list(names) for key, names in problem.model.groups.items()}, statistics
        ),
        "noise points": _digest(
            "", [array for each in noise.sets for array in (each.points, each.log_density)]
        ),
        "prior of theta": _digest(
            sorted(state),
            [
                precision.within,
                shift,
                *(() if precision.between is None else (precision.between,)),
                *(state[name] for name in sorted(state)),
                *(updated[name] for name in sorted(updated)),
            ],
        ),
    }


def _digest(text: object, arrays: Iterable[FloatArray]) -> str:
    digest = hashlib.sha256(json.dumps(text).encode())
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
    return digest.hexdigest()
