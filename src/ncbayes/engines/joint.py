"""Coefficients and scales in one Hamiltonian trajectory on the likelihood itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from ncbayes.base import Block, Draw, FloatArray, InputError, State
from ncbayes.contrast import Contrast, Target
from ncbayes.engines.bound import Bound
from ncbayes.engines.coordinates import Seen, Structure, pieces
from ncbayes.engines.curvature import Gram, WholeGram, gram_of
from ncbayes.engines.laplace import LogPosterior, laplace
from ncbayes.engines.posing import compiled_likelihood
from ncbayes.engines.starts import at_zero
from ncbayes.linalg.chart import Chart
from ncbayes.linalg.designs import Dense, rows

# Shares of the discarded sweeps after which the coordinates are made anew from what was seen since
# the last time, and the share from which on step sizes are averaged: that average is kept.
RENEWED, AVERAGED = (0.05, 0.15, 0.35, 0.7), 0.8
# The least and the most that a trajectory turns, at random, in a standard normal. With scales some
# directions are slow, and gain near half a turn; after a whole one all are back where they were.
# Without scales the posterior is nearly normal, and a quarter turn draws from it anew.
SLOW_TURN, PLAIN_TURN = (1.1, 2.8), (1.3, 1.85)
# Steps of a trajectory, at most: at first, which is up to this share of warm-up, and later.
AT_FIRST, FEW_STEPS, MOST_STEPS = 0.15, 12, 60
# What compiled sweeps count, in the order of ``linalg.joint.Tally.numbers``; ``since`` is -1 where
# nothing adapts.
NUMBERS = ("step_size", "count", "since", "log_sum", "log_count")
# p (1 - p) of a point, where nothing is known yet.
TYPICAL_WEIGHT = 0.1
# Draws that a unit sd counts for in that of an eta, and a sd of sqrt(2) in that of a log scale.
ETA_DRAWS, SCALE_DRAWS = 20, 5
# Step sizes: where warm-up begins, and of a chain that has none.
FIRST_STEP, PLAIN_STEP = 0.1, 0.3
# Starting values: eta this wide, log scales this far from their prior's centre, and those that more
# than MANY coefficients share this much below it: from small scales coefficients enter as the
# data ask for them.
START_WIDTH, MANY, BELOW = 1.5, 10, 3.0
# Links of columns begin near zero: large ones together make covariances of any size.
LINK_WIDTH = 0.1


@dataclass(frozen=True)
class Joint(Bound):
    """Coefficients and scales of all groups by one Hamiltonian trajectory a sweep.

    For priors that are Gaussian given scales (``base.Scaled``), and those without scales. In the
    discarded sweeps the coordinates are whitened (``engines.coordinates``) and the step size
    found; then both are fixed.
    """

    tune: int = field(default=0, repr=False)
    packages: ClassVar[tuple[str, ...]] = ("numba",)

    def __repr__(self) -> str:
        return "Joint(coef and scales in one trajectory)"

    def adapting(self, sweeps: int) -> Joint:
        """The same engine, which adapts in so many sweeps from the start."""
        return replace(self, tune=sweeps)

    def kernel(self, target: Target) -> JointKernel:
        """What is prepared once for a target; its curves are straight, as their fit has seen."""
        if target.curves:
            straight = tuple(Contrast(*each.tangent(each.start)) for each in target.curves)
            target = replace(target, contrasts=straight, curves=())
        found = pieces(target.prior, target.shape)
        if found is None:
            raise InputError(
                "engine 'joint' needs a prior that can tell its coordinates, as those of "
                "ncbayes.priors can, and at most 1500 statistics without scales and 400 groups "
                "that the prior couples; use engine='gibbs'"
            )
        return JointKernel(target, Structure(found, target.shape), self.tune)


def usable(target: Target) -> bool:
    """Whether a target's prior tells its coordinates."""
    return pieces(target.prior, target.shape) is not None


