"""Hamiltonian trajectories of logistic coefficients under a normal prior, given a metric.

Compiled, and imported where used.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# What sums may do to be vectorized; infinities and NaN keep their meaning. Only for loops that
# write nothing: with others the same input gave different last bits from one run to the next,
# probably since a compiled check of where arrays lie in memory chooses between two versions.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True)
def log_likelihood(psi, is_data):
    """Of the labels: ``sum s psi - log(1 + exp(psi))``."""
    value, product = 0.0, 1.0
    for n in range(len(psi)):
        # One logarithm for many factors, before their product leaves double precision.
        product *= 1.0 + math.exp(-abs(psi[n]))
        if product > 1e150:
            value -= math.log(product)
            product = 1.0
        if is_data[n]:
            value += min(psi[n], 0.0)
        else:
            value -= max(psi[n], 0.0)
    return value - math.log(product)


@njit(cache=True)
def _log_density(coef, psi, is_data, precision, shift):
    value = log_likelihood(psi, is_data)
    for i in range(len(coef)):
        value += shift[i] * coef[i] - precision[i] * coef[i] * coef[i] / 2
    return value


@njit(cache=True, fastmath=FAST)
def _dot(one, other, count):
    """Of the first entries."""
    total = 0.0
    for i in range(count):
        total += one[i] * other[i]
    return total


@njit(cache=True)
def _whitened_gradient(rows, coef, psi, is_data, precision, shift, factor, residual):
    """``L^-1`` times the gradient of the log density."""
    for n in range(len(psi)):
        # exp(-psi) may overflow to infinity, whose reciprocal is the zero that is meant.
        residual[n] = is_data[n] - 1 / (1 + math.exp(-psi[n]))
    out = np.dot(rows, residual)
    for i in range(len(coef)):
        value = out[i] + shift[i] - precision[i] * coef[i]
        out[i] = (value - _dot(factor[i], out, i)) / factor[i, i]
    return out


@njit(cache=True)
def _velocity(factor, momentum):
    """``L'^-1`` times the momentum."""
    out = momentum.copy()
    for i in range(len(out) - 1, -1, -1):
        out[i] /= factor[i, i]
        for j in range(i):
            out[j] -= factor[i, j] * out[i]
    return out


@njit(cache=True)
def trajectory(rows, coef, psi, is_data, precision, shift, factor, momentum, step, count):
    """``count`` leapfrog steps: coefficients, log odds, and the log of their acceptance.

    ``rows`` (p, N) are the columns of the coefficients; psi the log odds with everything else;
    ``factor`` the lower Cholesky factor L of the metric, momentum standard normal.
    """
    residual = np.empty_like(psi)
    given = (is_data, precision, shift)
    energy = np.sum(momentum * momentum) / 2 - _log_density(coef, psi, *given)
    momentum = momentum + step / 2 * _whitened_gradient(rows, coef, psi, *given, factor, residual)
    for k in range(count):
        change = step * _velocity(factor, momentum)
        coef = coef + change
        psi = psi + np.dot(change, rows)
        size = step / 2 if k == count - 1 else step
        momentum = momentum + size * _whitened_gradient(rows, coef, psi, *given, factor, residual)
    after = np.sum(momentum * momentum) / 2 - _log_density(coef, psi, *given)
    return coef, psi, energy - after


@njit(cache=True)
def picked_square(matrix, places):
    """``matrix[places][:, places]`` of a symmetric matrix."""
    out = np.empty((len(places), len(places)))
    for i in range(len(places)):
        for j in range(i + 1):
            out[i, j] = matrix[places[i], places[j]]
            out[j, i] = out[i, j]
    return out
