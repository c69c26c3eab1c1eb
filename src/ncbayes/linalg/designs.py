"""Design operators: the dense matrix, and any design with a column of ones appended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import Design, FloatArray


@dataclass(frozen=True, eq=False)
class Dense:
    """The matrix (N, p) itself."""

    matrix: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.matrix.shape
        return rows, columns

    @property
    def matvec_flops(self) -> float:
        return 2.0 * self.matrix.size

    def matvec(self, coef: FloatArray) -> FloatArray:
        return self.matrix @ coef

    def rmatvec(self, values: FloatArray) -> FloatArray:
        return values @ self.matrix

    def gram(self, weights: FloatArray) -> FloatArray:
        # A matrix times its own transpose goes to BLAS syrk: half the work of a general product.
        scaled = self.matrix * np.sqrt(weights)[:, None]
        return scaled.T @ scaled

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        diagonal: FloatArray = weights @ np.square(self.matrix)
        return diagonal

    def dense(self) -> FloatArray:
        return self.matrix

    def rows(self, start: int, stop: int) -> FloatArray:
        return np.ascontiguousarray(self.matrix[:, start:stop].T)


@dataclass(frozen=True, eq=False)
class Bordered:
    """``(inner, 1)``: a design with a last column of ones, the free normalizer c."""

    inner: Design

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.inner.shape
        return rows, columns + 1

    @property
    def matvec_flops(self) -> float:
        return self.inner.matvec_flops + self.inner.shape[0]

    def matvec(self, coef: FloatArray) -> FloatArray:
        values: FloatArray = self.inner.matvec(coef[:-1]) + coef[-1]
        return values

    def rmatvec(self, values: FloatArray) -> FloatArray:
        return np.append(self.inner.rmatvec(values), values.sum())

    def gram(self, weights: FloatArray) -> FloatArray:
        size = self.inner.shape[1]
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self.inner.gram(weights)
        gram[size, :size] = gram[:size, size] = self.inner.rmatvec(weights)
        gram[size, size] = weights.sum()
        return gram

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        return np.append(self.inner.gram_diagonal(weights), weights.sum())

    def dense(self) -> FloatArray:
        return np.column_stack([self.inner.dense(), np.ones(self.inner.shape[0])])

    def rows(self, start: int, stop: int) -> FloatArray:
        points, columns = self.inner.shape
        ones = np.ones((max(stop - max(columns, start), 0), points))
        if start >= columns:
            return ones
        own = rows(self.inner, start, min(stop, columns))
        return np.concatenate([own, ones]) if len(ones) else own


def rows(design: Design, start: int, stop: int) -> FloatArray:
    """Columns ``start`` to ``stop`` as rows, (stop - start, N) in C order."""
    if hasattr(design, "rows"):
        return np.asarray(design.rows(start, stop))
    return np.ascontiguousarray(design.dense()[:, start:stop].T)


def with_intercept(design: Design) -> Design:
    """The design with a last column of ones; a dense one stays one matrix, so one BLAS call."""
    bordered = Bordered(design)
    return Dense(bordered.dense()) if isinstance(design, Dense) else bordered


def products(design: Design) -> tuple[FloatArray, NDArray[np.int64], FloatArray] | None:
    """Waves (wave, N), the last of ones, and pairs and signs that make the design's columns.

    Column j is ``sum_k signs[j, k] waves[pairs[j, k, 0]] waves[pairs[j, k, 1]]``, k = 0, 1. None
    for a design that is not of this kind.
    """
    if isinstance(design, Bordered):
        inner = products(design.inner)
        if inner is None:
            return None
        waves, pairs, signs = inner
        ones = np.array([[[len(waves) - 1] * 2, [0, 0]]])
        return waves, np.concatenate([pairs, ones]), np.concatenate([signs, [[1.0, 0.0]]])
    own = getattr(design, "products", None)
    return None if own is None else own()
