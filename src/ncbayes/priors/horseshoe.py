"""Horseshoe priors: most parameters near zero, some far from it (the paper's section 5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ncbayes.base import (
    BoolArray,
    Clusters,
    Coordinates,
    FloatArray,
    InputError,
    Precision,
    State,
    shown,
)
from ncbayes.priors.normal import check_scale, numbers
from ncbayes.priors.pairs import by_edge
from ncbayes.priors.slices import slice_sample

# A pair that is forced out has this standard deviation: zero, for every purpose.
OUT = 1e-6
# The law of the logarithm of a local scale has about this width.
LOCAL_WIDTH = 3.0
# Beyond exp(+-300) a scale's square leaves double precision; no likelihood tells such from another.
MOST_LOG = 300.0
# log tau and log u for the exact draw of scales from a prior with a fictitious slab.
GRID = np.linspace(-40.0, 40.0, 1601)


@dataclass(frozen=True, eq=False)
class _Runs:
    """What no state changes, one entry a run."""

    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]
    relative: FloatArray
    """s; inf where the slab alone acts, and where a pair is out."""
    log_relative: FloatArray
    slab: FloatArray
    """The slab's precision."""
    fictitious: BoolArray


@dataclass(frozen=True, eq=False)
class Horseshoe:
    """``theta_k ~ N(0, (1 / slab^2 + 1 / (u tau s)^2)^-1)``, ``u ~ C+(0, 1)``.

    Every parameter has a local scale u, or every run of them has one (``grouped``): the statistics
    of an edge of a torus graph, say. All share the global scale ``tau ~ C+(0, scale)``, all groups
    of the data too; local scales are each group's own.

    Parameters
    ----------
    grouped
        One u for each run of statistics that the model names (``model.clusters``); False: one for
        each statistic.
    slab
        The scale that large parameters are shrunk to, the paper's c; None: no slab, the
        plain horseshoe, whose posterior has no mean where a likelihood is nearly flat.
    slab_form
        "conditional": the prior above, which the paper states. "likelihood": the one that the
        paper's algorithm samples, with the slab as an observation of zero, ``N(theta; 0, (u tau)^2)
        exp(-theta^2 / (2 slab^2))``; it favours smaller u.
    scale
        The scale of the half-Cauchy prior of tau.
    tau
        A fixed global scale instead, such as ``global_scale(...)``.
    edge_scales
        Prior knowledge s about pairs of nodes of a graph: a symmetric matrix, or a mapping from
        pairs. 1 for pairs as any other, larger for likely ones; 0 forces a pair out, ``inf`` leaves
        it to the slab alone.
    """

    grouped: bool = True
    slab: float | None = 1.0
    slab_form: Literal["conditional", "likelihood"] = "conditional"
    scale: float = 1.0
    tau: float | None = None
    edge_scales: Any = None
    runs: tuple[int, ...] | None = None
    """Set by ``bound``: the size of each run of statistics."""
    relative: FloatArray | None = None
    """Set by ``bound``: s of each run."""
    units: FloatArray | None = None
    """One for each run: theta in these units has the prior. Set for edges of data with units."""

    def __post_init__(self) -> None:
        check_scale("Horseshoe(scale=...)", self.scale)
        for name in ("slab", "tau"):
            if getattr(self, name) is not None:
                check_scale(f"Horseshoe({name}=...)", getattr(self, name))
        if self.slab_form not in ("conditional", "likelihood"):
            raise InputError(
                'Horseshoe(slab_form=...) must be "conditional" or "likelihood", got '
                f"{shown(self.slab_form)}"
            )
        if self.units is not None and self.slab_form == "likelihood":
            raise InputError('Horseshoe(units=...) needs slab_form="conditional"; leave units out')
        if not isinstance(self.grouped, bool | np.bool_):
            raise InputError(
                f"Horseshoe(grouped=...) must be True or False, got {shown(self.grouped)}"
            )

    def bound(self, model: Any, start: int, stop: int) -> Horseshoe:
        """The prior of the columns ``start`` to ``stop`` of the model's theta."""
        runs = np.arange(stop - start)
        if self.grouped and hasattr(model, "clusters"):
            runs = _numbered(model)[start:stop]
        changes = np.flatnonzero(np.diff(runs)) + 1
        sizes = np.diff(np.concatenate([[0], changes, [stop - start]]))
        relative = np.ones(len(sizes))
        if self.edge_scales is not None:
            of_statistic = by_edge(self.edge_scales, model, start, stop)
            relative = of_statistic[np.concatenate([[0], changes]).astype(np.intp)]
            if not np.array_equal(np.repeat(relative, sizes), of_statistic):
                raise InputError(
                    "Horseshoe(edge_scales=...) gives different scales to statistics of one run "
                    f"of {shown(model)} (model.clusters), which share their local scale; use "
                    "grouped=False"
                )
            if self.slab is None and np.isinf(relative).any():
                raise InputError(
                    "Horseshoe(edge_scales=...) has inf, which leaves a pair to the slab alone, "
                    "but slab=None; give a slab, such as slab=1"
                )
        return replace(self, runs=tuple(int(size) for size in sizes), relative=relative)

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        runs = self._runs(shape)
        count = (shape[0], len(runs.sizes))
        if not runs.fictitious.any():
            local = np.abs(rng.standard_cauchy(count))
            return {"local": np.clip(local, 1e-100, 1e100)} | self._drawn_tau(rng)
        state = self._drawn_tau(rng) if self.tau is not None else {"tau": self._tilted(shape, rng)}
        local, missing = np.ones(count), np.ones(count, dtype=bool)
        half = np.broadcast_to(runs.sizes / 2, count)
        ratio = np.broadcast_to(self._multiplier(state, runs) / (self.slab or 1.0), count)
        while missing.any():
            local = np.where(missing, np.abs(rng.standard_cauchy(count)), local)
            kept = -half * np.log1p(np.where(runs.fictitious, local * ratio, 0.0) ** 2)
            missing &= np.log(rng.random(count)) > kept
        return {"local": np.clip(local, 1e-100, 1e100)} | state

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        runs = self._runs(shape)
        precision = np.repeat(self._precision(state, runs), runs.sizes, axis=1)
        return Precision(precision), np.zeros(shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        runs = self._runs(theta.shape)
        squares = np.add.reduceat(theta**2, runs.starts, axis=1)

        def log_density(log_local: FloatArray) -> FloatArray:
            return self._by_run(self.relocated(state, log_local), runs, squares)

        moved = slice_sample(log_density, np.log(state["local"]), LOCAL_WIDTH, rng)
        return self.update_global(self.relocated(state, moved), theta, rng)

    def update_global(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        """tau given u and theta; then tau given the products u tau, which theta depends on."""
        if self.tau is not None:
            return state
        from ncbayes.priors.tau import moves

        runs = self._runs(theta.shape)
        log_tau, log_local = moves(
            math.log(state["tau"][0]),
            np.log(state["local"]),
            np.add.reduceat(theta**2, runs.starts, axis=1),
            runs.sizes,
            runs.log_relative,
            runs.slab,
            runs.fictitious,
            math.log(self.scale),
            rng,
        )
        return {"local": _exp(log_local), "tau": _exp(np.array([log_tau]))}

    def clusters(self, state: State, shape: tuple[int, int]) -> Clusters:
        runs = self._runs(shape)
        return Clusters(
            runs.starts,
            runs.sizes,
            np.log(state["local"]),
            self._multiplier(state, runs),
            runs.slab,
            runs.fictitious,
        )

    def coordinates(self, shape: tuple[int, int]) -> Coordinates:
        runs, groups = self._runs(shape), shape[0]
        count = len(runs.sizes)
        cells = np.arange(groups * count)
        row, run = cells // count, cells % count
        fixed = 0.0 if self.tau is None else math.log(self.tau)
        globals_ = 1 if self.tau is None else 0
        tau = len(cells) if self.tau is None else -1
        return Coordinates(
            mix=np.eye(groups),
            classes=np.arange(groups),
            level=-1,
            mean=np.zeros(shape),
            row=row,
            start=runs.starts[run],
            size=runs.sizes[run],
            slab=runs.slab[run],
            first=cells,
            second=np.full(len(cells), tau),
            factor=runs.log_relative[run] + fixed,
            fictitious=runs.fictitious[run],
            kinds=np.zeros(len(cells) + globals_, dtype=np.intp),
            prior_a=np.append(np.zeros(len(cells)), np.full(globals_, math.log(self.scale))),
            prior_b=np.zeros(len(cells) + globals_),
        )

    def log_scales(self, state: State) -> FloatArray:
        local = np.ravel(np.log(state["local"]))
        return local if self.tau is not None else np.append(local, np.log(state["tau"]))

    def at_log_scales(
        self, values: FloatArray, hidden: FloatArray, shape: tuple[int, int]
    ) -> State:
        count = shape[0] * len(self._runs(shape).sizes)
        local = _exp(values[..., :count]).reshape(*values.shape[:-1], shape[0], -1)
        return {"local": local} | (
            {} if self.tau is not None else {"tau": _exp(values[..., count:])}
        )

    def relocated(self, state: State, log_local: FloatArray) -> State:
        return {**state, "local": _exp(log_local)}

    def rescaled(self, state: State, value: float) -> State:
        """The state with its global scale, or if that is fixed every local one, at this value."""
        name = "tau" if self.tau is None else "local"
        return {**state, name: np.full_like(state[name], value)}

    def _by_run(self, state: State, runs: _Runs, squares: FloatArray) -> FloatArray:
        """Log density of each run's theta and log u, (group, run)."""
        precision = normalizer = self._precision(state, runs)
        if runs.fictitious.any():
            base = (state["local"] * self._multiplier(state, runs)) ** -2
            normalizer = np.where(runs.fictitious, base, precision)
        gaussian = (runs.sizes * np.log(normalizer) - precision * squares) / 2
        return np.asarray(gaussian + _log_half_cauchy(np.log(state["local"])))

    def _precision(self, state: State, runs: _Runs) -> FloatArray:
        """Of each run's coefficients, (group, run)."""
        base = (state["local"] * self._multiplier(state, runs)) ** -2
        return np.asarray(np.minimum(runs.slab + base, 1e200))

    def _multiplier(self, state: State, runs: _Runs) -> FloatArray:
        """``tau s`` of each run."""
        tau = state["tau"][0] if self.tau is None else self.tau
        return np.asarray(runs.relative * tau)

    def _runs(self, shape: tuple[int, int]) -> _Runs:
        """Of the bound statistics; one run a statistic if it has not been bound."""
        runs = self._bound_runs if self.runs is not None else self._made((1,) * shape[1])
        if runs.sizes.sum() != shape[1]:
            raise InputError(
                f"this Horseshoe was bound to {runs.sizes.sum()} statistics, got {shape[1]}"
            )
        return runs

    @cached_property
    def _bound_runs(self) -> _Runs:
        return self._made(self.runs or ())

    def _made(self, runs: tuple[int, ...]) -> _Runs:
        sizes = np.array(runs, dtype=np.intp)
        given = np.ones(len(sizes)) if self.relative is None else self.relative
        units = np.ones(len(sizes)) if self.units is None else self.units
        own = 0.0 if self.slab is None else self.slab
        relative = np.where(given == 0, np.inf, given * units)
        slab = np.where(given == 0, OUT**-2, own and (own * units) ** -2)
        likelihood = self.slab_form == "likelihood" and self.slab is not None
        return _Runs(
            np.cumsum(sizes) - sizes,
            sizes,
            relative,
            np.log(relative),
            slab,
            np.isfinite(relative) & likelihood,
        )

    def _drawn_tau(self, rng: np.random.Generator) -> dict[str, FloatArray]:
        if self.tau is not None:
            return {}
        return {"tau": np.clip(self.scale * np.abs(rng.standard_cauchy(1)), 1e-100, 1e100)}

    def _tilted(self, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
        """tau of the prior with a fictitious slab: its half-Cauchy times the mass left for u."""
        runs = self._runs(shape)
        kinds = np.column_stack([runs.sizes, runs.relative])
        different, times = np.unique(kinds[runs.fictitious], axis=0, return_counts=True)
        masses = tuple(
            (float(size), float(np.log(relative / float(self.slab or 1.0))), shape[0] * int(count))
            for (size, relative), count in zip(different, times, strict=True)
        )
        cumulative = _tilted_law(float(np.log(self.scale)), masses)
        uniform = rng.random(1) * cumulative[-1]
        return np.asarray(np.exp(np.interp(uniform, cumulative, GRID)))


@lru_cache(maxsize=8)
def _tilted_law(log_scale: float, masses: tuple[tuple[float, float, int], ...]) -> FloatArray:
    """The distribution function of log tau on the grid, up to a factor.

    The mass left for u is ``E (1 + (u tau ratio)^2)^(-k / 2)`` for a run of k; ``masses`` holds
    k, log ratio and how many such runs there are.
    """
    log_prior = _log_half_cauchy(GRID - log_scale)
    log_u = _log_half_cauchy(GRID) + np.log(2 / np.pi * (GRID[1] - GRID[0]))
    for size, log_ratio, count in masses:
        exponent = GRID[:, None] + GRID[None, :] + log_ratio
        mass = logsumexp(log_u - size / 2 * np.logaddexp(0, 2 * exponent), axis=1)
        log_prior = log_prior + count * mass
    weights = np.exp(log_prior - log_prior.max())
    return np.concatenate([[0], np.cumsum((weights[1:] + weights[:-1]) / 2)])


def global_scale(nonzero: float, statistics: int, points: int) -> float:
    """A fixed tau from a guess of how many parameters are not zero (Piironen and Vehtari 2017).

    ``tau = nonzero / (sqrt(points) (statistics - nonzero))``, where ``points`` counts data and
    noise, ``n + m``; the paper's rule, with ``statistics = 2 d^2`` for a full torus graph.

    >>> round(global_scale(nonzero=44, statistics=288, points=400), 5)
    0.00902
    """
    given = numbers([nonzero, statistics, points])
    if given.shape != (3,) or not (0 < given[0] < given[1] and given[2] > 0):
        raise InputError(
            "global_scale(nonzero, statistics, points) needs 0 < nonzero < statistics and "
            f"points > 0, got {shown((nonzero, statistics, points))}"
        )
    return float(given[0] / (np.sqrt(given[2]) * (given[1] - given[0])))


def _numbered(model: Any) -> NDArray[np.intp]:
    """The run of each statistic of a model, by its ``clusters``."""
    runs, size = np.asarray(model.clusters), sum(len(names) for names in model.groups.values())
    whole = runs.shape == (size,) and runs.dtype.kind in "iu"
    if not whole or 1 + np.count_nonzero(np.diff(runs)) != len(np.unique(runs)):
        raise InputError(
            f"clusters of {shown(model)} must hold a whole number for each of the {size} "
            "statistics, and statistics of the same number must stand side by side, got "
            f"{shown(model.clusters)}; reorder the statistics, or use Horseshoe(grouped=False)"
        )
    return runs


def _log_half_cauchy(log_value: FloatArray) -> FloatArray:
    """Log density of log u for u ~ C+(0, 1), up to a constant."""
    return np.asarray(-np.logaddexp(-log_value, log_value))


def _exp(log_value: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.clip(log_value, -MOST_LOG, MOST_LOG)))
