"""The Gaussian of a prior and of a likelihood's expansion, which engines without noise move by."""

from __future__ import annotations

import numpy as np

from ncbayes.base import FloatArray, State
from ncbayes.contrast import Target
from ncbayes.linalg import given_grams


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
