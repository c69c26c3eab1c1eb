"""Where sweeps may begin."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ncbayes.base import BoolArray, FloatArray
from ncbayes.contrast import Target


def at_zero(target: Target) -> FloatArray:
    """coef with theta = 0, and c, if there is one, as ``intercepts`` has it."""
    coef = np.zeros(target.shape)
    if target.normalizer:
        coef[:, -1] = intercepts(target)
    return coef


def intercepts(target: Target) -> FloatArray:
    """For theta = 0, the c of each group that makes as many points likely data as there are data.

    By Newton's method; 0 for a group without points.
    """
    return np.array([intercept(each.offset, each.is_data) for each in target.contrasts])


def intercept(log_odds: FloatArray, is_data: BoolArray) -> float:
    """What to add to all log odds for as many points to be likely data as there are data."""
    found = 0.0
    for _ in range(50):
        chance = expit(log_odds + found)
        excess = float((is_data - chance).sum())
        curvature = float((chance * (1 - chance)).sum())
        step = excess / max(curvature, 1e-10)
        found += min(max(step, -2.0), 2.0)
        if abs(step) < 1e-6:
            break
    return found
