"""The no-U-turn sampler on the contrastive likelihood: for any energy, and for families.

Under a prior that tells its coordinates (``base.Coordinates``), coefficients and scales move
together, non-centred. A position holds z of the prior's own rows y, the columns of coef without
scales, and the logarithms of the scales, zeta:

    log lambda  = log(slab + exp(-2 (zeta_first + zeta_second + factor)))       of each cell
    y           = mean + z / sqrt(lambda)
    coef        = mix y                                                         part by part
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import block_diag

from ncbayes.autodiff import ONE_THREAD, blackjax_module, double_precision, jax_module
from ncbayes.base import Draw, FloatArray, InputError, Prior, State, shown
from ncbayes.contrast import Target
from ncbayes.curved import Curved, curved_log_odds
from ncbayes.engines import warmup
from ncbayes.engines.coordinates import Piece, Structure, pieces
from ncbayes.engines.gibbs import Gibbs
from ncbayes.engines.starts import intercept

METRICS = ("auto", "dense", "diagonal")
# A position of up to so many numbers: a dense metric costs less than the gradients that it saves.
MOST_DENSE = 100

# Starting values that are tried where the log density of some is not finite.
ATTEMPTS = 20
# Updates of an energy's scales, which bring them near its starting values.
APPROACH = 20
# So few numbers are handed over anew in every sweep, which takes less time than to keep them.
FEW = 1000
# What a position needs to know of the cells of y, and of the priors of zeta.
CELLS = ("size", "first", "second", "factor", "fictitious", "mean", "kinds", "prior_a", "prior_b")

Function = Callable[..., Any]
Layout = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Nuts:
    """coef (of all groups) and the prior's scales by one NUTS transition, non-centred.

    Under a prior that does not tell its coordinates, such as a full covariance: coef given the
    scales, then the scales given coef.

    Step size and metric are adapted in the sweeps that are discarded, as in Stan, so that trees
    accept ``target_acceptance`` of their points in the mean; higher: smaller steps, fewer
    divergences. A tree doubles at most ``max_depth`` times. ``metric``: "dense", "diagonal" or
    "auto", which is dense up to 100 coefficients and scales.
    """

    target_acceptance: float = 0.8
    max_depth: int = 10
    metric: Literal["auto", "dense", "diagonal"] = "auto"
    tune: int = field(default=0, repr=False)
    packages: ClassVar[tuple[str, ...]] = ("blackjax", "jax", "jaxlib")

    def __post_init__(self) -> None:
        rate, depth = self.target_acceptance, self.max_depth
        if not (isinstance(rate, int | float | np.number) and 0 < rate < 1):
            raise InputError(
                "Nuts(target_acceptance=...) must be between 0 and 1, such as 0.8, got "
                f"{shown(rate)}"
            )
        whole = isinstance(depth, int | np.integer) and not isinstance(depth, bool)
        if not whole or not 1 <= depth <= 20:
            raise InputError(
                f"Nuts(max_depth=...) must be a whole number from 1 to 20, got {shown(depth)}"
            )
        if self.metric not in METRICS:
            raise InputError(
                f"Nuts(metric=...) must be one of {', '.join(map(repr, METRICS))}, got "
                f"{shown(self.metric)}"
            )

    def adapting(self, sweeps: int) -> Nuts:
        """The same engine, which adapts in so many sweeps from the start."""
        blackjax_module('engine="nuts"')
        return replace(self, tune=sweeps)

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """A family: where Gibbs sampling begins; an energy: around its starting values."""
        draw = _curved_start(target, rng) if target.curves else Gibbs().start(target, rng)
        metric = self._metric(target, draw.coef, draw.scales)
        return replace(draw, memory=warmup.begun(metric, self.tune))

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        posed = _posed(target)
        # Without a memory the metric is a function of the target: the kernel is invariant still.
        memory = draw.memory or warmup.begun(self._metric(target), self.tune)
        key = rng.integers(2**32, size=2, dtype=np.uint32)
        with double_precision():
            found = _transition()(
                posed.functions, posed.layout, int(self.max_depth), key,
                memory["position"] if "position" in memory else posed.position(draw),
                memory["step_size"], memory["inverse_mass"], posed.arrays,
                posed.gaussian(draw.scales),
            )  # fmt: skip
            position, coef, y, facts = found
            position, coef, y = np.asarray(position), np.asarray(coef), np.asarray(y)
            stats = {name: np.asarray(value).item() for name, value in facts.items()}
        stats["step_size"] = float(memory["step_size"])
        after = warmup.advanced(
            memory, self.tune, position, stats["acceptance_rate"], self.target_acceptance
        )
        if not posed.together:
            return Draw(coef, target.prior.update(draw.scales, coef, rng), stats, after)
        return Draw(coef, posed.scales(position, y), stats, {**after, "position": position})

    def _metric(
        self, target: Target, coef: FloatArray | None = None, scales: State | None = None
    ) -> FloatArray:
        """The inverse metric before anything is known of the posterior.

        Of columns without scales ``(prior precision + design' design / 4)^-1``, no wider than the
        posterior; of z and zeta 1, about the width of their prior.
        """
        posed = _posed(target)
        if coef is None:
            coef = np.array([each.start for each in target.curves] or np.zeros(target.shape))
        if scales is None:
            scales = target.prior.draw(target.shape, np.random.default_rng(0))
        structure, within = posed.structure, posed.gaussian(scales)[0]
        free, entries, count = structure.free, structure.begins[-1], structure.scale_begins[-1]
        dense = self.metric == "dense" or (self.metric == "auto" and structure.size <= MOST_DENSE)
        blocks = []
        for g, row in enumerate(coef):
            design = (
                target.curves[g].tangent(row)[0] if target.curves else target.contrasts[g].design
            )
            own, quarter = within[g], np.full(design.shape[0], 0.25)
            if dense:
                full = np.diag(own) if own.ndim == 1 else own
                blocks.append(np.linalg.inv(design.gram(quarter)[np.ix_(free, free)] + full))
            else:
                diagonal = own if own.ndim == 1 else np.diag(own)
                blocks.append(1 / (design.gram_diagonal(quarter)[free] + diagonal))
        if dense:
            return np.asarray(block_diag(np.eye(entries), *blocks, np.eye(count)))
        return np.concatenate([np.ones(entries), *blocks, np.ones(count)])


def _curved_start(target: Target, rng: np.random.Generator) -> Draw:
    coef = np.array([_defined(each, rng) for each in target.curves])
    for each, row in zip(target.curves, coef, strict=True):
        row[-1] = 0.0
        row[-1] = intercept(each.log_odds(row), each.is_data)
    scales = target.prior.draw(target.shape, rng)
    for _ in range(APPROACH):
        scales = target.prior.update(scales, coef, rng)
    return Draw(coef, scales)


def _defined(curve: Curved, rng: np.random.Generator) -> FloatArray:
    """Starting values with a finite log density and derivatives, nearer and nearer to those given.

    From elsewhere NUTS never moves.
    """
    for attempt in range(ATTEMPTS):
        jitter = rng.standard_normal(len(curve.start)) / 2**attempt
        row: FloatArray = curve.start + curve.spread * jitter
        design, offset, _ = curve.tangent(row)
        if np.isfinite(offset).all() and np.isfinite(design.dense()).all():
            return row
    raise InputError(
        f"log_density or its derivatives are not finite at {ATTEMPTS} starting values near those "
        "given; start where they are by initial=..., or change the function, so that they are "
        "finite for all values of the parameters"
    )


@dataclass(frozen=True, eq=False)
class _Posed:
    """A target as NUTS needs it.

    ``together``: its prior tells its coordinates; else all columns of coef are free, and
    ``free_prior`` is None, because their Gaussian changes with the scales. ``layout``: of each
    piece of coef the rows of y, 0 without scales, and the columns. ``functions``: of the groups'
    log odds, None where linear. ``arrays``: what all that takes, by its compiled form.
    """

    prior: Prior
    structure: Structure
    together: bool
    layout: Layout
    functions: tuple[Function | None, ...]
    cells: dict[str, Any]
    arrays: dict[str, Any]
    free_prior: tuple[FloatArray, ...] | None

    def gaussian(self, scales: State) -> tuple[FloatArray, ...]:
        """Of the free columns: precision, shift and, if any, what couples their groups."""
        return self.free_prior or _free_prior(self.prior, self.structure, scales)

    def position(self, draw: Draw) -> FloatArray:
        """Where a draw lies."""
        zeta = self.structure.log_scales(draw.scales)
        rows = self.structure.rows(draw.coef, self.structure.hidden_values(draw.scales))
        y = np.concatenate([np.zeros(0), *map(np.ravel, rows)])
        _, log_precision = _log_precisions(np, self.cells, zeta)
        z = (y - self.cells["mean"]) * np.exp(log_precision / 2)[self.cells["entry"]]
        return np.concatenate([z, np.ravel(draw.coef[:, self.structure.free]), zeta])

    def scales(self, position: FloatArray, y: FloatArray) -> State:
        """The prior's state at a position."""
        zeta = position[len(position) - self.structure.scale_begins[-1] :]
        return self.structure.states(zeta, y[self.structure.hidden])


# For as long as the target is in use.
_POSED: WeakKeyDictionary[Target, _Posed] = WeakKeyDictionary()


def _posed(target: Target) -> _Posed:
    if target not in _POSED:
        _POSED[target] = _made(target)
    return _POSED[target]


def _made(target: Target) -> _Posed:
    jax, prior, shape = jax_module('engine="nuts"'), target.prior, target.shape
    told = pieces(prior, shape)
    structure = Structure(told or (Piece(0, shape[1], prior, "", None),), shape)
    free_prior = None
    if told is not None:
        zeros = np.zeros(structure.scale_begins[-1]), np.zeros(len(structure.hidden))
        free_prior = _free_prior(prior, structure, structure.states(*zeros))
    curved = [((e.points, e.anchor), e.offset, e.is_data) for e in target.curves]
    linear = [((e.design.dense(),), e.offset, e.is_data) for e in target.contrasts]
    functions = (*(each.function for each in target.curves), *(None for _ in linear))
    layout = tuple(
        (0 if each.coordinates is None else len(each.coordinates.classes), each.width)
        for each in structure.pieces
    )
    cells = _cells(structure)
    mixes = [coordinates.mix for _, coordinates in structure.scaled]
    arrays: dict[str, Any] = {"groups": [*curved, *linear], "cells": cells, "mixes": mixes}
    if sum(array.size for array in jax.tree.leaves(arrays)) > FEW:
        with double_precision():
            arrays = jax.tree.map(jax.numpy.asarray, arrays)
    together = told is not None
    return _Posed(prior, structure, together, layout, functions, cells, arrays, free_prior)


def _cells(structure: Structure) -> dict[str, Any]:
    """What a position needs to know of the cells of y and of the priors of zeta.

    ``entry``: the cell of every entry of y.
    """
    scaled = tuple(piece for piece, _ in structure.scaled)
    skeleton = replace(structure, pieces=scaled).skeleton
    order = np.argsort(skeleton["cell"])
    with np.errstate(divide="ignore"):
        log_slab = np.log(skeleton["slab"])
    entry = np.repeat(order, skeleton["size"][order])
    return {"entry": entry, "log_slab": log_slab, **{name: skeleton[name] for name in CELLS}}


def _free_prior(prior: Prior, structure: Structure, scales: State) -> tuple[FloatArray, ...]:
    precision, shift = prior.gaussian(scales, structure.shape)
    free, between = structure.free, precision.between
    within = precision.within[:, free]
    within = within if within.ndim == 2 else within[:, :, free]
    if between is None or not between[:, free].any():
        return within, shift[:, free]
    return within, shift[:, free], between[:, free]


@cache
def _transition() -> Function:
    """The compiled transition; functions, layout and depth are static, all else may change.

    Returns the position, coef and y there, and facts about the sweep.
    """
    jax, nuts = jax_module('engine="nuts"'), blackjax_module('engine="nuts"').nuts
    kernel = nuts.build_kernel()

    def transition(
        functions: tuple[Function | None, ...],
        layout: Layout,
        depth: int,
        key: Any,
        position: Any,
        step_size: Any,
        inverse_mass: Any,
        arrays: Any,
        free_prior: Any,
    ) -> tuple[Any, Any, Any, dict[str, Any]]:
        def log_posterior(position: Any) -> Any:
            coef, _, log_prior = _placed(layout, arrays, free_prior, position)
            return _log_likelihood(functions, coef, arrays["groups"])[0] + log_prior

        state = nuts.init(position, log_posterior)
        key = jax.random.wrap_key_data(key, impl="threefry2x32")
        state, info = kernel(key, state, log_posterior, step_size, inverse_mass, depth)
        coef, y, _ = _placed(layout, arrays, free_prior, state.position)
        value, largest = _log_likelihood(functions, coef, arrays["groups"])
        return state.position, coef, y, {
            "log_likelihood": value,
            "largest_log_odds": largest,
            "diverging": info.is_divergent,
            "reached_max_treedepth": (info.num_trajectory_expansions >= depth)
            & ~(info.is_turning | info.is_divergent),
            "acceptance_rate": info.acceptance_rate,
            "n_steps": info.num_integration_steps,
        }  # fmt: skip

    compiled: Function = jax.jit(transition, static_argnums=(0, 1, 2), compiler_options=ONE_THREAD)
    return compiled


def _placed(layout: Layout, arrays: Any, free_prior: Any, position: Any) -> tuple[Any, Any, Any]:
    """coef and y at a position, and its log prior density up to a constant.

    In z the Gaussian of a cell has lost its normalizer to the Jacobian; of a fictitious slab, which
    has no part in that, ``(base / lambda)^(size / 2)`` is left, where base is lambda less slab.
    """
    jnp = jax_module('engine="nuts"').numpy
    cells, groups = arrays["cells"], len(arrays["groups"])
    entries, last = len(cells["mean"]), len(position) - len(cells["kinds"])
    z, zeta = position[:entries], position[last:]
    free = position[entries:last].reshape(groups, (last - entries) // groups)
    log_base, log_precision = _log_precisions(jnp, cells, zeta)
    y = cells["mean"] + z * jnp.exp(-log_precision / 2)[cells["entry"]]
    left = jnp.where(cells["fictitious"], cells["size"] / 2 * (log_base - log_precision), 0.0)
    log_prior = left.sum() - z @ z / 2 + _log_gaussian(free, *free_prior)
    parts, mixes, at, column = [], iter(arrays["mixes"]), 0, 0
    for rows, width in layout:
        if rows:
            parts.append(next(mixes) @ y[at : at + rows * width].reshape(rows, width))
            at += rows * width
        else:
            parts.append(free[:, column : column + width])
            column += width
    return jnp.concatenate(parts, axis=1), y, log_prior + _log_scale_prior(cells, zeta)


def _log_precisions(numpy: Any, cells: Any, zeta: Any) -> tuple[Any, Any]:
    """Of every cell ``-2 (zeta_first + zeta_second + factor)`` and log lambda, by this NumPy."""
    # The last entry, -1, stands for no scale.
    padded = numpy.append(zeta, 0.0)
    log_base = -2 * (padded[cells["first"]] + padded[cells["second"]] + cells["factor"])
    return log_base, numpy.logaddexp(cells["log_slab"], log_base)


def _log_scale_prior(cells: Any, zeta: Any) -> Any:
    """Log density of all zeta, up to a constant; see ``base.Coordinates``."""
    jnp = jax_module('engine="nuts"').numpy
    off = zeta - cells["prior_a"]
    half_cauchy = -jnp.logaddexp(off, -off)
    # Where the other is taken, exp must not leave double precision: its gradient would be nan.
    gamma, inside = cells["kinds"] == 1, jnp.where(cells["kinds"] == 1, zeta, 0.0)
    inverse_gamma = -2 * cells["prior_a"] * inside - cells["prior_b"] * jnp.exp(-2 * inside)
    return jnp.where(gamma, inverse_gamma, half_cauchy).sum()


def _log_likelihood(
    functions: tuple[Function | None, ...], rows: Any, groups: Any
) -> tuple[Any, Any]:
    """``sum s psi - log(1 + exp(psi))`` over all groups, and the largest absolute psi."""
    jax = jax_module('engine="nuts"')
    total, largest = 0.0, 0.0
    for function, row, (given, offset, is_data) in zip(functions, rows, groups, strict=True):
        if function is None:
            log_odds = given[0] @ row + offset
        else:
            log_odds = curved_log_odds(function, row, *given) + offset
        total -= jax.nn.softplus(jax.numpy.where(is_data, -log_odds, log_odds)).sum()
        if log_odds.size:
            largest = jax.numpy.maximum(largest, jax.numpy.abs(log_odds).max())
    return total, largest


def _log_gaussian(rows: Any, within: Any, shift: Any, between: Any = None) -> Any:
    """Log density of normal rows of this precision and shift, up to a constant."""
    jnp = jax_module('engine="nuts"').numpy
    product = within * rows if within.ndim == 2 else jnp.einsum("gij,gj->gi", within, rows)
    value = (rows * (shift - product / 2)).sum()
    return value if between is None else value - (between * rows[1:] * rows[:-1]).sum()
