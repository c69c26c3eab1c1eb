"""The no-U-turn sampler on the contrastive likelihood: for any energy, and for families.

Under a prior that tells its coordinates (``base.Coordinates``), coefficients and scales move
together, non-centred. A position holds z of the prior's own rows y, the columns of coef without
scales, and the logarithms of the scales, zeta:

    lambda  = slab + exp(-2 (zeta_first + zeta_second + factor))          of each cell
    y       = mean + z / sqrt(lambda),    T y_g = z_g / sqrt(lambda)      if columns are linked
    coef    = mix y                                                       part by part
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
# Of the cells of y, and of the priors of zeta.
CELLS = ("size", "first", "second", "factor", "fictitious", "mean", "kinds", "prior_a", "prior_b")

Function = Callable[..., Any]
Functions = tuple[Function | None, ...]
Layout = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Nuts:
    """coef (of all groups) and the prior's scales by one NUTS transition, non-centred.

    Under a prior that does not tell its coordinates: coef given the scales, then the scales.

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
        return replace(draw, memory=warmup.begun(self._metric(target, draw), self.tune))

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        posed = _posed(target)
        # Without a memory the metric is a function of the target: the kernel is invariant still.
        memory = draw.memory or warmup.begun(self._metric(target), self.tune)
        key = rng.integers(2**32, size=2, dtype=np.uint32)
        before = memory["position"] if "position" in memory else posed.position(draw)
        with double_precision():
            *found, facts = _transition()(
                posed.functions, posed.layout, int(self.max_depth), key, before,
                memory["step_size"], memory["inverse_mass"], posed.arrays,
                posed.gaussian(draw.scales),
            )  # fmt: skip
            position, coef, y = map(np.asarray, found)
            stats = {name: np.asarray(value).item() for name, value in facts.items()}
        stats["step_size"] = float(memory["step_size"])
        after = warmup.advanced(
            memory, self.tune, position, stats["acceptance_rate"], self.target_acceptance
        )
        if not posed.together:
            return Draw(coef, target.prior.update(draw.scales, coef, rng), stats, after)
        return Draw(coef, posed.scales(position, y), stats, {**after, "position": position})

    def _metric(self, target: Target, draw: Draw | None = None) -> FloatArray:
        """The inverse metric before anything is known of the posterior.

        Of columns without scales ``(prior precision + design' design / 4)^-1``, no wider than the
        posterior; of z and zeta 1, about the width of their prior.
        """
        if draw is None:
            coef = np.array([each.start for each in target.curves] or np.zeros(target.shape))
            draw = Draw(coef, target.prior.draw(target.shape, np.random.default_rng(0)))
        within, structure = _posed(target).gaussian(draw.scales)[0], _posed(target).structure
        z, zeta = np.ones(structure.begins[-1]), np.ones(structure.scale_begins[-1])
        free, size = structure.free, structure.size
        dense = self.metric == "dense" or (self.metric == "auto" and size <= MOST_DENSE)
        blocks = []
        for g, row in enumerate(draw.coef):
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
            return np.asarray(block_diag(np.diag(z), *blocks, np.diag(zeta)))
        return np.concatenate([z, *blocks, zeta])


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

    ``layout``: of each piece of coef the rows of y, 0 without scales, the columns, and where in
    zeta their links begin, -1 without any. ``functions``: of the groups' log odds, None where
    linear. ``free_prior``: the Gaussian of columns without scales; None if the prior tells no
    coordinates, so that it is that of all columns, and changes with the scales.
    """

    prior: Prior
    structure: Structure
    layout: Layout
    functions: Functions
    cells: dict[str, Any]
    arrays: dict[str, Any]
    free_prior: tuple[FloatArray, ...] | None

    @property
    def together(self) -> bool:
        """Whether a position holds the scales."""
        return self.free_prior is not None

    def gaussian(self, scales: State) -> tuple[FloatArray, ...]:
        """Of the free columns: precision, shift and, if any, what couples their groups."""
        return self.free_prior or _free_prior(self.prior, self.structure, scales)

    def position(self, draw: Draw) -> FloatArray:
        """Where a draw lies."""
        zeta = self.structure.log_scales(draw.scales)
        rows = self.structure.rows(draw.coef, self.structure.hidden_values(draw.scales))
        links = [link for count, _, link in self.layout if count]
        for own, link in zip(rows, links, strict=True):
            if link >= 0:
                own[:-1] = own[:-1] @ _unlinking(np, zeta, link, own.shape[1]).T
        y = np.concatenate([np.zeros(0), *map(np.ravel, rows)])
        _, log_precision = _log_precisions(np, self.cells, zeta)
        z = (y - self.cells["mean"]) * np.exp(log_precision / 2)[self.cells["entry"]]
        return np.concatenate([z, np.ravel(draw.coef[:, self.structure.free]), zeta])

    def scales(self, position: FloatArray, y: FloatArray) -> State:
        """The prior's state at a position."""
        zeta = position[len(position) - self.structure.scale_begins[-1] :]
        return self.structure.states(zeta, y[self.structure.hidden])


_POSED: WeakKeyDictionary[Target, _Posed] = WeakKeyDictionary()


def _posed(target: Target) -> _Posed:
    """Made once, for as long as the target is in use."""
    if target not in _POSED:
        _POSED[target] = _made(target)
    return _POSED[target]


