"""Coordinates in which coefficients and scales are nearly independent standard normals.

Compiled, and imported where used. A position x holds eta of the cells, eta of the free coefficients
and the logarithms of the scales, zeta. From x to coef:

    lambda  = slab + exp(-2 (zeta_first + zeta_second + factor))          of each cell
    y       = V [ rho / (g + lambda) + eta / sqrt(g + lambda) ]           cell by cell
    tied    = mix y                                                       part by part, over groups
    free    = f + K eta_free - H tied                                     group by group

g are the eigenvalues and V the eigenvectors of the likelihood's curvature in the cell. Where it is
large against the prior's lambda, eta is the coefficient in units of its posterior; where it is
small, in units of its prior: centred and non-centred coordinates, and all between them.
Everything but x is fixed, so that only lambda enters the Jacobian.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Priors of zeta: exp(zeta) half-Cauchy of scale exp(a); exp(2 zeta) inverse gamma of a and b; none
# of its own, for what links columns.
HALF_CAUCHY, INVERSE_GAMMA, LINK = 0, 1, 2
# Beyond exp(+-300) a scale's square leaves double precision; no likelihood tells such from another.
MOST_LOG = 300.0
# Up to so many rows loops mix them faster than BLAS does.
FEW_ROWS = 8


@njit(cache=True, error_model="numpy")
def _fill_bases(chart, x, scales, bases):
    """``exp(-2 (zeta_first + zeta_second + factor))`` of every cell, then b of every zeta."""
    for e in range(len(chart.cell)):
        log_scale = chart.factor[e]
        if chart.first[e] >= 0:
            log_scale += x[scales + chart.first[e]]
        if chart.second[e] >= 0:
            log_scale += x[scales + chart.second[e]]
        bases[e] = math.exp(-2.0 * max(log_scale, -MOST_LOG))
    for s in range(len(chart.kinds)):
        bases[len(chart.cell) + s] = chart.prior_b[s]
    for p in range(len(chart.start)):
        if chart.links[p] >= 0:
            rates = bases[len(chart.cell) + chart.variances[p] :]
            _fill_rates(chart.matrices[p], x[scales + chart.links[p] :], chart.width[p], rates)


@njit(cache=True, error_model="numpy")
def _fill_rates(matrix, phi, width, rates):
    """Half of ``(T S T')_kk``, T with ones on its diagonal and -phi below: b of each variance."""
    for k in range(width):
        total, own = matrix[k, k], k * (k - 1) // 2
        for j in range(k):
            total -= 2.0 * phi[own + j] * matrix[k, j]
            for i in range(k):
                total += phi[own + i] * matrix[i, j] * phi[own + j]
        rates[k] = 0.5 * total


@njit(cache=True, error_model="numpy")
def _widest(chart):
    widest = 1
    for e in range(len(chart.size)):
        widest = max(widest, chart.size[e])
    return widest


@njit(cache=True, error_model="numpy")
def _turn(turns, pointer, k, vector, out, begin, back):
    """Write ``V vector``, or ``V' vector``, into out from ``begin`` on; V is (k, k)."""
    if k > 12:
        turn = turns[pointer : pointer + k * k].reshape((k, k))
        product = np.dot(vector[:k], turn) if back else np.dot(turn, vector[:k])
        for i in range(k):
            out[begin + i] = product[i]
        return
    for i in range(k):
        value = 0.0
        for j in range(k):
            value += turns[pointer + (j * k + i if back else i * k + j)] * vector[j]
        out[begin + i] = value


@njit(cache=True, error_model="numpy")
def place(chart, x, y, q, coef, bases):
    """Fill what belongs to the position x.

    y, q (y, but for levels what their prior is of), coef, and the cells' ``bases``, the part of
    lambda that scales have a say in.
    """
    groups, frees = chart.free_mean.shape
    _fill_bases(chart, x, len(y) + groups * frees, bases)
    inner, turns = np.empty(_widest(chart)), chart.turns
    for e in range(len(chart.cell)):
        lam, a = chart.slab[e] + bases[e], chart.cell[e]
        turned = chart.turn[e] >= 0
        for i in range(chart.size[e]):
            inverse = 1.0 / (chart.g[a + i] + lam)
            value = chart.rho[a + i] * inverse + x[a + i] * math.sqrt(inverse)
            if turned:
                inner[i] = value
            else:
                y[a + i] = value
        if turned:
            _turn(turns, chart.turn[e], chart.size[e], inner, y, a, False)
    q[:] = y
    for p in range(len(chart.start)):
        _mix_part(chart, p, y, q, coef)
        if chart.links[p] >= 0:
            begin, phi = chart.begin[p], x[len(y) + groups * frees + chart.links[p] :]
            _unlink(phi, y[begin:], q[begin:], chart.rows[p] - 1, chart.width[p])
    if frees > 0:
        _place_free(chart, x, len(y), coef)


@njit(cache=True, error_model="numpy")
def _unlink(phi, y, q, rows, width):
    """``q_k = y_k - sum_j<k phi_kj y_j``: what is left of each column given those before it."""
    for r in range(rows):
        for k in range(width):
            own = k * (k - 1) // 2
            for j in range(k):
                q[r * width + k] -= phi[own + j] * y[r * width + j]


@njit(cache=True, error_model="numpy")
def _place_free(chart, x, begin, coef):
    groups, frees = chart.free_mean.shape
    tied = np.empty(len(chart.tied))
    for g in range(groups):
        own = np.dot(chart.free_factor[g], x[begin + g * frees : begin + (g + 1) * frees])
        if len(tied) > 0:
            for j in range(len(tied)):
                tied[j] = coef[g, chart.tied[j]]
            own -= np.dot(chart.shear[g], tied)
        for i in range(frees):
            coef[g, chart.free[i]] = chart.free_mean[g, i] + own[i]


@njit(cache=True, error_model="numpy")
def _mix_part(chart, p, y, q, coef):
    start, width, rows, begin = chart.start[p], chart.width[p], chart.rows[p], chart.begin[p]
    own = y[begin : begin + rows * width].reshape((rows, width))
    if rows > FEW_ROWS:
        mix = np.ascontiguousarray(chart.mixes[p, :, :rows])
        coef[:, start : start + width] = np.dot(mix, own)
    else:
        for g in range(len(coef)):
            for k in range(width):
                coef[g, start + k] = 0.0
            for r in range(rows):
                share = chart.mixes[p, g, r]
                if share != 0.0:
                    for k in range(width):
                        coef[g, start + k] += share * own[r, k]
    level = chart.level[p]
    if level >= 0:
        for r in range(rows):
            share = chart.shears[p, r]
            if share != 0.0:
                for k in range(width):
                    q[begin + level * width + k] -= share * y[begin + r * width + k]


@njit(cache=True, error_model="numpy")
def log_prior(chart, x, q, coef, bases):
    """Log density of x but for the likelihood, up to a constant: prior and Jacobian."""
    groups, frees = chart.free_mean.shape
    scales = len(q) + groups * frees
    value = 0.0
    for s in range(len(chart.kinds)):
        rate = bases[len(chart.cell) + s]
        value += _log_scale_prior(chart.kinds[s], chart.prior_a[s], rate, x[scales + s])
    for e in range(len(chart.cell)):
        base = bases[e]
        lam = chart.slab[e] + base
        norm = base if chart.fictitious[e] else lam
        a, square, product = chart.cell[e], 0.0, 1.0
        for i in range(chart.size[e]):
            off = q[a + i] - chart.mean[a + i]
            square += off * off
            product *= norm / (chart.g[a + i] + lam)
            # One logarithm for many factors, before their product leaves double precision.
            if product < 1e-150:
                value += 0.5 * math.log(max(product, 1e-300))
                product = 1.0
        value += 0.5 * math.log(product) - 0.5 * lam * square
    for g in range(groups):
        for i in range(frees):
            pull = chart.free_shift[g, i]
            for j in range(frees):
                pull -= 0.5 * chart.free_precision[g, i, j] * coef[g, chart.free[j]]
            value += pull * coef[g, chart.free[i]]
    return value


@njit(cache=True, error_model="numpy")
def _log_scale_prior(kind, a, b, zeta):
    if kind == HALF_CAUCHY:
        size = abs(zeta - a)
        return -size - math.log1p(math.exp(-2.0 * size))
    if kind == LINK:
        return 0.0
    return -2.0 * a * zeta - b * math.exp(-2.0 * zeta)


@njit(cache=True, error_model="numpy")
def _scale_slope(kind, a, b, zeta):
    if kind == HALF_CAUCHY:
        return -math.tanh(zeta - a)
    if kind == LINK:
        return 0.0
    return -2.0 * a + 2.0 * b * math.exp(-2.0 * zeta)


@njit(cache=True, error_model="numpy")
def chain(chart, x, y, q, coef, bases, slope, out):
    """Gradient of the log density by x, into ``out``; ``slope``: of the likelihood by coef."""
    groups, frees = chart.free_mean.shape
    size = len(q)
    scales = size + groups * frees
    tied = slope.copy()
    if frees > 0:
        _chain_free(chart, coef, slope, tied, size, out)
    for s in range(len(chart.kinds)):
        rate = bases[len(chart.cell) + s]
        out[scales + s] = _scale_slope(chart.kinds[s], chart.prior_a[s], rate, x[scales + s])
    pulls = np.empty(size)
    for p in range(len(chart.start)):
        _unmix_part(chart, p, tied, pulls)
    for e in range(len(chart.cell)):
        if chart.owner[e] >= 0:
            _pull_on_level(chart, e, q, bases[e], pulls)
    for p in range(len(chart.start)):
        if chart.links[p] >= 0:
            _chain_links(chart, p, x, y, q, scales, bases, pulls, out)
    _chain_cells(chart, x, q, scales, bases, pulls, out)


@njit(cache=True, error_model="numpy")
def _chain_free(chart, coef, slope, tied, begin, out):
    groups, frees = chart.free_mean.shape
    own = np.empty(frees)
    for g in range(groups):
        for i in range(frees):
            own[i] = slope[g, chart.free[i]] + chart.free_shift[g, i]
            for j in range(frees):
                own[i] -= chart.free_precision[g, i, j] * coef[g, chart.free[j]]
        product = np.dot(own, chart.free_factor[g])
        for i in range(frees):
            out[begin + g * frees + i] = product[i]
        if len(chart.tied) > 0:
            pull = np.dot(own, chart.shear[g])
            for j in range(len(chart.tied)):
                tied[g, chart.tied[j]] -= pull[j]


@njit(cache=True, error_model="numpy")
def _unmix_part(chart, p, tied, pulls):
    start, width, begin, rows = chart.start[p], chart.width[p], chart.begin[p], chart.rows[p]
    if rows > FEW_ROWS:
        mix = np.ascontiguousarray(chart.mixes[p, :, :rows].T)
        found = np.dot(mix, np.ascontiguousarray(tied[:, start : start + width]))
        pulls[begin : begin + rows * width] = found.ravel()
        return
    for r in range(rows):
        for k in range(width):
            pulls[begin + r * width + k] = 0.0
        for g in range(len(tied)):
            share = chart.mixes[p, g, r]
            if share != 0.0:
                for k in range(width):
                    pulls[begin + r * width + k] += share * tied[g, start + k]


@njit(cache=True, error_model="numpy")
def _pull_on_level(chart, e, q, base, pulls):
    """The prior of a level pulls on the rows that its prior is of."""
    p, a, lam = chart.owner[e], chart.cell[e], chart.slab[e] + base
    width, begin = chart.width[p], chart.begin[p]
    column = a - begin - chart.level[p] * width
    for r in range(chart.rows[p]):
        share = chart.shears[p, r] * lam
        if share != 0.0:
            for i in range(chart.size[e]):
                pull = share * (q[a + i] - chart.mean[a + i])
                pulls[begin + r * width + column + i] += pull


@njit(cache=True, error_model="numpy")
def _chain_links(chart, p, x, y, q, scales, bases, pulls, out):
    """Slopes by phi, and what the columns that are linked to a column pull it by."""
    width, begin, first = chart.width[p], chart.begin[p], chart.links[p]
    matrix = chart.matrices[p]
    for k in range(width):
        own = k * (k - 1) // 2
        inverse = math.exp(-2.0 * x[scales + chart.variances[p] + k])
        for j in range(k):
            slope = matrix[k, j]
            for i in range(k):
                slope -= matrix[j, i] * x[scales + first + own + i]
            out[scales + first + own + j] = inverse * slope
        for r in range(chart.rows[p] - 1):
            cell = chart.first_cell[p] + r * width + k
            force = (chart.slab[cell] + bases[cell]) * q[begin + r * width + k]
            for j in range(k):
                at = begin + r * width + j
                pulls[at] += x[scales + first + own + j] * force
                out[scales + first + own + j] += force * y[at]


@njit(cache=True, error_model="numpy")
def _chain_cells(chart, x, q, scales, bases, pulls, out):
    # One loop for all cells: to hand a chart over costs more than what there is to do for one.
    widest, turns = _widest(chart), chart.turns
    force, turned = np.empty(widest), np.empty(widest)
    for e in range(len(chart.cell)):
        base, k, a, square = bases[e], chart.size[e], chart.cell[e], 0.0
        lam = chart.slab[e] + base
        for i in range(k):
            off = q[a + i] - chart.mean[a + i]
            square += off * off
            turned[i] = pulls[a + i] - lam * off
        if chart.turn[e] >= 0:
            force[:k] = turned[:k]
            _turn(turns, chart.turn[e], k, force, turned, 0, True)
        # The slope by log base: each term stays finite where lambda is huge.
        share = 1.0 if chart.fictitious[e] else base / lam
        slope = 0.5 * k * share - 0.5 * base * square
        for i in range(k):
            inverse = 1.0 / (chart.g[a + i] + lam)
            root = math.sqrt(inverse)
            out[a + i] = turned[i] * root
            drift = chart.rho[a + i] * inverse + 0.5 * x[a + i] * root
            slope -= (0.5 + turned[i] * drift) * base * inverse
        if chart.first[e] >= 0:
            out[scales + chart.first[e]] -= 2.0 * slope
        if chart.second[e] >= 0:
            out[scales + chart.second[e]] -= 2.0 * slope


@njit(cache=True, error_model="numpy")
def enter(chart, y, coef, zeta, x):
    """Fill the position x of cells' y, coef and log scales; the inverse of ``place``."""
    groups, frees = chart.free_mean.shape
    begin = len(y)
    scales = begin + groups * frees
    x[scales:] = zeta
    bases, inner = np.empty(len(chart.cell) + len(chart.kinds)), np.empty(_widest(chart))
    _fill_bases(chart, x, scales, bases)
    for e in range(len(chart.cell)):
        k, a = chart.size[e], chart.cell[e]
        if chart.turn[e] >= 0:
            _turn(chart.turns, chart.turn[e], k, y[a : a + k], inner, 0, True)
        else:
            inner[:k] = y[a : a + k]
        for i in range(k):
            total = chart.g[a + i] + chart.slab[e] + bases[e]
            x[a + i] = (inner[i] - chart.rho[a + i] / total) * math.sqrt(total)
    for g in range(groups if frees > 0 else 0):
        own, tied = np.empty(frees), np.empty(len(chart.tied))
        for i in range(frees):
            own[i] = coef[g, chart.free[i]] - chart.free_mean[g, i]
        if len(tied) > 0:
            for j in range(len(tied)):
                tied[j] = coef[g, chart.tied[j]]
            own += np.dot(chart.shear[g], tied)
        x[begin + g * frees : begin + (g + 1) * frees] = np.linalg.solve(chart.free_factor[g], own)
