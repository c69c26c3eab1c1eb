"""The Gaussian of a prior and of a likelihood's expansion, which engines without noise move by."""

from __future__ import annotations

import numpy as np

from ncbayes.base import FloatArray, State
from ncbayes.contrast import Target
from ncbayes.linalg import given_grams

# Sweeps on the expansion alone that bring the scales from their prior near the posterior; cheap.
APPROACH = 50
# Share of the expansion's own diagonal that keeps its mode finite where the data say little.
RIDGE = 0.01


def gaussian(
    target: Target, scales: State, share: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Mean of all groups' theta, and a draw, with so much of the losses' expansion."""
    prior, shift = target.prior.gaussian(scales, target.shape)
    grams = [share * each.gram for each in target.losses]
    right = shift + share * np.array([each.shift for each in target.losses])
    normals = rng.standard_normal(target.shape)
    mean = given_grams(grams, prior, right, np.zeros(target.shape))
    return mean, given_grams(grams, prior, right, normals)


def approached(target: Target, rng: np.random.Generator) -> State:
    """Scales for a start: from the likelihood's mode, then as if it were its expansion."""
    theta = np.array([_mode(each.gram, each.shift) for each in target.losses])
    scales = target.prior.draw(target.shape, rng)
    for _ in range(APPROACH if scales else 0):
        scales = target.prior.update(scales, theta, rng)
        theta = gaussian(target, scales, 1.0, rng)[1]
    return scales


def _mode(gram: FloatArray, shift: FloatArray) -> FloatArray:
    diagonal = np.diag(gram)
    # A statistic that no simulated data set has, such as triangles of empty graphs: its mode is 0.
    ridge = np.where(diagonal > 0, RIDGE * diagonal, 1.0)
    return np.asarray(np.linalg.solve(gram + np.diag(ridge), shift))


def conditional(
    target: Target,
    scales: State,
    theta: FloatArray,
    group: int,
    share: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """The same for one group's theta given that of the others, (statistic,) each."""
    loss = target.losses[group]
    prior, shifts = target.prior.gaussian(scales, target.shape)
    within, right = prior.within[group], shifts[group] + share * loss.shift
    if prior.between is not None:
        if group > 0:
            right = right - prior.between[group - 1] * theta[group - 1]
        if group < len(theta) - 1:
            right = right - prior.between[group] * theta[group + 1]
    precision = share * loss.gram + (np.diag(within) if within.ndim == 1 else within)
    factor = np.linalg.cholesky(precision)
    half = np.linalg.solve(factor, right)
    both = np.stack([half, half + rng.standard_normal(len(half))], axis=1)
    mean, draw = np.linalg.solve(factor.T, both).T
    return mean, draw
