"""The no-U-turn sampler on the contrastive likelihood: for any energy, and for families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np

from ncbayes.autodiff import ONE_THREAD, blackjax_module, double_precision, jax_module
from ncbayes.base import Draw, FloatArray, InputError, Precision, State, shown
from ncbayes.contrast import Target
from ncbayes.curved import Curved, curved_log_odds
from ncbayes.engines import warmup
from ncbayes.engines.gibbs import Gibbs
from ncbayes.engines.starts import intercept

METRICS = ("auto", "dense", "diagonal")
# Up to so many coefficients a dense metric costs less than the gradients that it saves.
MOST_DENSE = 100

# Starting values that are tried where the log density of some is not finite.
ATTEMPTS = 20
# So few numbers are handed over anew in every sweep, which takes less time than to keep them.
FEW = 1000

Function = Callable[..., Any]
# The functions of a target, and its arrays in JAX, for as long as the target is in use.
_PREPARED: WeakKeyDictionary[Target, tuple[tuple[Function | None, ...], Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Nuts:
    """coef (of all groups) by one NUTS transition given the prior's scales, then the scales.

    Step size and metric are adapted in the sweeps that are discarded, as in Stan, so that trees
    accept ``target_acceptance`` of their points in the mean; higher: smaller steps, fewer
    divergences. A tree doubles at most ``max_depth`` times. ``metric``: "dense", "diagonal" or
    "auto", which is dense up to 100 coefficients.
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
        precision, shift = target.prior.gaussian(draw.scales, target.shape)
        # Without a memory the metric is a function of the target: the kernel is invariant still.
        memory = draw.memory or warmup.begun(self._metric(target), 0)
        key = rng.integers(2**32, size=2, dtype=np.uint32)
        functions, arrays = _prepared(target)
        with double_precision():
            coef, facts = _transition()(
                functions, int(self.max_depth), key, draw.coef, memory["step_size"],
                memory["inverse_mass"], arrays, _prior_arrays(precision, shift),
            )  # fmt: skip
            coef, facts = np.asarray(coef), {name: np.asarray(v) for name, v in facts.items()}
        stats = {
            "log_likelihood": float(facts["log_likelihood"]),
            "largest_log_odds": float(facts["largest_log_odds"]),
            "diverging": bool(facts["diverging"]),
            "reached_max_treedepth": bool(facts["cut_off"]),
            "acceptance_rate": float(facts["acceptance_rate"]),
            "n_steps": int(facts["n_steps"]),
            "step_size": float(memory["step_size"]),
        }
        after = warmup.advanced(
            memory, self.tune, coef.ravel(), stats["acceptance_rate"], self.target_acceptance
        )
        scales = target.prior.update(draw.scales, coef, rng)
        return Draw(coef, scales, stats, after)

    def _metric(
        self, target: Target, coef: FloatArray | None = None, scales: State | None = None
    ) -> FloatArray:
        """Inverse of ``prior precision + design' design / 4``: no wider than the posterior."""
        if coef is None:
            coef = np.array([each.start for each in target.curves] or np.zeros(target.shape))
        if scales is None:
            scales = target.prior.draw(target.shape, np.random.default_rng(0))
        precision, _ = target.prior.gaussian(scales, target.shape)
        dense = self.metric == "dense" or (self.metric == "auto" and coef.size <= MOST_DENSE)
        blocks = []
        for g, row in enumerate(coef):
            design = (
                target.curves[g].tangent(row)[0] if target.curves else target.contrasts[g].design
            )
            within, quarter = precision.within[g], np.full(design.shape[0], 0.25)
            if dense:
                full = np.diag(within) if within.ndim == 1 else within
                blocks.append(np.linalg.inv(design.gram(quarter) + full))
            else:
                diagonal = within if within.ndim == 1 else np.diag(within)
                blocks.append(1 / (design.gram_diagonal(quarter) + diagonal))
        return _block_diagonal(blocks) if dense else np.concatenate(blocks)


def _block_diagonal(blocks: list[FloatArray]) -> FloatArray:
    size, start = sum(map(len, blocks)), 0
    whole = np.zeros((size, size))
    for block in blocks:
        stop = start + len(block)
        whole[start:stop, start:stop], start = block, stop
    return whole


