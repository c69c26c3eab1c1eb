"""Self-consistent noise: a mixture led by the fitted model itself, made and checked in rounds.

A contrast learns from where data and noise are, so noise has to cover the model's own mass. A
round is: noise made at an estimate, a short fit against it, and a look at the fit by simulation.
The next round's noise is made at the new estimate. Rounds stop by what simulation shows (points
near the rows, means of the statistics, log Z at draws, how far the estimate moved), never by the
information kept, which is content also where all of it is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncbayes.adaptation import Trial, trial
from ncbayes.base import Draw, FloatArray, InputError, Noise
from ncbayes.checks.verification import Nearness
from ncbayes.contrast import Target
from ncbayes.engines import Joint, joint
from ncbayes.noise.auto import Auto
from ncbayes.noise.copula import Copula
from ncbayes.noise.distributions import Mixture, Uniform, matched
from ncbayes.noise.fitted import margins
from ncbayes.noise.model_part import ModelPart, drawn
from ncbayes.noise.tree import Tree
from ncbayes.problem import Problem
from ncbayes.rounds.looks import MOMENTS, Look, beyond, looked, some_of
from ncbayes.rounds.starts import first_estimate
from ncbayes.spaces import Binary, Box, Orthant, Torus

# Shares of the mixture before they are made to sum to one: the model at the last estimate, at
# earlier ones that passed, broad noise, and margins of points that strayed.
MODEL, EARLIER, BROAD, STRAY = 0.8, 0.2, 0.2, 0.2
# How far, in sds of one noise set's accident, the estimate may move in the last round.
MOVED = 1.5
# Points in a contrast for each parameter.
POINTS_A_PARAMETER = 10
# Batches of sweeps in the short fit of a round.
BATCHES = 4
# Draws of it at which information is looked at.
LOOKED_AT = 8
# Numbers of a look that are stored.
LOOKED = ("near", "from_rows", "elsewhere", "effective", "moments", "log_z", "limit")


@dataclass(frozen=True, eq=False)
class Round:
    """Noise by group, the short fit against it, and the looks at that fit."""

    noises: tuple[Noise, ...]
    coef: FloatArray
    sds: FloatArray
    looks: tuple[Look, ...]
    moved: float
    trial: Trial

    @property
    def passes(self) -> bool:
        return all(each.passes for each in self.looks)

    @property
    def kept(self) -> FloatArray:
        """The share of information kept, by group."""
        return self.trial.kept


@dataclass(frozen=True, eq=False)
class Made:
    """The noise that was kept, the ratio it was tried at, and all rounds."""

    noises: tuple[Noise, ...]
    ratio: float
    rounds: tuple[Round, ...]
    chosen: int
    start: str

    @property
    def round(self) -> Round:
        return self.rounds[self.chosen]

    @property
    def record(self) -> dict[str, FloatArray]:
        """Numbers of all looks, (round, group), of the groups that have rows."""
        found = {
            name: np.array([[getattr(look, name) for look in each.looks] for each in self.rounds])
            for name in LOOKED
        }
        found["passed"] = np.array(
            [[float(look.passes) for look in each.looks] for each in self.rounds]
        )
        shape = found["passed"].shape
        moved = np.array([[each.moved] for each in self.rounds])
        return {**found, "moved": np.broadcast_to(moved, shape).copy()}


@dataclass(eq=False)
class _Parts:
    """What one group's noise is mixed of."""

    broad: Noise
    model: Noise | None = None
    earlier: Noise | None = None
    strays: tuple[Noise, ...] = ()

    def mixture(self) -> Noise:
        given = [
            (self.model, MODEL - (EARLIER if self.earlier is not None else 0.0)),
            (self.earlier, EARLIER),
            (self.broad, BROAD),
            *((each, STRAY) for each in self.strays),
        ]
        kept = [(part, share) for part, share in given if part is not None]
        if len(kept) == 1:
            return self.broad
        shares = np.array([share for _, share in kept])
        return Mixture([part for part, _ in kept], shares / shares.sum())  # type: ignore[misc]


