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
from scipy.special import logsumexp

from ncbayes.adaptation import Trial, kept_with
from ncbayes.base import BoolArray, Draw, FloatArray, InputError, Noise, NoiseState
from ncbayes.checks.verification import Nearness
from ncbayes.conditionals import conditionals_loss
from ncbayes.contrast import Contrast, Target, kernel_of
from ncbayes.engines import Joint, Pseudolikelihood, joint
from ncbayes.engines.hyvarinen import Hyvarinen
from ncbayes.noise.auto import Auto
from ncbayes.noise.copula import Copula
from ncbayes.noise.distributions import Mixture, Uniform, matched
from ncbayes.noise.fitted import margins
from ncbayes.noise.model_part import Drawn, ModelPart, drawn
from ncbayes.noise.tree import Tree
from ncbayes.normalizers import kernels
from ncbayes.pilots import pilot
from ncbayes.priors import Normal
from ncbayes.priors.blocks import NORMALIZER, Blocks, Part
from ncbayes.problem import Problem
from ncbayes.score import score_loss
from ncbayes.spaces import Binary, Box, Orthant, Torus

# Shares of the mixture before they are made to sum to one: the model at the last estimate, at
# earlier ones that passed, broad noise, and margins of points that strayed.
MODEL, EARLIER, BROAD, STRAY = 0.8, 0.2, 0.2, 0.2
# A look passes with this share of simulated points near the rows, at most this share where there
# are neither rows nor noise, this share of them effective, and means of the statistics within so
# many standard errors (root mean square).
NEAR, ELSEWHERE, EFFECTIVE, MOMENTS = 0.9, 0.1, 0.3, 2.0
# Among few rows chance may leave fewer points near, but only in this share of cases; the distances
# of fewer than so many rows tell nothing.
RARELY, FEWEST_ROWS = 0.01, 30
# A first estimate may have means that are off by so many times as much.
START = 2.5
# How far log Z may be off: so much, beside p / 2n and two standard errors.
LOG_Z = 0.3
# How far, in sds of one noise set's accident, the estimate may move in the last round.
MOVED = 1.5
# Points in a contrast for each parameter.
POINTS_A_PARAMETER = 10
# Batches of sweeps in the short fit of a round.
BATCHES = 4
# Sweeps of the first estimate, without noise.
SWEEPS = 200
# Points and steps of moment matching, and the longest step, in sds of the log density.
MATCHED_POINTS, MATCHED_STEPS, LONGEST = 1000, 100, 0.5
# How far from the edge-less model the first estimate may go, one after the other.
PULLED = (0.5, 0.25, 0.0)
# Prior sds in units of 1 / sd of a statistic, and how many times smaller those of no edge are.
WEAK, NO_EDGE = 10.0, 1e-4
# Draws of a short fit that count as independent.
FEWEST_EFFECTIVE = 10.0


# Numbers of a look that are stored.
LOOKED = ("near", "from_rows", "elsewhere", "effective", "moments", "log_z", "limit")