@dataclass(frozen=True, eq=False)
class JointKernel:
    """Trajectories on one target; adapts in the first ``tune`` sweeps of a chain."""

    target: Target
    structure: Structure
    tune: int

    @cached_property
    def data(self) -> Any:
        """The likelihood for compiled loops."""
        return compiled_likelihood(self.target)

    @cached_property
    def _renewals(self) -> tuple[int, ...]:
        """After how many sweeps the coordinates are made anew."""
        return tuple(sorted({int(self.tune * share) for share in RENEWED} - {0}))

    @cached_property
    def _averages(self) -> int:
        return int(self.tune * AVERAGED)

    def start(self, rng: np.random.Generator) -> Draw:
        """Near where theta is zero, as wide as the likelihood allows; scales small."""
        structure = self.structure
        center = self._center()
        memory = self._memory(self._grams_at(center), center)
        normals = rng.standard_normal(structure.size)
        scales = structure.size - structure.scale_begins[-1]
        normals[:scales] *= START_WIDTH
        normals[scales:] *= np.where(structure.skeleton["kinds"] == 2, LINK_WIDTH, 1.0)
        normals[scales:] += self._first_log_scales()
        memory = {**memory, "position": normals}
        coef, zeta, hidden = self._parts(memory)
        return Draw(coef, structure.states(zeta, hidden), {}, memory)

    def _first_log_scales(self) -> FloatArray:
        skeleton = self.structure.skeleton
        a, b = skeleton["prior_a"], skeleton["prior_b"]
        variances = skeleton["kinds"] == 1
        # The prior's mode, of the variance where it is one; links begin at zero, which is their a.
        center = np.array(a)
        center[variances] = np.log(b[variances] / (a[variances] + 1)) / 2
        shares = np.zeros(len(a))
        for which in ("first", "second"):
            used = skeleton[which] >= 0
            np.add.at(shares, skeleton[which][used], skeleton["size"][used])
        return center - np.where((skeleton["kinds"] == 0) & (shares > MANY), BELOW, 0.0)

    def _center(self) -> FloatArray:
        """coef with theta zero where its prior has scales, the other columns at their mode."""
        coef, free = at_zero(self.target), self.structure.free
        coef[:, self.structure.tied] = 0.0
        precision = self.structure.skeleton["free_precision"]
        shift = self.structure.skeleton["free_shift"]
        for g in range(len(coef) if len(free) else 0):
            if self.target.losses:
                loss = self.target.losses[g]
                own = loss.gram[np.ix_(free, free)] + precision[g]
                coef[g, free] = np.linalg.solve(own, loss.shift[free] + shift[g])
                continue
            each = self.target.contrasts[g]
            columns = Dense(np.column_stack([rows(each.design, j, j + 1)[0] for j in free]))
            sub = Contrast(columns, each.offset, each.is_data)
            found = laplace(LogPosterior(sub, precision[g], shift[g]), coef[g, free])
            if found is not None:
                coef[g, free] = found.mode
        return coef

    def _memory(self, grams: tuple[Gram, ...], coef: FloatArray) -> State:
        """A chain's memory before its first sweep: coordinates by these Gram matrices, at coef."""
        structure, adapts = self.structure, self.tune > 0
        hidden = structure.skeleton["mean"][structure.hidden]
        # Without a slope rho is zero for theta at zero: no step is taken that was not asked for.
        learned = structure.learned(Seen(grams, coef, np.zeros_like(coef), hidden))
        center = np.zeros(structure.size)
        center[structure.size - structure.scale_begins[-1] :] = self._first_log_scales()
        step = FIRST_STEP if adapts else PLAIN_STEP
        memory = {
            **{f"chart.{name}": values for name, values in learned.items()},
            "center": center,
            "sd": np.ones(structure.size),
            "sweep": np.zeros(1),
            **_counted([step, 0.0, 0.0 if adapts else -1.0, 0.0, 0.0]),
        }
        return {**memory, **self._emptied()} if adapts else memory

    def _emptied(self) -> dict[str, FloatArray]:
        shape, y = self.structure.shape, self.structure.begins[-1]
        return {
            "sum.weights": np.zeros(len(self.data.label)),
            "sum.slopes": np.zeros(shape),
            "sum.coef": np.zeros(shape),
            "sum.q": np.zeros(y),
            "sum.x": np.zeros(self.structure.size),
            "sum.squares": np.zeros(self.structure.size),
        }

    def _grams_at(self, coef: FloatArray) -> tuple[Gram, ...]:
        """The likelihood's curvature at coef."""
        if self.target.losses:
            pairs = zip(self.target.losses, coef, strict=True)
            return tuple(WholeGram(each.curvature(row)) for each, row in pairs)
        found = []
        for each, row in zip(self.target.contrasts, coef, strict=True):
            chance = expit(each.log_odds(row))
            found.append(gram_of(each.design, chance * (1 - chance)))
        return tuple(found)

    def _chart(self, memory: State) -> Any:
        learned: dict[str, Any] = {
            name.removeprefix("chart."): np.ascontiguousarray(values)
            for name, values in memory.items()
            if name.startswith("chart.")
        }
        return Chart(**self.structure.skeleton, **learned)

    def _parts(self, memory: State) -> tuple[FloatArray, FloatArray, FloatArray]:
        """coef, log scales and hidden coordinates at a memory's position."""
        from ncbayes.linalg.whitening import place

        chart, position = self._chart(memory), memory["position"]
        y, q = np.empty((2, self.structure.begins[-1]))
        coef, bases = np.empty(self.structure.shape), np.empty(len(chart.cell) + len(chart.kinds))
        place(chart, position, y, q, coef, bases)
        zeta = position[len(position) - self.structure.scale_begins[-1] :]
        return coef, zeta, q[self.structure.hidden]

    def _entered(self, draw: Draw) -> State:
        """The memory of a draw that has none: coordinates from design and prior alone.

        Labels have no say in them, so that label tests may go on with the same ones.
        """
        coef = np.zeros(self.structure.shape)
        if self.target.losses:
            grams = self._grams_at(coef)
        else:
            grams = tuple(
                gram_of(each.design, np.full(len(each.offset), TYPICAL_WEIGHT))
                for each in self.target.contrasts
            )
        memory = self._memory(grams, coef)
        log_scales = self.structure.log_scales(draw.scales)
        hidden = self.structure.hidden_values(draw.scales)
        position = self._position(self._chart(memory), draw.coef, log_scales, hidden)
        return {**memory, "position": position}

    def _position(
        self, chart: Any, coef: FloatArray, log_scales: FloatArray, hidden: FloatArray
    ) -> FloatArray:
        from ncbayes.linalg.whitening import enter

        y = self.structure.flat(chart, coef, hidden)
        position = np.empty(self.structure.size)
        enter(chart, y, np.ascontiguousarray(coef), log_scales, position)
        return position

    def sweeps(self, draw: Draw, rng: np.random.Generator, count: int) -> Block:
        """So many sweeps from a draw. What comes out does not depend on how they are cut up."""
        memory = dict(draw.memory) if "position" in draw.memory else dict(self._entered(draw))
        size, shape = self.structure, self.structure.shape
        coefs, facts = np.empty((count, *shape)), np.empty((count, 6))
        zetas = np.empty((count, size.scale_begins[-1]))
        extras = np.empty((count, len(size.hidden)))
        done = 0
        while done < count:
            part = slice(done, min(count, done + self._until_change(memory)))
            memory = self._run(memory, rng, coefs[part], zetas[part], extras[part], facts[part])
            done = part.stop
        from ncbayes.linalg.joint import FACTS

        stats: dict[str, Any] = {name: facts[:, k] for k, name in enumerate(FACTS)}
        stats["diverging"] = stats["diverging"] > 0
        return Block(coefs, size.states(zetas, extras), stats, memory)

    def _until_change(self, memory: State) -> int:
        """Sweeps before something other than sweeps is due."""
        sweep = int(memory["sweep"][0])
        due = [mark for mark in (*self._renewals, self._averages, self.tune) if mark > sweep]
        adapts = memory["since"][0] >= 0
        return min(due) - sweep if adapts and due else 2**62

    def _run(
        self,
        memory: dict[str, FloatArray],
        rng: np.random.Generator,
        *outputs: FloatArray,
    ) -> dict[str, FloatArray]:
        """Sweeps until the outputs are full, then what is due."""
        from ncbayes.linalg.joint import Tally, sweeps

        adapts, sweep = memory["since"][0] >= 0, int(memory["sweep"][0])
        sums = {name: np.array(memory.get(f"sum.{name}", np.zeros(0))) for name in (
            "weights", "q", "x", "squares")}  # fmt: skip
        for name in ("slopes", "coef"):
            sums[name] = np.array(memory.get(f"sum.{name}", np.zeros((0, 0))))
        tally = Tally(**sums, numbers=np.concatenate([memory[name] for name in NUMBERS]))
        position = sweeps(
            self.data, self._chart(memory), memory["center"], memory["sd"],
            np.array(memory["position"]), tally, rng, sweep >= self._averages,
            self._most_steps(memory), *self._turn, self.structure.hidden, *outputs,
        )  # fmt: skip
        memory = {**memory, "position": position, **_counted(tally.numbers)}
        if not adapts:
            return memory
        memory |= {f"sum.{name}": values for name, values in sums.items()}
        now = sweep + len(outputs[0])
        memory["sweep"] = np.array([float(now)])
        if now in self._renewals:
            memory = self._renewed(memory)
        return self._settled(memory) if now >= self.tune else memory

    @property
    def _turn(self) -> tuple[float, float]:
        return SLOW_TURN if self.structure.scaled else PLAIN_TURN

    def _most_steps(self, memory: State) -> int:
        """Few while the coordinates are not worth long trajectories yet."""
        early = memory["since"][0] >= 0 and memory["sweep"][0] < int(AT_FIRST * self.tune)
        return FEW_STEPS if early else MOST_STEPS

    def _renewed(self, memory: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """The memory with new coordinates, from the means of what was seen."""
        count, step = memory["count"][0], 0.8 * memory["step_size"][0]
        x = memory["sum.x"] / count
        variance = np.maximum(memory["sum.squares"] / count - x**2, 0.0)
        coef, log_scales, hidden = self._parts(memory)
        seen = Seen(
            self._grams_seen(memory["sum.weights"] / count, memory["sum.coef"] / count),
            memory["sum.coef"] / count,
            memory["sum.slopes"] / count,
            memory["sum.q"][self.structure.hidden] / count,
        )
        learned = self.structure.learned(seen)
        memory |= {f"chart.{name}": values for name, values in learned.items()}
        memory["position"] = self._position(self._chart(memory), coef, log_scales, hidden)
        scales = len(x) - self.structure.scale_begins[-1]
        center, sd = np.zeros(len(x)), np.ones(len(x))
        center[scales:] = x[scales:]
        sd[scales:] = np.sqrt((variance[scales:] * count + 2 * SCALE_DRAWS) / (count + SCALE_DRAWS))
        if int(memory["sweep"][0]) > self._renewals[0]:
            sd[:scales] = np.sqrt((variance[:scales] * count + ETA_DRAWS) / (count + ETA_DRAWS))
        begun = _counted([step, 0.0, 0.0, 0.0, 0.0])
        return memory | {"center": center, "sd": sd} | begun | self._emptied()

    def _grams_seen(self, weights: FloatArray, coef: FloatArray) -> tuple[Gram, ...]:
        if self.target.losses:
            return self._grams_at(coef)
        found, bounds = [], self.data.bounds
        for g, each in enumerate(self.target.contrasts):
            own = weights[bounds[g] : bounds[g] + len(each.offset)]
            found.append(gram_of(each.design, own))
        return tuple(found)

    def _settled(self, memory: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """The memory once warm-up is over: nothing in it changes any more but the position."""
        step, averaged = memory["step_size"][0], memory["log_count"][0]
        if averaged:
            step = np.exp(memory["log_sum"][0] / averaged)
        kept = {name: values for name, values in memory.items() if not name.startswith("sum.")}
        return {**kept, **_counted([step, 0.0, -1.0, 0.0, 0.0])}


def _counted(values: Sequence[float] | FloatArray) -> dict[str, FloatArray]:
    """Numbers by name, as a memory holds them."""
    return {name: np.array([value]) for name, value in zip(NUMBERS, values, strict=True)}
