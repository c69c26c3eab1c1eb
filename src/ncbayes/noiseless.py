"""A fit without noise: model and data become losses of the kind an engine asks for, those a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ncbayes import conditionals, exact, score, simulated
from ncbayes.base import FloatArray, InputError, Model, in_group, shown
from ncbayes.checkpoints import RunFolder
from ncbayes.conditioning import default_prior, units
from ncbayes.contrast import Engine, Loss, data_alone, model_name, statistic_names
from ncbayes.fingerprints import identity
from ncbayes.identifiability import is_proper
from ncbayes.noise.schedules import Fixed
from ncbayes.posterior import Run
from ncbayes.priors.blocks import blocks
from ncbayes.problem import Problem, Source
from ncbayes.progress import Progress
from ncbayes.resources import ScoreSize, affordable_processes
from ncbayes.threads import single_threaded


def _fine(losses: Sequence[Any], names: Sequence[str], owner: str) -> None:
    """Nothing that is worth a word."""


def _nothing(rows: Sequence[int], statistics: int, dimension: int) -> float:
    return 0.0


@dataclass(frozen=True)
class Kind:
    """A likelihood without noise.

    ``name`` is how users hear of it; ``made`` makes the loss of one group's data; ``check`` looks
    at the losses, names of statistics and model; ``held`` tells the bytes of what it holds;
    ``least`` rows a group are enough.
    """

    name: str
    made: Callable[[Model, FloatArray, np.random.Generator], Loss]
    check: Callable[[Sequence[Any], Sequence[str], str], None] = _fine
    held: Callable[[Sequence[int], int, int], float] = _nothing
    least: int = 1


# By the attribute ``likelihood`` of engines.
KINDS = {
    "score": Kind("the Hyvarinen score", score.score_loss, score.check_scores, least=2),
    "exact": Kind("the exact likelihood", exact.exact_loss),
    "simulated": Kind("the likelihood by exchange", simulated.simulated_loss),
    "conditionals": Kind(
        "the pseudolikelihood",
        conditionals.conditionals_loss,
        conditionals.check_changes,
        conditionals.held_bytes,
    ),
}


def noiseless_run(
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
    kind = _kind(engine)
    rows, statistics = tuple(map(len, data.values())), len(statistic_names(model))
    dimension = model.space.dimension
    held = kind.held(rows, statistics, dimension)
    size = ScoreSize(rows, statistics, dimension, held)
    affordable_processes(size, draws, chains, cores)
    plan = Fixed().plan(draws, tune)
    with single_threaded():
        problem, unseen = _problem(model, data, prior, engine, kind, entropy)
        settings = {
            "model": model_name(model),
            "engine": model_name(engine),
            "likelihood": kind.name,
            "learning_rate": float(getattr(engine, "learning_rate", 1.0)),
            "seed": str(entropy),
            **counts,
        }
        if folder is not None:
            none = problem.source.fixed(0)
            folder.claim({**settings, **identity(problem, none, problem.target(none), plan)})
    settings |= {"unseen": "\n".join(unseen)} if unseen else {}
    return Run(problem, plan, chains, tune, cores, size, folder, progress, settings)


def least_rows(engine: object) -> int:
    """How many rows of data a group needs, at least."""
    likelihood = getattr(engine, "likelihood", None)
    return KINDS[likelihood].least if isinstance(likelihood, str) and likelihood in KINDS else 2


def _kind(engine: Any) -> Kind:
    if engine.likelihood not in KINDS:
        raise InputError(
            f"likelihood of the engine {model_name(engine)} must be one of "
            f"{', '.join(map(repr, KINDS))}, got {shown(engine.likelihood)}"
        )
    return KINDS[engine.likelihood]


def _problem(
    model: Model,
    data: Mapping[str, FloatArray],
    prior: Any,
    engine: Engine,
    kind: Kind,
    entropy: int,
) -> tuple[Problem, list[str]]:
    """The problem, once it has passed every check, and what its data do not tell apart."""
    losses, alone = [], []
    for g, (label, points) in enumerate(data.items()):
        rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(2, g)))
        with in_group(label, len(data)):
            alone.append(data_alone(model, points))
            losses.append(kind.made(model, points, rng))
    default = partial(default_prior, model, alone)
    full = blocks(
        prior, model.groups, default, model, normalizer=False, units=partial(units, model, alone)
    )
    full.check(len(losses))
    source = Source(tuple(data), (), tuple(data.values()), (), entropy)
    problem = Problem(model, source, Fixed(), full, engine, losses=tuple(losses))
    return problem, _unseen(problem, losses, kind)


def _unseen(problem: Problem, losses: list[Loss], kind: Kind) -> list[str]:
    """What each group by itself does not tell apart, or all together where the prior couples them.

    An InputError where the prior is flat: then there is no posterior.
    """
    names, owner = statistic_names(problem.model), model_name(problem.model)
    shape = len(losses), len(names)
    state = problem.prior.draw(shape, np.random.default_rng(0))
    precision = problem.prior.gaussian(state, shape)[0]
    parts: list[tuple[str, Sequence[Loss]]] = [("", losses)]
    if precision.between is None:
        parts = [(label, (each,)) for label, each in zip(problem.labels, losses, strict=True)]
    lines = []
    for label, part in parts:
        try:
            with in_group(label, len(parts)):
                kind.check(part, names, owner)
        except InputError as unseen:
            if not is_proper(precision):
                raise
            lines.append(f"{unseen}; until then its posterior is the prior's")
    return lines
