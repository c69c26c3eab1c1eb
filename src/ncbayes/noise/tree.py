"""Noise for angles that depend on one another along a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import i0e, i1e

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.noise.checks import row
from ncbayes.noise.distributions import LARGEST_CONCENTRATION, LOG_TWO_PI, VonMises
from ncbayes.spaces import Torus, as_points, check_numbers, column_count, is_whole, wrapped

# Six numbers describe an edge; with hardly more rows than that any two angles look dependent.
FEWEST_ROWS = 10

# Penalty on an edge's squared numbers, in units of 1 + the child's own squared concentration.
# It keeps them finite where one angle is a function of another, at about sqrt(250 n); at a
# concentration of 50 in 1000 rows it moves them by a tenth of their standard error.
RIDGE = 1e-3

# Newton at most doubles a large concentration, so 1e6 is 20 steps away. A step that gains less
# than this many units of log likelihood is the last: the next would gain about its square.
MOST_STEPS, TOLERANCE = 60, 1e-6

# A fall by this share of the log likelihood is rounding error.
SLACK = 1e-12

# Bessel ratios divide by the concentration; this one is uniform to all digits.
TINY = 1e-8


@dataclass(frozen=True, eq=False)
class Tree:
    """``q(x) = prod_k VonMises(x_k | natural_k + coupling_k @ (cos x_p, sin x_p))``, p = parent_k.

    ``VonMises(x | v) = exp(v_1 cos x + v_2 sin x) / (2 pi I_0(|v|))`` with natural parameter v
    (2,), as the conditional of a pair in a torus graph. ``natural`` is (d, 2), ``coupling``
    (d, 2, 2); ``parent`` holds column numbers from 0, and -1 for a column without a parent, whose
    coupling is not used. Exactly normalized over ``0 <= x_j < 2 pi``, and drawn from parents to
    children.
    """

    parent: Sequence[int] | NDArray[np.int64]
    natural: ArrayLike
    coupling: ArrayLike

    def __post_init__(self) -> None:
        _check_parents(self.parent)
        check_numbers("Tree", natural=self.natural, coupling=self.coupling)
        natural, coupling, d = self._natural, self._coupling, self.dimension
        if natural.shape != (d, 2) or coupling.shape != (d, 2, 2):
            raise InputError(
                f"Tree with {d} parents needs natural of shape {(d, 2)} and coupling of shape "
                f"{(d, 2, 2)}, got {natural.shape} and {coupling.shape}"
            )
        largest = _largest_concentration(natural, coupling).max()
        if not largest <= LARGEST_CONCENTRATION:
            raise InputError(
                "Tree needs finite natural and coupling with |natural| + |coupling| up to "
                f"{LARGEST_CONCENTRATION:g} in every column, got {largest:.6g}: scale them down"
            )

    @classmethod
    def match(cls, data: object) -> Tree:
        """The tree of Chow and Liu (1968): edges with the largest gains of log likelihood.

        For each ordered pair the child's natural parameters are fitted by Newton's method. An
        edge's gain, the mean over its two directions, is what knowing the other angle adds to the
        log likelihood of a von Mises; edges with a gain of at most 2 log n are left out (BIC,
        four numbers more). The root is the column from which the gains of all
        edges, in their directions, sum to most.
        """
        angles = as_points(data, Torus(column_count(data)), "Tree.match", FEWEST_ROWS)
        alone = VonMises.match(angles)
        mean, concentration = row(alone.mean), row(alone.concentration)
        natural = concentration[:, None] * np.column_stack([np.cos(mean), np.sin(mean)])
        fits = [_conditionals(angles, j, natural) for j in range(len(mean))]
        gains = np.array([gain for _, gain in fits])
        parent = _strongest_tree(gains, 2 * np.log(len(angles)))
        coupling = np.zeros((len(mean), 2, 2))
        for k in np.flatnonzero(parent >= 0):
            coef = fits[parent[k]][0][k]
            coef = coef * min(1.0, LARGEST_CONCENTRATION / _largest(coef))
            natural[k], coupling[k] = coef[:, 0], coef[:, 1:]
        return cls(parent, natural, coupling)

    @property
    def dimension(self) -> int:
        return len(self.parent)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Parent and child of each edge, columns counted from 0."""
        return [(int(j), k) for k, j in enumerate(self.parent) if j >= 0]

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        x = np.empty((size, self.dimension))
        for k in _parents_first(self.parent):
            v = self._parameter(x, k)
            angle = np.arctan2(v[:, 1], v[:, 0])
            x[:, k] = wrapped(rng.vonmises(angle, np.hypot(v[:, 0], v[:, 1])))
        return x

    def log_density(self, x: FloatArray) -> FloatArray:
        inside = Torus(self.dimension).contains(x)
        x = np.where(inside[:, None], x, 0.0)
        terms = [_log_von_mises(x[:, k], self._parameter(x, k)) for k in range(self.dimension)]
        return np.where(inside, np.sum(terms, axis=0), -np.inf)

    @property
    def _natural(self) -> FloatArray:
        return np.asarray(self.natural, np.float64)

    @property
    def _coupling(self) -> FloatArray:
        return np.asarray(self.coupling, np.float64)

    def _parameter(self, x: FloatArray, k: int) -> FloatArray:
        """The natural parameter of column k in each row, (n, 2)."""
        j, natural = self.parent[k], self._natural[k]
        if j < 0:
            return np.tile(natural, (len(x), 1))
        pull = np.column_stack([np.cos(x[:, j]), np.sin(x[:, j])]) @ self._coupling[k].T
        return np.asarray(natural + pull, np.float64)


