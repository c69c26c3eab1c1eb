"""Where sweeps may begin."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ncbayes.base import FloatArray
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
    found = np.zeros(len(target.contrasts))
    for g, each in enumerate(target.contrasts):
        for _ in range(50):
            chance = expit(each.offset + found[g])
            excess = float((each.is_data - chance).sum())
            curvature = float((chance * (1 - chance)).sum())
            step = excess / max(curvature, 1e-10)
            found[g] += min(max(step, -2.0), 2.0)
            if abs(step) < 1e-6:
                break
    return found