def self_consistent(
    problem: Problem,
    settings: Auto,
    ratio: float,
    rng_of: Callable[[], np.random.Generator],
    report: Callable[[], object],
) -> Made:
    """Rounds of noise, fit and look, at a noise ratio."""
    model, groups = problem.model, range(len(problem.data))
    filled = [g for g in groups if len(problem.data[g])]
    near = {g: Nearness.of(model, some_of(problem.data[g])) for g in filled}
    bases = {g: _base(problem, g) for g in filled}
    parts = [_Parts(_broad(problem, g)) for g in groups]
    thetas, failed, start = first_estimate(problem, near, bases, rng_of())
    for g in filled:
        if g not in failed:
            _renew(parts[g], problem, g, thetas[g], bases[g], rng_of())
        else:
            parts[g].model = bases[g]
    rounds: list[Round] = []
    draw: Draw | None = None
    for number in range(settings.rounds):
        noises = tuple(each.mixture() for each in parts)
        sweeps = BATCHES * settings.batch
        done = _short_fit(problem, noises, ratio, draw, sweeps, rng_of(), report)
        draw = done.draw
        means = done.coefs.mean(axis=0)
        sds = done.coefs.std(axis=0)[:, :-1]
        looks, simulated = [], {}
        for g in filled:
            look, points = looked(
                problem, g, means[g, :-1], near[g], bases[g], rng_of(), done.coefs[:, g]
            )
            if points is not None:
                far = beyond(problem, done.contrasts[g], noises[g], ratio, means[g], points)
                look = replace(look, elsewhere=float(far.mean()))
                points = points[far | ~near[g].are(points)]
            looks.append(look)
            simulated[g] = points
        off = (means[:, :-1] - thetas) / np.where(sds > 0, sds, 1.0)
        moved = float(np.sqrt(np.mean(off[filled] ** 2)))
        rounds.append(Round(noises, means, sds, tuple(looks), moved, done))
        settled = moved <= MOVED * math.sqrt(2 / (ratio + 1))
        if number > 0 and rounds[-1].passes and settled:
            break
        for g, look in zip(filled, looks, strict=True):
            points = simulated[g]
            if look.strays and points is not None:
                # Also with rows: where columns stray one by one, all that they can do together.
                rows = problem.data[g][np.arange(len(points)) % len(problem.data[g])]
                made = [_margins(model.space, each) for each in (points, np.vstack([points, rows]))]
                new = tuple(each for each in made if each is not None and _is_finite(each, rows))
                if new:
                    parts[g].strays += new
                    continue
            wanted = means[g, :-1]
            if g not in failed and not look.is_plausible:
                wanted = (wanted + thetas[g]) / 2
            if _renew(parts[g], problem, g, wanted, bases[g], rng_of(), keep=look.passes):
                thetas[g] = wanted
                failed.discard(g)
    return Made(rounds[_best(rounds)].noises, ratio, tuple(rounds), _best(rounds), start)


def _best(rounds: Sequence[Round]) -> int:
    """The last round that passed; else the one that is least off."""
    passed = [k for k, each in enumerate(rounds) if each.passes]
    if passed:
        return passed[-1]

    def badness(each: Round) -> float:
        worst = 0.0
        for look in each.looks:
            log_z = 0.0 if math.isnan(look.log_z) else abs(look.log_z) / look.limit
            worst = max(worst, log_z, look.moments / MOMENTS, look.least / max(look.near, 1e-3))
        return worst

    return int(np.argmin([badness(each) for each in rounds]))


def _broad(problem: Problem, group: int) -> Noise:
    """Noise matched to the rows; half uniform for zeros and ones, so that no cell is empty."""
    noise: Any = problem.source.noises[group]
    space = problem.model.space
    return Mixture([noise, Uniform(space)], (0.5, 0.5)) if isinstance(space, Binary) else noise


def _base(problem: Problem, group: int) -> Noise | None:
    """Noise that resembles the rows, for a bridge to the model; None if there is no such."""
    space, rows = problem.model.space, problem.data[group]
    if space.dimension < 2 or not isinstance(space, Orthant | Box | Torus):
        return None
    try:
        return Tree.match(rows) if isinstance(space, Torus) else Copula.match(rows, space)
    except InputError:
        return None


def _margins(space: Any, points: FloatArray) -> Noise | None:
    """Independent margins of points that strayed."""
    for made in (margins, lambda x, s: matched(s, x)):
        try:
            return made(points, space)
        except InputError:
            continue
    return None


def _is_finite(noise: Noise, rows: FloatArray) -> bool:
    """Whether no row has an infinite density, as zeros have under a gamma distribution."""
    return bool(np.all(noise.log_density(rows) < np.inf))


def _renew(
    parts: _Parts,
    problem: Problem,
    group: int,
    theta: FloatArray,
    base: Noise | None,
    rng: np.random.Generator,
    keep: bool = False,
) -> bool:
    """The model part at theta, if it can be drawn there; the one before it is kept if it passed."""
    try:
        found = drawn(problem.model, theta, problem.data[group], base, rng)
    except InputError:  # no distribution there
        return False
    if not math.isfinite(found.log_z):
        return False
    if keep:
        parts.earlier = parts.model
    parts.model = ModelPart(
        problem.model, theta, found.log_z, found.steps, problem.data[group], found.base
    )
    return True


def _short_fit(
    problem: Problem,
    noises: tuple[Noise, ...],
    ratio: float,
    draw: Draw | None,
    batch: int,
    rng: np.random.Generator,
    report: Callable[[], object],
) -> Trial:
    sizes = tuple(max(min(1, len(rows)), round(ratio * len(rows))) for rows in problem.data)

    def engine_of(target: Target) -> Any:
        return Joint() if joint.usable(target) else problem.engine

    against = problem.against(noises, sizes)
    return trial(
        against, noises, draw, batch, rng, report, engine_of=engine_of, looked_at=LOOKED_AT
    )
