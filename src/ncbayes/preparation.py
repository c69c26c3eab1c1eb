"""Noise that is made before the chains start: adapted to the model, or chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.adaptation import adapt
from ncbayes.base import InputError, Noise, shown
from ncbayes.chains import before_chains
from ncbayes.checkpoints import RunFolder
from ncbayes.choice import choose, ratios
from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.auto import Auto
from ncbayes.noise.consistency import complaint
from ncbayes.noise.distributions import Mixture
from ncbayes.noise.model_part import ModelPart, simulates
from ncbayes.noise.tempered import Annealed
from ncbayes.problem import Problem
from ncbayes.progress import Progress
from ncbayes.rounds import BATCHES
from ncbayes.threads import single_threaded

# Draws of the check, and the key of its random numbers, beyond those of any update.
CHECKED_DRAWS = 16_000
SWEEP_CHECK = 1_000_000
# The file of a checkpoint that tells which noise ratio the memory allowed.
MEMORY = "memory.npz"


@dataclass(frozen=True)
class Prepared:
    """A problem with its noise made, the record of the updates, and what to say of it."""

    problem: Problem
    noise_ratio: float
    record: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    candidates: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    rounds: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def prepare(
    problem: Problem,
    noise: Adaptive | Auto,
    noise_ratio: float | None,
    sweeps: tuple[int, int],
    is_affordable: Callable[[float], bool],
    folder: RunFolder | None,
    progress: Progress,
) -> Prepared:
    """Adapt or choose the noise.

    ``sweeps`` are the run's tune and draws, ``is_affordable`` tells whether memory holds the run
    with some noise ratio.
    """
    if isinstance(noise, Adaptive):
        updates = noise.update_count(sweeps[0])
        with before_chains((updates + 1) * noise.batch, progress) as report:
            done = adapt(problem, noise, updates, folder, report)
        made = problem.against(done.noises)
        check_sweep(made)
        assert noise_ratio is not None  # only automatic noise leaves it open
        return Prepared(made, noise_ratio, done.record)
    trials = noise.trial_count(problem.model.space, twice=hasattr(problem.model, "curve"))
    if simulates(problem.model):
        trials = BATCHES * noise.rounds
    with before_chains(trials * noise.batch, progress) as report:
        most = _most_affordable(noise, is_affordable, folder) if noise_ratio is None else np.inf
        chosen = choose(problem, noise, noise_ratio, sum(sweeps), report, most)
    check_sweep(chosen.problem)
    settings = {"noise_choice": chosen.paragraph}
    return Prepared(
        chosen.problem, chosen.noise_ratio, candidates=chosen.kept, settings=settings,
        rounds=chosen.rounds,
    )  # fmt: skip


def _most_affordable(
    settings: Auto, is_affordable: Callable[[float], bool], folder: RunFolder | None
) -> float:
    """The largest noise ratio that memory holds, or held when the checkpoint was begun.

    A run that is resumed while there is less memory must not choose other noise.
    """
    stored = None if folder is None else folder.kept(MEMORY)
    if stored is not None:
        return float(stored["noise_ratio"])
    most = max(filter(is_affordable, ratios(settings)), default=0.0)
    if folder is not None:
        folder.keep(MEMORY, {"noise_ratio": np.array(most)})
    return most


def check_sweep(problem: Problem) -> None:
    """Refuse a model whose conditionals draw noise that does not follow its density."""
    annealed = [each for each in map(_of_model, problem.source.noises) if each is not None][:1]
    rng = problem.adaptation_rng(SWEEP_CHECK)
    with single_threaded():
        for noise in annealed:
            draws = noise.sample(CHECKED_DRAWS, rng)
            wrong = complaint(noise, problem.model.space, draws, rng, normalized=False)
            if wrong:
                raise InputError(
                    f"noise annealed by the sweep of {shown(problem.model)} {wrong}; "
                    "sweep(theta, x, rng) must leave the model at theta invariant "
                    "(ncbayes.testing.check_model(model, theta) tells more)"
                )


def _of_model(noise: Noise) -> Noise | None:
    """The part that conditionals drew; in mixtures that of a user's model, ours being tested."""
    if isinstance(noise, Mixture):
        parts = [each for each in noise.parts if isinstance(each, ModelPart)]
        own = [each for each in parts if not type(each.model).__module__.startswith("ncbayes.")]
        return own[0] if own else None
    return noise if isinstance(noise, Annealed) else None
