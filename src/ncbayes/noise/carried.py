"""Points carried from noise to a model that can't draw its own, by moves on continuous spaces.

    log p_b(x) = (1 - b) log base(x) + b log f(x; theta),    b from 0 in equal steps

f is the unnormalized density of an exponential family or of an energy. Where derivatives of log f
by x are known the moves are Hamiltonian, and else random walks. On discrete spaces points stay
where they are, and only their weights change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ncbayes.base import BoolArray, FloatArray, Noise, log_density_at_rows, shown
from ncbayes.noise.tempered import Tempering, systematic
from ncbayes.spaces import Box, Orthant, is_continuous, is_periodic, wrapped

# Moves at each step, and after points were resampled, which part those that came from one.
MOVES, SETTLE = 2, 10
# The share of proposals to accept: of random walks, and of Hamiltonian moves with their leaps.
WALKED, LEAPT, LEAPS = 0.3, 0.8, 4
# Entries of statistics up to which they are written out, though the model has a structured design.
MOST_DENSE = 4_000_000
# Particles on the way, however few points are wanted of them.
FEWEST = 200
# As many points as this for each dimension tell their covariance.
MANY = 10
# Leaps that end so many spreads away have run away.
FAR = 1e6
# Where log f is this low there is no mass, and differences of infinities are avoided.
NOWHERE = -1e300


def kernels(model: Any, params: FloatArray, points: FloatArray) -> FloatArray:
    """log f, (row of params, point); lowest where there is no mass."""
    found = np.full((len(params), len(points)), NOWHERE)
    inside = model.space.contains(points)
    within = points[inside]
    if not len(within):
        return found
    if hasattr(model, "evaluated"):
        # Of all points, an inner one for those outside: another number of them compiles it anew.
        values = model.evaluated(params, np.where(inside[:, None], points, within[0]))[:, inside]
    elif hasattr(model, "design") and params.shape[1] * len(within) > MOST_DENSE:
        design = model.design(within)
        values = np.stack([design.matvec(row) for row in params]) + model.log_base(within)
    else:
        values = params @ np.asarray(model.statistics(within), dtype=float).T
        values = values + np.ravel(model.log_base(within))
    found[:, inside] = np.where(np.isfinite(values), values, NOWHERE)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Carried:
    """``base^(1 - alpha) f(x; theta)^alpha / Z_alpha``, carried there from the base.

    ``work`` steps; points are then resampled by their weights and take a few moves more.
    """

    model: Any
    base: Noise
    tempering: Tempering

    def __repr__(self) -> str:
        return f"Carried({shown(self.model, 40)}, alpha={self.tempering.alpha:.3g})"

    @property
    def dimension(self) -> int:
        return int(self.model.space.dimension)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        if size == 0:
            return np.zeros((0, self.dimension))
        at = self.tempering
        path = Path(self.model, at.theta, self.base)
        # Of few particles none may be where the model is.
        particles, log_weights = path.carried(at.alpha, at.work, max(size, FEWEST), rng)
        points = particles[systematic(log_weights[-1], size, rng)]
        return path.settled(points, at.alpha, rng, like=particles)

    def log_density(self, x: FloatArray) -> FloatArray:
        return self._log_density(x, self.base.log_density(x))

    def log_density_at_rows(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        return self._log_density(x, log_density_at_rows(self.base, x, rows))

    def _log_density(self, x: FloatArray, log_base: FloatArray) -> FloatArray:
        """The log density at x, where the base has log density ``log_base``."""
        at = self.tempering
        if at.alpha == 0:
            return log_base
        log_f = kernels(self.model, at.theta[None], x)[0]
        with np.errstate(invalid="ignore"):
            value = (1 - at.alpha) * log_base + at.alpha * log_f - at.log_z
        return np.where((log_f > NOWHERE) & (log_base > -np.inf), value, -np.inf)


class Path:
    """The way from a base to f at theta, and the moves along it."""

    def __init__(self, model: Any, theta: FloatArray, base: Noise) -> None:
        self.model, self.theta, self.base = model, theta, base

    def carried(
        self, alpha: float, steps: int, size: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Points near ``p_alpha``, and their log weights after each step, (step, point).

        Row k - 1 weights the points for ``b = alpha k / steps``; its mean weight estimates Z_b.
        """
        points = np.array(self.base.sample(size, rng), dtype=float)
        values = self._parts(points)
        if not is_continuous(self.model.space):
            return points, np.outer(np.arange(1, steps + 1) * alpha / steps, _odds(values))
        path, total, move = np.empty((steps, size)), np.zeros(size), self._moves(points)
        for k in range(1, steps + 1):
            total = total + _odds(values) * (alpha / steps)
            path[k - 1] = total
            shares = _shares(alpha * k / steps)
            for _ in range(MOVES):
                points, values = move.moved(points, values, self._parts, shares, rng)
        return points, path

    def settled(
        self, points: FloatArray, alpha: float, rng: np.random.Generator, like: FloatArray
    ) -> FloatArray:
        """Points of ``p_alpha``, moved on in steps of the shape of others ``like`` them.

        Steps in the shape of few points themselves would draw these together.
        """
        if not is_continuous(self.model.space):
            return points
        values, move = self._parts(points), self._moves(like)
        for _ in range(SETTLE):
            points, values = move.moved(points, values, self._parts, _shares(alpha), rng)
        return points

    def _moves(self, points: FloatArray) -> Moves:
        return moves(self.model, self.theta, points)

    def _parts(self, x: FloatArray) -> FloatArray:
        """log base and log f, (point, 2)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_f = kernels(self.model, self.theta[None], x)[0]
            return np.column_stack([self.base.log_density(x), log_f])


def _odds(values: FloatArray) -> FloatArray:
    """log f less log base; -inf where f has no mass."""
    return np.where(values[:, 1] > NOWHERE, values[:, 1] - values[:, 0], -np.inf)


def _shares(b: float) -> FloatArray:
    return np.array([1 - b, b])


Parts = Callable[[FloatArray], FloatArray]


class Moves(Protocol):
    """Metropolis steps on a continuous space that learn their size from how many are accepted."""

    def moved(
        self,
        points: FloatArray,
        values: FloatArray,
        parts: Parts,
        shares: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """One step under the log density ``parts(x) @ shares``; points and their parts.

        log f is the last of the parts.
        """
        ...


def moves(model: Any, theta: FloatArray, points: FloatArray) -> Moves:
    """Moves for f at theta, in the shape of the points."""
    if hasattr(model, "slopes"):
        return Leaps(model, theta, points)
    return Walk(model.space, points)


class Walk:
    """Random walks, in the shape of the covariance of ``points``."""

    def __init__(self, space: Any, points: FloatArray) -> None:
        self.space, self.root = space, _root(points)
        self.scale = 1 / math.sqrt(points.shape[1])

    def moved(
        self,
        points: FloatArray,
        values: FloatArray,
        parts: Parts,
        shares: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        new = points + self.scale * rng.standard_normal(points.shape) @ self.root.T
        if is_periodic(self.space):
            new = wrapped(new)
        proposed = parts(new)
        taken = _taken(_gain(values, proposed, shares), rng)
        self.scale *= math.exp(0.5 * (float(taken.mean()) - WALKED))
        return np.where(taken, new, points), np.where(taken, proposed, values)


class Leaps:
    """Hamiltonian steps by derivatives of log f, in the shape of the covariance of ``points``.

    Walls of boxes and of positive numbers throw them back; steps are then as long in each
    coordinate as its spread, since only along an axis does a wall leave their length as it is. The
    derivative of the base is that of a normal of the points' moments, and beyond the space and
    where it is no number that of f is 0: any kick that is a function of the place can be turned
    back, and what is accepted goes by the densities themselves.
    """

    def __init__(self, model: Any, theta: FloatArray, points: FloatArray) -> None:
        self.model, self.theta = model, theta
        self.middle, self.walls = points.mean(axis=0), _walls(model.space)
        self.root = _root(points)
        self.spread = np.sqrt((self.root**2).sum(axis=1))
        if self.walls is not None:
            self.root = np.diag(self.spread)
        self.size = 1 / points.shape[1] ** 0.25

    def moved(
        self,
        points: FloatArray,
        values: FloatArray,
        parts: Parts,
        shares: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        share, step = float(shares[-1]), self.size * rng.uniform(0.7, 1.3)
        speed = rng.standard_normal(points.shape)
        with np.errstate(over="ignore", invalid="ignore"):  # what runs away is not accepted
            x, ended = self._leapt(points, speed, step, share)
            spent = ((speed**2).sum(axis=1) - (ended**2).sum(axis=1)) / 2
            lost = ~(np.abs(x - self.middle) < FAR * self.spread).all(axis=1)
        x = np.where(lost[:, None], points, x)
        proposed = parts(x)
        gain = np.where(lost, -np.inf, _gain(values, proposed, shares) + spent)
        taken = _taken(gain, rng)
        self.size *= math.exp(0.5 * (float(taken.mean()) - LEAPT))
        return np.where(taken, x, points), np.where(taken, proposed, values)

    def _leapt(
        self, x: FloatArray, speed: FloatArray, step: float, share: float
    ) -> tuple[FloatArray, FloatArray]:
        """Where leaps end, and with which speed."""
        speed = speed + step / 2 * self._kick(x, share)
        for leap in range(LEAPS):
            x = x + step * speed @ self.root.T
            if is_periodic(self.model.space):
                x = wrapped(x)
            if self.walls is not None:
                x, signs = _thrown_back(x, *self.walls)
                speed = speed * signs
            speed = speed + (step if leap < LEAPS - 1 else step / 2) * self._kick(x, share)
        return x, speed

    def _kick(self, x: FloatArray, share: float) -> FloatArray:
        inside = self.model.space.contains(x)[:, None]
        slopes = self.model.slopes(self.theta, np.where(inside, x, self.middle))
        kick = np.where(inside & np.isfinite(slopes), share * slopes, 0.0) @ self.root
        if is_periodic(self.model.space):
            return np.asarray(kick)
        # root^-1 (x - middle): minus the slope of the normal in the shape of the root.
        back = np.linalg.solve(self.root, (x - self.middle).T).T
        return np.asarray(kick - (1 - share) * back)


def _walls(space: Any) -> tuple[FloatArray, FloatArray] | None:
    """Least and largest coordinates of a box, or of positive numbers."""
    if isinstance(space, Box):
        low, high = np.asarray(space.bounds, dtype=float)
        return low, high
    if isinstance(space, Orthant):
        return np.zeros(space.dimension), np.full(space.dimension, np.inf)
    return None


def _thrown_back(x: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points folded into the walls, and -1 where they came to go the other way."""
    above, wide = np.abs(x - low), high - low
    signs = np.where(x < low, -1.0, 1.0)
    with np.errstate(invalid="ignore"):  # no upper wall: infinite
        folded = np.where(np.isfinite(wide), np.mod(above, 2 * wide), above)
    over = folded > wide
    return low + np.where(over, 2 * wide - folded, folded), np.where(over, -signs, signs)


def _root(points: FloatArray) -> FloatArray:
    """Of their covariance, shrunk toward its diagonal where they are few for their dimension."""
    n, d = points.shape
    if n < 2:
        return np.eye(d)
    covariance = np.atleast_2d(np.cov(points, rowvar=False))
    if n >= MANY * (d + 1):
        with suppress(np.linalg.LinAlgError):  # columns that repeat each other
            return np.asarray(np.linalg.cholesky(covariance), dtype=float)
    covariance *= n / (n + d + 1)
    spread = points.var(axis=0)
    np.fill_diagonal(covariance, np.where(spread > 0, spread, 1.0))
    return np.asarray(np.linalg.cholesky(covariance), dtype=float)


def _gain(values: FloatArray, proposed: FloatArray, shares: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray((proposed - values) @ shares)


def _taken(gain: FloatArray, rng: np.random.Generator) -> BoolArray:
    """Which proposals are accepted, (point, 1)."""
    with np.errstate(divide="ignore"):
        accepted = np.log(rng.random(len(gain))) < np.nan_to_num(gain, nan=-np.inf)
    return np.asarray(accepted[:, None])
