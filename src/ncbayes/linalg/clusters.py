"""Runs of coefficients drawn one after the other, each together with its local scale.

Given Polya-Gamma weights w, the likelihood of one run's coefficients b, all others held, is
``exp(r . b - b' G b / 2)`` with ``G = X' diag(w) X``, ``r = X' (label - 1/2 - w psi) + G b_now``.
With the eigenvalues g of G, and r in its eigenvectors, the coefficients integrate out:

    p(u | rest) = p(u) prod_i (lambda / (lambda + g_i))^(1/2) exp(r_i^2 / (2 (lambda + g_i))),

``lambda = slab + 1 / (u multiplier)^2``. So u is drawn without regard to where b is now, and an
edge can go out and come back in one step. A sweep costs O(N p). Compiled, and imported where used.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Of the slice in log u: its first width, and the steps out of it.
WIDTH, MOST_STEPS = 3.0, 10
MOST_LOG = 300.0
# What sums may do to be vectorized; infinities and NaN keep their meaning. Only for loops that
# write nothing: with others the same input gave different last bits from one run to the next,
# probably since a compiled check of where arrays lie in memory chooses between two versions.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=FAST)
def _log_density(log_u, size, g, r, multiplier, slab, fictitious):
    """Of log u given everything but the run's coefficients."""
    base = math.exp(-2 * log_u) / (multiplier * multiplier)
    precision = slab + base
    normalizer = base if fictitious else precision
    value = -abs(log_u) - math.log1p(math.exp(-2 * abs(log_u)))
    product = 1.0
    for i in range(size):
        total = precision + g[i]
        value += 0.5 * r[i] * r[i] / total
        product *= normalizer / total
        # One logarithm for many factors, before their product leaves double precision.
        if product < 1e-150 or i == size - 1:
            value += 0.5 * math.log(product)
            product = 1.0
    return value


@njit(cache=True)
def _slice(log_u, size, g, r, multiplier, slab, fictitious, rng):
    """One slice step of log u: stepping out, then shrinking (Neal 2003)."""
    level = _log_density(log_u, size, g, r, multiplier, slab, fictitious)
    level += math.log(1.0 - rng.random())
    low = log_u - WIDTH * rng.random()
    high = low + WIDTH
    left = int((MOST_STEPS + 1) * rng.random())
    for _ in range(left):
        if not _log_density(low, size, g, r, multiplier, slab, fictitious) > level:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS - left):
        if not _log_density(high, size, g, r, multiplier, slab, fictitious) > level:
            break
        high += WIDTH
    while high - low > 1e-12:
        proposal = low + (high - low) * rng.random()
        if _log_density(proposal, size, g, r, multiplier, slab, fictitious) > level:
            return min(max(proposal, -MOST_LOG), MOST_LOG)
        if proposal < log_u:
            low = proposal
        else:
            high = proposal
    return log_u


@njit(cache=True)
def _diagonalized(matrix, vectors, size):
    """The matrix made diagonal by rotations (Jacobi), which ``vectors`` collects."""
    for i in range(size):
        for j in range(size):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):
        off, diagonal = 0.0, 0.0
        for i in range(size):
            diagonal += matrix[i, i] * matrix[i, i]
            for j in range(i + 1, size):
                off += matrix[i, j] * matrix[i, j]
        if off <= 1e-30 * diagonal:
            break
        for p in range(size - 1):
            for q in range(p + 1, size):
                _rotated(matrix, vectors, size, p, q)


@njit(cache=True)
def _rotated(matrix, vectors, size, p, q):
    """The rotation that makes entry (p, q) zero."""
    entry = matrix[p, q]
    if entry == 0.0:
        return
    ratio = (matrix[q, q] - matrix[p, p]) / (2 * entry)
    sign = 1.0 if ratio >= 0 else -1.0
    tangent = sign / (abs(ratio) + math.sqrt(ratio * ratio + 1))
    cosine = 1 / math.sqrt(tangent * tangent + 1)
    sine = tangent * cosine
    for k in range(size):
        one, other = matrix[k, p], matrix[k, q]
        matrix[k, p], matrix[k, q] = cosine * one - sine * other, sine * one + cosine * other
    for k in range(size):
        one, other = matrix[p, k], matrix[q, k]
        matrix[p, k], matrix[q, k] = cosine * one - sine * other, sine * one + cosine * other
        one, other = vectors[k, p], vectors[k, q]
        vectors[k, p], vectors[k, q] = cosine * one - sine * other, sine * one + cosine * other


