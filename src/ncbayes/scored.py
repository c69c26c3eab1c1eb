"""A fit without noise: model and data become score losses, and those a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ncbayes.base import FloatArray, Model, in_group
from ncbayes.checkpoints import RunFolder
from ncbayes.conditioning import default_prior
from ncbayes.contrast import Engine, data_alone, model_name, statistic_names
from ncbayes.fingerprints import identity
from ncbayes.noise.schedules import Fixed
from ncbayes.posterior import Run
from ncbayes.priors.blocks import blocks
from ncbayes.problem import Problem, Source
from ncbayes.progress import Progress
from ncbayes.resources import ScoreSize, affordable_processes
from ncbayes.score import ScoreLoss, check_scores, score_loss
from ncbayes.threads import single_threaded


def scored_run(
    model: Model,
    data: Mapping[str, FloatArray],
    prior: Any,
    engine: Engine,
    entropy: int,
    counts: Mapping[str, int],
    cores: int | None,
    folder: RunFolder | None,
    progress: Progress,
) -> Run:
    """The run, not begun; ``counts`` holds draws, tune and chains."""
    draws, tune, chains = (counts[name] for name in ("draws", "tune", "chains"))
    names = statistic_names(model)
    size = ScoreSize(tuple(map(len, data.values())), len(names), model.space.dimension)
    affordable_processes(size, draws, chains, cores)
    plan = Fixed().plan(draws, tune)
    with single_threaded():
        problem = _problem(model, data, prior, engine, entropy)
        settings = {
            "model": model_name(model),
            "engine": model_name(engine),
            "learning_rate": float(getattr(engine, "learning_rate", 1.0)),
            "seed": str(entropy),
            **counts,
        }
        if folder is not None:
            none = problem.source.fixed(0)
            folder.claim({**settings, **identity(problem, none, problem.target(none), plan)})
    return Run(problem, plan, chains, tune, cores, size, folder, progress, settings)


def _problem(
    model: Model, data: Mapping[str, FloatArray], prior: Any, engine: Engine, entropy: int
) -> Problem:
    """The problem, once it has passed every check."""
    losses, alone = [], []
    for label, points in data.items():
        with in_group(label, len(data)):
            alone.append(data_alone(model, points))
            losses.append(score_loss(model, points))
    default = partial(default_prior, model, alone)
    full = blocks(prior, model.groups, default, model, normalizer=False)
    full.check(len(losses))
    source = Source(tuple(data), (), tuple(data.values()), (), entropy)
    problem = Problem(model, source, Fixed(), full, engine, losses=tuple(losses))
    _check(problem, losses)
    return problem


def _check(problem: Problem, losses: list[ScoreLoss]) -> None:
    """Each group by itself, or all together where the prior couples them."""
    names, owner = statistic_names(problem.model), model_name(problem.model)
    shape = len(losses), len(names)
    state = problem.prior.draw(shape, np.random.default_rng(0))
    if problem.prior.gaussian(state, shape)[0].between is not None:
        check_scores(losses, names, owner)
        return
    for label, each in zip(problem.labels, losses, strict=True):
        with in_group(label, len(losses)):
            check_scores((each,), names, owner)
