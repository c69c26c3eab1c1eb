"""Noise that is made before the chains start: adapted to the model, or chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ncbayes.adaptation import adapt
from ncbayes.base import FloatArray
from ncbayes.chains import before_chains
from ncbayes.checkpoints import RunFolder
from ncbayes.choice import choose
from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.auto import Auto
from ncbayes.problem import Problem
from ncbayes.progress import Progress


@dataclass(frozen=True)
class Prepared:
    """A problem with its noise made, the record of the updates, and what to say of it."""

    problem: Problem
    noise_ratio: float
    record: Mapping[str, FloatArray]
    settings: Mapping[str, Any]


def prepare(
    problem: Problem,
    noise: Adaptive | Auto,
    noise_ratio: float | None,
    sweeps: tuple[int, int],
    folder: RunFolder | None,
    progress: Progress,
) -> Prepared:
    """Adapt or choose the noise; ``sweeps`` are the run's tune and draws."""
    if isinstance(noise, Adaptive):
        updates = noise.update_count(sweeps[0])
        with before_chains((updates + 1) * noise.batch, progress) as report:
            done = adapt(problem, noise, updates, folder, report)
        return Prepared(problem.against(done.noises), noise_ratio or 1.0, done.record, {})
    trials = noise.trial_count(problem.model.space)
    with before_chains(trials * noise.batch, progress) as report:
        chosen = choose(problem, noise, noise_ratio, sum(sweeps), report)
    return Prepared(chosen.problem, chosen.noise_ratio, {}, {"noise_choice": chosen.paragraph})
