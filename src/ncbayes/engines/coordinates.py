"""Coordinates for joint trajectories: a prior's own, whitened by what warm-up saw.

A prior tells which linear coordinates y are independent normals given its scales (``base.
Coordinates``). The likelihood's curvature, averaged over warm-up, tells how to whiten them
(``linalg.whitening``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import Coordinates, FloatArray, Prior, State
from ncbayes.engines.curvature import MOST_TURNED, Gram, Squares, basis_of

# More coefficients without scales than this, or coupled groups than this, and a dense factor takes
# more time than it saves: such targets are left to Polya-Gamma sweeps.
MOST_FREE, MOST_ROWS = 1500, 400


@dataclass(frozen=True, eq=False)
class Piece:
    """The columns ``start`` to ``stop`` of coef under one prior; coordinates if it has scales."""

    start: int
    stop: int
    prior: Any
    prefix: str
    coordinates: Coordinates | None

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.stop - self.start

    def own(self, state: State) -> State:
        """This piece's scales."""
        size = len(self.prefix)
        return {key[size:]: value for key, value in state.items() if key.startswith(self.prefix)}

    def named(self, state: State) -> State:
        """This piece's scales, by their names in the whole state."""
        return {self.prefix + key: value for key, value in state.items()}


def pieces(prior: Prior, shape: tuple[int, int]) -> tuple[Piece, ...] | None:
    """Parts of a prior, each with its coordinates; None if one of them has none to tell."""
    parts = getattr(prior, "parts", None)
    given = [("", prior, 0, shape[1])] if parts is None else [
        (f"{part.name}.", part.prior, part.start, part.stop) for part in parts
    ]  # fmt: skip
    found = []
    for prefix, own, start, stop in given:
        tells = getattr(own, "coordinates", None)
        part_shape = (shape[0], stop - start)
        coordinates = None if tells is None else tells(part_shape)
        if coordinates is None:
            state = own.draw(part_shape, np.random.default_rng(0))
            if state or own.gaussian(state, part_shape)[0].between is not None:
                return None
        elif len(coordinates.classes) > MOST_ROWS:
            return None
        found.append(Piece(start, stop, own, prefix, coordinates))
    free = sum(each.width for each in found if each.coordinates is None)
    return tuple(found) if free <= MOST_FREE else None


@dataclass(frozen=True, eq=False)
class Seen:
    """Means over some sweeps: Gram matrices by group, coef, its gradient, hidden coordinates."""

    grams: tuple[Gram, ...]
    coef: FloatArray
    slope: FloatArray
    hidden: FloatArray


