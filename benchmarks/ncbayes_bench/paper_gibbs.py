"""The paper's Gibbs samplers in plain dense NumPy, from the formulas of its supplement (S2).

``torus_sweep`` (S2.2): weights, all of gamma jointly, then the scales of the grouped horseshoe.
``density_sweep`` (S2.1): weights, theta of one time after the other, beta of every time, lambda.
Both take arrays and a state and return the next state. Nothing here is ncbayes: these are what it
is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from polyagamma import random_polyagamma
from scipy.linalg import cholesky, solve_triangular

# The prior variance of the normalizer, the paper's N(0, 1000).
NORMALIZER_VARIANCE = 1000.0


@dataclass(frozen=True, eq=False)
class TorusState:
    """gamma = (theta, c), and the squares of its scales with their helpers.

    ``local`` holds lambda^2 of each main effect and u^2 of each edge, ``local_helper`` nu and t.
    """

    gamma: np.ndarray
    local: np.ndarray
    local_helper: np.ndarray
    tau: float
    tau_helper: float


@dataclass(frozen=True, eq=False)
class DensityState:
    """theta (time, basis), beta (time,) and lambda, the variance of the walk."""

    theta: np.ndarray
    beta: np.ndarray
    variance: float


def torus_start(runs: np.ndarray) -> TorusState:
    """gamma = 0, all scales 1."""
    ones = np.ones(int(runs.max()) + 1)
    return TorusState(np.zeros(len(runs) + 1), ones, ones, 1.0, 1.0)


def density_start(times: int, basis: int) -> DensityState:
    """theta = 0, beta = 0, lambda = 1."""
    return DensityState(np.zeros((times, basis)), np.zeros(times), 1.0)


def torus_sweep(
    design: np.ndarray,
    offset: np.ndarray,
    is_data: np.ndarray,
    runs: np.ndarray,
    state: TorusState,
    rng: np.random.Generator,
    slab: float = 1.0,
) -> TorusState:
    """One sweep of S2.2 (b).

    ``design`` (N, p + 1) has a last column of ones; ``runs`` (p,) numbers the local scale of each
    statistic. ``slab^-2`` is added to the precision of theta and the scales know nothing of it, so
    that this samples ``Horseshoe(slab_form="likelihood")``.
    """
    weights = random_polyagamma(1.0, design @ state.gamma + offset, random_state=rng)
    scaled = design * np.sqrt(weights)[:, None]
    own = slab**-2 + 1 / (state.local[runs] * state.tau)
    precision = scaled.T @ scaled
    np.einsum("ii->i", precision)[...] += np.append(own, 1 / NORMALIZER_VARIANCE)
    shift = design.T @ (is_data - 0.5 - weights * offset)
    gamma = _normal(precision, shift, rng)
    return _rescaled(runs, gamma, state, rng)


def _rescaled(
    runs: np.ndarray, gamma: np.ndarray, state: TorusState, rng: np.random.Generator
) -> TorusState:
    """The scales given gamma: u^2, t, tau^2, xi; of a single statistic lambda^2 and nu."""
    sizes, squares = np.bincount(runs), np.bincount(runs, gamma[:-1] ** 2)
    rate = squares / (2 * state.tau) + 1 / state.local_helper
    local = _inverse_gamma((sizes + 1) / 2, rate, rng)
    local_helper = _inverse_gamma(np.ones(len(sizes)), 1 + 1 / local, rng)
    rate = np.sum(squares / local) / 2 + 1 / state.tau_helper
    tau = _inverse_gamma((len(runs) + 1) / 2, rate, rng)
    return TorusState(gamma, local, local_helper, tau, _inverse_gamma(1.0, 1 + 1 / tau, rng))


def density_sweep(
    designs: Sequence[np.ndarray],
    offsets: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    state: DensityState,
    rng: np.random.Generator,
    shape: float = 1.0,
    rate: float = 1.0,
) -> DensityState:
    """One sweep of S2.1: of each time its basis functions (N_t, L), offsets and labels (N_t,).

    ``theta_t ~ N(theta_{t-1}, lambda I)`` with theta_0 = 0, ``lambda ~ IG(shape, rate)``.
    """
    theta, beta = state.theta.copy(), state.beta.copy()
    last, basis = len(theta) - 1, theta.shape[1]
    weights = [
        random_polyagamma(1.0, design @ theta[t] + beta[t] + offset, random_state=rng)
        for t, (design, offset) in enumerate(zip(designs, offsets, strict=True))
    ]
    for t, (design, offset, label) in enumerate(zip(designs, offsets, labels, strict=True)):
        before = theta[t - 1] if t else np.zeros(basis)
        neighbours = [before, theta[t + 1]] if t < last else [before]
        scaled = design * np.sqrt(weights[t])[:, None]
        precision = scaled.T @ scaled
        np.einsum("ii->i", precision)[...] += len(neighbours) / state.variance
        shift = design.T @ (label - 0.5 - weights[t] * (beta[t] + offset))
        theta[t] = _normal(precision, shift + np.sum(neighbours, axis=0) / state.variance, rng)
    for t, (design, offset, label) in enumerate(zip(designs, offsets, labels, strict=True)):
        precision = 1 / NORMALIZER_VARIANCE + weights[t].sum()
        shift = np.sum(label - 0.5 - weights[t] * (design @ theta[t] + offset))
        beta[t] = shift / precision + rng.standard_normal() / np.sqrt(precision)
    steps = np.diff(theta, axis=0, prepend=0.0)
    variance = _inverse_gamma(shape + theta.size / 2, rate + np.sum(steps**2) / 2, rng)
    return DensityState(theta, beta, variance)


def _normal(precision: np.ndarray, shift: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw of N(precision^-1 shift, precision^-1) by a Cholesky factor."""
    factor = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    half_way = solve_triangular(factor, shift, lower=True, check_finite=False)
    half_way += rng.standard_normal(len(shift))
    return solve_triangular(factor, half_way, lower=True, trans=1, check_finite=False)


def _inverse_gamma(shape: Any, rate: Any, rng: np.random.Generator) -> Any:
    return rate / rng.gamma(shape)