def _made(target: Target) -> _Posed:
    jax, prior, shape = jax_module('engine="nuts"'), target.prior, target.shape
    told, free_prior = pieces(prior, shape), None
    structure = Structure(told or (Piece(0, shape[1], prior, "", None),), shape)
    if told is not None:
        zeros = np.zeros(structure.scale_begins[-1]), np.zeros(len(structure.hidden))
        free_prior = _free_prior(prior, structure, structure.states(*zeros))
    curved = [((e.points, e.anchor), e.offset, e.is_data) for e in target.curves]
    linear = [((e.design.dense(),), e.offset, e.is_data) for e in target.contrasts]
    functions = (*(each.function for each in target.curves), *(None for _ in linear))
    layout, cells = _laid_out(structure)
    scaled = [(e.mix, e.wishart) for _, e in structure.scaled]
    arrays: dict[str, Any] = {"groups": [*curved, *linear], "cells": cells, "scaled": scaled}
    if sum(array.size for array in jax.tree.leaves(arrays)) > FEW:
        with double_precision():
            arrays = jax.tree.map(jax.numpy.asarray, arrays)
    return _Posed(prior, structure, layout, functions, cells, arrays, free_prior)


def _laid_out(structure: Structure) -> tuple[Layout, dict[str, Any]]:
    """Layout and cells; ``entry`` of these is the cell of every entry of y."""
    scaled = replace(structure, pieces=tuple(piece for piece, _ in structure.scaled))
    skeleton, links = scaled.skeleton, iter(scaled.skeleton["links"].tolist())
    rows = [None if e.coordinates is None else len(e.coordinates.classes) for e in structure.pieces]
    layout = tuple(
        (count or 0, piece.width, next(links) if count else -1)
        for piece, count in zip(structure.pieces, rows, strict=True)
    )
    order = np.argsort(skeleton["cell"])
    entry = np.repeat(order, skeleton["size"][order])
    slab = skeleton["slab"]
    log_slab = np.log(slab, out=np.full(len(slab), -np.inf), where=slab > 0)
    cells = {"entry": entry, "log_slab": log_slab, **{name: skeleton[name] for name in CELLS}}
    return layout, cells


def _free_prior(prior: Prior, structure: Structure, scales: State) -> tuple[FloatArray, ...]:
    precision, shift = prior.gaussian(scales, structure.shape)
    free, between = structure.free, precision.between
    within = precision.within[:, free]
    given = within if within.ndim == 2 else within[:, :, free], shift[:, free]
    return given if between is None or not between[:, free].any() else (*given, between[:, free])


@cache
def _transition() -> Function:
    """The compiled transition; functions, layout and depth are static, all else may change.

    Returns the position, coef and y there, and facts about the sweep.
    """
    jax, nuts = jax_module('engine="nuts"'), blackjax_module('engine="nuts"').nuts
    kernel = nuts.build_kernel()

    def transition(
        functions: Functions,
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
    flat = cells["mean"] + z * jnp.exp(-log_precision / 2)[cells["entry"]]
    left = jnp.where(cells["fictitious"], cells["size"] / 2 * (log_base - log_precision), 0.0)
    log_prior = left.sum() - z @ z / 2 + _log_gaussian(free, *free_prior)
    parts, y, rates = [], [flat[:0]], cells["prior_b"]
    scaled, at, column = iter(arrays["scaled"]), 0, 0
    for count, width, link in layout:
        if not count:
            parts.append(free[:, column : column + width])
            column += width
            continue
        (mix, wishart), rows = next(scaled), flat[at : at + count * width].reshape(count, width)
        if link >= 0:
            unlinking = _unlinking(jnp, zeta, link, width)
            rows = jnp.concatenate([jnp.linalg.solve(unlinking, rows[:-1].T).T, rows[-1:]])
            rate = jnp.einsum("ki,ij,kj->k", unlinking, wishart, unlinking) / 2
            rates = jnp.asarray(rates).at[link - width : link].set(rate)
        parts.append(mix @ rows)
        y.append(rows.ravel())
        at += count * width
    log_prior += _log_scale_prior(cells, rates, zeta)
    return jnp.concatenate(parts, axis=1), jnp.concatenate(y), log_prior


def _log_precisions(numpy: Any, cells: Any, zeta: Any) -> tuple[Any, Any]:
    """Of every cell ``-2 (zeta_first + zeta_second + factor)`` and log lambda, by this NumPy."""
    # The last entry, -1, stands for no scale.
    padded = numpy.append(zeta, 0.0)
    log_base = -2 * (padded[cells["first"]] + padded[cells["second"]] + cells["factor"])
    return log_base, numpy.logaddexp(cells["log_slab"], log_base)


def _unlinking(numpy: Any, zeta: Any, link: int, width: int) -> Any:
    """T: ones on its diagonal, and below it -phi, which begin at ``link`` of zeta."""
    which = np.full((width, width), len(zeta))
    which[np.tril_indices(width, -1)] = link + np.arange(width * (width - 1) // 2)
    return np.eye(width) - numpy.append(zeta, 0.0)[which]


def _log_scale_prior(cells: Any, rates: Any, zeta: Any) -> Any:
    """Log density of all zeta, up to a constant; see ``base.Coordinates``."""
    jnp = jax_module('engine="nuts"').numpy
    off, kinds = zeta - cells["prior_a"], cells["kinds"]
    # Of other kinds none: exp must not leave double precision, or its gradient would be nan.
    own = jnp.where(kinds == 1, zeta, 0.0)
    inverse_gamma = -2 * cells["prior_a"] * own - rates * jnp.exp(-2 * own)
    return jnp.where(kinds == 0, -jnp.logaddexp(off, -off), inverse_gamma).sum()


def _log_likelihood(functions: Functions, rows: Any, groups: Any) -> tuple[Any, Any]:
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