def _log_von_mises(x: FloatArray, v: FloatArray) -> FloatArray:
    k = np.hypot(v[:, 0], v[:, 1])
    exponent = v[:, 0] * np.cos(x) + v[:, 1] * np.sin(x) - k
    return np.asarray(exponent - np.log(i0e(k)) - LOG_TWO_PI, np.float64)


def _largest_concentration(natural: FloatArray, coupling: FloatArray) -> FloatArray:
    """A bound of ``|natural + coupling @ u|`` over unit vectors u, for each column."""
    total = np.hypot(*natural.T) + np.sqrt((coupling**2).sum(axis=(1, 2)))
    return np.asarray(total, np.float64)


def _largest(coef: FloatArray) -> float:
    return float(_largest_concentration(coef[None, :, 0], coef[None, :, 1:])[0])


def _conditionals(
    angles: FloatArray, parent: int, alone: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (natural, coupling) of every column given one, (d, 2, 3), and their gains (d,).

    Maximizes, by Newton for all columns at once, the concave
    ``sum_i log VonMises(x_ik | coef_k @ f_i) - ridge_k |coef_k|^2 / 2`` from ``alone``, the von
    Mises without a parent. Its features f are 1 and the parent's cosine and sine, centered, which
    keeps them apart when the parent hardly varies. The parent's own gain is 0.
    """
    features = np.column_stack([np.cos(angles[:, parent]), np.sin(angles[:, parent])])
    center = features.mean(axis=0)
    features = np.column_stack([np.ones(len(angles)), features - center])
    units = np.stack([np.cos(angles), np.sin(angles)])
    coef = np.zeros((len(alone), 2, 3))
    coef[:, :, 0] = alone
    concentration = np.hypot(*alone.T)
    ridge = RIDGE / (1 + concentration**2)
    value = start = _objective(coef, features, units, ridge)
    # A column at the cap, such as a constant one, has nothing left that a parent could explain.
    active = np.flatnonzero(concentration < 0.999 * LARGEST_CONCENTRATION)
    active = active[active != parent]
    for _ in range(MOST_STEPS):
        part = features, units[:, :, active], ridge[active]
        step, decrement = _newton_step(coef[active], *part)
        value = value.copy()
        coef[active], value[active] = _climbed(coef[active], value[active], step, *part)
        active = active[decrement > TOLERANCE]
        if not len(active):
            break
    coef[:, :, 0] -= coef[:, :, 1:] @ center
    return coef, value - start


def _parameters(coef: FloatArray, features: FloatArray) -> FloatArray:
    """Natural parameters of every row and column, (2, n, column)."""
    return np.stack([features @ coef[:, 0].T, features @ coef[:, 1].T])


def _objective(
    coef: FloatArray, features: FloatArray, units: FloatArray, ridge: FloatArray
) -> FloatArray:
    """The penalized log likelihood of each column, (column,)."""
    v = _parameters(coef, features)
    k = np.hypot(v[0], v[1])
    terms = v[0] * units[0] + v[1] * units[1] - k - np.log(i0e(k)) - LOG_TWO_PI
    return np.asarray(terms.sum(axis=0) - ridge / 2 * (coef**2).sum(axis=(1, 2)), np.float64)


def _newton_step(
    coef: FloatArray, features: FloatArray, units: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Newton's step for each column, and what it would gain on a parabola.

    With ``A = I_1 / I_0`` at ``k = |v|`` and ``e = v / k``: the gradient in v is
    ``u - A e``, the negative curvature ``A / k (1 - e e') + A' e e'``, ``A' = 1 - A / k - A^2``.
    """
    gradient, curvature = _derivatives(coef, features, units, ridge)
    step = np.asarray(np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0], np.float64)
    return step.reshape(coef.shape), (step * gradient).sum(axis=1) / 2