@dataclass(frozen=True)
class Look:
    """What simulation shows of one group at an estimate.

    ``near`` of points from the base, ``from_rows`` of those from rows, and the ``least`` that they
    may be. ``elsewhere``: the share of the model's mass at higher ratios to noise than any row or
    noise point has. ``log_z``: that of the contrast less that of annealing, in the mean over draws,
    NaN where there is no contrast yet; ``limit`` is what it may be.
    """

    near: float
    from_rows: float
    effective: float
    moments: float
    log_z: float = math.nan
    limit: float = math.nan
    elsewhere: float = 0.0
    least: float = NEAR

    @property
    def passes(self) -> bool:
        off = abs(self.log_z) > self.limit if not math.isnan(self.log_z) else False
        fine = min(self.near, self.from_rows) >= self.least and self.effective >= EFFECTIVE
        return bool(fine and not self.strays and self.moments <= MOMENTS and not off)

    @property
    def is_start(self) -> bool:
        """Whether noise may be made there first: an estimate without noise is biased."""
        fine = min(self.near, self.from_rows) >= self.least and self.effective >= EFFECTIVE
        return bool(fine and self.moments <= START * MOMENTS)

    @property
    def strays(self) -> bool:
        """Whether the model's mass left rows or noise."""
        return self.near < self.least or self.elsewhere > ELSEWHERE


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
        """Numbers of all looks, (round, group), NaN for groups without rows."""
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
    near = {g: Nearness.of(model.space, problem.data[g]) for g in filled}
    bases = {g: _base(problem, g) for g in filled}
    parts = [_Parts(_broad(problem, g)) for g in groups]
    thetas, failed, start = _first(problem, near, bases, rng_of())
    for g in filled:
        if g not in failed:
            _renew(parts[g], problem, g, thetas[g], bases[g], rng_of())
        else:
            parts[g].model = bases[g]
    rounds: list[Round] = []
    draw: Draw | None = None
    few = _is_short(problem, ratio)
    for number in range(settings.rounds):
        noises = tuple(each.mixture() for each in parts)
        sweeps = BATCHES * settings.batch
        done, draw = _fitted(problem, noises, ratio, draw, sweeps, rng_of(), report)
        means = done.coefs.mean(axis=0)
        sds = done.coefs.std(axis=0)[:, :-1]
        looks, simulated = [], {}
        for g in filled:
            look, points = _looked(
                problem, g, means[g, :-1], near[g], bases[g], rng_of(), done.coefs[:, g]
            )
            if points is not None:
                beyond = _beyond(problem, done.trial.contrasts[g], noises[g], means[g], points)
                look = replace(look, elsewhere=float(beyond.mean()))
                points = points[beyond | ~near[g].are(points)]
            looks.append(look)
            simulated[g] = points
        off = (means[:, :-1] - thetas) / np.where(sds > 0, sds, 1.0)
        moved = float(np.sqrt(np.mean(off[filled] ** 2)))
        rounds.append(Round(noises, means, sds, tuple(looks), moved, done.trial))
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
            if g not in failed and (few or not look.passes):
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


def _is_short(problem: Problem, ratio: float) -> bool:
    """Whether some group has fewer points than parameters ask for."""
    size = problem.prior.parts[-1].stop if isinstance(problem.prior, Blocks) else 0
    return any(0 < (1 + ratio) * len(each) < POINTS_A_PARAMETER * size for each in problem.data)


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


def _first(
    problem: Problem,
    near: dict[int, Nearness],
    bases: dict[int, Noise | None],
    rng: np.random.Generator,
) -> tuple[FloatArray, set[int], str]:
    """A first estimate by group that simulation does not contradict, and how it was found.

    Also the groups for which there is none.
    """
    prior = problem.prior
    assert isinstance(prior, Blocks)
    whole = Blocks(tuple(part for part in prior.parts if part.name != NORMALIZER))
    quick, words = _noiseless(problem, whole, rng)
    found = np.zeros((len(problem.data), whole.parts[-1].stop))
    used, failed = dict.fromkeys(near, words), set()
    edgeless = None

    def passes(g: int, theta: FloatArray) -> bool:
        return _looked(problem, g, theta, near[g], bases[g], rng)[0].is_start

    for g in near:
        if quick is not None and passes(g, quick[g]):
            found[g] = quick[g]
            continue
        begin = None if quick is None else quick[g]
        found[g], used[g] = _moment_matched(problem, g, begin, rng), "moment matching"
        if passes(g, found[g]):
            continue
        edgeless = _edgeless(problem, whole, rng) if edgeless is None else edgeless
        begin = found[g] if begin is None else begin
        for share in PULLED:
            found[g] = share * begin + (1 - share) * edgeless[g]
            used[g] = f"{words or 'moment matching'}, pulled to {share:g} of its edges"
            if passes(g, found[g]):
                break
        else:
            failed.add(g)
            used[g] = "fitted noise, since no estimate passed"
    return found, failed, ", ".join(dict.fromkeys(used.values()))


