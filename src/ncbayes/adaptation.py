"""Before the chains start: one chain against noise that moves toward the model (Algorithm 3).

A batch of sweeps on the noise so far gives an estimate, the estimate gives new noise, and a batch
on that shows whether it is better. Each update is a function of the run's seed, its number and
the state before it, and the state is saved after each, so a run that was killed goes on with the
same noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, Draw, FloatArray, Noise, NoiseState, in_group
from ncbayes.checkpoints import RunFolder
from ncbayes.contrast import Contrast, Target, kernel_of
from ncbayes.diagnostics import information_kept
from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.tempered import (
    LOWERED,
    MADE,
    NO_POINTS,
    NOT_BETTER,
    Refused,
    Tempering,
)
from ncbayes.problem import Problem

FILE = "adaptation.npz"
# An update that keeps less than this much more of the information shows that noise has settled.
SETTLED = 0.05
# Updates in a row that are tried, with smaller and smaller alpha, before noise is left as it is.
MOST_MISSES = 4
# Sweeps between two looks at whether to stop.
BLOCK = 10
NUMBERS = ("alpha", "log_z", "log_z_error", "effective", "work")


@dataclass(frozen=True)
class Adaptation:
    """What the updates came to: noise by group, and a record of each update and group.

    ``record`` holds (update, group) arrays: the numbers of the tempering (NaN where none passed the
    guard), ``wanted``, the alpha that was asked for, ``kept``, the share of information kept on the
    new noise, ``kept_before``, that on the noise before, ``made``, whether it was better and
    stayed, and ``reason``, in a word or two why or why not.
    """

    noises: tuple[Noise, ...]
    record: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Trial:
    """A batch of sweeps on some noise: where it ended, average coef, information kept by group.

    ``coefs`` are those that were averaged, and ``looked_at`` how many of them information is
    looked at; 0: at the average.
    """

    draw: Draw
    coef: FloatArray
    kept: FloatArray
    contrasts: tuple[Contrast, ...] = ()
    coefs: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    looked_at: int = 0


@dataclass(frozen=True)
class _State:
    """Between two updates: the trial of the noise in use, its tempering by group, the record.

    Tempering None: the noise that the group started with.
    """

    trial: Trial
    temperings: tuple[Tempering | None, ...]
    record: tuple[Mapping[str, NDArray[Any]], ...] = ()


def trial(
    problem: Problem,
    noises: tuple[Noise, ...],
    draw: Draw | None,
    batch: int,
    rng: np.random.Generator,
    report: Callable[[], object],
    engine_of: Callable[[Target], Any] | None = None,
    looked_at: int = 0,
) -> Trial:
    """Try noise out: a batch of sweeps from ``draw``, and what its second half averages to.

    Noise is judged at the estimate it leads to itself: at another's estimate, which has fitted
    that noise's accidents, all other noise looks bad. ``engine_of`` gives the engine for a
    target where it is not to be that of the chains.
    """
    sets = problem.source.sets(noises, [rng] * len(noises))
    target, half = problem.target(NoiseState(sets, 0)), batch // 2
    engine: Any = engine_of(target) if engine_of else problem.engine
    if hasattr(engine, "adapting"):
        engine = engine.adapting(half)
    kernel = kernel_of(engine, target)
    # What a chain has learned about other noise is forgotten: a resumed run would not know it.
    draw = kernel.start(rng) if draw is None else Draw(draw.coef, draw.scales)
    blocks = []
    for start in range(0, batch, BLOCK):
        size = min(BLOCK, batch - start)
        for _ in range(size):
            report()
        block = kernel.sweeps(draw, rng, size)
        draw = block.last
        blocks.append(block.coef)
    coefs = np.concatenate(blocks)[half:]
    coef = coefs.mean(axis=0)
    contrasts = target.contrasts
    if not contrasts:  # of an energy, as it is near its estimate
        contrasts = tuple(problem.contrast_near(g, sets[g], coef[g]) for g in range(len(sets)))
    done = Trial(draw, coef, np.zeros(0), contrasts, coefs, looked_at)
    return dataclasses.replace(done, kept=kept_with(done))


def kept_with(done: Trial, more: float = 1.0) -> FloatArray:
    """The information kept, by group, as if there were ``more`` times the noise of the trial."""

    def kept(coef: FloatArray) -> list[float]:
        pairs = zip(done.contrasts, coef, strict=True)
        return [information_kept(each.design, each.log_odds(row), more) for each, row in pairs]

    some = [done.coef]
    if done.looked_at:
        some = list(done.coefs[:: max(1, len(done.coefs) // done.looked_at)])
    return np.asarray(np.mean([kept(coef) for coef in some], axis=0))


def adapt(
    problem: Problem,
    settings: Adaptive,
    updates: int,
    folder: RunFolder | None = None,
    report: Callable[[], object] = lambda: None,
) -> Adaptation:
    """Run the updates; ``report`` is called before every sweep, and may raise to stop."""
    bases = tuple(
        settings.starting_base(problem.model, start, data)
        for start, data in zip(problem.source.noises, problem.data, strict=True)
    )
    state = _load(folder, problem)
    if state is None:
        rng = problem.adaptation_rng(0)
        first = trial(problem, problem.source.noises, None, settings.batch, rng, report)
        state = _State(first, (None,) * len(bases))
        _save(folder, state)
    while not _done(state, updates):
        state = _updated(problem, settings, bases, state, report)
        _save(folder, state)
    noises = _noises(problem, settings, bases, state.temperings)
    names = state.record[0]
    record = {name: np.stack([each[name] for each in state.record]) for name in names}
    return Adaptation(noises, record)


def _done(state: _State, updates: int) -> bool:
    if not state.record:
        return False
    last, misses = state.record[-1], _misses(state)
    refused = bool(np.all(np.isnan(last["alpha"])))
    if len(state.record) >= updates or misses >= MOST_MISSES or refused:
        return True
    gain = np.where(last["made"] > 0, last["kept"] / np.maximum(last["kept_before"], 1e-300), 1.0)
    return misses == 0 and bool(np.all(gain < 1 + SETTLED))


def _misses(state: _State) -> int:
    """How many updates at the end of the record were not made in any group."""
    made = [bool(np.any(each["made"])) for each in state.record]
    return len(made) if not any(made) else made[::-1].index(True)


def _updated(
    problem: Problem,
    settings: Adaptive,
    bases: tuple[Noise | None, ...],
    state: _State,
    report: Callable[[], object],
) -> _State:
    """New noise for each group, tried out, and kept where it is better than the noise before."""
    rng, misses = problem.adaptation_rng(len(state.record) + 1), _misses(state)
    if misses:
        # A poor estimate makes poor noise, the more so the larger alpha is.
        alpha = settings.wanted_alpha(bases[0]) * 0.5**misses
        settings = dataclasses.replace(settings, alpha=alpha)
    coef = state.trial.coef if state.record else guessed(problem, state.trial.coef)
    before, proposed = state.trial, tempered(problem, settings, bases, coef, rng)
    offered = np.array([isinstance(each, Tempering) for each in proposed])
    new = tuple(
        proposal if isinstance(proposal, Tempering) else old
        for old, proposal in zip(state.temperings, proposed, strict=True)
    )
    noises = _noises(problem, settings, bases, new)
    after = before
    if offered.any():
        after = trial(problem, noises, before.draw, settings.batch, rng, report)
    made = offered & (after.kept > before.kept)
    wanted = [settings.wanted_alpha(base) for base in bases]
    record = _recorded(proposed, np.array(wanted), made)
    record["kept"] = np.where(offered, after.kept, np.nan)
    record |= {"kept_before": before.kept, "made": made.astype(float)}
    merged = Trial(
        after.draw,
        np.where(made[:, None], after.coef, before.coef),
        np.where(made, after.kept, before.kept),
    )
    chosen = tuple(
        later if better else old
        for better, later, old in zip(made, new, state.temperings, strict=True)
    )
    return _State(merged, chosen, (*state.record, record))


def _recorded(
    proposed: tuple[Tempering | Refused, ...], wanted: FloatArray, made: BoolArray
) -> dict[str, NDArray[Any]]:
    """The numbers of an update by group, and why it was made or not."""
    numbers: dict[str, NDArray[Any]] = {
        name: np.array([getattr(each, name, np.nan) for each in proposed], dtype=float)
        for name in NUMBERS
    }
    words = [
        each.reason if isinstance(each, Refused)
        else NOT_BETTER if not better
        else LOWERED if each.alpha < alpha
        else MADE
        for each, alpha, better in zip(proposed, wanted, made, strict=True)
    ]  # fmt: skip
    return {**numbers, "wanted": wanted, "reason": np.array(words)}


def guessed(problem: Problem, coef: FloatArray) -> FloatArray:
    """coef with theta as the model guesses it from the data, group by group; as it is if it can't.

    Where noise matched to the data is far from them, what a trial with it estimates is worthless.
    """
    guess = getattr(problem.model, "guess", None)
    if guess is None:
        return coef
    guesses = [
        guess(data) if len(data) else row[:-1] for data, row in zip(problem.data, coef, strict=True)
    ]
    return np.column_stack([np.array(guesses), coef[:, -1]])


def tempered(
    problem: Problem,
    settings: Adaptive,
    bases: tuple[Noise | None, ...],
    coef: FloatArray,
    rng: np.random.Generator,
) -> tuple[Tempering | Refused, ...]:
    """The tempered density at coef for each group, or why the guard lets none through."""
    found: list[Tempering | Refused] = []
    for g, (base, size) in enumerate(zip(bases, problem.source.sizes, strict=True)):
        if size == 0:  # a time without points has no noise to make
            found.append(Refused(NO_POINTS))
            continue
        with in_group(problem.labels[g], len(bases)):
            found.append(settings.temper(problem.model, coef[g, :-1], base, size, rng))
    return tuple(found)


def _noises(
    problem: Problem,
    settings: Adaptive,
    bases: tuple[Noise | None, ...],
    temperings: tuple[Tempering | None, ...],
) -> tuple[Noise, ...]:
    return tuple(
        start if tempering is None else settings.built(problem.model, base, tempering)
        for start, base, tempering in zip(problem.source.noises, bases, temperings, strict=True)
    )


def _save(folder: RunFolder | None, state: _State) -> None:
    if folder is None:
        return
    last = state.trial
    arrays: dict[str, NDArray[Any]] = {
        "draw": last.draw.coef,
        "coef": last.coef,
        "kept": last.kept,
    }
    arrays |= {f"scales/{name}": values for name, values in last.draw.scales.items()}
    for g, tempering in enumerate(state.temperings):
        if tempering is not None:
            arrays |= {
                f"tempering/{g}/{name}": np.asarray(value)
                for name, value in vars(tempering).items()
            }
    for name in state.record[0] if state.record else ():
        arrays[f"record/{name}"] = np.stack([each[name] for each in state.record])
    folder.keep(FILE, arrays)


def _load(folder: RunFolder | None, problem: Problem) -> _State | None:
    arrays = None if folder is None else folder.kept(FILE)
    if arrays is None:
        return None
    scales = {
        name.removeprefix("scales/"): values
        for name, values in arrays.items()
        if name.startswith("scales/")
    }
    names = [name.removeprefix("record/") for name in arrays if name.startswith("record/")]
    record = tuple(
        {name: arrays[f"record/{name}"][k] for name in names}
        for k in range(len(arrays.get("record/made", ())))
    )
    temperings = tuple(_tempering(arrays, g) for g in range(len(problem.data)))
    last = Trial(Draw(arrays["draw"], scales), arrays["coef"], arrays["kept"])
    return _State(last, temperings, record)


def _tempering(arrays: Mapping[str, NDArray[Any]], group: int) -> Tempering | None:
    if f"tempering/{group}/theta" not in arrays:
        return None
    values = {
        each.name: arrays[f"tempering/{group}/{each.name}"]
        for each in dataclasses.fields(Tempering)
    }
    theta, work = values.pop("theta"), int(values.pop("work"))
    return Tempering(theta, work=work, **{name: float(each) for name, each in values.items()})