def _derivatives(
    coef: FloatArray, features: FloatArray, units: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient (column, 6) and negative second derivatives (column, 6, 6) of the objective."""
    v = _parameters(coef, features)
    k = np.maximum(np.hypot(v[0], v[1]), TINY)
    ratio = i1e(k) / i0e(k)
    across = ratio / k
    # What the curvature along v has beyond that across it, over k^2.
    along = (1 - 2 * across - ratio**2) / k**2
    gradient = np.stack(
        [(u - across * part).T @ features for u, part in zip(units, v, strict=True)]
    )
    gradient = np.moveaxis(gradient, 0, 1) - ridge[:, None, None] * coef
    squares = features[:, :, None] * features[:, None, :]
    curvature = np.empty((len(coef), 2, 3, 2, 3))
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weights = along * v[a] * v[b] + (across if a == b else 0.0)
        block = weights.T @ squares.reshape(len(features), 9)
        curvature[:, a, :, b, :] = block.reshape(-1, 3, 3)
    flat = curvature.reshape(-1, 6, 6) + ridge[:, None, None] * np.eye(6)
    return gradient.reshape(-1, 6), flat


def _climbed(
    coef: FloatArray,
    value: FloatArray,
    step: FloatArray,
    features: FloatArray,
    units: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Each column moved along its step, halved until the objective does not fall."""
    size = np.ones(len(coef))
    for _ in range(30):
        moved = coef + size[:, None, None] * step
        reached = _objective(moved, features, units, ridge)
        worse = reached < value - SLACK * np.abs(value)
        if not worse.any():
            return moved, reached
        size = np.where(worse, size / 2, size)
    # Steps that still fall are lost in rounding.
    return np.where(worse[:, None, None], coef, moved), np.where(worse, value, reached)


def _strongest_tree(gains: FloatArray, threshold: float) -> NDArray[np.int64]:
    """Parents (d,) in the tree, or trees, of largest total gain; -1 for none.

    ``gains[j, k]`` is that of j as the parent of k; an edge has the mean of its two.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

    both = (gains + gains.T) / 2
    # To SciPy a weight of 0 is no edge, and all that pass the threshold lie above 0.
    strong = np.triu(np.where(both > threshold, both, 0.0), 1)
    tree = minimum_spanning_tree(csr_array(-strong))
    parent = np.full(len(gains), -1, dtype=np.int64)
    count, label = connected_components(tree, directed=False)
    for each in range(count):
        nodes = np.flatnonzero(label == each)
        rooted = [_directed(tree, int(root)) for root in nodes]
        totals = [gains[before[found], found].sum() for found, before in rooted]
        found, before = rooted[int(np.argmax(totals))]
        parent[found] = before[found]
    return parent


def _directed(tree: Any, root: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes below a root, and an array that holds the parent of each."""
    from scipy.sparse.csgraph import breadth_first_order

    nodes, before = breadth_first_order(tree, root, directed=False)
    return nodes[1:], before


def _parents_first(parent: Sequence[int] | NDArray[np.int64]) -> list[int]:
    """Columns in an order in which parents come before children; those on a cycle are missing."""
    order = [k for k, j in enumerate(parent) if j < 0]
    for j in order:
        order += [k for k, p in enumerate(parent) if p == j]
    return order


def _check_parents(parent: object) -> None:
    such = "one parent for each column, such as [-1, 0, 1] with -1 for none"
    if isinstance(parent, str) or not isinstance(parent, Sequence | np.ndarray) or not len(parent):
        raise InputError(f"Tree needs {such}, got {shown(parent)}")
    count = len(parent)
    if not all(is_whole(j) and -1 <= j < count for j in parent):
        raise InputError(
            f"Tree needs {such}, and whole numbers from -1 to {count - 1}, got {shown(parent)}"
        )
    if len(_parents_first(parent)) < count:
        raise InputError(
            f"Tree needs {such}, got {shown(parent)}, in which columns are their own ancestors"
        )
