"""Log likelihoods of coef (group, coefficient) and their gradients, compiled; imported where used.

Four kinds stand behind one record: labels with a dense design, labels with a design whose columns
are sums of two products (torus graphs), quadratic ones, ``shift . coef - coef' gram coef / 2``, and
exact ones of models with few states, ``shift . coef - count log sum exp(states coef + offset)``.
Values are in double precision. Gradients of labels are in single precision with a rational sigmoid:
they only propose, and any deterministic kick keeps a trajectory reversible and its volume.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

DENSE, PRODUCTS, QUADRATIC, STATES = 0, 1, 2, 3
# Points of a chunk of a design of products: its waves and what is made of them stay in cache.
CHUNK = 512
# Bands of rows of the triangle that a design of products multiplies by: 5/8 of the square.
BANDS = 4


class Likelihood(NamedTuple):
    """All groups' data, as compiled loops read them.

    Group g has the points ``bounds[g]`` to ``bounds[g + 1]``. ``columns``: its design, column after
    column, groups one after the other; ``single`` the same by ``units``, in single precision.
    ``waves`` (chunk, wave, point): column j of the design is ``sum_k signs[j, k] wave[pairs[j, k,
    0]] wave[pairs[j, k, 1]]``. ``grams``, ``shifts``: of quadratic likelihoods. Exact ones have the
    statistics of the states for a design that all groups share, ``counts`` rows and ``shifts``.
    """

    kind: int
    bounds: NDArray[np.int64]
    offset: NDArray[np.float64]
    label: NDArray[np.float64]
    columns: NDArray[np.float64]
    single: NDArray[np.float32]
    single_offset: NDArray[np.float32]
    single_label: NDArray[np.float32]
    units: NDArray[np.float64]
    waves: NDArray[np.float64]
    single_waves: NDArray[np.float32]
    pairs: NDArray[np.int64]
    signs: NDArray[np.float64]
    grams: NDArray[np.float64]
    shifts: NDArray[np.float64]
    counts: NDArray[np.float64]


@njit(cache=True, inline="always", error_model="numpy")
def _sigmoid(x):
    """``1 / (1 + exp(-x))`` by a rational function of tanh, up to 1e-6: loops over it vectorize."""
    one = np.float32
    t = min(max(one(0.5) * x, one(-9.0)), one(9.0))
    q = t * t
    a = one(-2.76076847742355e-16)
    a = a * q + one(2.00018790482477e-13)
    a = a * q + one(-8.60467152213735e-11)
    a = a * q + one(5.12229709037114e-08)
    a = a * q + one(1.48572235717979e-05)
    a = a * q + one(6.37261928875436e-04)
    a = a * q + one(4.89352455891786e-03)
    b = one(1.19825839466702e-06)
    b = b * q + one(1.18534705686654e-04)
    b = b * q + one(2.26843463243900e-03)
    b = b * q + one(4.89352518554385e-03)
    return one(0.5) + one(0.5) * t * a / b


@njit(cache=True, error_model="numpy")
def _subtract_chances(psi, offset, label, residual):
    for n in range(len(psi)):
        residual[n] = label[n] - _sigmoid(psi[n] + offset[n])


@njit(cache=True, error_model="numpy")
def gradient(data, coef, out, residual):
    """Fill ``out`` (group, coefficient), and ``residual`` (point,): label less its probability."""
    for g in range(len(coef)):
        if data.kind == QUADRATIC:
            out[g] = data.shifts[g] - np.dot(data.grams[g], coef[g])
        elif data.kind == STATES:
            _states_gradient(data, coef[g], g, out[g])
        elif data.kind == PRODUCTS:
            _products_gradient(data, coef[g], data.bounds[g], data.bounds[g + 1], out[g], residual)
        else:
            first, last = data.bounds[g], data.bounds[g + 1]
            size = coef.shape[1]
            rows = data.single[first * size : last * size].reshape((size, last - first))
            psi = np.dot((coef[g] * data.units).astype(np.float32), rows)
            part = slice(first, last)
            _subtract_chances(
                psi, data.single_offset[part], data.single_label[part], residual[part]
            )
            slope = np.dot(rows, residual[first:last])
            for j in range(size):
                out[g, j] = slope[j] * data.units[j]


@njit(cache=True, error_model="numpy")
def _states_gradient(data, coef, g, out):
    """``shift - count E statistics``."""
    size, states = len(coef), len(data.offset)
    rows = data.single.reshape((size, states))
    psi = np.dot((coef * data.units).astype(np.float32), rows)
    highest = -np.inf
    for s in range(states):
        psi[s] += data.single_offset[s]
        highest = max(highest, psi[s])
    total = 0.0
    for s in range(states):
        psi[s] = math.exp(psi[s] - highest)
        total += psi[s]
    mean = np.dot(rows, psi)
    for j in range(size):
        out[j] = data.shifts[g, j] - data.counts[g] * mean[j] * data.units[j] / total


@njit(cache=True, error_model="numpy")
def _states_value(data, coef, g):
    """``shift . coef - count log Z``."""
    psi = np.dot(coef, data.columns.reshape((len(coef), len(data.offset))))
    highest = -np.inf
    for s in range(len(psi)):
        psi[s] += data.offset[s]
        highest = max(highest, psi[s])
    total = 0.0
    for s in range(len(psi)):
        total += math.exp(psi[s] - highest)
    return np.sum(data.shifts[g] * coef) - data.counts[g] * (highest + math.log(total))


@njit(cache=True, error_model="numpy")
def _forms(data, coef, matrix):
    """The matrix of the quadratic form in the waves that the log odds are, its upper triangle."""
    matrix[:] = 0
    for j in range(len(coef)):
        for k in range(2):
            one, other = data.pairs[j, k]
            matrix[min(one, other), max(one, other)] += data.signs[j, k] * coef[j]


@njit(cache=True, error_model="numpy")
def _products_gradient(data, coef, first, last, out, residual):
    """In bands of rows, which leave out most of what is zero below the diagonal."""
    count, chunks = data.waves.shape[1], range(first // CHUNK, last // CHUNK)
    matrix, total = np.empty((count, count), np.float32), np.zeros((count, count), np.float32)
    _forms(data, coef, matrix)
    psi = np.zeros(last - first, np.float32)
    step = -(-count // BANDS)
    for low in range(0, count, step):
        high = min(count, low + step)
        band = np.ascontiguousarray(matrix[low:high, low:])
        for chunk in chunks:
            waves, begin = data.single_waves[chunk][low:], chunk * CHUNK - first
            inner = np.dot(band, waves)
            for a in range(high - low):
                for n in range(CHUNK):
                    psi[begin + n] += inner[a, n] * waves[a, n]
    part = slice(first, last)
    _subtract_chances(psi, data.single_offset[part], data.single_label[part], residual[part])
    for low in range(0, count, step):
        high = min(count, low + step)
        left = np.empty((high - low, CHUNK), np.float32)
        for chunk in chunks:
            waves, begin = data.single_waves[chunk][low:], chunk * CHUNK
            for a in range(high - low):
                for n in range(CHUNK):
                    left[a, n] = waves[a, n] * residual[begin + n]
            total[low:high, low:] += np.dot(left, waves.T)
    for j in range(len(coef)):
        value = 0.0
        for k in range(2):
            one, other = data.pairs[j, k]
            value += data.signs[j, k] * total[min(one, other), max(one, other)]
        out[j] = value


@njit(cache=True, error_model="numpy")
def _label_value(psi, offset, label):
    """``sum s psi - log(1 + exp(psi))`` over points, and the largest absolute psi."""
    value, product, largest = 0.0, 1.0, 0.0
    for n in range(len(psi)):
        odds = psi[n] + offset[n]
        if odds == -np.inf:  # no point, but what fills a chunk up
            continue
        largest = max(largest, abs(odds))
        # One logarithm for many factors, before their product leaves double precision.
        product *= 1.0 + math.exp(-abs(odds))
        if product > 1e150:
            value -= math.log(product)
            product = 1.0
        value += min(odds, 0.0) if label[n] > 0.5 else -max(odds, 0.0)
    return value - math.log(product), largest


@njit(cache=True, error_model="numpy")
def value(data, coef):
    """Log likelihood in double precision, and the largest absolute log odds."""
    total, largest = 0.0, 0.0
    for g in range(len(coef)):
        if data.kind == QUADRATIC:
            half = data.shifts[g] - np.dot(data.grams[g], coef[g]) / 2
            total += np.sum(half * coef[g])
            continue
        if data.kind == STATES:
            total += _states_value(data, coef[g], g)
            continue
        first, last = data.bounds[g], data.bounds[g + 1]
        if data.kind == DENSE:
            size = coef.shape[1]
            rows = data.columns[first * size : last * size].reshape((size, last - first))
            psi = np.dot(coef[g], rows)
            found, most = _label_value(psi, data.offset[first:last], data.label[first:last])
            total, largest = total + found, max(largest, most)
            continue
        count = data.waves.shape[1]
        matrix = np.empty((count, count))
        _forms(data, coef[g], matrix)
        for chunk in range(first // CHUNK, last // CHUNK):
            waves = data.waves[chunk]
            inner = np.dot(matrix, waves)
            psi = np.zeros(CHUNK)
            for a in range(count):
                for n in range(CHUNK):
                    psi[n] += inner[a, n] * waves[a, n]
            part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            found, most = _label_value(psi, data.offset[part], data.label[part])
            total, largest = total + found, max(largest, most)
    return total, largest
