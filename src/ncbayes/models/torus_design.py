"""The statistics of a torus graph as an operator: quadratic forms of ``(cos x, sin x)``.

With C = cos x and S = sin x, a pair statistic is a sum of two products:

    cos(xj - xk) = Cj Ck + Sj Sk        sin(xj - xk) = Sj Ck - Cj Sk
    cos(xj + xk) = Cj Ck - Sj Sk        sin(xj + xk) = Sj Ck + Cj Sk

so that products with the (N, p) matrix of statistics never need that matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from ncbayes.base import FloatArray
from ncbayes.models.nodes import Pairs

# Entries of a slice of the matrix while its Gram matrix is summed up: 16 MB.
SLICE_ENTRIES = 2**21
# A matrix up to this size (4 MB) is kept for its Gram matrix: making it would take as long.
KEPT_ENTRIES = 2**19
# Entries of what a product makes on the way, 0.25 MB: as much as stays in cache, and as much as
# the system does not hand out and take back at every call, which would double the time.
PART_ENTRIES = 2**15
# A block of this many rows and columns (0.5 MB) and its mirror image stay in cache.
MIRROR_BLOCK = 256
# A sum of squares that is a smaller share than this of the sum of the weights is round-off.
ROUND_OFF = 1e-13

# The four statistics of an edge: cos(xj - xk), sin(xj - xk), cos(xj + xk), sin(xj + xk).
KINDS = ("cos_minus", "sin_minus", "cos_plus", "sin_plus")
# How the two products of each of the four statistics of an edge come together.
COMBINE = (np.add, np.subtract, np.subtract, np.add)


@dataclass(frozen=True, eq=False)
class Layout:
    """Which statistics stand in which column.

    ``kinds`` holds the kept ones of the four statistics of an edge:
    0 cos(xj - xk), 1 sin(xj - xk), 2 cos(xj + xk), 3 sin(xj + xk).
    """

    nodes: int
    pairs: Pairs
    marginal: bool
    kinds: tuple[int, ...]

    @property
    def border(self) -> int:
        """How many statistics are marginal: the first ones."""
        return 2 * self.nodes if self.marginal else 0

    @property
    def size(self) -> int:
        """The number of statistics."""
        return self.border + len(self.kinds) * len(self.pairs[0])

    def forms(self, coef: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The linear part (2, d) and the matrices cc, cs, ss of

        ``coef . statistics = linear_0 . C + linear_1 . S + C' cc C + C' cs S + S' ss S``;
        cc and ss are zero on and below the diagonal.
        """
        linear = np.zeros((2, self.nodes))
        if self.marginal:
            linear[:] = coef[: self.border].reshape(self.nodes, 2).T
        of_edge = np.zeros((4, len(self.pairs[0])))
        # The shape is spelled out because -1 is ambiguous where there are no kinds.
        shape = len(self.pairs[0]), len(self.kinds)
        of_edge[list(self.kinds)] = coef[self.border :].reshape(shape).T
        cos_minus, sin_minus, cos_plus, sin_plus = of_edge
        one, other = self.pairs
        cc, cs, ss = np.zeros((3, self.nodes, self.nodes))
        cc[one, other] = cos_minus + cos_plus
        ss[one, other] = cos_minus - cos_plus
        cs[one, other] = sin_plus - sin_minus
        cs[other, one] = sin_plus + sin_minus
        return linear, cc, cs, ss

    def statistics(
        self, cos: FloatArray, sin: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """The statistics as rows, (p, n), from cos x and sin x, (d, n); in ``out`` if given."""
        points = cos.shape[1]
        out = np.empty((self.size, points)) if out is None else out[:, :points]
        if self.marginal:
            out[0 : self.border : 2], out[1 : self.border : 2] = cos, sin
        one, other = self.pairs
        # Node by node: gathering all edges at once makes copies that no cache holds.
        bounds = np.searchsorted(one, np.arange(self.nodes + 1)).tolist()
        for j, (start, stop) in enumerate(pairwise(bounds)):
            others = _run(other[start:stop])
            cc, ss = cos[j] * cos[others], sin[j] * sin[others]
            sc, cs = sin[j] * cos[others], cos[j] * sin[others]
            terms = ((cc, ss), (sc, cs), (cc, ss), (sc, cs))
            for column, kind in enumerate(self.kinds):
                ours = out[self.border + column :: len(self.kinds)]
                COMBINE[kind](*terms[kind], out=ours[start:stop])
        return out

    def derivatives(
        self, x: FloatArray, node: int
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """The columns of the statistics that depend on a node, their derivatives by its angle.

        First and second ones, each (n, columns); a wave's second derivative is the wave itself,
        with the other sign.
        """
        one, other = self.pairs
        ours = np.flatnonzero((one == node) | (other == node))
        # The angle of the node comes first in x_j - x_k if the node is j.
        sign = np.where(one[ours] == node, 1.0, -1.0)
        minus = x[:, one[ours]] - x[:, other[ours]]
        plus = x[:, one[ours]] + x[:, other[ours]]
        angles, signs = (minus, minus, plus, plus), (sign, sign, 1.0, 1.0)
        numbers, first, second = [], [], []
        if self.marginal:
            numbers += [np.array([2 * node]), np.array([2 * node + 1])]
            cos, sin = np.cos(x[:, [node]]), np.sin(x[:, [node]])
            first += [-sin, cos]
            second += [-cos, -sin]
        for column, kind in enumerate(self.kinds):
            numbers.append(self.border + len(self.kinds) * ours + column)
            cos, sin = np.cos(angles[kind]), np.sin(angles[kind])
            first.append(signs[kind] * (cos if kind % 2 else -sin))
            second.append(-sin if kind % 2 else -cos)
        return np.concatenate(numbers), np.hstack(first), np.hstack(second)

    def gathered(self, linear: FloatArray, of_edge: FloatArray) -> FloatArray:
        """A vector in column order, from (2, d) for nodes and (4, edges) for edges."""
        kept = of_edge[list(self.kinds)].T.ravel()
        return np.concatenate([linear.T.ravel(), kept]) if self.marginal else kept


@dataclass(frozen=True, eq=False)
class TorusDesign:
    """The (N, p) matrix of statistics at N points, known by ``cos x`` and ``sin x``, (d, N)."""

    layout: Layout
    waves: FloatArray

    @staticmethod
    def at(layout: Layout, x: FloatArray) -> TorusDesign:
        """The design at points x (N, d)."""
        # NumPy would keep the order of x, point by point, and every row would be scattered.
        angles = np.ascontiguousarray(x.T)
        return TorusDesign(layout, np.vstack([np.cos(angles), np.sin(angles)]))

    @property
    def cos(self) -> FloatArray:
        """``cos x``, (d, N)."""
        return self.waves[: self.layout.nodes]

    @property
    def sin(self) -> FloatArray:
        """``sin x``, (d, N)."""
        return self.waves[self.layout.nodes :]

    @property
    def shape(self) -> tuple[int, int]:
        return self.waves.shape[1], self.layout.size

    @property
    def matvec_flops(self) -> float:
        # Two matrix products, (d, 2d) and (d, d) by N columns, and 8 for each of (d, N).
        return self.shape[0] * (6.0 * self.layout.nodes**2 + 8.0 * self.layout.nodes)

    def matvec(self, coef: FloatArray) -> FloatArray:
        linear, cc, cs, ss = self.layout.forms(coef)
        top = np.hstack([cc, cs])
        values: FloatArray = linear.ravel() @ self.waves
        for part in self._parts():
            cos, sin = self.cos[:, part], self.sin[:, part]
            values[part] += np.einsum("an,an->n", top @ self.waves[:, part], cos)
            values[part] += np.einsum("an,an->n", ss @ sin, sin)
        return values

    def rmatvec(self, values: FloatArray) -> FloatArray:
        d = self.layout.nodes
        cc_cs, ss = np.zeros((d, 2 * d)), np.zeros((d, d))
        for part in self._parts():
            cos, sin = self.cos[:, part], self.sin[:, part]
            cc_cs += (cos * values[part]) @ self.waves[:, part].T
            ss += (sin * values[part]) @ sin.T
        cc, cs = cc_cs[:, :d], cc_cs[:, d:]
        one, other = self.layout.pairs
        of_edge = np.array(
            [
                cc[one, other] + ss[one, other],
                cs[other, one] - cs[one, other],
                cc[one, other] - ss[one, other],
                cs[other, one] + cs[one, other],
            ]
        )
        return self.layout.gathered((self.waves @ values).reshape(2, d), of_edge)

    def gram(self, weights: FloatArray) -> FloatArray:
        rows, size = self.shape
        roots = np.sqrt(weights)
        if rows * size <= KEPT_ENTRIES:
            scaled = self._kept * roots
            return scaled @ scaled.T
        gram = np.zeros((size, size), order="F")
        step = min(rows, max(1, SLICE_ENTRIES // size))
        buffer = np.empty((size, step))
        for start in range(0, rows, step):
            part = slice(start, start + step)
            slab = self.layout.statistics(self.cos[:, part], self.sin[:, part], buffer)
            slab *= roots[part]
            gram = dsyrk(1.0, slab.T, trans=1, beta=1.0, c=gram, overwrite_c=1)
        return _mirrored(gram)

    @cached_property
    def _kept(self) -> FloatArray:
        return self.layout.statistics(self.cos, self.sin)

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        # cos^2 u = (1 + cos 2u) / 2 and sin^2 u = (1 - cos 2u) / 2, with u = x, xj - xk, xj + xk.
        d = self.layout.nodes
        single, cc, ss = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
        for part in self._parts():
            cos, sin, weight = self.cos[:, part], self.sin[:, part], weights[part]
            cos, sin = 1 - 2 * sin**2, 2 * sin * cos
            single += cos @ weight
            cc += (cos * weight) @ cos.T
            ss += (sin * weight) @ sin.T
        minus, plus = (cc + ss)[self.layout.pairs], (cc - ss)[self.layout.pairs]
        total = weights.sum()
        linear = np.array([total + single, total - single]) / 2
        of_edge = np.array([total + minus, total - minus, total + plus, total - plus]) / 2
        diagonal = self.layout.gathered(linear, of_edge)
        return np.where(diagonal > ROUND_OFF * total, diagonal, 0.0)

    def products(self) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
        """Waves (wave, N), the last of ones, and each column as a sum of two products of them.

        ``pairs`` (column, 2, 2) numbers the waves of both products, ``signs`` (column, 2).
        """
        d, (one, other) = self.layout.nodes, self.layout.pairs
        ones = np.full(d, 2 * d)
        nodes = np.stack([np.arange(d), np.arange(d, 2 * d)], axis=1).ravel()
        single = np.zeros((self.layout.border, 2, 2), dtype=np.int64)
        single[:, 0] = np.stack([nodes, np.repeat(ones, 2)], axis=1)[: self.layout.border]
        cc, ss = np.stack([one, other], 1), np.stack([one + d, other + d], 1)
        sc, cs = np.stack([one + d, other], 1), np.stack([one, other + d], 1)
        terms = ((cc, ss), (sc, cs), (cc, ss), (sc, cs))
        of_edge = [np.stack(terms[kind], axis=1) for kind in self.layout.kinds]
        pairs = np.stack(of_edge, axis=1).reshape(-1, 2, 2) if of_edge else single[:0]
        second = np.array([1.0, -1.0, -1.0, 1.0])[list(self.layout.kinds)]
        signs = np.column_stack([np.ones(len(pairs)), np.tile(second, len(one))])
        alone = np.tile([1.0, 0.0], (self.layout.border, 1))
        waves = np.vstack([self.waves, np.ones(self.shape[0])])
        return waves, np.concatenate([single, pairs]), np.concatenate([alone, signs])

    def _parts(self) -> list[slice]:
        """The points in runs."""
        step = max(1, PART_ENTRIES // self.layout.nodes)
        return [slice(start, start + step) for start in range(0, self.shape[0], step)]

    def dense(self) -> FloatArray:
        return self.layout.statistics(self.cos, self.sin).T

    def rows(self, start: int, stop: int) -> FloatArray:
        from ncbayes.models.torus_rows import edge_rows

        border, kinds = self.layout.border, len(self.layout.kinds)
        nodes = range(start, min(stop, border))
        marginal = self.waves[[column // 2 + self.layout.nodes * (column % 2) for column in nodes]]
        if stop <= border:
            return marginal
        # Whole edges, of which the first and the last may stick out.
        first, last = (max(start, border) - border) // kinds, -(-(stop - border) // kinds)
        one, other = (ends[first:last] for ends in self.layout.pairs)
        out = np.empty((kinds * (last - first), self.shape[0]))
        edge_rows(self.cos, self.sin, one, other, np.array(self.layout.kinds), out)
        inside = out[max(start, border) - border - kinds * first :][: stop - max(start, border)]
        return np.concatenate([marginal, inside]) if start < border else inside


def _run(numbers: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """The same numbers as a slice where they are consecutive: no copy then."""
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def _mirrored(square: FloatArray) -> FloatArray:
    """The symmetric matrix whose upper triangle this is, in place and block by block."""
    for start in range(0, len(square), MIRROR_BLOCK):
        stop = start + MIRROR_BLOCK
        square[stop:, start:stop] = square[start:stop, stop:].T
        block = square[start:stop, start:stop]
        block[:] = np.triu(block) + np.triu(block, 1).T
    return square
