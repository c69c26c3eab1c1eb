"""A random walk over groups that stand in order, such as times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ncbayes.base import Coordinates, FloatArray, InputError, Precision, State, shown
from ncbayes.priors.normal import LEAST, MOST, check_scale
from ncbayes.spaces import is_numeric

Initial = Literal["walk", "separate"]
# Groups nearer to each other than this, in median gaps, have a precision that swamps all others.
CLOSEST = 1e-12
# The rate of steps where none is given, and units that have squares.
STEP, UNITS = 0.01, (1e-70, 1e70)


@dataclass(frozen=True)
class RandomWalk:
    """``theta_t ~ N(theta_{t-1}, lambda d_t I)``, ``lambda ~ IG(shape, rate)``.

    lambda is the state's ``variance``. The paper's prior of time-varying densities (section 4.1)
    is ``RandomWalk(rate=1.0, initial="walk")``.

    Parameters
    ----------
    shape, rate
        Of the inverse gamma prior of every variance. ``rate=None``: 0.01, small, so that a walk
        may hardly move, for theta in ``units``. The paper's is 1.
    times
        When the groups stand, rising, in any unit; ``d_t`` is then the gap before group t by the
        median gap, and d_1 = 1. None: equally spaced, all d_t = 1.
    per_statistic
        A variance lambda_k for every statistic k instead of a common one.
    initial
        "walk": ``theta_1 ~ N(0, lambda I)`` as in the paper, so that lambda has to hold both how
        far the first group is from zero and how far groups are from each other. "separate":
        ``theta_1 ~ N(0, kappa I)`` with ``kappa ~ IG(shape, initial_rate)``, the
        ``initial_variance``.
    initial_rate
        None: ``rate``, or 1 without one.
    units
        One for each statistic: theta in these units walks. None: 1, or without a rate those of the
        data, ``1 / sd(statistic)``, so that in which units the data are changes nothing.
    """

    shape: float = 1.0
    rate: float | None = None
    times: Sequence[float] | None = None
    per_statistic: bool = False
    initial: Initial = "separate"
    initial_rate: float | None = None
    units: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_scale("RandomWalk(shape=...)", self.shape)
        for name in ("rate", "initial_rate"):
            if getattr(self, name) is not None:
                check_scale(f"RandomWalk({name}=...)", getattr(self, name))
        for unit in self.units or ():
            check_scale("RandomWalk(units=...)", unit)
        if not isinstance(self.initial, str) or self.initial not in get_args(Initial):
            raise InputError(
                f'RandomWalk(initial=...) must be "walk" or "separate", got {shown(self.initial)}'
            )
        if not isinstance(self.per_statistic, bool):
            raise InputError(
                "RandomWalk(per_statistic=...) must be True or False, got "
                f"{shown(self.per_statistic)}"
            )
        if self.times is not None:
            _check_times(self.times)

    def in_units(self, units: FloatArray) -> RandomWalk:
        """For statistics of which one unit of theta is so much, where there is no rate."""
        if self.rate is not None or self.units is not None:
            return self
        units = np.clip(units, *UNITS)
        if np.ptp(units) == 0:  # variances in the units of theta
            square = float(units[0] ** 2)
            first = square * self._initial_rate
            return dataclasses.replace(self, rate=square * self._rate, initial_rate=first)
        return dataclasses.replace(self, units=tuple(units.tolist()))

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        state = {"variance": self._variances(self._rate, self._count(shape[1]), rng)}
        if self.initial == "separate":
            state["initial_variance"] = self._variances(self._initial_rate, 1, rng)
        return state

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        first, later = self._first(state), 1 / np.outer(self._gaps(shape[0])[1:], state["variance"])
        within = np.zeros(shape)
        within[0] = 1 / first
        within[1:] += later
        within[:-1] += later
        squares = self._units(shape[1]) ** 2
        between = -np.broadcast_to(later, (shape[0] - 1, shape[1])) if shape[0] > 1 else None
        between = None if between is None else between / squares
        return Precision(within / squares, between), np.zeros(shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        theta = theta / self._units(theta.shape[1])
        steps = np.diff(theta, axis=0) ** 2 / self._gaps(len(theta))[1:, None]
        moved = {}
        if self.initial == "separate":
            moved["initial_variance"] = self._updated(theta[:1] ** 2, self._initial_rate, 1, rng)
        else:
            steps = np.concatenate([theta[:1] ** 2, steps])
        moved["variance"] = self._updated(steps, self._rate, self._count(theta.shape[1]), rng)
        return moved

    def coordinates(self, shape: tuple[int, int]) -> Coordinates:
        """Rows are the steps in units of the root of their gaps; the first is the first group."""
        groups, size = shape
        separate, count = self.initial == "separate", self._count(size)
        mix = np.tril(np.broadcast_to(np.sqrt(self._gaps(groups)), (groups, groups)))
        # Cells of single statistics where each has a variance or a unit of its own.
        own = size if self.per_statistic or self.units is not None else 1
        cells = np.arange(groups * own)
        row, width = cells // own, size // own
        scale = cells % own if self.per_statistic else np.zeros(len(cells), dtype=np.intp)
        classes, scales = np.ones(groups, dtype=np.intp), count
        if separate:
            classes[0], scales = 0, count + 1
            scale = np.where(row == 0, count, scale)
        return Coordinates(
            mix=mix,
            classes=classes,
            level=0 if separate else -1,
            mean=np.zeros(shape),
            row=row,
            start=cells % own * width,
            size=np.full(len(cells), width),
            slab=np.zeros(len(cells)),
            first=scale,
            second=np.full(len(cells), -1),
            factor=np.log(self._units(size))[cells % own],
            fictitious=np.zeros(len(cells), dtype=bool),
            kinds=np.ones(scales, dtype=np.intp),
            prior_a=np.full(scales, float(self.shape)),
            prior_b=np.append(np.full(count, self._rate), self._initial_rate)[:scales],
        )

    def log_scales(self, state: State) -> FloatArray:
        names = ["variance", "initial_variance"][: 1 + (self.initial == "separate")]
        return np.asarray(np.log(np.concatenate([state[name] for name in names])) / 2)

    def at_log_scales(
        self, values: FloatArray, hidden: FloatArray, shape: tuple[int, int]
    ) -> State:
        count, variances = self._count(shape[1]), np.exp(2 * values)
        state = {"variance": variances[..., :count]}
        if self.initial == "separate":
            state["initial_variance"] = variances[..., count:]
        return state

    def _first(self, state: State) -> FloatArray:
        return state["initial_variance" if self.initial == "separate" else "variance"]

    def _count(self, statistics: int) -> int:
        return statistics if self.per_statistic else 1

    def _gaps(self, groups: int) -> FloatArray:
        if self.times is None:
            return np.ones(groups)
        gaps = np.diff(_one_for_each("time", self.times, groups, "groups"))
        return np.append(1.0, gaps / np.median(gaps) if len(gaps) else gaps)

    @property
    def _rate(self) -> float:
        return STEP if self.rate is None else float(self.rate)

    @property
    def _initial_rate(self) -> float:
        given = self.rate if self.initial_rate is None else self.initial_rate
        return 1.0 if given is None else float(given)

    def _units(self, statistics: int) -> FloatArray:
        if self.units is None:
            return np.ones(statistics)
        return _one_for_each("unit", self.units, statistics, "statistics")

    def _variances(self, rate: float, count: int, rng: np.random.Generator) -> FloatArray:
        # With a small shape, such as 0.001, about half of the gamma's draws underflow to 0.
        return rate / np.maximum(rng.standard_gamma(self.shape, count), LEAST)

    def _updated(
        self, squares: FloatArray, rate: float, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Variances given squares (group, statistic) of what has them."""
        total = np.sum(squares, axis=0) if count > 1 else np.sum(squares)
        freedom = squares.size / count
        rates = rate + np.ravel(total) / 2
        return np.asarray(rates / rng.standard_gamma(self.shape + freedom / 2, count))


def _check_times(given: object) -> None:
    times = np.asarray(given, dtype=float) if is_numeric(given) else np.zeros(0)
    if times.ndim != 1 or not len(times) or not np.all(np.abs(times) <= MOST):
        raise InputError(
            f"RandomWalk(times=...) must be finite numbers of up to {MOST:g}, one for each group, "
            f"such as (2020, 2021, 2024), got {shown(given)}"
        )
    gaps = np.diff(times)
    if np.any(gaps <= 0):
        raise InputError(
            f"RandomWalk(times=...) must rise from group to group, got {shown(given)}; "
            "sort the groups by time, and join those of the same time"
        )
    if len(gaps) and gaps.min() < CLOSEST * np.median(gaps):
        raise InputError(
            f"RandomWalk(times=...) must be at least {CLOSEST:g} median gaps apart, got "
            f"{shown(given)}; join groups that are almost at the same time"
        )


def _one_for_each(word: str, given: Sequence[float], count: int, what: str) -> FloatArray:
    if len(given) != count:
        raise InputError(
            f"RandomWalk({word}s=...) must hold one {word} for each of the {count} {what}, got "
            f"{len(given)}"
        )
    return np.asarray(given, dtype=float)
