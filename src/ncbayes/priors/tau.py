"""Moves of a horseshoe's global scale, compiled; imported where they are used."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Of the slice in log tau: its first width, and the steps out of it.
WIDTH, MOST_STEPS = 0.5, 10


@njit(cache=True)
def _log_half_cauchy(log_value):
    size = abs(log_value)
    return -size - math.log1p(math.exp(-2 * size))


@njit(cache=True)
def _given_local(log_tau, log_local, squares, sizes, log_relative, slab, fictitious, log_scale):
    """Log density of log tau given every u and theta."""
    value = _log_half_cauchy(log_tau - log_scale)
    for g in range(log_local.shape[0]):
        for e in range(log_local.shape[1]):
            if log_relative[e] == np.inf:
                continue
            base = min(math.exp(-2 * (log_local[g, e] + log_relative[e] + log_tau)), 1e200)
            normalizer = base if fictitious[e] else slab[e] + base
            value += 0.5 * (sizes[e] * math.log(normalizer) - (slab[e] + base) * squares[g, e])
    return value


@njit(cache=True)
def _given_products(log_tau, log_products, log_scale):
    """Log density of log tau given every product u tau, so that theta does not matter."""
    value = _log_half_cauchy(log_tau - log_scale)
    for log_product in log_products:
        value += _log_half_cauchy(log_product - log_tau)
    return value


@njit(cache=True)
def _density(log_tau, products, given, log_products):
    """One of the two, so that both share the slice."""
    if products:
        return _given_products(log_tau, log_products, given[6])
    return _given_local(
        log_tau, given[0], given[1], given[2], given[3], given[4], given[5], given[6]
    )


@njit(cache=True)
def _slice(log_tau, products, given, log_products, rng):
    level = _density(log_tau, products, given, log_products) + math.log(1.0 - rng.random())
    low = log_tau - WIDTH * rng.random()
    high = low + WIDTH
    left = int((MOST_STEPS + 1) * rng.random())
    for _ in range(left):
        if not _density(low, products, given, log_products) > level:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS - left):
        if not _density(high, products, given, log_products) > level:
            break
        high += WIDTH
    while high - low > 1e-12:
        proposal = low + (high - low) * rng.random()
        if _density(proposal, products, given, log_products) > level:
            return proposal
        if proposal < log_tau:
            low = proposal
        else:
            high = proposal
    return log_tau


@njit(cache=True)
def moves(log_tau, log_local, squares, sizes, log_relative, slab, fictitious, log_scale, rng):
    """log tau given u and theta, then given the products u tau: the new log tau and log u."""
    given = (log_local, squares, sizes, log_relative, slab, fictitious, log_scale)
    groups = log_local.shape[0]
    shrunk = np.flatnonzero(log_relative < np.inf)
    log_products = np.empty(groups * len(shrunk))
    log_tau = _slice(log_tau, False, given, log_products, rng)
    for g in range(groups):
        for k in range(len(shrunk)):
            log_products[g * len(shrunk) + k] = log_local[g, shrunk[k]] + log_tau
    log_tau = _slice(log_tau, True, given, log_products, rng)
    log_local = log_local.copy()
    for g in range(groups):
        for k in range(len(shrunk)):
            log_local[g, shrunk[k]] = log_products[g * len(shrunk) + k] - log_tau
    return log_tau, log_local
