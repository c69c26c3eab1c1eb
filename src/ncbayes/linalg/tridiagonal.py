"""Cholesky factors of block-tridiagonal precisions.

The precision of coef (group, coefficient) has full blocks on its diagonal and diagonal blocks
``between`` beside them; ``precision = U' U`` with U block bidiagonal: upper triangles ``upper_t``
and beside them ``side_t = upper_t'^-1 diag(between_t)``, lower triangles. All loops run along rows
of contiguous arrays. Compiled, and imported where used.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# What a sum may do to be vectorized; infinities and NaN keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=FAST)
def _dot(one, other, count):
    """Of the first entries."""
    total = 0.0
    for i in range(count):
        total += one[i] * other[i]
    return total


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
