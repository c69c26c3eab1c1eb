"""Stein features: functions of a row whose mean under the model is zero, whatever log Z is.

With ``s_j = d_j log p``, weights ``h_j`` that vanish where the space ends, and
``a_j = h_j s_j + d_j h_j``, a kernel k and a place v give

    a_j(x) k(x, v) + h_j(x) d k(x, v) / dx_j

(Jitkrittum et al. 2017; the kernel Stein discrepancy at few places, in a time linear in rows).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ncbayes.base import FloatArray
from ncbayes.checks.look import Look
from ncbayes.spaces import is_periodic

# Places at which the discrepancy is looked at.
PLACES = 10


def has_scores(model: Any) -> bool:
    """Whether derivatives by the coordinates of a point are known."""
    known = hasattr(model, "score_statistics") or hasattr(model, "curve")
    return known and hasattr(model.space, "score_weight")


def stein_look(
    model: Any, theta: FloatArray, simulated: FloatArray, names: tuple[str, ...]
) -> Look:
    """Features at simulated places, by place and coordinate."""
    places = simulated[np.arange(PLACES) * len(simulated) // PLACES]
    scale = simulated.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def values(x: FloatArray) -> FloatArray:
        weight, drift = drifts(model, theta, x)
        kernel, slope, _ = smooth_kernel(model.space)(x[:, None, :] - places[None], scale)
        parts = [
            drift[:, j, None] * kernel + weight[:, j, None] * slope(j) for j in range(x.shape[1])
        ]
        return np.hstack(parts)

    labels = [f"{name} near place {k + 1}" for name in names for k in range(len(places))]
    column = np.repeat(np.arange(len(names)), len(places))
    return Look(
        "Stein discrepancy",
        tuple(labels),
        values,
        "the slopes of the density are not those of the data",
        lambda k: (names[column[k]], lambda x: x[:, column[k]]),
    )


def smooth_kernel(space: Any) -> Callable[[FloatArray, FloatArray], tuple[FloatArray, Any, Any]]:
    """The kernel of a space as a function of differences and scales."""
    return von_mises if is_periodic(space) else multiquadric


def drifts(model: Any, theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``h_j`` and ``a_j = h_j d_j log p + d_j h_j``, (n, d) each."""
    weight, change = model.space.score_weight(x)
    return weight, weight * _score(model, theta, x) + change


def _score(model: Any, theta: FloatArray, x: FloatArray) -> FloatArray:
    """``d_j log p``, (n, d)."""
    if hasattr(model, "slopes"):
        return np.asarray(model.slopes(theta, x))
    score = np.empty_like(x)
    for j in range(x.shape[1]):
        first = np.asarray(model.score_statistics(x, j)[0])
        score[:, j] = first[:, :-1] @ theta + first[:, -1]
    return score


def multiquadric(difference: FloatArray, scale: FloatArray) -> tuple[FloatArray, Any, Any]:
    """The kernel, and by coordinate d k / dx_j and d^2 k / dx_j dy_j."""
    d = difference.shape[2]
    base = 1 + np.mean((difference / scale) ** 2, axis=2)
    third, fifth = base**-1.5, base**-2.5

    def slope(j: int) -> FloatArray:
        return np.asarray(-third * difference[..., j] / (d * scale[j] ** 2))

    def bend(j: int) -> FloatArray:
        part = 1 / (d * scale[j] ** 2)
        return np.asarray(part * third - 3 * (part * difference[..., j]) ** 2 * fifth)

    return base**-0.5, slope, bend


def von_mises(difference: FloatArray, scale: FloatArray) -> tuple[FloatArray, Any, Any]:
    """``multiquadric`` for angles."""
    rate = difference.shape[2] ** -0.5
    kernel = np.exp(rate * (np.cos(difference) - 1).sum(axis=2))

    def slope(j: int) -> FloatArray:
        return np.asarray(-rate * np.sin(difference[..., j]) * kernel)

    def bend(j: int) -> FloatArray:
        sine, cosine = np.sin(difference[..., j]), np.cos(difference[..., j])
        return np.asarray((rate * cosine - (rate * sine) ** 2) * kernel)

    return kernel, slope, bend
