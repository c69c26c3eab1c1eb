"""Rows simulated from the fitted model: from its base, and from the data themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from ncbayes.base import FloatArray, InputError
from ncbayes.noise.carried import moves
from ncbayes.normalizers import Normalizer, kernels
from ncbayes.quadrature import rule
from ncbayes.spaces import is_continuous

# Sweeps of the model's conditionals, or moves, that part copies of one particle;
# few sweeps where so large a share of the particles is effective, and copies are few.
SWEEPS, FEW_SWEEPS, STEPS, EVEN = 10, 4, 40, 0.8
# Of particles that were copied and moved on, so many count as independent: a half.
INDEPENDENT = 0.5
# The log of the number of points that are enumerated.
MOST_ENUMERATED = 10.0


def from_base(
    model: Any, theta: FloatArray, known: Normalizer | None, size: int, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Rows at theta, and how many independent ones they are worth.

    ``known`` is log Z at theta and elsewhere, whose particles at theta are used if it has some.
    """
    if known is not None and known.particles is not None:
        points, log_weights = known.particles
        weights = softmax(log_weights)
        chosen = _systematic(weights, size, rng)
        even = 1 / max(1.0, np.sum(weights**2) * len(points))
        worth = min(size * INDEPENDENT, len(points) * even)
        is_even = even >= EVEN and size <= len(points)
        moved = _moved(model, theta, points[chosen], rng, FEW_SWEEPS if is_even else SWEEPS)
        return moved, float(
            max(worth, size * INDEPENDENT * (moved != points[chosen]).any(1).mean())
        )
    table = _enumerated(model, theta)
    if table is not None:
        points, mass = table
        return points[rng.choice(len(points), size, p=mass)], float(size)
    if hasattr(model, "sample"):
        return np.asarray(model.sample(theta, size, rng), dtype=float), float(size)
    points, volumes, _ = rule(model.space, model, theta)
    mass = softmax(kernels(model, theta[None], points)[0] + np.log(volumes))
    return _moved(model, theta, points[rng.choice(len(points), size, p=mass)], rng), float(size)


def from_rows(
    model: Any, theta: FloatArray, rows: FloatArray, size: int, rng: np.random.Generator
) -> FloatArray:
    """Copies of rows of the data, moved by what leaves the model at theta as it is."""
    return _moved(model, theta, rows[np.arange(size) * len(rows) // size], rng)


def _moved(
    model: Any,
    theta: FloatArray,
    points: FloatArray,
    rng: np.random.Generator,
    sweeps: int = SWEEPS,
) -> FloatArray:
    if hasattr(model, "sweep"):
        for _ in range(sweeps):
            points = model.sweep(theta, points, rng)
        return np.asarray(points)
    if not is_continuous(model.space):
        return points

    def parts(x: FloatArray) -> FloatArray:
        return kernels(model, theta[None], x).T

    values, move, whole = parts(points), moves(model, theta, points), np.ones(1)
    for _ in range(STEPS):
        points, values = move.moved(points, values, parts, whole, rng)
    return points


def _enumerated(model: Any, theta: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """All points of a small discrete space with their probabilities."""
    if is_continuous(model.space) or model.space.log_volume > MOST_ENUMERATED:
        return None
    try:
        points, _, _ = rule(model.space, model, theta)
    except InputError:
        return None
    return points, softmax(kernels(model, theta[None], points)[0])


def _systematic(weights: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Indices drawn in proportion to weights, each as often as its share or once more or less."""
    places = (np.arange(size) + rng.random()) / size
    return np.asarray(np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1))
