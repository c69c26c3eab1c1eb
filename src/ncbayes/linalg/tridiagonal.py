"""Cholesky factors of block-tridiagonal precisions, and trajectories in their coordinates.

The precision of coef (group, coefficient) has full blocks on its diagonal and diagonal blocks
``between`` beside them; ``precision = U' U`` with U block bidiagonal: upper triangles ``upper_t``
and beside them ``side_t = upper_t'^-1 diag(between_t)``, lower triangles. All loops run along rows
of contiguous arrays. Compiled, and imported where used.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ncbayes.linalg.trajectories import _dot, log_likelihood


@njit(cache=True)
def factorized(upper, side, between):
    """Factorize in place; the log determinant of U, or NaN if there is no factor.

    ``upper`` (group, P, P) comes with the diagonal blocks, of which only the upper triangles are
    read, and leaves with the factors; ``side`` (group - 1, P, P) is filled; with no rows in
    ``between`` the groups are apart.
    """
    groups, size = upper.shape[:2]
    total = 0.0
    for t in range(groups):
        block = upper[t]
        if t > 0 and len(between) > 0:
            _fill_side(upper[t - 1], between[t - 1], side[t - 1])
            _subtract_square(block, side[t - 1])
        for j in range(size):
            if not block[j, j] > 0:
                return np.nan
            root = math.sqrt(block[j, j])
            total += math.log(root)
            for k in range(j, size):
                block[j, k] /= root
            for i in range(j + 1, size):
                value = block[j, i]
                if value == 0.0:  # most are, in a prior's own precision
                    continue
                for k in range(i, size):
                    block[i, k] -= value * block[j, k]
    return total


@njit(cache=True)
def _fill_side(upper, coupling, out):
    """``U'^-1 diag(coupling)``, row by row."""
    for i in range(len(coupling)):
        for j in range(i):
            out[i, j] = 0.0
        out[i, i] = coupling[i]
        for k in range(i):
            value = upper[k, i]
            if value == 0.0:
                continue
            for j in range(k + 1):
                out[i, j] -= value * out[k, j]
        for j in range(i + 1):
            out[i, j] /= upper[i, i]


@njit(cache=True)
def _subtract_square(block, side):
    """``block - side' side``, its upper triangle."""
    for i in range(len(block)):
        for j in range(i + 1):
            value = side[i, j]
            if value == 0.0:
                continue
            for k in range(j, i + 1):
                block[j, k] -= value * side[i, k]


@njit(cache=True)
def forward(upper, side, out):
    """``U'^-1 out``, in place."""
    groups, size = out.shape
    for t in range(groups):
        if t > 0 and len(side) > 0:
            for i in range(size):
                value = out[t - 1, i]
                for j in range(i + 1):
                    out[t, j] -= value * side[t - 1, i, j]
        for j in range(size):
            out[t, j] /= upper[t, j, j]
            value = out[t, j]
            for k in range(j + 1, size):
                out[t, k] -= value * upper[t, j, k]


@njit(cache=True)
def backward(upper, side, out):
    """``U^-1 out``, in place."""
    groups, size = out.shape
    for t in range(groups - 1, -1, -1):
        if t < groups - 1 and len(side) > 0:
            for i in range(size):
                out[t, i] -= _dot(side[t, i], out[t + 1], i + 1)
        for i in range(size - 1, -1, -1):
            rest = _dot(upper[t, i, i + 1 :], out[t, i + 1 :], size - i - 1)
            out[t, i] = (out[t, i] - rest) / upper[t, i, i]


@njit(cache=True)
def log_determinant(within, between):
    """Of the root of a precision with diagonal blocks; NaN if it is not positive definite."""
    groups, size = within.shape
    total, pivots = 0.0, within[0].copy()
    for t in range(groups):
        if t > 0:
            for j in range(size):
                coupling = between[t - 1, j] if len(between) > 0 else 0.0
                pivots[j] = within[t, j] - coupling * coupling / pivots[j]
        for j in range(size):
            if not pivots[j] > 0:
                return np.nan
            total += math.log(pivots[j]) / 2
    return total


@njit(cache=True)
def _score(design, bounds, offset, is_data, coef, psi, out):
    """Log odds into ``psi``, and into ``out`` the gradient of the labels' log likelihood by coef.

    In one pass over the design, which is what such a step costs.
    """
    groups, size = coef.shape
    for g in range(groups):
        for j in range(size):
            out[g, j] = 0.0
        for n in range(bounds[g], bounds[g + 1]):
            row = design[n]
            psi[n] = offset[n] + _dot(row, coef[g], size)
            # exp(-psi) may overflow to infinity, whose reciprocal is the zero that is meant.
            residual = is_data[n] - 1 / (1 + math.exp(-psi[n]))
            for j in range(size):
                out[g, j] += residual * row[j]


@njit(cache=True)
def _add_prior(within, between, shift, coef, out):
    """Add the gradient of the log prior to ``out``; twice the log prior itself is returned.

    ``within`` (group, P, P), and 0 at shift = 0 and coef = 0.
    """
    groups, size = coef.shape
    total = 0.0
    for g in range(groups):
        for j in range(size):
            pull = -_dot(within[g, j], coef[g], size)
            if len(between) > 0:
                if g > 0:
                    pull -= between[g - 1, j] * coef[g - 1, j]
                if g < groups - 1:
                    pull -= between[g, j] * coef[g + 1, j]
            out[g, j] += shift[g, j] + pull
            total += (2.0 * shift[g, j] + pull) * coef[g, j]
    return total


@njit(cache=True)
def _half_square(values):
    total = 0.0
    for value in values.flat:
        total += value * value
    return total / 2


@njit(cache=True)
def _add(out, factor, values):
    groups, size = out.shape
    for g in range(groups):
        for j in range(size):
            out[g, j] += factor * values[g, j]


@njit(cache=True)
def leapt(design, bounds, offset, is_data, within, between, shift, upper, side, coef, momentum,
          step, count):  # fmt: skip
    """``count`` leapfrog steps from coef, in place: log odds there, log of their acceptance.

    The prior's precision comes with full blocks ``within``; (``upper``, ``side``) is the factor of
    the metric, ``momentum`` (group, P) standard normal.
    """
    psi, change = np.empty_like(offset), np.empty_like(coef)
    _score(design, bounds, offset, is_data, coef, psi, change)
    prior = _add_prior(within, between, shift, coef, change)
    energy = _half_square(momentum) - log_likelihood(psi, is_data) - prior / 2
    forward(upper, side, change)
    _add(momentum, step / 2, change)
    for k in range(count):
        for g in range(len(coef)):
            for j in range(coef.shape[1]):
                change[g, j] = momentum[g, j]
        backward(upper, side, change)
        _add(coef, step, change)
        _score(design, bounds, offset, is_data, coef, psi, change)
        prior = _add_prior(within, between, shift, coef, change)
        forward(upper, side, change)
        _add(momentum, step / 2 if k == count - 1 else step, change)
    after = _half_square(momentum) - log_likelihood(psi, is_data) - prior / 2
    return psi, energy - after