@dataclass(frozen=True, eq=False)
class Structure:
    """The coordinates of a prior for coef of this shape, as far as no data have a say in them."""

    pieces: tuple[Piece, ...]
    shape: tuple[int, int]

    @cached_property
    def scaled(self) -> tuple[tuple[Piece, Coordinates], ...]:
        """The pieces with scales."""
        return tuple((p, p.coordinates) for p in self.pieces if p.coordinates is not None)

    @cached_property
    def free(self) -> NDArray[np.int64]:
        """Columns whose prior has no scales..."""
        return self._columns(scaled=False)

    @cached_property
    def tied(self) -> NDArray[np.int64]:
        """...and those whose prior has."""
        return self._columns(scaled=True)

    def _columns(self, scaled: bool) -> NDArray[np.int64]:
        own = [p for p in self.pieces if (p.coordinates is not None) == scaled]
        return np.concatenate([np.zeros(0, np.int64), *(np.arange(p.start, p.stop) for p in own)])

    @cached_property
    def begins(self) -> list[int]:
        """Where in flat y each scaled piece begins, and the last one ends."""
        return [0, *accumulate(len(e.classes) * p.width for p, e in self.scaled)]

    @cached_property
    def scale_begins(self) -> list[int]:
        """The same for log scales."""
        return [0, *accumulate(len(e.kinds) for _, e in self.scaled)]

    @cached_property
    def hidden(self) -> NDArray[np.int64]:
        """Entries of flat y that coef does not determine: rows beyond the groups' number."""
        groups = self.shape[0]
        own = [
            np.arange(begin + groups * p.width, begin + len(e.classes) * p.width)
            for (p, e), begin in zip(self.scaled, self.begins, strict=False)
        ]
        return np.concatenate([np.zeros(0, np.int64), *own])

    @property
    def size(self) -> int:
        """The length of a position."""
        return self.begins[-1] + self.shape[0] * len(self.free) + self.scale_begins[-1]

    def log_scales(self, state: State) -> FloatArray:
        """Of all pieces, one after the other."""
        own = [p.prior.log_scales(p.own(state)) for p, _ in self.scaled]
        return np.concatenate([np.zeros(0), *own])

    def hidden_values(self, state: State) -> FloatArray:
        """The coordinates that coef does not determine."""
        own = [
            np.ravel(p.prior.hidden(p.own(state)))
            for p, e in self.scaled
            if len(e.classes) > self.shape[0]
        ]
        return np.concatenate([np.zeros(0), *own])

    def states(self, log_scales: FloatArray, hidden: FloatArray) -> State:
        """The prior's state at log scales (..., scale) and hidden coordinates (..., entry)."""
        found: dict[str, FloatArray] = {}
        start = 0
        for k, (p, e) in enumerate(self.scaled):
            stop = start + (len(e.classes) - self.shape[0]) * p.width
            zeta = log_scales[..., self.scale_begins[k] : self.scale_begins[k + 1]]
            shape = (self.shape[0], p.width)
            found |= p.named(p.prior.at_log_scales(zeta, hidden[..., start:stop], shape))
            start = stop
        return found

    def rows(self, coef: FloatArray, hidden: FloatArray) -> list[FloatArray]:
        """The prior's own rows of y, (row, column), of each scaled piece."""
        found, start = [], 0
        for p, e in self.scaled:
            extra = len(e.classes) - self.shape[0]
            stop = start + extra * p.width
            given = [coef[:, p.start : p.stop], hidden[start:stop].reshape(extra, p.width)]
            # The hidden rows of y are the last ones.
            square = np.concatenate([e.mix, np.eye(len(e.classes))[self.shape[0] :]])
            found.append(np.linalg.solve(square, np.concatenate(given)))
            start = stop
        return found

    def flat(self, chart: Any, coef: FloatArray, hidden: FloatArray) -> FloatArray:
        """y at coef, in the chart's rows."""
        found = [np.zeros(0)]
        for k, own in enumerate(self.rows(coef, hidden)):
            turn = chart.basis_turns[k, : len(own), : len(own)]
            found.append(np.ravel(np.linalg.solve(turn, own)))
        return np.concatenate(found)

    @cached_property
    def skeleton(self) -> dict[str, NDArray[Any]]:
        """The fields of a chart that nothing is learned about."""
        scaled, begins, scales = self.scaled, self.begins, self.scale_begins
        sizes = _joined([e.size for _, e in scaled], np.int64)
        turned = np.where((sizes > 1) & (sizes <= MOST_TURNED), sizes**2, 0)
        pairs = list(enumerate(scaled))
        return {
            "start": np.array([p.start for p, _ in scaled], np.int64),
            "width": np.array([p.width for p, _ in scaled], np.int64),
            "rows": np.array([len(e.classes) for _, e in scaled], np.int64),
            "begin": np.array(begins[:-1], np.int64),
            "level": np.array([e.level for _, e in scaled], np.int64),
            "cell": _joined(
                [begins[k] + e.row * p.width + e.start for k, (p, e) in pairs], np.int64
            ),
            "size": sizes,
            "slab": _joined([e.slab for _, e in scaled]),
            "first": _joined([_shifted(e.first, scales[k]) for k, (_, e) in pairs], np.int64),
            "second": _joined([_shifted(e.second, scales[k]) for k, (_, e) in pairs], np.int64),
            "factor": _joined([e.factor for _, e in scaled]),
            "fictitious": _joined([e.fictitious for _, e in scaled], np.bool_),
            "owner": _joined(
                [np.where((e.row == e.level) & (e.level >= 0), k, -1) for k, (_, e) in pairs],
                np.int64,
            ),
            "mean": _joined([np.ravel(e.mean) for _, e in scaled]),
            "kinds": _joined([e.kinds for _, e in scaled], np.int64),
            "prior_a": _joined([e.prior_a for _, e in scaled]),
            "prior_b": _joined([e.prior_b for _, e in scaled]),
            "free": self.free,
            "tied": self.tied,
            "turn": np.where(turned > 0, np.cumsum(turned) - turned, -1),
            **self._links(),
            **self._free_prior(),
        }

    def _links(self) -> dict[str, NDArray[Any]]:
        """Where the links of columns, their variances and cells begin, and their matrices."""
        count, most = len(self.scaled), max([p.width for p, _ in self.scaled], default=0)
        found = {name: np.full(count, -1) for name in ("links", "variances", "first_cell")}
        matrices, cells = np.zeros((count, most, most)), 0
        for k, (p, e) in enumerate(self.scaled):
            if e.wishart is not None:
                begin = self.scale_begins[k]
                found["links"][k], found["variances"][k] = begin + p.width, begin
                found["first_cell"][k] = cells
                matrices[k, : p.width, : p.width] = e.wishart
            cells += len(e.size)
        return {**found, "matrices": matrices}

    def _free_prior(self) -> dict[str, FloatArray]:
        """Precision (group, column, column) and shift (group, column) of the free columns."""
        groups, size = self.shape[0], len(self.free)
        precision, shift, at = np.zeros((groups, size, size)), np.zeros((groups, size)), 0
        for p in self.pieces:
            if p.coordinates is not None:
                continue
            own, own_shift = p.prior.gaussian({}, (groups, p.width))
            columns = slice(at, at + p.width)
            full = own.within if own.within.ndim == 3 else own.within[:, :, None] * np.eye(p.width)
            precision[:, columns, columns], shift[:, columns] = full, own_shift
            at += p.width
        return {"free_precision": precision, "free_shift": shift}

    def learned(self, seen: Seen) -> dict[str, NDArray[Any]]:
        """The fields of a chart that follow from what was seen."""
        free = self._learned_free(seen)
        groups, most = self.shape[0], max([len(e.classes) for _, e in self.scaled], default=1)
        count = len(self.scaled)
        mixes, shears = np.zeros((count, groups, most)), np.zeros((count, most))
        turns = np.zeros((count, most, most))
        g, rho = np.zeros(self.begins[-1]), np.zeros(self.begins[-1])
        vectors: list[FloatArray] = []
        own_rows = self.rows(seen.coef, seen.hidden)
        for k, (p, e) in enumerate(self.scaled):
            within = np.searchsorted(self.tied, p.start)
            follow = free["shear"][:, :, within : within + p.width]
            squares = Squares.of(slice(p.start, p.stop), e, seen.grams, self.free, follow)
            basis = basis_of(e, squares.weights)
            y = np.asarray(np.linalg.solve(basis.turn, own_rows[k]), dtype=float)
            pull = basis.mix.T @ free["pull"][:, p.start : p.stop]
            size = len(e.classes)
            mixes[k, :, :size], shears[k, :size] = basis.mix, basis.shear
            turns[k, :size, :size] = basis.turn
            part = slice(self.begins[k], self.begins[k + 1])
            vectors += squares.whiten(basis, y, pull, g[part], rho[part])
        return {
            "mixes": mixes,
            "shears": shears,
            "basis_turns": turns,
            "turns": _joined(vectors),
            "g": g,
            "rho": rho,
            "free_mean": free["mean"],
            "free_factor": free["factor"],
            "shear": free["shear"],
        }

    def _learned_free(self, seen: Seen) -> dict[str, FloatArray]:
        """The free columns' Gaussian given the tied ones, and the gradient left for those."""
        groups, size = self.shape[0], len(self.free)
        prior, shift = self.skeleton["free_precision"], self.skeleton["free_shift"]
        shear, factor = np.zeros((groups, size, len(self.tied))), np.zeros((groups, size, size))
        mean, pull = np.zeros((groups, size)), np.array(seen.slope)
        for g, gram in enumerate(seen.grams if size else ()):
            cross = gram.cross(self.free)
            precision = cross[:, self.free] + prior[g]
            root = np.linalg.inv(np.linalg.cholesky(_sound(precision))).T
            factor[g] = root
            shear[g] = root @ (root.T @ cross[:, self.tied])
            own = seen.coef[g, self.free]
            mean[g] = own + shear[g] @ seen.coef[g, self.tied]
            left = seen.slope[g, self.free] + shift[g] - prior[g] @ own
            pull[g, self.tied] -= left @ shear[g]
        return {"shear": shear, "factor": factor, "mean": mean, "pull": pull}


def _sound(precision: FloatArray) -> FloatArray:
    """The matrix, with what round-off may have taken from its diagonal."""
    diagonal = np.diagonal(precision)
    return precision + np.diag(1e-12 * diagonal + 1e-300)


def _joined(arrays: list[NDArray[Any]], dtype: Any = np.float64) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *(np.asarray(a, dtype) for a in arrays)])


def _shifted(numbers: NDArray[np.int64], begin: int) -> NDArray[np.int64]:
    return np.where(numbers >= 0, numbers + begin, -1)