def _moment_matched(
    problem: Problem, group: int, begin: FloatArray | None, rng: np.random.Generator
) -> FloatArray:
    """theta at which simulated means are those of the rows, by chains that start at rows.

    From an estimate, or else from a quick contrast with noise; Newton steps of a falling size by
    the covariance of the simulated statistics, under a weak prior, and the mean of the second half.
    """
    model: Any = problem.model
    rows = problem.data[group]
    begun = pilot(model, rows, rng)
    theta, data = begun.theta if begin is None else begin, begun.total / len(rows)
    ridge = begun.penalty / len(rows)
    if not hasattr(model, "sweep"):
        return theta
    points = np.array(rows[np.arange(MATCHED_POINTS) % len(rows)], dtype=float)
    kept = np.zeros_like(theta)
    for step in range(MATCHED_STEPS):
        try:
            points = model.sweep(theta, points, rng)
        except InputError:  # no distribution there: back toward where it was one
            theta = theta / 2
            continue
        simulated = np.asarray(model.statistics(points), dtype=float)
        covariance = np.atleast_2d(np.cov(simulated, rowvar=False)) + ridge
        pull = data - simulated.mean(axis=0) - ridge @ theta
        size = np.diag(covariance) * 1e-6
        change = np.linalg.solve(covariance + np.diag(size + 1e-12), pull)
        length = math.sqrt(max(float(change @ covariance @ change), 1e-300))
        gain = min(1.0, 10 / (step + 10)) * min(1.0, LONGEST / length)
        theta = theta + gain * change
        if step >= MATCHED_STEPS // 2:
            kept += theta
    return np.asarray(kept / (MATCHED_STEPS - MATCHED_STEPS // 2))


def _noiseless(
    problem: Problem, prior: Blocks, rng: np.random.Generator
) -> tuple[FloatArray | None, str]:
    """The mean of a short posterior without noise, under the prior's own shrinkage."""
    made: tuple[Any, Any, str]
    if hasattr(problem.model, "change_statistics"):
        made = conditionals_loss, Pseudolikelihood(), "pseudolikelihood"
    elif hasattr(problem.model, "score_statistics"):
        made = score_loss, Hyvarinen(1.0), "score matching"
    else:
        return None, ""
    loss, engine, words = made
    shape = len(problem.data), prior.parts[-1].stop
    found, filled = np.zeros(shape), [g for g, rows in enumerate(problem.data) if len(rows) > 1]
    try:
        losses = tuple(loss(problem.model, problem.data[g], rng) for g in filled)
        target = Target((), prior, losses=losses, normalizer=False)
        kernel = kernel_of(engine.adapting(SWEEPS), target)
        draw = kernel.sweeps(kernel.start(rng), rng, SWEEPS).last
        found[filled] = kernel.sweeps(draw, rng, SWEEPS).coef.mean(axis=0)
    except (InputError, np.linalg.LinAlgError):
        return None, ""
    return found, words


def _edgeless(problem: Problem, prior: Blocks, rng: np.random.Generator) -> FloatArray:
    """The estimate as if edges were none, under a weak prior of the rest."""
    names = getattr(problem.model, "edge_columns", {})
    edges = [int(k) for columns in names.values() for k in np.ravel(columns)]
    rows = np.concatenate(problem.data)
    spread = np.asarray(problem.model.statistics(rows), dtype=float).std(axis=0)
    scales = WEAK / np.where(spread > 0, spread, 1.0)
    scales[edges] *= NO_EDGE
    weak = Blocks((Part("theta", Normal(scales), 0, len(scales)),))
    found, _ = _noiseless(problem, weak, rng)
    return np.zeros((len(problem.data), len(scales))) if found is None else found


@dataclass(frozen=True, eq=False)
class _Done:
    coefs: FloatArray
    trial: Trial


def _fitted(
    problem: Problem,
    noises: tuple[Noise, ...],
    ratio: float,
    draw: Draw | None,
    batch: int,
    rng: np.random.Generator,
    report: Callable[[], object],
) -> tuple[_Done, Draw]:
    """A short fit: half of its sweeps discarded."""
    sizes = tuple(max(min(1, len(rows)), round(ratio * len(rows))) for rows in problem.data)
    against = problem.against(noises, sizes)
    target = against.target(NoiseState(against.source.sets(noises, [rng] * len(noises)), 0))
    half = batch // 2
    engine: Any = Joint() if joint.usable(target) else problem.engine
    kernel = kernel_of(engine.adapting(half) if hasattr(engine, "adapting") else engine, target)
    draw = kernel.start(rng) if draw is None else Draw(draw.coef, draw.scales)
    for _ in range(batch):
        report()
    draw = kernel.sweeps(draw, rng, half).last
    block = kernel.sweeps(draw, rng, batch - half)
    done = Trial(block.last, block.coef.mean(axis=0), np.zeros(0), target.contrasts)
    return _Done(block.coef, replace(done, kept=kept_with(done))), block.last


def _looked(
    problem: Problem,
    group: int,
    theta: FloatArray,
    near: Nearness,
    base: Noise | None,
    rng: np.random.Generator,
    coefs: FloatArray | None = None,
) -> tuple[Look, FloatArray | None]:
    """The model at theta simulated from its base and from the rows; its points, or None."""
    model: Any = problem.model
    rows = problem.data[group]
    try:
        found = drawn(model, theta, rows, base, rng)
        from_rows = np.array(rows[rng.permutation(min(1000, 4 * len(rows))) % len(rows)])
        for _ in range(10 if hasattr(model, "sweep") else 0):
            from_rows = model.sweep(theta, from_rows, rng)
    except InputError:
        return Look(0.0, 0.0, 0.0, math.inf), None
    if not math.isfinite(found.log_z):
        return Look(0.0, 0.0, 0.0, math.inf), None
    points = found.resampled(len(found.points), rng)
    moments = _moments(model, rows, found, theta, coefs)
    shares = near.share(points), near.share(from_rows)
    # The share of new rows within the largest distance of n rows is 1 - U^(1/n) or so from 1.
    least = NEAR * RARELY ** (1 / len(rows)) if len(rows) >= FEWEST_ROWS else 0.0
    look = Look(*shares, found.effective, moments, least=least)
    if coefs is None:
        return look, points
    log_z, error = _log_z(model, found, theta, coefs[:, :-1])
    off = problem.log_z(coefs) - log_z
    error = math.hypot(error, float(np.std(off)) / math.sqrt(FEWEST_EFFECTIVE))
    limit = LOG_Z + len(theta) / (2 * len(rows)) + 2 * error
    return replace(look, log_z=float(np.mean(off)), limit=limit), points


def _beyond(
    problem: Problem, each: Contrast, noise: Noise, coef: FloatArray, points: FloatArray
) -> BoolArray:
    """Which points have a higher ratio of model to noise than any row or noise point."""
    ratio = kernels(problem.model, coef[None, :-1], points)[0] - noise.log_density(points)
    noise_points = len(each.is_data) - each.is_data.sum()
    shift = math.log(each.is_data.sum() / max(noise_points, 1)) - float(problem.log_z(coef))
    return np.asarray(ratio + shift > each.log_odds(coef).max())


def _moments(
    model: Any, rows: FloatArray, found: Drawn, theta: FloatArray, coefs: FloatArray | None
) -> float:
    """How far means of statistics are off, in standard errors, root mean square."""
    weights = np.exp(found.log_weights - logsumexp(found.log_weights))
    data = np.asarray(model.statistics(rows), dtype=float)
    simulated = np.asarray(model.statistics(found.points), dtype=float)
    mean = weights @ simulated
    centred = simulated - mean
    variance = (weights @ centred**2 + data.var(axis=0)) / 2
    error = variance * (1 / len(rows) + 1 / (found.effective * len(weights)))
    if coefs is not None:
        covariance = (weights[:, None] * centred).T @ centred
        error = error + ((coefs[:, :-1] - theta) @ covariance).var(axis=0)
    off = (data.mean(axis=0) - mean)[error > 0] / np.sqrt(error[error > 0])
    return float(np.sqrt(np.mean(off**2))) if len(off) else 0.0


def _log_z(
    model: Any, found: Drawn, theta: FloatArray, draws: FloatArray
) -> tuple[FloatArray, float]:
    """log Z at draws, from the points at theta, and its standard error."""
    log_weights = found.log_weights - math.log(len(found.log_weights))
    at = kernels(model, np.vstack([theta, draws]), found.points)
    if found.steps == 0:  # points of equal weight
        log_weights = np.full(len(found.points), found.log_z - math.log(len(found.points)))
    terms = at[1:] - at[0] + log_weights
    log_z = logsumexp(terms, axis=1)
    effective = np.exp(2 * log_z - logsumexp(2 * terms, axis=1))
    typical = max(float(np.median(effective)), 1.0)
    return log_z, math.sqrt(found.error**2 + 1 / typical)
