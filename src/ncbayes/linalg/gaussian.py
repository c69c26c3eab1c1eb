"""Exact draws of coef (group, coefficient) from ``N(precision^-1 shift, precision^-1)``, where

    precision = blockdiag_g(design_g' diag(weights_g) design_g) + prior precision.

Each method is a map from unit normals to a draw, so that it can be checked against a dense inverse.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg.blas import dtrmv
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf, dtrtrs

from ncbayes.base import Design, FloatArray, InputError, Precision

Method: TypeAlias = Literal["cholesky", "block_tridiagonal", "woodbury", "conjugate_gradients"]
METHODS: tuple[Method, ...] = get_args(Method)
Shapes: TypeAlias = tuple[tuple[int, int], ...]
Operator: TypeAlias = Callable[[FloatArray], FloatArray]

# Error per coordinate a thousandth of its conditional standard deviation: far below the Monte Carlo
# error of a mean, which would need a million effective draws to come down to it.
TOLERANCE = 1e-3
# Steps over which the solver looks back to know its error; fewer are fooled by a short plateau.
LOOK_BACK = 4
# Thirty times what a draw usually takes: what needs more is better factorized.
MAX_ITERATIONS = 1000
# What a warm started solve usually takes (8 to 30 for torus graphs).
USUAL_ITERATIONS = 30
# Seconds for a unit of each kind of work. benchmarks/gaussian_draws.py measures them all.
SECONDS = {
    "call": 4.5e-5,  # a group's fixed cost in a direct draw
    "entry": 1.3e-9,  # an entry of the design scaled by its weight
    "blas3_flop": 2.9e-11,  # matrix products and factorizations
    "iteration": 1.3e-5,  # a group's fixed cost in a conjugate gradient step
    "dense_flop": 1.2e-10,  # matrix times vector, bound by memory
    "structured_flop": 5.4e-11,  # an operator's own product, mostly in cache
}


@dataclass(frozen=True, eq=False)
class Conditional:
    """The law of coef given the weights of each group and the prior; shift is (group, P)."""

    designs: tuple[Design, ...]
    weights: tuple[FloatArray, ...]
    prior: Precision
    shift: FloatArray


def cholesky(conditional: Conditional, normals: FloatArray) -> FloatArray:
    """Group by group, ``coef = L'^-1 (L^-1 shift + normals)`` with ``L L' = precision``."""
    coef = np.empty_like(conditional.shift)
    for group, shift in enumerate(conditional.shift):
        factor = _factor(_block(conditional, group), group)
        coef[group] = _solve(factor, _solve(factor, shift) + normals[group], transposed=True)
    return _finite(coef)


def block_tridiagonal(conditional: Conditional, normals: FloatArray) -> FloatArray:
    """All groups jointly: ``coef = L'^-1 (L^-1 shift + normals)`` with L block bidiagonal.

    Below the diagonal block ``L_g`` stands ``diag(between_g) L_g'^-1``, which is never formed.
    """
    blocks = (_block(conditional, group) for group in range(len(conditional.designs)))
    return _joint(blocks, conditional.prior, conditional.shift, normals)


def given_grams(
    grams: Sequence[FloatArray], prior: Precision, shift: FloatArray, normals: FloatArray
) -> FloatArray:
    """The same draw for ``precision = blockdiag_g(gram_g) + prior precision``."""
    blocks = (_with_prior(gram, own) for gram, own in zip(grams, prior.within, strict=True))
    return _joint(blocks, prior, shift, normals)


def _joint(
    blocks: Iterable[FloatArray], prior: Precision, shift: FloatArray, normals: FloatArray
) -> FloatArray:
    """A draw from a Gaussian whose precision has these diagonal blocks, which are overwritten."""
    between = _coupling(prior)
    factors = _block_factors(blocks, between)
    last = len(factors) - 1
    coef = np.empty_like(shift)
    for group, factor in enumerate(factors):
        right = shift[group]
        if group > 0 and between is not None:
            before = _solve(factors[group - 1], coef[group - 1], transposed=True)
            right = right - between[group - 1] * before
        coef[group] = _solve(factor, right)
    for group in range(last, -1, -1):
        right = coef[group] + normals[group]
        if group < last and between is not None:
            right -= _solve(factors[group], between[group] * coef[group + 1])
        coef[group] = _solve(factors[group], right, transposed=True)
    return _finite(coef)


def woodbury(
    conditional: Conditional, normals_prior: FloatArray, normals_points: Sequence[FloatArray]
) -> FloatArray:
    """For P > N and a diagonal positive prior d: only an N x N matrix is factorized.

    With ``Y = sqrt(weights) design / sqrt(d)`` and ``u = shift / sqrt(d) + Y' e + z``,
    ``sqrt(d) coef = (I + Y' Y)^-1 u = u - Y' (I + Y Y')^-1 Y u``.
    """
    coef = np.empty_like(conditional.shift)
    roots = np.sqrt(conditional.prior.within)
    for group, design in enumerate(conditional.designs):
        scaled = design.dense() * np.sqrt(conditional.weights[group])[:, None]
        scaled /= roots[group]
        u = conditional.shift[group] / roots[group] + normals_points[group] @ scaled
        u += normals_prior[group]
        kernel = scaled @ scaled.T
        np.einsum("ii->i", kernel)[...] += 1.0
        solved, _ = dpotrs(_factor(kernel.T, group), scaled @ u, lower=1)
        coef[group] = (u - solved @ scaled) / roots[group]
    return _finite(coef)


def conjugate_gradients(
    conditional: Conditional,
    normals_prior: FloatArray,
    normals_points: Sequence[FloatArray],
    start: FloatArray,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[FloatArray, int]:
    """Perturb and solve with the designs as operators: the draw and the steps it took.

    ``precision coef = shift + design' sqrt(weights) e + root(prior) z``, solved from ``start``
    until the error in the norm of the precision is ``tolerance sqrt(G P)``; the draw's random part
    has norm ``sqrt(G P)``. A solve that is not there in ``max_iterations`` is done by factorization
    with the same right-hand side, so that which solves fail has no influence on the law.
    """
    right = conditional.shift + _prior_noise(conditional.prior, normals_prior)
    for group, design in enumerate(conditional.designs):
        right[group] += design.rmatvec(np.sqrt(conditional.weights[group]) * normals_points[group])
    times, precondition = partial(_precision_times, conditional), _preconditioner(conditional)
    target = tolerance * right.size**0.5
    coef, iterations, converged = _solve_iteratively(
        times, precondition, right, start, target, max_iterations
    )
    if not converged:
        coef = block_tridiagonal(replace(conditional, shift=right), np.zeros_like(right))
    return _finite(coef), iterations


def draw(
    conditional: Conditional,
    rng: np.random.Generator,
    start: FloatArray,
    method: Method | Literal["auto"] = "auto",
) -> tuple[FloatArray, dict[str, float]]:
    """A draw of coef (group, coefficient) by the named or the cheapest method.

    ``start`` is the last draw; it changes the cost of conjugate gradients, never the law.
    """
    chosen = usable_method(conditional, method)
    normals = rng.standard_normal(conditional.shift.shape)
    if chosen == "cholesky":
        return cholesky(conditional, normals), {"cg_iterations": 0.0}
    if chosen == "block_tridiagonal":
        return block_tridiagonal(conditional, normals), {"cg_iterations": 0.0}
    points = tuple(rng.standard_normal(len(weights)) for weights in conditional.weights)
    if chosen == "woodbury":
        return woodbury(conditional, normals, points), {"cg_iterations": 0.0}
    coef, iterations = conjugate_gradients(conditional, normals, points, start)
    return coef, {"cg_iterations": float(iterations)}


@lru_cache(maxsize=256)
def choose_method(
    shapes: Shapes, matvec_flops: float, coupled: bool, diagonal_prior: bool
) -> Method:
    """The cheapest method for designs of these shapes; ``matvec_flops`` is their sum.

    Conjugate gradients, whose cost depends on the data, must promise half the time of the others.
    """
    direct: list[Method] = ["block_tridiagonal"] if coupled else ["cholesky"]
    if diagonal_prior and not coupled:
        direct.append("woodbury")
    costs = {method: predicted_seconds(method, shapes, matvec_flops) for method in direct}
    best = min(direct, key=costs.__getitem__)
    iterative = predicted_seconds("conjugate_gradients", shapes, matvec_flops)
    return "conjugate_gradients" if 2 * iterative < costs[best] else best


def predicted_seconds(
    method: Method, shapes: Shapes, matvec_flops: float, iterations: float = USUAL_ITERATIONS
) -> float:
    """Seconds of one draw: the counts of ``work`` at the measured rates ``SECONDS``."""
    counts = work(method, shapes, matvec_flops, iterations)
    return sum(SECONDS[kind] * count for kind, count in counts.items())


def work(
    method: Method, shapes: Shapes, matvec_flops: float, iterations: float = USUAL_ITERATIONS
) -> dict[str, float]:
    """How much of each kind of work (the keys of ``SECONDS``) one draw takes."""
    entries = float(sum(n * p for n, p in shapes))
    if method == "conjugate_gradients":
        # Two products a step; first residual, perturbation and preconditioner are about two steps.
        flops = 2 * (iterations + 2) * matvec_flops
        kind = "dense_flop" if matvec_flops == 2 * entries else "structured_flop"
        return {"iteration": (iterations + 2) * len(shapes), kind: flops}
    if method == "woodbury":
        flops = sum(n**2 * p + n**3 / 3 for n, p in shapes)
    else:
        # The next group needs the inverse of this group's block: P^3 instead of P^3 / 3.
        share = 1.0 if method == "block_tridiagonal" and len(shapes) > 1 else 1 / 3
        flops = sum(n * p**2 + share * p**3 for n, p in shapes)
    return {"call": len(shapes), "entry": entries, "blas3_flop": flops}


def usable_method(conditional: Conditional, method: Method | Literal["auto"]) -> Method:
    """The method to use, or an InputError when the named one cannot draw from this law."""
    prior = conditional.prior
    coupled = _coupling(prior) is not None
    diagonal = not coupled and prior.within.ndim == 2 and bool((prior.within > 0).all())
    if method == "auto":
        shapes = tuple(design.shape for design in conditional.designs)
        flops = sum(design.matvec_flops for design in conditional.designs)
        return choose_method(shapes, flops, coupled, diagonal)
    if method not in METHODS:
        allowed = ", ".join(repr(name) for name in ("auto", *METHODS))
        raise InputError(f"method must be one of {allowed}, got {method!r}")
    found = "couples the groups" if coupled else "has full blocks or zeros"
    instead = f"but this one {found}; use 'block_tridiagonal', 'conjugate_gradients' or 'auto'"
    if method == "cholesky" and coupled:
        raise InputError(f"method 'cholesky' needs a prior that leaves groups apart, {instead}")
    if method == "woodbury" and not diagonal:
        raise InputError(f"method 'woodbury' needs a diagonal positive prior precision, {instead}")
    return method


def _coupling(prior: Precision) -> FloatArray | None:
    return prior.between if prior.between is not None and len(prior.between) else None


def _block(conditional: Conditional, group: int) -> FloatArray:
    """A group's own block of the precision, a new array in Fortran order as LAPACK wants it."""
    gram = conditional.designs[group].gram(conditional.weights[group])
    return _with_prior(gram, conditional.prior.within[group])


def _with_prior(gram: FloatArray, within: FloatArray) -> FloatArray:
    if within.ndim == 2:
        full: FloatArray = gram + within
        return full.T
    block = gram.T.copy(order="F")
    np.einsum("ii->i", block)[...] += within
    return block


def _not_positive_definite(where: str) -> np.linalg.LinAlgError:
    return np.linalg.LinAlgError(
        f"the precision of coef{where} is not positive definite: weights or prior are not finite, "
        "or a statistic is a linear combination of others (collinear) that the prior leaves free"
    )


def _finite(coef: FloatArray) -> FloatArray:
    # OpenBLAS factorizes a matrix of NaN without complaint.
    if not np.isfinite(coef).all():
        raise _not_positive_definite("")
    return coef


def _factor(block: FloatArray, group: int) -> FloatArray:
    """L with ``L L' = block``, in the lower triangle; overwrites the block."""
    factor: FloatArray
    factor, failed = dpotrf(block, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise _not_positive_definite(f" in group {group}")
    return factor


def _solve(factor: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    solution: FloatArray = dtrtrs(factor, right, lower=1, trans=transposed)[0]
    return solution


def _block_factors(blocks: Iterable[FloatArray], between: FloatArray | None) -> list[FloatArray]:
    """Diagonal blocks of the Cholesky factor: ``L_g L_g' = block_g - e (L L')_{g-1}^-1 e``."""
    factors: list[FloatArray] = []
    for group, block in enumerate(blocks):
        if group > 0 and between is not None:
            coupling = between[group - 1]
            inverse, _ = dpotri(factors[-1], lower=1)
            block -= coupling[:, None] * inverse * coupling
        factors.append(_factor(block, group))
    return factors


def _bidiagonal(
    diagonal: FloatArray, between: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Factor of the tridiagonal matrix over groups, for all coefficients at once.

    A prior may leave a coefficient's level free; its last pivot is then zero up to rounding.
    """
    if between is None:
        return np.sqrt(diagonal), None
    pivots = np.array(diagonal)
    lower = np.zeros_like(between)
    for group, coupling in enumerate(between):
        root = np.sqrt(pivots[group])
        np.divide(coupling, root, out=lower[group], where=root > 0)
        pivots[group + 1] -= lower[group] ** 2
        if (pivots[group + 1] < -1e-10 * diagonal[group + 1]).any():
            raise _not_positive_definite(f" in group {group + 1}")
        np.maximum(pivots[group + 1], 0.0, out=pivots[group + 1])
    return np.sqrt(pivots), lower


def _prior_noise(prior: Precision, normals: FloatArray) -> FloatArray:
    """``root normals`` with ``root root' = prior precision``."""
    between = _coupling(prior)
    if prior.within.ndim == 2:
        diagonal, lower = _bidiagonal(prior.within, between)
        noise = diagonal * normals
        if lower is not None:
            noise[1:] += lower * normals[:-1]
        return noise
    noise = np.empty_like(normals)
    if between is None:
        for group, block in enumerate(prior.within):
            # Pivoted, because a block may be singular: a flat prior on c.
            factor, pivots, rank, _ = dpstrf(block, lower=1)
            noise[group, pivots - 1] = np.tril(factor)[:, :rank] @ normals[group, :rank]
        return noise
    factors = _block_factors((block.T.copy(order="F") for block in prior.within), between)
    for group, factor in enumerate(factors):
        noise[group] = dtrmv(factor, normals[group], lower=1)
        if group > 0:
            before = _solve(factors[group - 1], normals[group - 1], transposed=True)
            noise[group] += between[group - 1] * before
    return noise


def _precision_times(conditional: Conditional, coef: FloatArray) -> FloatArray:
    within, between = conditional.prior.within, _coupling(conditional.prior)
    product: FloatArray = within * coef if within.ndim == 2 else (within @ coef[..., None])[..., 0]
    if between is not None:
        product[:-1] += between * coef[1:]
        product[1:] += between * coef[:-1]
    for group, design in enumerate(conditional.designs):
        product[group] += design.rmatvec(conditional.weights[group] * design.matvec(coef[group]))
    return product


def _preconditioner(conditional: Conditional) -> Operator:
    """Solve with each coefficient's own part of the precision: Jacobi, tridiagonal if coupled.

    A strong random walk makes the diagonal alone a poor guess, and the tridiagonal costs the same.
    """
    within = conditional.prior.within
    own = np.array(within if within.ndim == 2 else np.einsum("gii->gi", within))
    for group, design in enumerate(conditional.designs):
        own[group] += design.gram_diagonal(conditional.weights[group])
    diagonal, lower = _bidiagonal(own, _coupling(conditional.prior))
    if not (diagonal > 0).all():
        raise _not_positive_definite("")
    if lower is None:
        return lambda residual: residual / own
    scaled = lower / diagonal[1:], lower / diagonal[:-1]

    def solve(residual: FloatArray) -> FloatArray:
        solution: FloatArray = residual / diagonal
        for group in range(1, len(solution)):
            solution[group] -= scaled[0][group - 1] * solution[group - 1]
        solution /= diagonal
        for group in range(len(solution) - 2, -1, -1):
            solution[group] -= scaled[1][group] * solution[group + 1]
        return solution

    return solve


def _solve_iteratively(
    times: Operator,
    precondition: Operator,
    right: FloatArray,
    start: FloatArray,
    target: float,
    max_iterations: int,
) -> tuple[FloatArray, int, bool]:
    """Preconditioned conjugate gradients: solution, steps, and whether the error met ``target``.

    Step j lowers the squared error, in the norm of the matrix, by exactly ``gain_j`` (Hestenes and
    Stiefel 1952), so the last few gains tell the error from before them, and today's is smaller.
    """
    solution = np.array(start)
    residual = right - times(solution)
    direction = precondition(residual)
    size = float(np.vdot(residual, direction))
    gains: deque[float] = deque(maxlen=LOOK_BACK)
    for iteration in range(max_iterations):
        if size == 0 or (len(gains) == LOOK_BACK and sum(gains) <= target**2):
            return solution, iteration, True
        image = times(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0:
            raise _not_positive_definite("")
        step = size / curvature
        gains.append(step * size)
        solution += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        previous, size = size, float(np.vdot(residual, preconditioned))
        direction = preconditioned + (size / previous) * direction
    return solution, max_iterations, False
