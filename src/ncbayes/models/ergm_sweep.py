"""Gibbs sweeps over the dyads of graphs by change statistics, compiled; imported where used."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def sweep(x, uniforms, one, other, nodes, directed, linear, mutual, steps, slope, table):
    """Each row's dyads drawn one after the other from their conditionals, in place.

    The log odds of dyad d = jk are ``linear[d] + mutual x_kj``, and what degrees and shared
    partners add. ``steps`` (3, degrees) are steps of their functions for all, in and out degrees.
    ``table`` is the function of shared partners; empty: it is ``slope`` times their number.
    """
    adjacency = np.zeros((nodes, nodes), np.int8)
    shared = np.zeros((nodes, nodes), np.int32)
    out, into = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    for row in range(len(x)):
        _fill(x[row], one, other, directed, adjacency, out, into)
        if len(table):
            _count_partners(adjacency, shared)
        for d in range(len(one)):
            j, k, there = one[d], other[d], adjacency[one[d], other[d]]
            log_odds = linear[d] + mutual * adjacency[k, j] * directed
            if directed:
                all_j, all_k = out[j] + into[j] - there, out[k] + into[k] - there
                log_odds += steps[1, into[k] - there] + steps[2, out[j] - there]
            else:
                all_j, all_k = out[j] - there, out[k] - there
            log_odds += steps[0, all_j] + steps[0, all_k]
            if len(table):
                log_odds += _partner_change(adjacency, shared, table, j, k, there, directed)
            elif slope != 0.0:
                log_odds += slope * _common(adjacency, j, k, directed)
            new = 1 if uniforms[row, d] * (1.0 + math.exp(-log_odds)) < 1.0 else 0
            if new != there:
                _toggle(adjacency, out, into, j, k, new, directed)
                if len(table):
                    _toggle_partners(adjacency, shared, j, k, new - there, directed)
        for d in range(len(one)):
            x[row, d] = adjacency[one[d], other[d]]


@njit(cache=True)
def _fill(row, one, other, directed, adjacency, out, into):
    adjacency[:] = 0
    out[:] = 0
    into[:] = 0
    for d in range(len(row)):
        if row[d] != 0.0:
            _toggle(adjacency, out, into, one[d], other[d], 1, directed)


@njit(cache=True)
def _toggle(adjacency, out, into, j, k, new, directed):
    sign = 1 if new else -1
    adjacency[j, k] = new
    out[j] += sign
    if directed:
        into[k] += sign
    else:
        adjacency[k, j] = new
        out[k] += sign


@njit(cache=True)
def _count_partners(adjacency, shared):
    nodes = len(adjacency)
    shared[:] = 0
    for i in range(nodes):
        for h in range(nodes):
            if adjacency[i, h]:
                for j in range(nodes):
                    shared[i, j] += adjacency[h, j]


@njit(cache=True)
def _toggle_partners(adjacency, shared, j, k, sign, directed):
    """The edge jk came (sign 1) or went (-1), and with it the paths j k h and h j k."""
    for h in range(len(adjacency)):
        if adjacency[k, h] and h != j:
            shared[j, h] += sign
            if not directed:
                shared[h, j] += sign
        if adjacency[h, j] and h != k:
            shared[h, k] += sign
            if not directed:
                shared[k, h] += sign


@njit(cache=True)
def _partner_change(adjacency, shared, table, j, k, there, directed):
    """What the edge jk adds to the sum over edges of ``table[shared partners]``."""
    total = table[shared[j, k]]
    for h in range(len(adjacency)):
        if adjacency[j, h] and adjacency[k, h]:
            s = shared[j, h] - there
            total += table[s + 1] - table[s]
        if adjacency[h, j] and adjacency[h, k]:
            s = shared[h, k] - there
            total += table[s + 1] - table[s]
    return total


@njit(cache=True)
def _common(adjacency, j, k, directed):
    """Triangles on the edge jk; if directed, triples of which it can be any of the three."""
    total = 0
    for h in range(len(adjacency)):
        total += adjacency[j, h] & adjacency[k, h]
    if directed:
        for h in range(len(adjacency)):
            total += adjacency[h, j] & adjacency[h, k]
            total += adjacency[j, h] & adjacency[h, k]
    return total