@njit(cache=True, fastmath=FAST)
def _products(rows, start, size, weights, half, psi, gram, r):
    """``G`` and ``X' (label - 1/2 - w psi)`` of one run."""
    for i in range(size):
        one = rows[start + i]
        total = 0.0
        for n in range(len(psi)):
            total += one[n] * (half[n] - weights[n] * psi[n])
        r[i] = total
        for j in range(i, size):
            other = rows[start + j]
            total = 0.0
            for n in range(len(psi)):
                total += weights[n] * one[n] * other[n]
            gram[i, j] = total
            gram[j, i] = total


@njit(cache=True, fastmath=FAST)
def _products_of_four(rows, start, weights, half, psi, gram, r):
    """The same for a run of four, in one pass over the points."""
    x0, x1, x2, x3 = rows[start], rows[start + 1], rows[start + 2], rows[start + 3]
    a00, a01, a02, a03, a11, a12, a13 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    a22, a23, a33, r0, r1, r2, r3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for n in range(len(psi)):
        w = weights[n]
        e = half[n] - w * psi[n]
        p0, p1, p2, p3 = x0[n], x1[n], x2[n], x3[n]
        q0, q1, q2 = w * p0, w * p1, w * p2
        a00 += q0 * p0
        a01 += q0 * p1
        a02 += q0 * p2
        a03 += q0 * p3
        a11 += q1 * p1
        a12 += q1 * p2
        a13 += q1 * p3
        a22 += q2 * p2
        a23 += q2 * p3
        a33 += w * p3 * p3
        r0 += p0 * e
        r1 += p1 * e
        r2 += p2 * e
        r3 += p3 * e
    gram[0, 0], gram[1, 1], gram[2, 2], gram[3, 3] = a00, a11, a22, a33
    gram[0, 1], gram[0, 2], gram[0, 3], gram[1, 2] = a01, a02, a03, a12
    gram[1, 3], gram[2, 3] = a13, a23
    gram[1, 0], gram[2, 0], gram[3, 0], gram[2, 1] = a01, a02, a03, a12
    gram[3, 1], gram[3, 2] = a13, a23
    r[0], r[1], r[2], r[3] = r0, r1, r2, r3


@njit(cache=True)
def _moved(rows, start, size, change, psi):
    """psi after the run's coefficients have changed."""
    if size == 4:
        x0, x1, x2, x3 = rows[start], rows[start + 1], rows[start + 2], rows[start + 3]
        c0, c1, c2, c3 = change[0], change[1], change[2], change[3]
        for n in range(len(psi)):
            psi[n] += c0 * x0[n] + c1 * x1[n] + c2 * x2[n] + c3 * x3[n]
        return
    for i in range(size):
        row, own = rows[start + i], change[i]
        for n in range(len(psi)):
            psi[n] += own * row[n]


@njit(cache=True)
def _draw_run(start, size, gram, r, coef, log_u, multiplier, slab, fictitious, change, rng):
    """log u and the coefficients of one run, from ``gram`` and ``r``; the new log u.

    coef changes in place, ``change`` tells by how much; gram and r are used up.
    """
    vectors, g, b = np.empty((size, size)), np.empty(size), np.empty(size)
    for i in range(size):
        total = r[i]
        for j in range(size):
            total += gram[i, j] * coef[start + j]
        r[i] = total
    _diagonalized(gram, vectors, size)
    for i in range(size):
        g[i] = max(gram[i, i], 0.0)
        total = 0.0
        for j in range(size):
            total += vectors[j, i] * r[j]
        b[i] = total
    log_u = _slice(log_u, size, g, b, multiplier, slab, fictitious, rng)
    precision = slab + math.exp(-2 * log_u) / (multiplier * multiplier)
    for i in range(size):
        total = precision + g[i]
        b[i] = b[i] / total + rng.standard_normal() / math.sqrt(total)
    for i in range(size):
        new = 0.0
        for j in range(size):
            new += vectors[i, j] * b[j]
        change[i] = new - coef[start + i]
        coef[start + i] = new
    return log_u


@njit(cache=True)
def sweep(
    rows, starts, sizes, weights, half, psi, coef, log_local, multiplier, slab, fictitious, rng
):
    """Draw log u and coefficients of every run; psi, coef and log_local change in place.

    ``rows`` (p, N) are the design's columns, ``half`` is label - 1/2, psi the log odds.
    """
    most = max(1, np.max(sizes))
    gram, r, change = np.empty((most, most)), np.empty(most), np.empty(most)
    for e in range(len(starts)):
        start, size = starts[e], sizes[e]
        if size == 4:
            _products_of_four(rows, start, weights, half, psi, gram, r)
        else:
            _products(rows, start, size, weights, half, psi, gram, r)
        log_local[e] = _draw_run(
            start, size, gram, r, coef, log_local[e], multiplier[e], slab[e], fictitious[e],
            change, rng,
        )  # fmt: skip
        _moved(rows, start, size, change, psi)
