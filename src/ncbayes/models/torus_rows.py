"""Columns of a torus graph's design as rows, compiled; imported where used."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def edge_rows(cos, sin, one, other, kinds, out):
    """The statistics of each edge jk, by kind, as the next rows of ``out``.

    ``cos`` and ``sin`` are (node, point). One pass a row: what NumPy makes on the way to a sum of
    two products takes as long to write and read as the row itself.
    """
    row = 0
    for e in range(len(one)):
        cos_j, sin_j, cos_k, sin_k = cos[one[e]], sin[one[e]], cos[other[e]], sin[other[e]]
        for kind in kinds:
            sign = 1.0 if kind == 0 or kind == 3 else -1.0
            if kind % 2 == 0:
                _add_products(cos_j, cos_k, sign, sin_j, sin_k, out[row])
            else:
                _add_products(sin_j, cos_k, sign, cos_j, sin_k, out[row])
            row += 1


@njit(cache=True)
def _add_products(a, b, sign, c, d, out):
    for n in range(len(out)):
        out[n] = a[n] * b[n] + sign * (c[n] * d[n])
