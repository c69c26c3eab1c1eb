"""How far the draws of a difference lie from no difference.

Evidence is calibrated like a p value: where nothing differs and posteriors are calibrated, it is
uniform, whatever the number of coefficients of an edge and however wide the posterior is. The
posterior probability that a norm exceeds a threshold is not: a norm is positive, and the wider the
posterior, the larger its norms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ncbayes.base import FloatArray

# Halvings of an interval that end at the precision of a double.
HALVINGS = 100


def tail_mass(draws: FloatArray, threshold: float = 0.0) -> FloatArray:
    """Posterior mass at least as far out as no difference, by edge, of draws (draw, edge, kind).

    With mean m and covariance S of an edge's draws d, z the point of the ball of radius
    ``threshold`` that is nearest to m in the metric of S, and D^2(x) = (x - m)' S^-1 (x - m), it is
    the largest of three masses, which are equal for one coefficient with a normal posterior:

        P(T^2 > N / (N + 1) D^2(z))           by Hotelling's law with N - 1 degrees of freedom
        P(D(d) >= D(z))                       mass outside the joint region through z
        2 P((d - z)' S^-1 (m - z) <= 0)       twice the mass beyond z

    The first is that of a normal posterior of which N effective draws are known: few draws claim
    nothing. The other two are counted, for posteriors with spikes, skew or heavy tails. Draws that
    do not vary have mass 1.
    """
    count, _, size = draws.shape
    mean, precision = _moments(draws)
    nearest = _nearest(mean, precision, threshold)
    away = np.einsum("ekl,el->ek", precision, mean - nearest)
    least = np.einsum("ek,ek->e", away, mean - nearest)
    centred = draws - mean
    distance = np.einsum("tek,ekl,tel->te", centred, precision, centred, optimize=True)
    outside = (distance >= least).mean(axis=0)
    beyond = 2 * (np.einsum("tek,ek->te", draws - nearest, away) <= 0).mean(axis=0)
    effective = np.minimum(_effective(draws), count)
    # A new draw is as far from the estimated mean as its own spread and the mean's error make it.
    normal = _normal_mass(least * effective / (effective + 1), size, effective - 1)
    mass = np.minimum(np.maximum(np.maximum(normal, outside), beyond), 1.0)
    return np.asarray(np.where(least > 0, mass, 1.0))


def normal_mass(
    mean: FloatArray, covariance: FloatArray, freedom: float, threshold: float = 0.0
) -> FloatArray:
    """``tail_mass`` of normal laws (edge, kind), whose covariance has ``freedom`` degrees."""
    precision = _inverse(covariance)
    away = mean - _nearest(mean, precision, threshold)
    least = np.einsum("ek,ekl,el->e", away, precision, away)
    mass = _normal_mass(least, mean.shape[1], np.full(len(mean), freedom))
    return np.asarray(np.where(least > 0, mass, 1.0))


def _normal_mass(squared: FloatArray, size: int, freedom: FloatArray) -> FloatArray:
    """P(T^2 > squared) by Hotelling's law; 1 where there are too few degrees of freedom."""
    from scipy.stats import f

    left = np.maximum(freedom - size + 1, 1e-3)
    ratio = squared * left / (size * np.maximum(freedom, 1e-3))
    return np.asarray(np.where(freedom >= size, f.sf(ratio, size, left), 1.0))


def shared_direction(first: FloatArray, change: FloatArray) -> FloatArray:
    """Unit vectors (edge, kind) along what two groups share, of draws (draw, edge, kind).

    The shared coefficients are ``E first - Cov(first, change) Cov(change)^-1 E change``, the mean
    of both groups weighted by their precisions. It is independent of the change, so that to look
    along it favours no sign of the change. To compare norms does: those of the smaller group hold
    more noise and are larger.
    """
    mean, precision = _moments(change)
    joint = np.einsum("tek,tel->ekl", first - first.mean(axis=0), change - mean)
    regression = np.einsum("ekl,elm,em->ek", joint / max(len(change) - 1, 1), precision, mean)
    return unit(first.mean(axis=0) - regression)


def unit(shared: FloatArray) -> FloatArray:
    """Vectors (edge, kind) of length one; where one is zero, any."""
    length = np.linalg.norm(shared, axis=1, keepdims=True)
    flat = np.full_like(shared, 1 / np.sqrt(shared.shape[1])) if shared.size else shared
    return np.asarray(np.divide(shared, length, out=flat, where=length > 0))


def adjusted(masses: FloatArray) -> FloatArray:
    """Masses for many edges: select those below q, and the share of false ones is at most q.

    The procedure of Benjamini and Hochberg (1995).
    """
    size = len(masses)
    order = np.argsort(masses)[::-1]
    ratios = masses[order] * size / np.arange(size, 0, -1)
    found = np.empty(size)
    found[order] = np.minimum(np.minimum.accumulate(ratios), 1.0)
    return found


def _moments(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (edge, kind) and inverse covariance (edge, kind, kind); zero where nothing varies."""
    mean = draws.mean(axis=0)
    centred = draws - mean
    covariance = np.einsum("tek,tel->ekl", centred, centred) / max(len(draws) - 1, 1)
    return mean, _inverse(covariance)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Inverses (edge, kind, kind), in the directions in which there is any variance."""
    return np.asarray(np.linalg.pinv(covariance, rcond=1e-12, hermitian=True))


def _nearest(mean: FloatArray, precision: FloatArray, radius: float) -> FloatArray:
    """Points with norms of at most ``radius`` nearest to the means, in the metric ``precision``.

    They are (precision + penalty)^-1 precision mean, with the penalty that gives the norm.
    """
    if radius == 0 or not mean.size:
        return np.zeros_like(mean)
    weights, axes = np.linalg.eigh(precision)
    along = np.einsum("ekl,ek->el", axes, mean)

    def shrunk(penalty: FloatArray) -> FloatArray:
        total = weights + penalty[:, None]
        shape = np.zeros_like(along)
        return np.asarray(np.divide(weights * along, total, out=shape, where=total > 0))

    low = np.zeros(len(mean))
    high = weights.max(axis=1) * np.linalg.norm(along, axis=1) / radius
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        long = np.linalg.norm(shrunk(middle), axis=1) > radius
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    found = np.einsum("ekl,el->ek", axes, shrunk(high))
    inside = np.linalg.norm(mean, axis=1) <= radius
    return np.where(inside[:, None], mean, found)


def _effective(draws: FloatArray) -> FloatArray:
    """Effective draws of the coefficient that has the fewest, by edge; 0 where one is unknown."""
    from arviz_stats.base import array_stats as untyped

    array_stats: Any = untyped
    if len(draws) < 4 or not draws.size:  # ArviZ needs four draws
        return np.zeros(draws.shape[1])
    found: FloatArray = array_stats.ess(draws[None], chain_axis=0, draw_axis=1)
    varies = np.ptp(draws, axis=0) > 0
    known = np.where(varies, np.nan_to_num(found.reshape(varies.shape)), 0.0)
    return np.asarray(known.min(axis=1))
