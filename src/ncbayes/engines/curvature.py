"""The likelihood's curvature in a prior's coordinates, and what whitens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import Coordinates, Design, FloatArray
from ncbayes.linalg.designs import rows

# Cells of up to so many coefficients are turned to the eigenvectors of their curvature.
MOST_TURNED = 400
# Columns up to which a Gram matrix is made as a whole.
MOST_GRAM = 800


class Gram(Protocol):
    """``design' diag(weights) design`` of one group."""

    def diagonal(self) -> FloatArray: ...

    def block(self, start: int, stop: int) -> FloatArray:
        """The square of these columns."""
        ...

    def cross(self, columns: NDArray[np.int64]) -> FloatArray:
        """Some of its rows."""
        ...


@dataclass(frozen=True, eq=False)
class WholeGram:
    """The matrix itself."""

    matrix: FloatArray

    def diagonal(self) -> FloatArray:
        return np.asarray(np.diagonal(self.matrix))

    def block(self, start: int, stop: int) -> FloatArray:
        return self.matrix[start:stop, start:stop]

    def cross(self, columns: NDArray[np.int64]) -> FloatArray:
        return self.matrix[columns]


@dataclass(frozen=True, eq=False)
class LargeGram:
    """A matrix of which only parts are ever made."""

    design: Design
    weights: FloatArray

    def diagonal(self) -> FloatArray:
        return self.design.gram_diagonal(self.weights)

    def block(self, start: int, stop: int) -> FloatArray:
        own = rows(self.design, start, stop)
        return np.asarray((own * self.weights) @ own.T)

    def cross(self, columns: NDArray[np.int64]) -> FloatArray:
        own = [
            self.design.rmatvec(self.weights * rows(self.design, j, j + 1)[0])
            for j in columns.tolist()
        ]
        return np.array(own).reshape(len(columns), self.design.shape[1])


def gram_of(design: Design, weights: FloatArray) -> Gram:
    """The Gram matrix, as a whole if it is small."""
    if design.shape[1] <= MOST_GRAM:
        return WholeGram(design.gram(weights))
    return LargeGram(design, weights)


@dataclass(frozen=True, eq=False)
class Basis:
    """Rows of y for one piece: ``own = turn y`` are the prior's own rows, ``coef = mix y``.

    ``shear``: what of the other rows is in the prior's own row ``level``, with its sign changed.
    """

    turn: FloatArray
    mix: FloatArray
    shear: FloatArray


@dataclass(frozen=True, eq=False)
class Squares:
    """A piece's curvature by group once the free columns follow it: blocks of its cells' columns.

    ``blocks``: from (start, size) of a cell to (group, size, size), or (group, size) where a cell
    is not turned. ``weights``: how much each group tells about the piece.
    """

    coordinates: Coordinates
    blocks: dict[tuple[int, int], FloatArray]
    weights: FloatArray
    width: int

    @staticmethod
    def of(
        columns: slice,
        coordinates: Coordinates,
        grams: tuple[Gram, ...],
        free: NDArray[np.int64],
        shear: FloatArray,
    ) -> Squares:
        """Of these columns; ``shear`` (group, free column, column) is how the free ones follow."""
        width = columns.stop - columns.start
        diagonals = np.empty((len(grams), width))
        kept = set(zip(coordinates.start.tolist(), coordinates.size.tolist(), strict=True))
        blocks: dict[tuple[int, int], list[FloatArray]] = {key: [] for key in sorted(kept)}
        for g, gram in enumerate(grams):
            cross, follow = gram.cross(free), shear[g]
            lost = 2 * cross[:, columns] - cross[:, free] @ follow
            whole = gram.diagonal()[columns] - np.einsum("fk,fk->k", follow, lost)
            diagonals[g] = np.maximum(whole, 0.0)
            for (start, size), found in blocks.items():
                part = slice(start, start + size)
                if not 1 < size <= MOST_TURNED:
                    found.append(diagonals[g, part])
                    continue
                square = gram.block(columns.start + start, columns.start + start + size)
                both = follow[:, part].T @ lost[:, part]
                found.append(square - (both + both.T) / 2)
        arrays = {key: np.array(found) for key, found in blocks.items()}
        return Squares(coordinates, arrays, diagonals.mean(axis=1), width)

    def whiten(
        self, basis: Basis, y: FloatArray, pull: FloatArray, g: FloatArray, rho: FloatArray
    ) -> list[FloatArray]:
        """Fill g and rho, flat as y, of every cell; the cells' eigenvectors."""
        shares, vectors, e = basis.mix**2, [], self.coordinates
        for row, start, size in zip(e.row.tolist(), e.start.tolist(), e.size.tolist(), strict=True):
            block = np.tensordot(shares[:, row], self.blocks[start, size], 1)
            columns = slice(start, start + size)
            at = slice(row * self.width + start, row * self.width + start + size)
            if block.ndim == 1:
                g[at] = block
                rho[at] = pull[row, columns] + block * y[row, columns]
                continue
            values, turn = np.linalg.eigh(block)
            g[at] = np.maximum(values, 0.0)
            rho[at] = turn.T @ (pull[row, columns] + block @ y[row, columns])
            vectors.append(np.ravel(turn))
        return vectors


def basis_of(e: Coordinates, weights: FloatArray) -> Basis:
    """Rows of y that are nearly apart: eigenvectors within classes, then the level sheared.

    With a weight for each group's curvature, that of the prior's own rows is
    ``mix' diag(weights) mix`` for every column.
    """
    size = len(e.classes)
    curvature = e.mix.T @ (weights[:, None] * e.mix)
    turn = np.eye(size)
    for number in np.unique(e.classes):
        own = np.flatnonzero(e.classes == number)
        square = curvature[np.ix_(own, own)]
        if len(own) > 1 and np.abs(square - np.diag(np.diagonal(square))).max() > 0:
            turn[np.ix_(own, own)] = np.linalg.eigh(square)[1]
    shear = np.zeros(size)
    if e.level >= 0:
        turned = turn.T @ curvature @ turn
        if turned[e.level, e.level] > 0:
            shear = turned[e.level] / turned[e.level, e.level]
        shear[e.level] = 0.0
        turn[e.level] -= shear
    return Basis(turn, e.mix @ turn, shear)
