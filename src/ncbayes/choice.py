"""Which noise? Candidates tried out in short batches of sweeps, and the reasons in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from ncbayes.adaptation import SETTLED, Trial, guessed, kept_with, tempered, trial
from ncbayes.base import FloatArray, InputError, Noise, NoiseState
from ncbayes.contrast import Target
from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.auto import RICH, Auto, Family, families
from ncbayes.noise.carried import Carried
from ncbayes.noise.crossfit import CrossFitted
from ncbayes.noise.model_part import simulates
from ncbayes.noise.tempered import REASONS, Annealed, Refused, Resampled
from ncbayes.priors.blocks import Blocks
from ncbayes.problem import Problem
from ncbayes.resources import sweep_seconds
from ncbayes.rounds import POINTS_A_PARAMETER, Made, self_consistent
from ncbayes.spaces import is_continuous

# A simpler candidate that keeps this share of what the best one keeps is taken instead.
NEARLY = 0.95
# Noise that follows the data closely must keep so many times what other noise keeps, if that is
# less than half: estimates are poor then, and noise made or fitted from the same data has their
# errors in it, so that its posteriors promise more than they hold (docs/measurements.md).
CLEARLY, HALF = 1.3, 0.5
# Up to this alpha, noise tempered at the estimate does not count as close.
LOOSE_ALPHA = 0.5
# Noise that is the fitted model, tempered.
TEMPERED = (Annealed, Carried, Resampled)
# The share of carried points that must count; copies of others are moved apart.
CARRIED = 0.5
# Noise ratios to choose from, up to the settings' largest, which is tried too.
RATIOS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
# The least ratio of noise made of the model: below it one noise set's accidents show. More is taken
# for narrower intervals while it is cheap: so large a share of the time that there is.
LEAST_RATIO, MORE = 10.0, 1 / 12


@dataclass(frozen=True)
class Choice:
    """The chosen noise, with the share of information that each candidate keeps, and why."""

    problem: Problem
    noise_ratio: float
    kept: Mapping[str, float]
    paragraph: str
    rounds: Mapping[str, FloatArray] = field(default_factory=dict)


def choose(
    problem: Problem,
    settings: Auto,
    noise_ratio: float | None,
    sweeps: int,
    report: Callable[[], object] = lambda: None,
    most: float = math.inf,
) -> Choice:
    """The best noise, and the noise ratio if there is none yet.

    Of models that can simulate themselves it is made of the model itself, in rounds; of others the
    best of the candidates. ``most`` is the largest noise ratio that memory holds.
    """
    if simulates(problem.model) and isinstance(problem.prior, Blocks):
        return _in_rounds(problem, settings, noise_ratio, sweeps, report, most)
    given, trials = noise_ratio or 1.0, _Trials(problem, settings, noise_ratio is None, report)
    trials.run("matched", problem.source.noises)
    if hasattr(problem.model, "curve"):  # an energy starts anywhere: once more, from where it came
        trials.run("matched", problem.source.noises)
    fitters = families(problem.model.space)
    for name, fitted in fitters.items():
        with suppress(InputError):  # no density at some of the data, say
            trials.run(name, _fitted(problem, fitted))
    for number in range(settings.rounds):
        before, share = trials.chosen, trials.kept[trials.chosen]
        for alpha in settings.alphas:
            trials.run(f"model^{alpha:g}", trials.tempered(alpha, first=number == 0))
        if trials.chosen == before and trials.kept[before] < (1 + SETTLED) * share:
            break
    kept = trials.kept
    name = trials.chosen
    done = trials.done[name]
    noises, ratio, reason, share = done.noises, given, "as given", kept[name]
    if name in fitters:
        noises = _cross_fitted(problem, fitters[name], noises)
    if noise_ratio is None:
        sets = problem.source.sets(noises, [trials.rng()] * len(noises))
        target = problem.target(NoiseState(sets, 0))
        ratio, reason = _ratio(problem, target, done.by_ratio, settings, sweeps, most)
        share = done.by_ratio.get(ratio, share)
    sizes = noise_points(problem.data, ratio)
    paragraph = _paragraph(described(name, noises), kept, ratio, reason, share)
    for other, why in trials.refused.items():
        if other not in kept:
            paragraph += f" {other} was refused by the guard: {REASONS[why]}."
    return Choice(problem.against(noises, sizes), ratio, kept, paragraph)


def _in_rounds(
    problem: Problem,
    settings: Auto,
    noise_ratio: float | None,
    sweeps: int,
    report: Callable[[], object],
    most: float,
) -> Choice:
    """Self-consistent noise, at a first ratio, and then at the one that its information asks."""
    numbers = count(1)

    def rng() -> np.random.Generator:
        return problem.adaptation_rng(next(numbers))

    first = problem.target(problem.source.fixed(0))
    now = sum(len(each.offset) for each in first.contrasts)
    rows = sum(map(len, problem.data))

    def fits(ratio: float, share: float = 1.0) -> bool:
        seconds = sweeps * sweep_seconds(first, rows * (1 + ratio) / now)
        return ratio <= most and seconds <= share * settings.seconds

    tried, reason = noise_ratio, "as given"
    if tried is None:
        fewest = min(len(each) for each in problem.data if len(each))
        wanted = max(LEAST_RATIO, POINTS_A_PARAMETER * first.shape[1] / fewest)
        affordable = [ratio for ratio in ratios(settings) if fits(ratio)]
        tried = min(math.ceil(wanted), max(affordable, default=1.0))
        reason = "ten points for each parameter" if wanted > LEAST_RATIO else "the least taken"
        reason = reason if tried >= wanted else "time and memory allow"
    made = self_consistent(problem, settings, float(tried), rng, report)
    ratio = float(tried)
    if noise_ratio is None and made.round.passes:  # more of what is wrong does not help
        for more in (each for each in ratios(settings) if each > tried and fits(each, MORE)):
            if _kept_at(made, tried, ratio) >= (1 + settings.loss) ** -2:
                break
            ratio, reason = more, f"for intervals at most {100 * settings.loss:g} % wider"
    share = _kept_at(made, tried, ratio)
    kept = {f"round {k + 1}": float(np.mean(each.kept)) for k, each in enumerate(made.rounds)}
    sizes = noise_points(problem.data, ratio)
    paragraph = _rounds_paragraph(made, ratio, reason, share)
    return Choice(problem.against(made.noises, sizes), ratio, kept, paragraph, made.record)


def _kept_at(made: Made, tried: float, ratio: float) -> float:
    return float(np.mean(kept_with(made.round.trial, ratio / tried)))


def _rounds_paragraph(made: Made, ratio: float, reason: str, share: float) -> str:
    rounds = f"{len(made.rounds)} round{'s' if len(made.rounds) > 1 else ''}"
    passed = (
        f"What was simulated at the estimate of round {made.chosen + 1} was like the rows, and "
        "that round's noise was taken"
        if made.round.passes
        else "In no round was what was simulated like the rows: the noise least far from it was "
        f"taken, of round {made.chosen + 1}"
    )
    return (
        f"Noise made of the fitted model itself, in {rounds} from {made.start}, with broad noise "
        f"beside it. {passed}. Noise ratio {ratio:g} ({reason}): the share of the exact "
        f"likelihood's information that a contrast keeps is then about {100 * share:.0f} %, and "
        f"intervals are about {100 * (max(share, 1e-6) ** -0.5 - 1):.0f} % wider."
    )


def choice_among(kept: Mapping[str, float]) -> str:
    """The simplest candidate that is nearly the best; of close ones only what can be trusted.

    >>> choice_among({"matched": 0.2, "uniform": 0.3, "model^0.5": 0.3, "model^0.9": 0.38})
    'uniform'
    >>> choice_among({"matched": 0.4, "uniform": 0.6, "model^0.5": 0.6, "model^0.9": 0.76})
    'model^0.9'
    """
    loose = {name: share for name, share in kept.items() if not _is_close(name)}
    close = {name: share for name, share in kept.items() if name not in loose}
    most = max(loose.values())
    if most >= HALF:
        among: Mapping[str, float] = kept
    else:
        among = close if max(close.values(), default=0.0) > CLEARLY * most else loose
    return next(name for name in among if among[name] >= NEARLY * max(among.values()))


def _is_close(name: str) -> bool:
    """Whether noise follows the data closely, with their accidents."""
    tempered = name.startswith("model^")
    return float(name.removeprefix("model^")) > LOOSE_ALPHA if tempered else name in RICH


def noise_points(data: Sequence[FloatArray], ratio: float) -> tuple[int, ...]:
    """How many noise points each group gets."""
    return tuple(max(min(1, len(points)), round(ratio * len(points))) for points in data)


@dataclass(frozen=True)
class _Tried:
    """Noise tried out, and the information it would keep at each ratio, in the mean over groups."""

    noises: tuple[Noise, ...]
    trial: Trial
    by_ratio: Mapping[float, float]


class _Trials:
    """Candidates tried one after the other, each from where the best so far ended."""

    def __init__(
        self, problem: Problem, settings: Auto, open_ratio: bool, report: Callable[[], object]
    ) -> None:
        self._problem, self._settings, self._report = problem, settings, report
        self._ratios = ratios(settings) if open_ratio else []
        self._count = 0
        self.done: dict[str, _Tried] = {}
        self.refused: dict[str, str] = {}

    @property
    def kept(self) -> dict[str, float]:
        """The information kept by each candidate, in the mean over groups; simplest first."""
        return {name: float(np.mean(each.trial.kept)) for name, each in self.done.items()}

    def rng(self) -> np.random.Generator:
        """Random numbers for the next step."""
        self._count += 1
        return self._problem.adaptation_rng(self._count)

    @property
    def chosen(self) -> str:
        """The candidate that would be taken now."""
        return choice_among(self.kept)

    def best(self) -> Trial | None:
        """The trial of the noise that would be taken now."""
        return self.done[self.chosen].trial if self.done else None

    def run(self, name: str, noises: tuple[Noise, ...] | None) -> None:
        """Try noise out; a second trial under a name stays if it is better."""
        if noises is None:
            return
        best = self.best()
        draw, batch = best.draw if best else None, self._settings.batch
        new = trial(self._problem, noises, draw, batch, self.rng(), self._report)
        if name not in self.done or np.mean(new.kept) > self.kept[name]:
            by_ratio = {ratio: float(np.mean(kept_with(new, ratio))) for ratio in self._ratios}
            # The contrasts are large, and there are many candidates.
            self.done[name] = _Tried(noises, replace(new, contrasts=()), by_ratio)

    def tempered(self, alpha: float, first: bool) -> tuple[Noise, ...] | None:
        """The model tempered at its guess (``first``) or at the best estimate so far.

        None where the guard refuses them all; groups for which it does keep their matched noise.
        """
        problem, best = self._problem, self.best()
        settings = _tempering(problem, alpha)
        bases = tuple(
            settings.starting_base(problem.model, start, data)
            for start, data in zip(problem.source.noises, problem.data, strict=True)
        )
        stuck = settings.method == "carried" and not is_continuous(problem.model.space)
        if best is None or stuck:
            return None
        coef = guessed(problem, best.coef) if first else best.coef
        found = tempered(problem, settings, bases, coef, self.rng())
        refused = [each.reason for each in found if isinstance(each, Refused)]
        if len(refused) == len(found):
            self.refused[f"model^{alpha:g}"] = refused[0]
            return None
        return tuple(
            start if isinstance(each, Refused) else settings.built(problem.model, base, each)
            for start, base, each in zip(problem.source.noises, bases, found, strict=True)
        )


def _fitted(problem: Problem, fitted: Family) -> tuple[Noise, ...] | None:
    """A family fitted to each group; matched noise in groups with too few rows; None if in all."""
    made = []
    for data, start in zip(problem.data, problem.source.noises, strict=True):
        try:
            made.append(fitted(data))
        except InputError:
            made.append(start)
    same = all(new is old for new, old in zip(made, problem.source.noises, strict=True))
    return None if same else tuple(made)


def _cross_fitted(problem: Problem, fitted: Family, noises: tuple[Noise, ...]) -> tuple[Noise, ...]:
    """The chosen family fitted again, so that no row is judged by noise that has seen it.

    Only the chosen one: a fit for each fold is too slow for every candidate.
    """
    return tuple(
        noise if noise is start else CrossFitted.match(fitted, data)
        for noise, start, data in zip(noises, problem.source.noises, problem.data, strict=True)
    )


def _tempering(problem: Problem, alpha: float) -> Adaptive:
    """How the model is tempered: annealed, or else from the noise matched to the data."""
    if Adaptive().is_annealed(problem.model):
        return Adaptive(alpha=alpha)
    if hasattr(problem.model, "curve"):
        return Adaptive(alpha=alpha, base="start", method="carried", least_effective=CARRIED)
    return Adaptive(alpha=alpha, base="start")


def _ratio(
    problem: Problem,
    target: Target,
    by_ratio: Mapping[float, float],
    settings: Auto,
    sweeps: int,
    most: float,
) -> tuple[float, str]:
    """The smallest noise ratio that keeps enough, or the largest with time and memory; why."""
    rows = sum(len(data) for data in problem.data)
    now = rows + sum(problem.source.sizes)
    first = chosen = ratios(settings)[0]
    for ratio in ratios(settings):
        if ratio > max(first, most):
            return chosen, "memory holds no more"
        if sweeps * sweep_seconds(target, rows * (1 + ratio) / now) > settings.seconds:
            if ratio == first:
                return ratio, f"a chain takes longer than {settings.seconds:g} seconds as it is"
            return chosen, f"more would take a chain longer than {settings.seconds:g} seconds"
        chosen = ratio
        if by_ratio[ratio] >= (1 + settings.loss) ** -2:
            return chosen, f"enough for intervals at most {100 * settings.loss:g} % wider"
    return chosen, "the largest allowed"


def ratios(settings: Auto) -> list[float]:
    """Noise ratios to choose from."""
    return [*(ratio for ratio in RATIOS if ratio < settings.most_ratio), float(settings.most_ratio)]


def _paragraph(
    chosen: str, kept: Mapping[str, float], ratio: float, reason: str, share: float
) -> str:
    share = max(share, 1e-6)
    others = ", ".join(f"{each} {100 * value:.0f} %" for each, value in kept.items())
    return (
        f"Noise chosen: {chosen}. In short trials a contrast kept this "
        f"share of the exact likelihood's information: {others}. Unless other noise keeps half, "
        f"noise that follows the data closely is taken only if it keeps {CLEARLY:g} times as much; "
        f"among equals, within {100 * (1 - NEARLY):.0f} %, the simplest. Noise ratio {ratio:g} "
        f"({reason}): the share kept is then about {100 * share:.0f} %, and intervals are about "
        f"{100 * (share**-0.5 - 1):.0f} % wider than with the exact likelihood."
    )


def described(name: str, noises: tuple[Noise, ...]) -> str:
    """A candidate in words."""
    if name.startswith("model^"):
        asked = float(name.removeprefix("model^"))
        alphas = [each.tempering.alpha for each in noises if isinstance(each, TEMPERED)]
        least = min(alphas, default=asked)
        lowered = f", lowered to {least:.2g} by the guard" if least < asked else ""
        return f"the fitted model, tempered by alpha = {asked:g}{lowered}"
    words = {"matched": "matched to the data", "uniform": "uniform"}
    return words.get(name, f"{name} fitted to the data")