def _curved_start(target: Target, rng: np.random.Generator) -> Draw:
    coef = np.array([_defined(each, rng) for each in target.curves])
    for each, row in zip(target.curves, coef, strict=True):
        row[-1] = 0.0
        row[-1] = intercept(each.log_odds(row), each.is_data)
    return Draw(coef, target.prior.draw(target.shape, rng))


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


def _prepared(target: Target) -> tuple[tuple[Function | None, ...], Any]:
    """For every group the function of its log odds, None where linear, and the arrays it takes."""
    if target not in _PREPARED:
        jax = jax_module('engine="nuts"')
        curved = [((e.points, e.anchor), e.offset, e.is_data) for e in target.curves]
        linear = [((e.design.dense(),), e.offset, e.is_data) for e in target.contrasts]
        functions = (*(each.function for each in target.curves), *(None for _ in linear))
        arrays: Any = [*curved, *linear]
        if sum(array.size for given, *_ in arrays for array in given) > FEW:
            with double_precision():
                arrays = jax.tree.map(jax.numpy.asarray, arrays)
        _PREPARED[target] = functions, arrays
    return _PREPARED[target]


def _prior_arrays(precision: Precision, shift: FloatArray) -> tuple[FloatArray, ...]:
    given = (precision.within, shift)
    return given if precision.between is None else (*given, precision.between)


@cache
def _transition() -> Function:
    """The compiled transition; functions and depth are static, all else may change."""
    jax, nuts = jax_module('engine="nuts"'), blackjax_module('engine="nuts"').nuts
    kernel = nuts.build_kernel()

    def transition(
        functions: tuple[Function | None, ...],
        depth: int,
        key: Any,
        coef: Any,
        step_size: Any,
        inverse_mass: Any,
        arrays: Any,
        prior: Any,
    ) -> tuple[Any, dict[str, Any]]:
        def log_posterior(flat: Any) -> Any:
            rows = flat.reshape(coef.shape)
            return _log_likelihood(functions, rows, arrays)[0] + _log_prior(rows, *prior)

        state = nuts.init(coef.ravel(), log_posterior)
        key = jax.random.wrap_key_data(key, impl="threefry2x32")
        state, info = kernel(key, state, log_posterior, step_size, inverse_mass, depth)
        rows = state.position.reshape(coef.shape)
        value, largest = _log_likelihood(functions, rows, arrays)
        return rows, {
            "log_likelihood": value,
            "largest_log_odds": largest,
            "diverging": info.is_divergent,
            "cut_off": (info.num_trajectory_expansions >= depth)
            & ~(info.is_turning | info.is_divergent),
            "acceptance_rate": info.acceptance_rate,
            "n_steps": info.num_integration_steps,
        }

    compiled: Function = jax.jit(transition, static_argnums=(0, 1), compiler_options=ONE_THREAD)
    return compiled


def _log_likelihood(
    functions: tuple[Function | None, ...], rows: Any, arrays: Any
) -> tuple[Any, Any]:
    """``sum s psi - log(1 + exp(psi))`` over all groups, and the largest absolute psi."""
    jax = jax_module('engine="nuts"')
    total, largest = 0.0, 0.0
    for function, row, (given, offset, is_data) in zip(functions, rows, arrays, strict=True):
        if function is None:
            log_odds = given[0] @ row + offset
        else:
            log_odds = curved_log_odds(function, row, *given) + offset
        total -= jax.nn.softplus(jax.numpy.where(is_data, -log_odds, log_odds)).sum()
        if log_odds.size:
            largest = jax.numpy.maximum(largest, jax.numpy.abs(log_odds).max())
    return total, largest


def _log_prior(rows: Any, within: Any, shift: Any, between: Any = None) -> Any:
    """Of a Gaussian with this precision and shift, up to a constant."""
    jnp = jax_module('engine="nuts"').numpy
    product = within * rows if within.ndim == 2 else jnp.einsum("gij,gj->gi", within, rows)
    value = (rows * (shift - product / 2)).sum()
    return value if between is None else value - (between * rows[1:] * rows[:-1]).sum()
